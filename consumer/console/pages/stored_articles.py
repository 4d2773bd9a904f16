"""Reads the articles of flags from the store. If the store does not answer, pages do without them."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

from consumer.console.context import ArticleView, ConsoleContext
from consumer.console.rendering import LINE_CHARS_MAX
from consumer.model.errors import StoreMismatch
from consumer.reviews.flag_row import FlagRow
from consumer.reviews.kinds.rules import RULES
from consumer.reviews.portable import portions
from storage.errors import StoreError

log = logging.getLogger("dupwatch")

_TEXTS_READ_MAX: Final = 20
"""The maximum number of texts read at once for their beginnings, so that few large texts are in memory at a time."""

VersionKey = tuple[str, str]
"""An article's id and version."""


class ArticleLookUp(NamedTuple):
    """The articles that the store has, by id and version. ``is_away``: the store did not answer."""

    articles: Mapping[VersionKey, ArticleView]
    is_away: bool

    def article(self, flag: FlagRow) -> ArticleView | None:
        """Return the flagged article, or None if it was not found."""
        return self.articles.get((flag.article_id, flag.version))

    def original(self, flag: FlagRow) -> ArticleView | None:
        """Return the article that the flagged one repeats, or None if it was not found."""
        return self.articles.get((flag.original_id, flag.original_version))


class StoryRow(NamedTuple):
    """A copy in the list of a story; the article is None if the store does not have it."""

    flag: FlagRow
    article: ArticleView | None

    @property
    def can_be_split(self) -> bool:
        """Whether the article can be split off: it is still a copy, and not a version of the story's original."""
        flag = self.flag
        return RULES[flag.kind].is_copy and flag.released_ms is None and flag.article_id != flag.root_id


def articles_of(
    context: ConsoleContext,
    flags: Iterable[FlagRow],
    *,
    bodies: bool = False,
    others: Iterable[VersionKey] = (),
    known: Mapping[VersionKey, ArticleView] = MappingProxyType({}),
) -> ArticleLookUp:
    """Read both articles of each flag, and others. Without ``bodies``, only articles without a title get a text.

    This text is cut to its beginning, which pages show instead of a title. Articles in ``known`` are not read again.
    """
    named = [
        pair for flag in flags for pair in ((flag.article_id, flag.version), (flag.original_id, flag.original_version))
    ]
    unread = [pair for pair in (*named, *others) if pair not in known]
    found = articles_named(context, unread, bodies=bodies)
    return found._replace(articles={**known, **found.articles})


def articles_named(context: ConsoleContext, named: Iterable[VersionKey], *, bodies: bool = False) -> ArticleLookUp:
    """Read articles by id and version, as ``articles_of`` does."""
    try:
        found = _read(context, list(dict.fromkeys(named)), bodies=bodies)
        if not bodies:
            untitled = [pair for pair, view in found.items() if not view.title.strip()]
            for portion in portions(untitled, _TEXTS_READ_MAX):
                found |= {pair: _beginning(view) for pair, view in _read(context, portion, bodies=True).items()}
    except (StoreError, StoreMismatch) as error:
        log.warning("The articles of a page could not be read: %s", error)
        return ArticleLookUp({}, is_away=True)
    return ArticleLookUp(found, is_away=False)


def original_named(found: ArticleLookUp, versions: Mapping[str, str], root_id: str) -> ArticleView | None:
    """Return the original of a story, or None if it is not in the store; ``versions`` maps ids to versions."""
    version = versions.get(root_id)
    return None if version is None else found.articles.get((root_id, version))


def _read(context: ConsoleContext, keys: Sequence[VersionKey], *, bodies: bool) -> dict[VersionKey, ArticleView]:
    views = context.articles.read(keys, bodies=bodies) if keys else []
    return {pair: view for pair, view in zip(keys, views, strict=True) if view is not None}


def _beginning(view: ArticleView) -> ArticleView:
    return view if view.body is None else replace(view, body=view.body[:LINE_CHARS_MAX])


def story_rows(flags: Sequence[FlagRow], found: ArticleLookUp) -> list[StoryRow]:
    """Return rows of these flags with the articles that were found."""
    return [StoryRow(flag, found.article(flag)) for flag in flags]
