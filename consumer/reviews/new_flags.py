"""Stores flags and other entries that were not there before, each in its story."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, bindparam, insert, select, update

from consumer.reviews.flag_row import FIGURES, Figures, State, add_to_tally
from consumer.reviews.kinds.rules import COPIES, RULES, Kind
from consumer.reviews.lineage import Version, take_over_copies
from consumer.reviews.portable import portions
from consumer.reviews.sources import source_ids
from consumer.reviews.story_changes import Growth, grow_stories, measure_stories, name_roots, stories_by_root
from consumer.reviews.tables import FLAGS
from consumer.reviews.word_index.waiting import wait


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFlag(Figures):
    """An entry of the queue as its event says. ``cluster`` is the root as the judge knew it."""

    kind: Kind
    copy: Version
    original: Version
    cluster: str | None
    source: str | None
    original_source: str | None


class Known(NamedTuple):
    """The columns of a stored flag."""

    flag_id: int
    story_id: int
    state: State
    released_ms: int | None
    distance: int | None


class Inserted(NamedTuple):
    """The numbers of new flags by their versions, and the stories that flags were moved into or out of."""

    flag_ids: dict[Version, int]
    moved: set[int]


def known_flags(connection: Connection, versions: Collection[Version], *kinds: Kind) -> dict[Version, Known]:
    """Return the entries of these versions that are of one of these kinds."""
    columns = select(
        FLAGS.c.article_id,
        FLAGS.c.version,
        FLAGS.c.flag_id,
        FLAGS.c.story_id,
        FLAGS.c.state,
        FLAGS.c.released_ms,
        FLAGS.c.distance,
    )
    found: dict[Version, Known] = {}
    wanted = set(versions)
    # By article alone: pairs within IN would have SQLite read all flags. An article has few versions.
    for portion in portions({article_id for article_id, _ in wanted}):
        named = columns.where(FLAGS.c.article_id.in_(portion), FLAGS.c.kind.in_(kinds))
        for article_id, version, *known in connection.execute(named):
            if (article_id, version) in wanted:
                found[article_id, version] = Known(*known)
    return found


def insert_new(connection: Connection, rows: Sequence[NewFlag], kind: Kind = "flag") -> Inserted:
    """Store those rows, all of one kind, that are not stored yet.

    Of a flag whose release came first, the rest is added. Whoever calls this holds ``Lock.FLAGS``.
    """
    known = known_flags(connection, [row.copy for row in rows], kind)
    new = [row for row in rows if row.copy not in known]
    late = [row for row in rows if row.copy in known and known[row.copy].distance is None and row.distance is not None]
    if not new and not late:
        return Inserted({}, set())
    stories = _placed(connection, [*new, *late])
    sources = source_ids(
        connection, {name for row in (*new, *late) for name in (row.source, row.original_source) if name is not None}
    )
    _complete(connection, late, known, stories)
    inserted = _inserted(connection, new, stories, sources)
    wait(connection, list(inserted.values()))
    add_to_tally(connection, Counter({(kind, "open"): len(new)}))
    _count(connection, new, stories)
    name_roots(
        connection, {row.original[0]: sources[row.original_source] for row in new if row.original_source is not None}
    )
    moved = take_over_copies(connection, list(inserted.values())) if RULES[kind].is_copy else set()
    return Inserted(inserted, moved)


def _placed(connection: Connection, rows: Sequence[NewFlag]) -> dict[Version, int]:
    """Return the story of each row, made if need be."""
    originals = known_flags(connection, {row.original for row in rows}, *COPIES)
    own = {row.copy: row for row in rows if RULES[row.kind].is_copy}
    places = {row.copy: _place(row, originals, own) for row in rows}
    spans: dict[str, tuple[int, int]] = {}
    for row in rows:
        root = places[row.copy]
        if isinstance(root, str):
            first_ms, last_ms = spans.get(root, (row.arrived_ms, row.arrived_ms))
            spans[root] = (min(first_ms, row.arrived_ms), max(last_ms, row.arrived_ms))
    stories = stories_by_root(connection, spans)
    return {copy: stories[place] if isinstance(place, str) else place for copy, place in places.items()}


def _place(row: NewFlag, originals: Mapping[Version, Known], own: Mapping[Version, NewFlag]) -> int | str:
    """Return the story of a row, or its root where that decides."""
    passed = {row.copy}
    while True:
        original = originals.get(row.original)
        if original is not None:
            return original.story_id if original.released_ms is None else row.original[0]
        above = own.get(row.original)
        if above is None or above.copy in passed:
            return row.cluster or row.original[0]
        passed.add(above.copy)
        row = above


def _complete(
    connection: Connection, late: Sequence[NewFlag], known: Mapping[Version, Known], stories: Mapping[Version, int]
) -> None:
    """Add what a flag says to the row that its release has made. Such a row counts in no story."""
    if not late:
        return
    columns = ("similarity", "distance", "certainty", "truncated", "decided_ms")
    values: dict[str, ColumnElement[object]] = {name: bindparam(f"new_{name}") for name in (*columns, "story_id")}
    rows = [
        {
            "this": known[row.copy].flag_id,
            "new_story_id": stories[row.copy],
            **{f"new_{name}": getattr(row, name) for name in columns},
        }
        for row in late
    ]
    connection.execute(update(FLAGS).where(FLAGS.c.flag_id == bindparam("this")).values(values), rows)
    measure_stories(connection, {known[row.copy].story_id for row in late} | {stories[row.copy] for row in late})


def _inserted(
    connection: Connection, new: Sequence[NewFlag], stories: Mapping[Version, int], sources: Mapping[str, int]
) -> dict[Version, int]:
    values = [
        {
            "kind": row.kind,
            "article_id": row.copy[0],
            "version": row.copy[1],
            "original_id": row.original[0],
            "original_version": row.original[1],
            "story_id": stories[row.copy],
            "source_id": None if row.source is None else sources[row.source],
            "original_source_id": None if row.original_source is None else sources[row.original_source],
            "state": "open",
            **{name: getattr(row, name) for name in FIGURES},
        }
        for row in new
    ]
    statement = insert(FLAGS).returning(FLAGS.c.article_id, FLAGS.c.version, FLAGS.c.flag_id)
    found: dict[Version, int] = {}
    for portion in portions(values):
        found |= {(row.article_id, row.version): row.flag_id for row in connection.execute(statement, portion)}
    return found


def _count(connection: Connection, new: Sequence[NewFlag], stories: Mapping[Version, int]) -> None:
    growths: dict[int, Growth] = {}
    for row in new:
        story_id = stories[row.copy]
        copies, first_ms, last_ms = growths.get(story_id, Growth(0, row.arrived_ms, row.arrived_ms))
        growths[story_id] = Growth(
            copies + RULES[row.kind].is_copy, min(first_ms, row.arrived_ms), max(last_ms, row.arrived_ms)
        )
    grow_stories(connection, growths)
