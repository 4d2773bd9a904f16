"""The queue: pages of flags in some order and by some filters, and how many there are.

A page is found by the key of the row before it, and by an index that begins with what must be equal, so it takes the
same time whether it is the first or the last. What no index has is looked at row by row, and only so many rows for one
page: such a page may have fewer rows than were asked for, and still be followed by others.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, Literal

from sqlalchemy import Connection, Select, bindparam, func, select

from consumer.reviews import search
from consumer.reviews.flag_row import STATES, FlagRow, State, flag_row, flag_rows, tally
from consumer.reviews.kinds.rules import KINDS, Kind
from consumer.reviews.paging import Cursor, decoded, encoded
from consumer.reviews.portable import portions
from consumer.reviews.queries.scope import ANY, Hits, Range, RowOrder, Scope
from consumer.reviews.repairs.in_force import shown_in
from consumer.reviews.search import Count, RowBatch, read_rows
from consumer.reviews.sources import source_id
from consumer.reviews.tables import FLAGS, SOURCES
from consumer.reviews.word_index.results import QueueSearch, found_by_search, hit_counts, search_hits

Order = Literal["certainty", "newest", "oldest", "similarity"]

ORDERS: Final[dict[Order, RowOrder]] = {
    # The least certain first.
    "certainty": RowOrder("certainty", is_descending=False),
    "newest": RowOrder("arrived_ms", is_descending=True),
    "oldest": RowOrder("arrived_ms", is_descending=False),
    # The most similar first.
    "similarity": RowOrder("certainty", is_descending=True),
}
SOURCES_EXAMINED_MAX: Final = 20_000
"""Names of sources that are searched for one that somebody typed in part."""
_PAGES_WITHOUT_ROWS_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a page. None stands for any."""

    state: State | None = "open"
    kind: Kind | None = None
    source: str | None = None
    original_source: str | None = None
    story_id: int | None = None
    # Both ends included. What was not verified has no similarity, and so is in no such range.
    similarity_min: float | None = None
    similarity_max: float | None = None
    # The end is not included.
    arrived_from_ms: int | None = None
    arrived_to_ms: int | None = None
    search: QueueSearch | None = None


@dataclass(frozen=True, slots=True)
class QueuePage:
    """Some rows, and where the pages after and before them begin; None where there is none.

    ``is_partial``: so many rows were looked at that others have to wait for the next page. ``hits`` is what a search
    found, None where nothing is searched for.
    """

    rows: tuple[FlagRow, ...]
    after: str | None
    before: str | None = None
    is_partial: bool = False
    hits: Hits | None = None


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """How many flags there are in each state, and how many entries of the other kinds are open."""

    open: int
    skipped: int
    right: int
    wrong: int
    released: int
    others_open: Mapping[Kind, int]
    oldest_open_ms: int | None

    @property
    def all_open(self) -> int:
        """How many entries of any kind nobody has decided on."""
        return self.open + sum(self.others_open.values())


def page(connection: Connection, filters: Filters, order: Order, rows_max: int, after: str | None = None) -> QueuePage:
    """Return the page at ``after``, which is ``after`` or ``before`` of another page; the first page without it.

    Raises ``BadCursor`` for another text.
    """
    scope = _scope(connection, filters)
    if scope is None:
        return QueuePage((), None)
    shown = scoped_page(connection, scope, ORDERS[order], rows_max, None if after is None else decoded(after))
    return replace(shown, hits=scope.hits)


def scoped_page(connection: Connection, scope: Scope, way: RowOrder, rows_max: int, cursor: Cursor | None) -> QueuePage:
    """Return a page of what is in a scope."""
    if cursor is not None and cursor.side == "before":
        rows, more, is_partial = _found(connection, scope, way.reversed(), rows_max, cursor)
        if more is None:
            # The beginning, filled up to a whole page.
            return scoped_page(connection, scope, way, rows_max, None)
        rows.reverse()
        follows = Cursor("after", *way.key(rows[-1])) if rows else cursor._replace(side="after")
        return QueuePage(tuple(rows), encoded(follows), encoded(more._replace(side="before")), is_partial)
    rows, more, is_partial = _found(connection, scope, way, rows_max, cursor)
    before = None
    if cursor is not None:
        before = encoded(Cursor("before", *way.key(rows[0])) if rows else cursor._replace(side="before"))
    return QueuePage(tuple(rows), None if more is None else encoded(more), before, is_partial)


def open_after(  # a part of the queue, and a place in it
    connection: Connection,
    filters: Filters,
    order: Order,
    flag: FlagRow,
    rows_max: int,
    without: Collection[int] = (),
) -> list[int]:
    """Return open flags: those that follow one, then the first ones; never the flag itself, nor ``without``."""
    scope = _scope(connection, replace(filters, state="open"))
    if scope is None:
        return []
    # The flag itself may be open still.
    scope, way = replace(scope, without=frozenset((*without, flag.flag_id))), ORDERS[order]
    others: dict[int, None] = {}
    for start in (Cursor("after", *way.key(flag)), None):
        cursor: Cursor | None = start
        for _ in range(_PAGES_WITHOUT_ROWS_MAX):
            rows, more, _ = _found(connection, scope, way, rows_max, cursor)
            others |= {row.flag_id: None for row in rows}
            if len(others) >= rows_max:
                return list(others)[:rows_max]
            if more is None:
                break
            cursor = more
    return list(others)


