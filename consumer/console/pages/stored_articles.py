"""Reads the articles of flags from the store; where it does not answer, pages show what they have without."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from consumer.console.context import ArticleView, ConsoleContext
from consumer.console.rendering import LINE_CHARS_MAX
from consumer.model.errors import StoreMismatch
from consumer.reviews.flag_row import FlagRow
from consumer.reviews.kinds.rules import RULES
from consumer.reviews.portable import portions
from storage.errors import StoreError

log = logging.getLogger("dupwatch")

_TEXTS_AT_ONCE: Final = 20
"""Texts that are read together for their beginnings, so that few large ones are in memory."""

VersionKey = tuple[str, str]
"""An article's id and version."""


class ArticleLookUp(NamedTuple):
    """The articles that the store holds, by id and version. ``is_away``: it did not answer."""

    articles: Mapping[VersionKey, ArticleView]
    is_away: bool

    def article(self, flag: FlagRow) -> ArticleView | None:
        """Return the article that was flagged."""
        return self.articles.get((flag.article_id, flag.version))

    def original(self, flag: FlagRow) -> ArticleView | None:
        """Return the article that it repeats."""
        return self.articles.get((flag.original_id, flag.original_version))


class StoryRow(NamedTuple):
    """A copy in a list of a story; the article is None where the store does not have it."""

    flag: FlagRow
    article: ArticleView | None

    @property
    def can_be_split(self) -> bool:
        """Whether it can be split off: it is a copy, and no version of the story's original."""
        flag = self.flag
        return RULES[flag.kind].is_copy and flag.released_ms is None and flag.article_id != flag.root_id


def articles_of(
    desk: ConsoleContext, flags: Iterable[FlagRow], *, bodies: bool = False, others: Iterable[VersionKey] = ()
) -> ArticleLookUp:
    """Read both articles of each flag, and others; without ``bodies`` only the beginnings of texts without a title."""
    named = [
        pair for flag in flags for pair in ((flag.article_id, flag.version), (flag.original_id, flag.original_version))
    ]
    return articles_named(desk, [*named, *others], bodies=bodies)


def articles_named(desk: ConsoleContext, named: Iterable[VersionKey], *, bodies: bool = False) -> ArticleLookUp:
    """Read articles by id and version, as ``articles_of`` does."""
    try:
        found = _read(desk, list(dict.fromkeys(named)), bodies=bodies)
        if not bodies:
            untitled = [pair for pair, view in found.items() if not view.title.strip()]
            for portion in portions(untitled, _TEXTS_AT_ONCE):
                found |= {pair: _begun(view) for pair, view in _read(desk, portion, bodies=True).items()}
    except (StoreError, StoreMismatch) as error:
        log.warning("The articles of a page could not be read: %s", error)
        return ArticleLookUp({}, is_away=True)
    return ArticleLookUp(found, is_away=False)


def original_named(found: ArticleLookUp, versions: Mapping[str, str], root_id: str) -> ArticleView | None:
    """Return the original of a story, given versions of originals by their ids; None where it is not in the store."""
    version = versions.get(root_id)
    return None if version is None else found.articles.get((root_id, version))


def _read(desk: ConsoleContext, wanted: Sequence[VersionKey], *, bodies: bool) -> dict[VersionKey, ArticleView]:
    views = desk.articles.read(wanted, bodies=bodies) if wanted else []
    return {pair: view for pair, view in zip(wanted, views, strict=True) if view is not None}


def _begun(view: ArticleView) -> ArticleView:
    return view if view.body is None else replace(view, body=view.body[:LINE_CHARS_MAX])


def story_rows(flags: Sequence[FlagRow], found: ArticleLookUp) -> list[StoryRow]:
    """Return these flags with what was found of their articles."""
    return [StoryRow(flag, found.article(flag)) for flag in flags]
