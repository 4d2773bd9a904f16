"""The queue: filtered and ordered pages of flags, and counts of flags.

A page is found by the key of the row before it, in an index that begins with the columns filtered by equality. So the
last page takes no longer than the first. Filters that no index covers are checked row by row, for a limited number of
rows per page. Such a page may have fewer rows than requested even though more follow.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, Literal

from sqlalchemy import Connection, Select, bindparam, func, select

from consumer.reviews import search
from consumer.reviews.flag_row import STATES, FlagRow, State, flag_row, flag_rows, tally
from consumer.reviews.kinds.rules import KINDS, Kind
from consumer.reviews.paging import Cursor, decode_cursor, encode_cursor
from consumer.reviews.portable import portions
from consumer.reviews.queries.scope import NO_LIMITS, OPENED_BY_OTHERS, Hits, Range, RowOrder, Scope, Seeker
from consumer.reviews.repairs.in_force import showing_story
from consumer.reviews.search import Count, RowBatch, read_rows
from consumer.reviews.sources import source_id
from consumer.reviews.tables import FLAGS, SOURCES
from consumer.reviews.word_index.results import QueueSearch, hit_counts, read_hits, search_hits

Order = Literal["certainty", "newest", "oldest", "similarity"]

ORDERS: Final[dict[Order, RowOrder]] = {
    # Least certain first.
    "certainty": RowOrder("certainty", is_descending=False),
    "newest": RowOrder("arrived_ms", is_descending=True),
    "oldest": RowOrder("arrived_ms", is_descending=False),
    # Most similar first.
    "similarity": RowOrder("certainty", is_descending=True),
}
SOURCES_EXAMINED_MAX: Final = 20_000
"""The maximum number of source names searched for a partially typed name."""
_READS_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a page. None means any."""

    state: State | None = "open"
    kind: Kind | None = None
    source: str | None = None
    original_source: str | None = None
    story_id: int | None = None
    # Both ends are included. Unverified flags have no similarity, so no range contains them.
    similarity_min: float | None = None
    similarity_max: float | None = None
    # The end is not included.
    arrived_from_ms: int | None = None
    arrived_to_ms: int | None = None
    search: QueueSearch | None = None


@dataclass(frozen=True, slots=True)
class QueuePage:
    """The rows of a page, and the cursors of the next and the previous page; None if there is no such page.

    ``is_partial``: the limit of examined rows was reached before the page was full. ``hits`` is the result of a search,
    None without a search.
    """

    rows: tuple[FlagRow, ...]
    after: str | None
    before: str | None = None
    is_partial: bool = False
    hits: Hits | None = None


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """The number of flags in each state, and of open entries of each other kind.

    ``oldest_open_ms`` is when the article of the oldest open flag arrived, or None without open flags.
    """

    open: int
    skipped: int
    right: int
    wrong: int
    released: int
    others_open: Mapping[Kind, int]
    oldest_open_ms: int | None

    @property
    def all_open(self) -> int:
        """The number of open entries of any kind."""
        return self.open + sum(self.others_open.values())


def page(connection: Connection, filters: Filters, order: Order, rows_max: int, cursor: str | None = None) -> QueuePage:
    """Return the page at a cursor, or the first page. The cursor is the ``after`` or ``before`` of another page.

    Raises ``BadCursor`` for a text that is not a cursor.
    """
    scope = _scope(connection, filters)
    if scope is None:
        return QueuePage((), None)
    shown = scoped_page(connection, scope, ORDERS[order], rows_max, None if cursor is None else decode_cursor(cursor))
    return replace(shown, hits=scope.hits)


