"""Finds the rows of a page: by indexes as far as they go, and then row by row, but never more than so many.

A statement depends on the form of a scope alone. It is built once, and the values of the scope are its parameters:
SQLAlchemy takes ten times as long to build such a statement as the database takes to answer it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    Select,
    and_,
    bindparam,
    case,
    func,
    literal,
    select,
    union_all,
)
from sqlalchemy.sql.selectable import FromClause, Subquery

from consumer.reviews.flag_row import STATES, FlagRow, State, flag_row, flag_rows
from consumer.reviews.kinds.rules import KINDS, Kind
from consumer.reviews.paging import Cursor
from consumer.reviews.queries.scope import KEYS, NUMBERS, Key, RowOrder, Scope
from consumer.reviews.tables import FLAGS

EXAMINED_MAX: Final = 50_000
"""Entries of an index that are looked at for one page where it is not in the order of all that is asked for."""
SORTED_MAX: Final = 2_000
"""Rows that are fetched and sorted for one page where a filter leaves no more."""
COUNTED_MAX: Final = 10_000
"""Rows of one state that are counted one by one; of more a count says that there are at least so many."""
COUNT_EXAMINED_MAX: Final = 20_000
"""Entries of an index that are looked at to count one kind and state, where a filter is not in the index's order."""
NEW_EXAMINED_MAX: Final = 1_000
"""Rows that came last that are looked at to count those of them that are new to a page."""

STATEMENTS_MAX: Final = 200
"""Statements of each kind that are kept: orders, states, and filters in use."""


class Count(NamedTuple):
    """How many rows there are; unless ``is_exact``, at least so many."""

    rows: int
    is_exact: bool = True

    def cut(self, rows_max: int) -> "Count":
        """Return this count, or if it is greater, that there are at least ``rows_max``."""
        return self if self.rows <= rows_max else Count(rows_max, is_exact=False)


def total(counts: Iterable[Count]) -> Count:
    """Return how many rows there are together."""
    several = list(counts)
    return Count(sum(count.rows for count in several), all(count.is_exact for count in several))


class RowBatch(NamedTuple):
    """Rows in order, where to go on, and whether that is for the rows that were looked at, not for those found."""

    rows: list[FlagRow]
    more: Cursor | None
    is_partial: bool


def read_rows(connection: Connection, scope: Scope, way: RowOrder, rows_max: int, cursor: Cursor | None) -> RowBatch:
    """Return up to ``rows_max`` rows that come after a place."""
    form, other, most, has_cursor = scope.form(), _other(way.by), rows_max + 1, cursor is not None
    values = scope.values() | ({} if cursor is None else way.place(cursor))
    if scope.within(other):
        if connection.execute(_counting_few(form, way.by, SORTED_MAX), values).scalar_one() <= SORTED_MAX:
            return cut(_rows(connection, _of_few(form, way, SORTED_MAX, most, has_cursor), values), rows_max, way)
    elif not _of_story(scope, FLAGS):
        return cut(_rows(connection, _walk(form, way, most, most, has_cursor), values), rows_max, way)
    each_max = EXAMINED_MAX // len(list(scope.kinds_and_states()))
    rows = _rows(connection, _walk(form, way, each_max, most, has_cursor), values)
    ends = [(row[0], row[1]) for row in connection.execute(_ends(form, way, each_max, has_cursor), values)]
    if not ends:
        return cut(rows, rows_max, way)
    # The first place at which a branch had to stop.
    end = max(ends) if way.is_descending else min(ends)
    rows = [row for row in rows if not way.passes(way.key(row), end)]
    return cut(rows, rows_max, way) if len(rows) > rows_max else RowBatch(rows, Cursor("after", *end), is_partial=True)


