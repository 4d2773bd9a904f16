"""Stores new flags and other entries, each in its story."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, bindparam, insert, update

from consumer.reviews.flag_row import FIGURES, PairFigures, add_to_tally
from consumer.reviews.kinds.rules import RULES, Kind
from consumer.reviews.lineage import ArticleVersion, Descent, StoredFlag, homes_of, known_flags, take_over_copies
from consumer.reviews.portable import insert_rows
from consumer.reviews.repairs.in_force import StoryPlace, story_places
from consumer.reviews.sources import source_ids
from consumer.reviews.story_changes import Growth, grow_stories, store_root_sources, update_story_times
from consumer.reviews.tables import FLAGS
from consumer.reviews.word_index.waiting import queue_for_indexing

CERTAINTY_MIN: Final = -1.0
"""The certainty of a pair that was not verified and has no known distance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntry(PairFigures):
    """A queue entry as its event describes it. ``cluster`` is the root of its story, as far as the judge knew."""

    kind: Kind
    copy: ArticleVersion
    original: ArticleVersion
    cluster: str | None
    source: str | None
    original_source: str | None


class InsertOutcome(NamedTuple):
    """The ids of new flags by version, and the stories that gained or lost other flags."""

    flag_ids: dict[ArticleVersion, int]
    moved: set[int]


def insert_new(connection: Connection, rows: Sequence[NewEntry], kind: Kind = "flag") -> InsertOutcome:
    """Store the rows that are not stored yet. All must be of ``kind``.

    If the release of a flag arrived before the flag, its row exists but is incomplete; it is filled in. The caller must
    hold ``Lock.FLAGS``.
    """
    known = known_flags(connection, [row.copy for row in rows], kind)
    new = [row for row in rows if row.copy not in known]
    late = [row for row in rows if row.copy in known and known[row.copy].distance is None and row.distance is not None]
    if not new and not late:
        return InsertOutcome({}, set())
    places_by_version = _places_of(connection, [*new, *late])
    sources = source_ids(
        connection, {name for row in (*new, *late) for name in (row.source, row.original_source) if name is not None}
    )
    _complete(connection, late, known, places_by_version)
    inserted = _insert(connection, new, places_by_version, sources)
    queue_for_indexing(connection, list(inserted.values()))
    add_to_tally(connection, Counter({(kind, "open"): len(new)}))
    _count_copies(connection, new, places_by_version)
    store_root_sources(
        connection, {row.original[0]: sources[row.original_source] for row in new if row.original_source is not None}
    )
    moved = take_over_copies(connection, list(inserted.values())) if RULES[kind].is_copy else set()
    return InsertOutcome(inserted, moved)


def _places_of(connection: Connection, rows: Sequence[NewEntry]) -> dict[ArticleVersion, StoryPlace]:
    """Return the story of each row. Missing stories are created."""
    descents = [Descent(row.kind, row.copy, row.original, row.cluster) for row in rows]
    homes = homes_of(connection, descents)
    found = story_places(connection, set(homes.values()))
    return {copy: found[home] for copy, home in homes.items()}


def _complete(
    connection: Connection,
    late: Sequence[NewEntry],
    known: Mapping[ArticleVersion, StoredFlag],
    places_by_version: Mapping[ArticleVersion, StoryPlace],
) -> None:
    """Fill in rows that were created by releases. Stories do not count such rows as copies."""
    if not late:
        return
    columns = ("similarity", "distance", "certainty", "truncated", "decided_ms")
    values: dict[str, ColumnElement[object]] = {
        name: bindparam(f"new_{name}") for name in (*columns, *StoryPlace._fields)
    }
    rows = [
        {
            "this": known[row.copy].flag_id,
            **{f"new_{name}": value for name, value in places_by_version[row.copy]._asdict().items()},
            **{f"new_{name}": getattr(row, name) for name in columns},
        }
        for row in late
    ]
    connection.execute(update(FLAGS).where(FLAGS.c.flag_id == bindparam("this")).values(values), rows)
    update_story_times(
        connection, {known[row.copy].story_id for row in late} | {places_by_version[row.copy].story_id for row in late}
    )


def _insert(
    connection: Connection,
    new: Sequence[NewEntry],
    places_by_version: Mapping[ArticleVersion, StoryPlace],
    sources: Mapping[str, int],
) -> dict[ArticleVersion, int]:
    values = [
        {
            "kind": row.kind,
            "article_id": row.copy[0],
            "version": row.copy[1],
            "original_id": row.original[0],
            "original_version": row.original[1],
            **places_by_version[row.copy]._asdict(),
            "source_id": None if row.source is None else sources[row.source],
            "original_source_id": None if row.original_source is None else sources[row.original_source],
            "state": "open",
            **{name: getattr(row, name) for name in FIGURES},
        }
        for row in new
    ]
    statement = insert(FLAGS).returning(FLAGS.c.article_id, FLAGS.c.version, FLAGS.c.flag_id)
    return {(row.article_id, row.version): row.flag_id for row in insert_rows(connection, statement, values)}


def _count_copies(
    connection: Connection, new: Sequence[NewEntry], places_by_version: Mapping[ArticleVersion, StoryPlace]
) -> None:
    growths: dict[int, Growth] = {}
    for row in new:
        story_id = places_by_version[row.copy].story_id
        copies, first_ms, last_ms = growths.get(story_id, Growth(0, row.arrived_ms, row.arrived_ms))
        growths[story_id] = Growth(
            copies + RULES[row.kind].is_copy, min(first_ms, row.arrived_ms), max(last_ms, row.arrived_ms)
        )
    grow_stories(connection, growths)