def open_before(connection: Connection, filters: Filters, order: Order, flag: FlagRow) -> int | None:
    """Return the open flag that precedes one, None where it is the first."""
    scope, way = _scope(connection, replace(filters, state="open")), ORDERS[order]
    if scope is None:
        return None
    rows, *_ = _found(connection, scope, way.reversed(), 1, Cursor("before", *way.key(flag)))
    return rows[0].flag_id if rows else None


def counts(connection: Connection) -> QueueCounts:
    """Return how many flags there are in each state."""
    found_ = tally(connection)
    oldest_ms = connection.execute(
        select(func.min(FLAGS.c.arrived_ms)).where(FLAGS.c.state == "open", FLAGS.c.kind == "flag")
    ).scalar()
    return QueueCounts(
        open=found_["flag", "open"],
        skipped=found_["flag", "skipped"],
        right=found_["flag", "right"],
        wrong=found_["flag", "wrong"],
        released=found_["flag", "released"],
        others_open={kind: found_[kind, "open"] for kind in KINDS if kind != "flag"},
        oldest_open_ms=oldest_ms,
    )


def state_counts(connection: Connection, filters: Filters, hits: Hits | None = None) -> dict[State, Count]:
    """Return how many entries the pages of each state list, whatever state ``filters`` name.

    Without other filters than the kind all are counted, else up to ``search.COUNTED_MAX`` of each state. ``hits`` is
    what their search found, if a page of them has found it already.
    """
    if is_counted_whole(filters):
        known = tally(connection)
        kinds = KINDS if filters.kind is None else (filters.kind,)
        return {state: Count(sum(known[kind, state] for kind in kinds)) for state in STATES}
    scope = _scope(connection, replace(filters, state=None), hits)
    return dict.fromkeys(STATES, Count(0)) if scope is None else _counts(connection, scope)


def is_counted_whole(filters: Filters) -> bool:
    """Tell whether the counts for these filters cost next to nothing."""
    return filters == Filters(state=filters.state, kind=filters.kind)


def latest_flag_id(connection: Connection) -> int:
    """Return the number of the entry that was stored last, 0 where there is none."""
    return connection.execute(select(func.max(FLAGS.c.flag_id))).scalar() or 0


def count_new(connection: Connection, filters: Filters, after_id: int) -> Count:
    """Return how many rows that filters choose were stored after another."""
    # A search finds new flags once they are indexed.
    scope = None if filters.search is not None else _scope(connection, filters)
    return Count(0) if scope is None else search.count_new(connection, scope, after_id)


def flag(connection: Connection, flag_id: int) -> FlagRow | None:
    """Return an entry of any kind, None where there is none of this number."""
    row = connection.execute(_numbered(), {"flag_id": flag_id}).one_or_none()
    return None if row is None else flag_row(row)


@cache
def _numbered() -> Select[*tuple[Any, ...]]:
    return flag_rows().where(FLAGS.c.flag_id == bindparam("flag_id"))


def flag_of_version(connection: Connection, article_id: str, version: str) -> int | None:
    """Return the number of the flag of a version, None where it was not flagged."""
    where = (FLAGS.c.article_id == article_id, FLAGS.c.version == version, FLAGS.c.kind == "flag")
    return connection.execute(select(FLAGS.c.flag_id).where(*where)).scalar()


def flags(connection: Connection, flag_ids: Sequence[int]) -> list[FlagRow]:
    """Return entries by number, in order; numbers of none are left out."""
    rows: list[FlagRow] = []
    for portion in portions(sorted(set(flag_ids))):
        rows += map(flag_row, connection.execute(flag_rows().where(FLAGS.c.flag_id.in_(portion))))
    return sorted(rows, key=lambda row: row.flag_id)


def source_names(connection: Connection, limit: int) -> list[str]:
    """Return the names of sources that flags have, in order, at most so many."""
    query = select(SOURCES.c.name).where(SOURCES.c.name != "").order_by(SOURCES.c.name).limit(limit)
    return list(connection.execute(query).scalars())


def similar_sources(connection: Connection, part: str, limit: int) -> list[str]:
    """Return the names of sources that contain a text in any case, at most so many, if ``part`` is no name itself."""
    if not part or source_id(connection, part) is not None:
        return []
    folded = part.casefold()
    return [name for name in source_names(connection, SOURCES_EXAMINED_MAX) if folded in name.casefold()][:limit]


def _counts(connection: Connection, scope: Scope) -> dict[State, Count]:
    return (search.counts if scope.hits is None else hit_counts)(connection, scope)


def _found(connection: Connection, scope: Scope, way: RowOrder, rows_max: int, cursor: Cursor | None) -> RowBatch:
    return (read_rows if scope.hits is None else found_by_search)(connection, scope, way, rows_max, cursor)


def _scope(connection: Connection, filters: Filters, hits: Hits | None = None) -> Scope | None:
    """Return what filters choose; None where they name a source that no flag has."""
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
    if similarity != ANY:
        # What was verified is as certain as it is similar, and what was not is below 0.
        similarity = similarity._replace(low=max(0.0, similarity.low or 0.0))
    return Scope(
        states=None if filters.state is None else (filters.state,),
        kinds=None if filters.kind is None else (filters.kind,),
        source_id=source,
        original_source_id=original_source,
        story_id=None if filters.story_id is None else shown_in(connection, filters.story_id),
        certainty=similarity,
        arrived_ms=Range(filters.arrived_from_ms, None if to_ms is None else to_ms - 1),
        hits=hits,
    )