def counts(connection: Connection, scope: Scope) -> dict[State, Count]:
    """Return how many rows of a scope are in each of its states, by indexes alone."""
    found: dict[tuple[Kind, State], list[Count]] = {}
    for kind, state, rows, is_exact in connection.execute(
        _counting_all(scope.form(), COUNTED_MAX, COUNT_EXAMINED_MAX), scope.values()
    ):
        found.setdefault((kind, state), []).append(Count(rows, bool(is_exact)))
    # Of two orders one may get to the end of the range, or further than the other.
    best = {pair: max(several, key=lambda count: (count.is_exact, count.rows)) for pair, several in found.items()}
    return {
        state: total(count for (_, of), count in best.items() if of == state).cut(COUNTED_MAX)
        for state in scope.states or STATES
    }


@lru_cache(STATEMENTS_MAX)
def _counting_all(scope: Scope, counted_max: int, examined_max: int) -> CompoundSelect[Any]:
    """Return the query that counts each kind and state, in each order that may be of use."""
    ranged: list[Key] = [key for key in KEYS if scope.within(key)]
    return union_all(
        *(
            _counting(scope, kind, state, key, counted_max, examined_max)
            for kind in scope.kinds or KINDS
            for state in scope.states or STATES
            for key in ranged or KEYS[:1]
        )
    )


def _counting(scope: Scope, kind: Kind, state: State, key: Key, counted_max: int, examined_max: int) -> Select[Any]:
    """Return the query that counts one kind and state, in the order of a key."""
    other = _other(key)
    is_filtered = bool(scope.within(other) or _of_story(scope, FLAGS))
    limit = examined_max if is_filtered else counted_max + 1
    (branch,) = branches(
        replace(scope, kinds=(kind,), states=(state,)), RowOrder(key, is_descending=False), scope.within(key), limit
    )
    entries = branch.subquery()
    conditions = [*scope.within(other, entries), *_of_story(scope, entries)]
    rows = func.count(case((and_(*conditions), 1))) if conditions else func.count()
    return select(literal(kind), literal(state), rows, case((func.count() < limit, 1), else_=0)).select_from(entries)


def count_new(connection: Connection, scope: Scope, after_id: int) -> Count:
    """Return how many rows of a scope came after a flag, among the first rows that did."""
    values = {**scope.values(), "after_id": after_id}
    read_rows = connection.execute(_counting_new(scope.form(), NEW_EXAMINED_MAX), values).one()
    return Count(read_rows[0], is_exact=read_rows[1] < NEW_EXAMINED_MAX)


@lru_cache(STATEMENTS_MAX)
def _counting_new(scope: Scope, examined_max: int) -> Select[int, int]:
    columns = [FLAGS.c[name] for name in ("flag_id", "kind", "state", *NUMBERS, *KEYS)]
    rows = select(*columns).where(FLAGS.c.flag_id > bindparam("after_id"))
    candidates = rows.order_by(FLAGS.c.flag_id).limit(examined_max).subquery("candidates")
    conditions = [
        *scope.of_sources(candidates),
        *(condition for key in KEYS for condition in scope.within(key, candidates)),
        *([] if scope.story_id is None else [candidates.c.story_id == bindparam("story_id")]),
        candidates.c.kind.in_(scope.kinds or KINDS),
        candidates.c.state.in_(scope.states or STATES),
    ]
    return select(func.count(case((and_(*conditions), 1))), func.count()).select_from(candidates)


Branch = Select[*tuple[Any, ...]]


def branches(scope: Scope, way: RowOrder, conditions: Sequence[ColumnElement[bool]], limit: int) -> list[Branch]:
    """Return a query for each kind and state: the first rows, by an index alone."""
    columns = [FLAGS.c.flag_id, FLAGS.c.certainty, FLAGS.c.arrived_ms]
    if scope.story_id is not None:
        columns += [FLAGS.c.source_id, FLAGS.c.original_source_id]
    left_out = [FLAGS.c.flag_id.not_in(bindparam("without", expanding=True))] if scope.without else []
    return [
        select(*columns).where(*scope.equal(), *pair, *conditions, *left_out).order_by(*way.ordered()).limit(limit)
        for pair in scope.kinds_and_states()
    ]