def scoped_page(
    connection: Connection, scope: Scope, row_order: RowOrder, rows_max: int, cursor: Cursor | None
) -> QueuePage:
    """Return a page of the rows in a scope."""
    if cursor is not None and cursor.side == "before":
        rows, more, is_partial = _read_batch(connection, scope, row_order.reversed(), rows_max, cursor)
        if more is None:
            # The first page, filled to its full size.
            return scoped_page(connection, scope, row_order, rows_max, None)
        rows.reverse()
        follows = Cursor("after", *row_order.key(rows[-1])) if rows else cursor._replace(side="after")
        return QueuePage(tuple(rows), encode_cursor(follows), encode_cursor(more._replace(side="before")), is_partial)
    rows, more, is_partial = _read_batch(connection, scope, row_order, rows_max, cursor)
    before = None
    if cursor is not None:
        before = encode_cursor(Cursor("before", *row_order.key(rows[0])) if rows else cursor._replace(side="before"))
    return QueuePage(tuple(rows), None if more is None else encode_cursor(more), before, is_partial)


def open_after(
    connection: Connection,
    filters: Filters,
    order: Order,
    flag: FlagRow,
    rows_max: int,
    seeker: Seeker | None = None,
) -> list[int]:
    """Return the ids of up to ``rows_max`` open entries: first those after a flag, then those from the beginning.

    The flag itself is left out. With a ``seeker``, flags that other people have open are left out, too. If filters need
    a scan, it ends after ``_READS_MAX`` batches, so there may be more entries.
    """
    scope = _scope(connection, replace(filters, state="open"))
    if scope is None:
        return []
    opened: Iterable[int] = ()
    if seeker is not None and scope.hits is not None:
        opened = connection.execute(OPENED_BY_OTHERS, seeker._asdict()).scalars()
    # The flag itself may still be open.
    scope = replace(scope, without=frozenset((*opened, flag.flag_id)), seeker=seeker if scope.hits is None else None)
    row_order = ORDERS[order]
    others: dict[int, None] = {}
    for start in (Cursor("after", *row_order.key(flag)), None):
        cursor: Cursor | None = start
        for _ in range(_READS_MAX):
            rows, more, _ = _read_batch(connection, scope, row_order, rows_max, cursor)
            others |= {row.flag_id: None for row in rows}
            if len(others) >= rows_max:
                return list(others)[:rows_max]
            if more is None:
                break
            cursor = more
    return list(others)


def open_before(connection: Connection, filters: Filters, order: Order, flag: FlagRow) -> int | None:
    """Return the id of the last open entry before a flag, or None if none is found within one batch."""
    scope, row_order = _scope(connection, replace(filters, state="open")), ORDERS[order]
    if scope is None:
        return None
    rows, *_ = _read_batch(connection, scope, row_order.reversed(), 1, Cursor("before", *row_order.key(flag)))
    return rows[0].flag_id if rows else None


def counts(connection: Connection) -> QueueCounts:
    """Return the number of flags in each state, and of open entries of each other kind."""
    tallies = tally(connection)
    oldest_ms = connection.execute(
        select(func.min(FLAGS.c.arrived_ms)).where(FLAGS.c.state == "open", FLAGS.c.kind == "flag")
    ).scalar()
    return QueueCounts(
        open=tallies["flag", "open"],
        skipped=tallies["flag", "skipped"],
        right=tallies["flag", "right"],
        wrong=tallies["flag", "wrong"],
        released=tallies["flag", "released"],
        others_open={kind: tallies[kind, "open"] for kind in KINDS if kind != "flag"},
        oldest_open_ms=oldest_ms,
    )


def state_counts(connection: Connection, filters: Filters, hits: Hits | None = None) -> dict[State, Count]:
    """Return the number of entries in each state that pass the filters. The state in ``filters`` is ignored.

    With no filter except the kind, the counts are complete; otherwise they go up to ``search.COUNTED_MAX`` per state.
    Pass the ``hits`` of a page with the same search to avoid searching again.
    """
    if is_counted_whole(filters):
        known = tally(connection)
        kinds = KINDS if filters.kind is None else (filters.kind,)
        return {state: Count(sum(known[kind, state] for kind in kinds)) for state in STATES}
    scope = _scope(connection, replace(filters, state=None), hits)
    return dict.fromkeys(STATES, Count(0)) if scope is None else _counts(connection, scope)


def is_counted_whole(filters: Filters) -> bool:
    """Return whether counts for these filters come from the tally, without counting rows."""
    return filters == Filters(state=filters.state, kind=filters.kind)


