"""Flags of a story with their articles, for lists."""

from collections.abc import Sequence
from typing import NamedTuple

from consumer.console.context import ArticleView
from consumer.console.stored_articles import Found
from consumer.reviews.flag_row import FlagRow


class StoryRow(NamedTuple):
    """A copy; the article is None where the store does not have it."""

    flag: FlagRow
    article: ArticleView | None


def story_rows(flags: Sequence[FlagRow], found: Found) -> list[StoryRow]:
    """Return these flags with what was found of their articles."""
    return [StoryRow(flag, found.article(flag)) for flag in flags]
