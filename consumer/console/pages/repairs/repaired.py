"""Lists the repairs of a story, with the originals of the other stories."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from consumer.console.context import ArticleView
from consumer.console.pages.stored_articles import ArticleLookUp, original_named
from consumer.reviews.database import Connection
from consumer.reviews.flag_row import FlagRow
from consumer.reviews.repairs.repair_list import StoryMerge, VersionSplit, merges_into, splits_of
from consumer.reviews.stories import Story

MERGES_MAX: Final = 100
"""The maximum number of merged stories that a story's page lists. It lists the latest."""


class SplitLine(NamedTuple):
    """A version that was split off, and the original of its former story."""

    split: VersionSplit
    root: ArticleView | None


class MergeLine(NamedTuple):
    """A story that was merged into this one, and its original."""

    merge: StoryMerge
    root: ArticleView | None


class Repairs(NamedTuple):
    """The repairs of a story: versions of its original split off other stories, and stories merged into it."""

    splits: Sequence[VersionSplit]
    merges: Sequence[StoryMerge]

    @property
    def root_ids(self) -> list[str]:
        """The ids of the originals of the other stories."""
        return [*(each.from_root_id for each in self.splits), *(each.root_id for each in self.merges)]

    def split_lines(self, found: ArticleLookUp, versions: Mapping[str, str]) -> list[SplitLine]:
        """Return the splits, with the originals that the store has."""
        return [SplitLine(each, original_named(found, versions, each.from_root_id)) for each in self.splits]

    def merge_lines(self, found: ArticleLookUp, versions: Mapping[str, str]) -> list[MergeLine]:
        """Return the merges, with the originals that the store has."""
        return [MergeLine(each, original_named(found, versions, each.root_id)) for each in self.merges]


def repairs_of(connection: Connection, story: Story) -> Repairs:
    """Return the repairs of a story."""
    return Repairs(splits_of(connection, story.root_id), merges_into(connection, story.story_id, MERGES_MAX))


def split_line(connection: Connection, flag: FlagRow) -> SplitLine | None:
    """Return the split of a flag's version, or None if it was not split off. The original is not read."""
    found = [each for each in splits_of(connection, flag.article_id) if each.flag_id == flag.flag_id]
    return SplitLine(found[0], None) if found else None