def united(parts: Sequence[Branch]) -> Subquery:
    """Return the rows of several queries as one."""
    if len(parts) == 1:
        return parts[0].subquery("candidates")
    # SQLite takes no order within a union, but within a query of its own.
    return union_all(*(select(part.subquery()) for part in parts)).subquery("candidates")


def cut(rows: list[FlagRow], rows_max: int, way: RowOrder) -> RowBatch:
    """Return the first of these rows, and where others follow."""
    if len(rows) <= rows_max:
        return RowBatch(rows, None, is_partial=False)
    rows = rows[:rows_max]
    return RowBatch(rows, Cursor("after", *way.key(rows[-1])), is_partial=False)


@lru_cache(STATEMENTS_MAX)
def _walk(scope: Scope, way: RowOrder, each_max: int, limit: int, has_cursor: bool) -> Branch:  # noqa: FBT001  # a key
    """Return the query for rows among the first entries of each kind and state."""
    candidates = united(_entries(scope, way, each_max, has_cursor=has_cursor))
    conditions = [*scope.within(_other(way.by), candidates), *_of_story(scope, candidates)]
    return _first(candidates, conditions, way, limit)


@lru_cache(STATEMENTS_MAX)
def _ends(scope: Scope, way: RowOrder, each_max: int, has_cursor: bool) -> Branch:  # noqa: FBT001  # a key
    """Return the query for the last of these entries of each kind and state that has so many."""
    parts = _entries(scope, way, each_max, has_cursor=has_cursor)
    lasts = united([part.limit(1).offset(each_max - 1) for part in parts])
    return select(lasts.c[way.by], lasts.c.flag_id)


def _entries(scope: Scope, way: RowOrder, each_max: int, *, has_cursor: bool) -> list[Branch]:
    return branches(scope, way, [*scope.within(way.by), *(way.beyond() if has_cursor else [])], each_max)


@lru_cache(STATEMENTS_MAX)
def _counting_few(scope: Scope, key: Key, few_max: int) -> Branch:
    """Return the query that counts the rows within the range of the other column, up to one too many."""
    return select(func.count()).select_from(_few(scope, key, few_max))


@lru_cache(STATEMENTS_MAX)
def _of_few(scope: Scope, way: RowOrder, few_max: int, limit: int, has_cursor: bool) -> Branch:  # noqa: FBT001  # a key
    """Return the query for rows of those few."""
    few = _few(scope, way.by, few_max)
    conditions = [*scope.within(way.by, few), *_of_story(scope, few), *(way.beyond(few) if has_cursor else [])]
    return _first(few, conditions, way, limit)


def _few(scope: Scope, key: Key, few_max: int) -> Subquery:
    other = _other(key)
    return united(branches(scope, RowOrder(other, is_descending=False), scope.within(other), few_max + 1))


def _other(key: Key) -> Key:
    return "arrived_ms" if key == "certainty" else "certainty"


def _of_story(scope: Scope, of: FromClause) -> list[ColumnElement[bool]]:
    """Return the conditions for sources within a story: its index has them, but not in order."""
    return scope.of_sources(of) if scope.story_id is not None else []


def _first(candidates: Subquery, conditions: Sequence[ColumnElement[bool]], way: RowOrder, limit: int) -> Branch:
    """Return the query for the first flags among candidates."""
    chosen = select(candidates.c.flag_id).where(*conditions).order_by(*way.ordered(candidates)).limit(limit).subquery()
    return flag_rows().join(chosen, chosen.c.flag_id == FLAGS.c.flag_id).order_by(*way.ordered())


def _rows(connection: Connection, query: Branch, values: dict[str, Any]) -> list[FlagRow]:
    return [flag_row(row) for row in connection.execute(query, values)]
