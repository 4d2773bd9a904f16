"""The repairs in force: versions split off their stories, and stories merged into others.

Repairs name articles by id, and may be older than any flag of these articles.
"""

from collections.abc import Collection
from functools import cache
from typing import Final, NamedTuple

from sqlalchemy import CTE, ColumnElement, Connection, Select, bindparam, exists, select

from consumer.reviews.portable import among, portions
from consumer.reviews.story_changes import stories_by_root
from consumer.reviews.tables import FLAGS, STORIES, STORY_MERGES, STORY_SPLITS

IS_SPLIT: Final[ColumnElement[bool]] = (
    exists()
    .where(STORY_SPLITS.c.article_id == FLAGS.c.article_id, STORY_SPLITS.c.version == FLAGS.c.version)
    .correlate(FLAGS)
)
"""The condition for flags whose version is split off."""


class StoryPlace(NamedTuple):
    """The story that shows and counts a flag. ``home_id`` is the flag's story by lineage if that differs, else None."""

    story_id: int
    home_id: int | None


def split_versions(connection: Connection, versions: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return which of these versions are split off."""
    found: set[tuple[str, str]] = set()
    for portion in portions({article_id for article_id, _ in versions}):
        columns = select(STORY_SPLITS.c.article_id, STORY_SPLITS.c.version)
        named = connection.execute(columns.where(among(connection, STORY_SPLITS.c.article_id, portion)))
        found.update((article_id, version) for article_id, version in named)
    return found & set(versions)


def story_places(connection: Connection, homes: Collection[int]) -> dict[int, StoryPlace]:
    """Return, for each story by lineage, where its flags are shown. Missing stories are created.

    The caller must hold ``Lock.FLAGS``.
    """
    heads = _last_roots(connection, homes)
    stories = stories_by_root(connection, dict.fromkeys(heads.values()))
    return {home: StoryPlace(stories[heads[home]], home) if home in heads else StoryPlace(home, None) for home in homes}


def showing_story(connection: Connection, story_id: int) -> int:
    """Return the story that shows the flags of a story: itself, unless it is merged into another one."""
    # Most stories are not merged.
    if connection.execute(_merge_of(), {"this": story_id}).scalar() is None:
        return story_id
    root = _last_roots(connection, [story_id]).get(story_id)
    head = connection.execute(select(STORIES.c.story_id).where(STORIES.c.root_id == root)).scalar()
    return story_id if head is None else head


def stories_above(connection: Connection, story_ids: Collection[int]) -> dict[int, set[int]]:
    """Return the stories that each of these is merged into, directly or indirectly."""
    found: dict[int, set[int]] = {story_id: set() for story_id in story_ids}
    for portion in portions(story_ids):
        above = _above(connection, portion)
        into = select(above.c.story_id, STORIES.c.story_id).join_from(
            above, STORIES, STORIES.c.root_id == above.c.root_id
        )
        for story_id, into_id in connection.execute(into):
            found[story_id].add(into_id)
    return found


def merged_below(story_id: int) -> CTE:
    """Return a query for the roots of all stories merged into a story, directly or indirectly."""
    first = select(STORY_MERGES.c.root_id).join_from(
        STORIES, STORY_MERGES, STORY_MERGES.c.into_root_id == STORIES.c.root_id
    )
    below = first.where(STORIES.c.story_id == story_id).cte("merged", recursive=True)
    further = select(STORY_MERGES.c.root_id)
    return below.union(further.join_from(below, STORY_MERGES, STORY_MERGES.c.into_root_id == below.c.root_id))


def merged_stories(connection: Connection, story_id: int) -> list[int]:
    """Return all stories merged into a story, directly or indirectly."""
    below = merged_below(story_id)
    query = select(STORIES.c.story_id).join_from(below, STORIES, STORIES.c.root_id == below.c.root_id)
    return list(connection.execute(query).scalars())


@cache
def _merge_of() -> Select[str]:
    """Return the query for the merge of a story. Cached, since each page of a story runs it."""
    merged = select(STORY_MERGES.c.root_id).join(STORIES, STORIES.c.root_id == STORY_MERGES.c.root_id)
    return merged.where(STORIES.c.story_id == bindparam("this"))


def _last_roots(connection: Connection, story_ids: Collection[int]) -> dict[int, str]:
    """Return, for each merged story, the root of the last story in its chain of merges. Other stories are left out."""
    found: dict[int, str] = {}
    for portion in portions(story_ids):
        above = _above(connection, portion)
        leads_on = exists().where(STORY_MERGES.c.root_id == above.c.root_id).correlate(above)
        last = select(above.c.story_id, above.c.root_id).where(~leads_on)
        found |= {row.story_id: row.root_id for row in connection.execute(last)}
    return found


def _above(connection: Connection, story_ids: Collection[int]) -> CTE:
    """Return a query for stories with the roots of all stories they are merged into, directly or indirectly."""
    first = (
        select(STORIES.c.story_id, STORY_MERGES.c.into_root_id.label("root_id"))
        .join_from(STORIES, STORY_MERGES, STORY_MERGES.c.root_id == STORIES.c.root_id)
        .where(among(connection, STORIES.c.story_id, story_ids))
    )
    above = first.cte("above", recursive=True)
    further = select(above.c.story_id, STORY_MERGES.c.into_root_id)
    # UNION, not UNION ALL: it ends even if rows form a cycle.
    return above.union(further.join_from(above, STORY_MERGES, STORY_MERGES.c.root_id == above.c.root_id))