def latest_flag_id(connection: Connection) -> int:
    """Return the id of the latest entry, 0 if there is none."""
    return connection.execute(select(func.max(FLAGS.c.flag_id))).scalar() or 0


def count_new(connection: Connection, filters: Filters, after_id: int) -> Count:
    """Return how many rows that pass the filters were stored after the entry ``after_id``; 0 for a search."""
    # A search finds new flags only once they are indexed.
    scope = None if filters.search is not None else _scope(connection, filters)
    return Count(0) if scope is None else search.count_new(connection, scope, after_id)


def flag(connection: Connection, flag_id: int) -> FlagRow | None:
    """Return the entry with this id, of any kind, or None."""
    row = connection.execute(_flag_query(), {"flag_id": flag_id}).one_or_none()
    return None if row is None else flag_row(row)


@cache
def _flag_query() -> Select[*tuple[Any, ...]]:
    return flag_rows().where(FLAGS.c.flag_id == bindparam("flag_id"))


def flag_of_version(connection: Connection, article_id: str, version: str) -> int | None:
    """Return the id of a version's flag, or None if it was not flagged."""
    where = (FLAGS.c.article_id == article_id, FLAGS.c.version == version, FLAGS.c.kind == "flag")
    return connection.execute(select(FLAGS.c.flag_id).where(*where)).scalar()


def flags(connection: Connection, flag_ids: Sequence[int]) -> list[FlagRow]:
    """Return the entries with these ids, in ascending order. Unknown ids are left out."""
    rows: list[FlagRow] = []
    for portion in portions(sorted(set(flag_ids))):
        rows += map(flag_row, connection.execute(flag_rows().where(FLAGS.c.flag_id.in_(portion))))
    return sorted(rows, key=lambda row: row.flag_id)


def source_names(connection: Connection, limit: int) -> list[str]:
    """Return up to ``limit`` names of known sources, sorted."""
    query = select(SOURCES.c.name).where(SOURCES.c.name != "").order_by(SOURCES.c.name).limit(limit)
    return list(connection.execute(query).scalars())


def similar_sources(connection: Connection, part: str, limit: int) -> list[str]:
    """Return up to ``limit`` names of sources that contain ``part``, ignoring case; none if ``part`` is a source."""
    if not part or source_id(connection, part) is not None:
        return []
    folded = part.casefold()
    return [name for name in source_names(connection, SOURCES_EXAMINED_MAX) if folded in name.casefold()][:limit]


def _counts(connection: Connection, scope: Scope) -> dict[State, Count]:
    return (search.counts if scope.hits is None else hit_counts)(connection, scope)


def _read_batch(
    connection: Connection, scope: Scope, row_order: RowOrder, rows_max: int, cursor: Cursor | None
) -> RowBatch:
    return (read_rows if scope.hits is None else read_hits)(connection, scope, row_order, rows_max, cursor)


def _scope(connection: Connection, filters: Filters, hits: Hits | None = None) -> Scope | None:
    """Return the scope of filters, or None if they name an unknown source."""
    numbers: list[int | None] = []
    for name in (filters.source, filters.original_source):
        number = None if name is None else source_id(connection, name)
        if number is None and name is not None:
            return None
        numbers.append(number)
    source, original_source = numbers
    if hits is None and filters.search is not None:
        hits = search_hits(connection, filters.search)
    similarity, to_ms = Range(filters.similarity_min, filters.similarity_max), filters.arrived_to_ms
    if similarity != NO_LIMITS:
        # The certainty of a verified flag is its similarity; that of any other is below 0.
        similarity = similarity._replace(low=max(0.0, similarity.low or 0.0))
    return Scope(
        states=None if filters.state is None else (filters.state,),
        kinds=None if filters.kind is None else (filters.kind,),
        source_id=source,
        original_source_id=original_source,
        story_id=None if filters.story_id is None else showing_story(connection, filters.story_id),
        certainty=similarity,
        arrived_ms=Range(filters.arrived_from_ms, None if to_ms is None else to_ms - 1),
        hits=hits,
    )
