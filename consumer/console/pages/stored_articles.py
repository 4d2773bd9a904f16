"""Reads the articles of flags from the store; where it does not answer, pages show what they have without."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from consumer.console.context import ArticleView, Desk
from consumer.model.errors import StoreMismatch
from consumer.reviews.flag_row import FlagRow
from storage.errors import StoreError

log = logging.getLogger("dupwatch")

Named = tuple[str, str]
"""An article's id and version."""


class Found(NamedTuple):
    """The articles that the store holds, by id and version. ``is_away``: it did not answer."""

    articles: Mapping[Named, ArticleView]
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


def articles_of(desk: Desk, flags: Iterable[FlagRow], *, bodies: bool = False) -> Found:
    """Read both articles of each flag, in one call."""
    named = [
        pair for flag in flags for pair in ((flag.article_id, flag.version), (flag.original_id, flag.original_version))
    ]
    return articles_named(desk, named, bodies=bodies)


def articles_named(desk: Desk, named: Iterable[Named], *, bodies: bool = False) -> Found:
    """Read articles by id and version, in one call."""
    wanted = list(dict.fromkeys(named))
    if not wanted:
        return Found({}, is_away=False)
    try:
        views = desk.articles.read(wanted, bodies=bodies)
    except (StoreError, StoreMismatch) as error:
        log.warning("The articles of a page could not be read: %s", error)
        return Found({}, is_away=True)
    return Found({pair: view for pair, view in zip(wanted, views, strict=True) if view is not None}, is_away=False)


def story_rows(flags: Sequence[FlagRow], found: Found) -> list[StoryRow]:
    """Return these flags with what was found of their articles."""
    return [StoryRow(flag, found.article(flag)) for flag in flags]
