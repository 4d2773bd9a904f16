"""The line on pages that names the preferred member of a story and counts its other sources."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from consumer.console.context import ArticleView
from consumer.console.pages.stored_articles import ArticleLookUp, VersionKey
from consumer.reviews.database import Connection
from consumer.reviews.ranking.preferred import RankedMember, preferred_members
from consumer.reviews.search import Count
from consumer.reviews.stories import Story, count_sources

COPIES_MAX: Final = 10_000
"""The maximum number of copies of a story whose sources are counted for its page."""
LISTED_COPIES_MAX: Final = 1_000
"""The maximum number of copies of each story whose sources are counted for a list of stories."""


class PreferredLine(NamedTuple):
    """The preferred member of a story, its article if the store has it, and the number of other sources."""

    member: RankedMember
    article: ArticleView | None
    others: Count


class PreferredMembers(NamedTuple):
    """The preferred members of some stories, and the number of sources of each story, by story id."""

    members: Mapping[int, RankedMember]
    sources: Mapping[int, Count]

    @property
    def named(self) -> Sequence[VersionKey]:
        """The versions whose titles pages show."""
        return [(each.article_id, each.version) for each in self.members.values() if each.version is not None]

    def line(self, story_id: int, found: ArticleLookUp) -> PreferredLine:
        """Return the line of one of these stories."""
        member, sources = self.members[story_id], self.sources[story_id]
        article = None if member.version is None else found.articles.get((member.article_id, member.version))
        own = 1 if member.source else 0
        return PreferredLine(member, article, sources._replace(rows=max(0, sources.rows - own)))


def read_preferred(connection: Connection, stories: Iterable[Story], copies_max: int = COPIES_MAX) -> PreferredMembers:
    """Read the preferred members of stories. Beyond ``copies_max`` copies, sources are not counted completely."""
    listed = list(stories)
    members = preferred_members(connection, [story.story_id for story in listed])
    return PreferredMembers(members, count_sources(connection, listed, copies_max))
