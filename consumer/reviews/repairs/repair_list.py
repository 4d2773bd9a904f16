"""Lists the repairs of stories for pages and exports: split versions and merged stories."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, select

from consumer.reviews.kinds.rules import COPY_KINDS
from consumer.reviews.repairs.in_force import merged_below
from consumer.reviews.tables import FLAGS, PEOPLE, SOURCES, STORIES, STORY_MERGES, STORY_SPLITS

_ROOT = STORIES.alias("root")
_INTO_ROOT = STORIES.alias("into_root")
_SOURCE = SOURCES.alias("source_of_copy")
_ORIGINAL_SOURCE = SOURCES.alias("source_of_original")


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionSplit:
    """A version that was split off the story of ``from_root_id``, and its flag."""

    flag_id: int
    article_id: str
    version: str
    original_id: str
    original_version: str
    # None until read from the store.
    source: str | None
    original_source: str | None
    similarity: float | None
    distance: int | None
    arrived_ms: int
    from_root_id: str
    # The id of the story with that root.
    from_id: int | None
    person: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryMerge:
    """A story that was merged into another one, each named by its root article. Sources are None until known."""

    story_id: int
    root_id: str
    source: str | None
    into_root_id: str
    into_source: str | None
    person: str
    at_ms: int


def splits(connection: Connection) -> Iterator[VersionSplit]:
    """Yield all split versions that have a flag, ordered by article and version."""
    query = _splits().order_by(STORY_SPLITS.c.article_id, STORY_SPLITS.c.version)
    return (VersionSplit(**row._asdict()) for row in connection.execute(query))


def splits_of(connection: Connection, article_id: str) -> list[VersionSplit]:
    """Return the split versions of an article that have a flag."""
    return [VersionSplit(**row._asdict()) for row in connection.execute(_splits_of(), {"article": article_id})]


def merges(connection: Connection) -> Iterator[StoryMerge]:
    """Yield all merged stories, ordered by root."""
    return (StoryMerge(**row._asdict()) for row in connection.execute(_merges().order_by(STORY_MERGES.c.root_id)))


def merges_into(connection: Connection, story_id: int, limit: int) -> list[StoryMerge]:
    """Return up to ``limit`` stories merged into a story, directly or indirectly, the latest merge first."""
    below = merged_below(story_id)
    query = _merges().join(below, below.c.root_id == STORY_MERGES.c.root_id)
    latest = query.order_by(STORY_MERGES.c.at_ms.desc(), _ROOT.c.story_id.desc()).limit(limit)
    return [StoryMerge(**row._asdict()) for row in connection.execute(latest)]


@cache
def _splits_of() -> Select[Any]:
    """Return the query for the splits of an article. It is cached, because every page of a flag runs it."""
    return _splits().where(STORY_SPLITS.c.article_id == bindparam("article")).order_by(STORY_SPLITS.c.version)


def _splits() -> Select[Any]:
    of_version = and_(
        FLAGS.c.article_id == STORY_SPLITS.c.article_id,
        FLAGS.c.version == STORY_SPLITS.c.version,
        FLAGS.c.kind.in_(COPY_KINDS),
    )
    return (
        select(
            FLAGS.c.flag_id,
            FLAGS.c.article_id,
            FLAGS.c.version,
            FLAGS.c.original_id,
            FLAGS.c.original_version,
            _SOURCE.c.name.label("source"),
            _ORIGINAL_SOURCE.c.name.label("original_source"),
            FLAGS.c.similarity,
            FLAGS.c.distance,
            FLAGS.c.arrived_ms,
            STORY_SPLITS.c.from_root_id,
            STORIES.c.story_id.label("from_id"),
            PEOPLE.c.name.label("person"),
            STORY_SPLITS.c.at_ms,
        )
        .join_from(STORY_SPLITS, FLAGS, of_version)
        .join(PEOPLE, PEOPLE.c.person_id == STORY_SPLITS.c.person_id)
        .outerjoin(STORIES, STORIES.c.root_id == STORY_SPLITS.c.from_root_id)
        .outerjoin(_SOURCE, _SOURCE.c.source_id == FLAGS.c.source_id)
        .outerjoin(_ORIGINAL_SOURCE, _ORIGINAL_SOURCE.c.source_id == FLAGS.c.original_source_id)
    )


def _merges() -> Select[Any]:
    return (
        select(
            _ROOT.c.story_id,
            STORY_MERGES.c.root_id,
            _SOURCE.c.name.label("source"),
            STORY_MERGES.c.into_root_id,
            _ORIGINAL_SOURCE.c.name.label("into_source"),
            PEOPLE.c.name.label("person"),
            STORY_MERGES.c.at_ms,
        )
        .join_from(STORY_MERGES, _ROOT, _ROOT.c.root_id == STORY_MERGES.c.root_id)
        .join(PEOPLE, PEOPLE.c.person_id == STORY_MERGES.c.person_id)
        .outerjoin(_INTO_ROOT, _INTO_ROOT.c.root_id == STORY_MERGES.c.into_root_id)
        .outerjoin(_SOURCE, _SOURCE.c.source_id == _ROOT.c.root_source_id)
        .outerjoin(_ORIGINAL_SOURCE, _ORIGINAL_SOURCE.c.source_id == _INTO_ROOT.c.root_source_id)
    )
