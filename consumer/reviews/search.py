"""Finds one page of rows, using indexes where possible and a bounded scan for the rest.

Statements depend only on the form of a scope, and its values are their parameters. They are built once, since
SQLAlchemy takes ten times as long to build such a statement as the database takes to execute it.
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
from consumer.reviews.queries.scope import KEYS, SINGLE_VALUE_COLUMNS, SOURCE_COLUMNS, Key, RowOrder, Scope
from consumer.reviews.tables import FLAGS

EXAMINED_MAX: Final = 50_000
"""Index entries examined for one page if the index does not cover all filters."""
SORTED_MAX: Final = 2_000
"""If a filter leaves at most this many rows, all of them are fetched and sorted."""
COUNTED_MAX: Final = 10_000
"""The maximum count per state. A larger one is reported as at least this many."""
COUNT_EXAMINED_MAX: Final = 20_000
"""Index entries examined to count one kind and state, if the index does not cover a filter."""
NEW_EXAMINED_MAX: Final = 1_000
"""Rows examined to count the rows of a scope after an entry."""

STATEMENTS_MAX: Final = 200
"""Cached statements of each kind, one per combination of orders, states and filters."""


class Count(NamedTuple):
    """A number of rows; unless ``is_exact``, a lower bound."""

    rows: int
    is_exact: bool = True

    def cut(self, rows_max: int) -> "Count":
        """Return this count, or the lower bound ``rows_max`` if the count is greater."""
        return self if self.rows <= rows_max else Count(rows_max, is_exact=False)


def total(counts: Iterable[Count]) -> Count:
    """Return the sum of counts."""
    several = list(counts)
    return Count(sum(count.rows for count in several), all(count.is_exact for count in several))


class RowBatch(NamedTuple):
    """Rows in order, and the cursor to continue from.

    ``is_partial``: the limit of examined rows was reached before enough rows were found.
    """

    rows: list[FlagRow]
    more: Cursor | None
    is_partial: bool


def read_rows(
    connection: Connection, scope: Scope, row_order: RowOrder, rows_max: int, cursor: Cursor | None
) -> RowBatch:
    """Return up to ``rows_max`` rows of a scope after a cursor, in order."""
    form, other, most, has_cursor = scope.form(), _other_key(row_order.by), rows_max + 1, cursor is not None
    values = scope.values() | ({} if cursor is None else row_order.cursor_values(cursor))
    if scope.range_conditions(other):
        if connection.execute(_few_count_query(form, row_order.by, SORTED_MAX), values).scalar_one() <= SORTED_MAX:
            return cut(
                _rows(connection, _few_rows_query(form, row_order, SORTED_MAX, most, has_cursor), values),
                rows_max,
                row_order,
            )
    elif not _story_source_conditions(scope, FLAGS):
        return cut(_rows(connection, _walk_query(form, row_order, most, most, has_cursor), values), rows_max, row_order)
    each_max = EXAMINED_MAX // len(list(scope.kind_state_conditions()))
    rows = _rows(connection, _walk_query(form, row_order, each_max, most, has_cursor), values)
    ends = [(row[0], row[1]) for row in connection.execute(_ends_query(form, row_order, each_max, has_cursor), values)]
    if not ends:
        return cut(rows, rows_max, row_order)
    # The first place at which a branch reached its limit: rows after it may be missing.
    end = max(ends) if row_order.is_descending else min(ends)
    rows = [row for row in rows if not row_order.is_after(row_order.key(row), end)]
    if len(rows) > rows_max:
        return cut(rows, rows_max, row_order)
    return RowBatch(rows, Cursor("after", *end), is_partial=True)


def counts(connection: Connection, scope: Scope) -> dict[State, Count]:
    """Return how many rows of a scope are in each of its states, using indexes only."""
    found: dict[tuple[Kind, State], list[Count]] = {}
    for kind, state, rows, is_exact in connection.execute(
        _all_counts_query(scope.form(), COUNTED_MAX, COUNT_EXAMINED_MAX), scope.values()
    ):
        found.setdefault((kind, state), []).append(Count(rows, bool(is_exact)))
    # One of the two orders may reach the end of the range, or find more rows than the other.
    best = {pair: max(several, key=lambda count: (count.is_exact, count.rows)) for pair, several in found.items()}
    return {
        state: total(count for (_, of), count in best.items() if of == state).cut(COUNTED_MAX)
        for state in scope.states or STATES
    }


@lru_cache(STATEMENTS_MAX)
def _all_counts_query(scope: Scope, counted_max: int, examined_max: int) -> CompoundSelect[Any]:
    """Return the query that counts each kind and state, in each useful order."""
    ranged: list[Key] = [key for key in KEYS if scope.range_conditions(key)]
    return union_all(
        *(
            _count_query(scope, kind, state, key, counted_max, examined_max)
            for kind in scope.kinds or KINDS
            for state in scope.states or STATES
            for key in ranged or KEYS[:1]
        )
    )


def _count_query(scope: Scope, kind: Kind, state: State, key: Key, counted_max: int, examined_max: int) -> Select[Any]:
    """Return the query that counts one kind and state, in the order of a key."""
    other = _other_key(key)
    is_filtered = bool(scope.range_conditions(other) or _story_source_conditions(scope, FLAGS))
    limit = examined_max if is_filtered else counted_max + 1
    (branch,) = branches(
        replace(scope, kinds=(kind,), states=(state,)),
        RowOrder(key, is_descending=False),
        scope.range_conditions(key),
        limit,
    )
    entries = branch.subquery()
    conditions = [*scope.range_conditions(other, entries), *_story_source_conditions(scope, entries)]
    rows = func.count(case((and_(*conditions), 1))) if conditions else func.count()
    return select(literal(kind), literal(state), rows, case((func.count() < limit, 1), else_=0)).select_from(entries)


def count_new(connection: Connection, scope: Scope, after_id: int) -> Count:
    """Return how many rows of a scope are among the first ``NEW_EXAMINED_MAX`` rows after a flag."""
    values = {**scope.values(), "after_id": after_id}
    found, examined = connection.execute(_new_count_query(scope.form(), NEW_EXAMINED_MAX), values).one()
    return Count(found, is_exact=examined < NEW_EXAMINED_MAX)


@lru_cache(STATEMENTS_MAX)
def _new_count_query(scope: Scope, examined_max: int) -> Select[int, int]:
    columns = [FLAGS.c[name] for name in ("flag_id", "kind", "state", *SINGLE_VALUE_COLUMNS, *KEYS)]
    rows = select(*columns).where(FLAGS.c.flag_id > bindparam("after_id"))
    candidates = rows.order_by(FLAGS.c.flag_id).limit(examined_max).subquery("candidates")
    conditions = [
        *scope.source_conditions(candidates),
        *(condition for key in KEYS for condition in scope.range_conditions(key, candidates)),
        *([] if scope.story_id is None else [candidates.c.story_id == bindparam("story_id")]),
        candidates.c.kind.in_(scope.kinds or KINDS),
        candidates.c.state.in_(scope.states or STATES),
    ]
    return select(func.count(case((and_(*conditions), 1))), func.count()).select_from(candidates)


Branch = Select[*tuple[Any, ...]]


def branches(scope: Scope, row_order: RowOrder, conditions: Sequence[ColumnElement[bool]], limit: int) -> list[Branch]:
    """Return queries for the first rows of each kind and state. Each query uses an index only."""
    columns = [FLAGS.c.flag_id, FLAGS.c.certainty, FLAGS.c.arrived_ms]
    if scope.story_id is not None:
        columns += [FLAGS.c[name] for name in SOURCE_COLUMNS if getattr(scope, name) is not None]
    return [
        select(*columns)
        .where(*scope.equality_conditions(), *pair, *conditions, *scope.exclusion_conditions())
        .order_by(*row_order.order_by_columns())
        .limit(limit)
        for pair in scope.kind_state_conditions()
    ]


def union_of(parts: Sequence[Branch]) -> Subquery:
    """Return one query for the rows of several queries."""
    if len(parts) == 1:
        return parts[0].subquery("candidates")
    # SQLite accepts ORDER BY in a subquery, but not directly in a union.
    return union_all(*(select(part.subquery()) for part in parts)).subquery("candidates")


def cut(rows: list[FlagRow], rows_max: int, row_order: RowOrder) -> RowBatch:
    """Return the first ``rows_max`` of these rows, with a cursor if more follow."""
    if len(rows) <= rows_max:
        return RowBatch(rows, None, is_partial=False)
    rows = rows[:rows_max]
    return RowBatch(rows, Cursor("after", *row_order.key(rows[-1])), is_partial=False)


@lru_cache(STATEMENTS_MAX)
def _walk_query(scope: Scope, row_order: RowOrder, each_max: int, limit: int, has_cursor: bool) -> Branch:  # noqa: FBT001  # a key
    """Return the query for matching rows among the first entries of each kind and state."""
    candidates = union_of(_entries(scope, row_order, each_max, has_cursor=has_cursor))
    conditions = [
        *scope.range_conditions(_other_key(row_order.by), candidates),
        *_story_source_conditions(scope, candidates),
    ]
    return _first_rows_query(candidates, conditions, row_order, limit)


@lru_cache(STATEMENTS_MAX)
def _ends_query(scope: Scope, row_order: RowOrder, each_max: int, has_cursor: bool) -> Branch:  # noqa: FBT001  # a key
    """Return the query for the last examined entry of each kind and state with at least ``each_max`` entries."""
    parts = _entries(scope, row_order, each_max, has_cursor=has_cursor)
    lasts = union_of([part.limit(1).offset(each_max - 1) for part in parts])
    return select(lasts.c[row_order.by], lasts.c.flag_id)


def _entries(scope: Scope, row_order: RowOrder, each_max: int, *, has_cursor: bool) -> list[Branch]:
    return branches(
        scope,
        row_order,
        [*scope.range_conditions(row_order.by), *(row_order.after_cursor() if has_cursor else [])],
        each_max,
    )


@lru_cache(STATEMENTS_MAX)
def _few_count_query(scope: Scope, key: Key, few_max: int) -> Branch:
    """Return the query that counts rows in the range of the column other than ``key``; exact up to ``few_max``."""
    return select(func.count()).select_from(_few_query(scope, key, few_max))


@lru_cache(STATEMENTS_MAX)
def _few_rows_query(scope: Scope, row_order: RowOrder, few_max: int, limit: int, has_cursor: bool) -> Branch:  # noqa: FBT001  # a key
    """Return the query that selects the rows of a scope among the rows of ``_few_query``, and sorts them."""
    few = _few_query(scope, row_order.by, few_max)
    conditions = [
        *scope.range_conditions(row_order.by, few),
        *_story_source_conditions(scope, few),
        *(row_order.after_cursor(few) if has_cursor else []),
    ]
    return _first_rows_query(few, conditions, row_order, limit)


def _few_query(scope: Scope, key: Key, few_max: int) -> Subquery:
    other = _other_key(key)
    return union_of(branches(scope, RowOrder(other, is_descending=False), scope.range_conditions(other), few_max + 1))


def _other_key(key: Key) -> Key:
    return "arrived_ms" if key == "certainty" else "certainty"


def _story_source_conditions(scope: Scope, of: FromClause) -> list[ColumnElement[bool]]:
    """Return the conditions for sources within a story. Its index contains the sources, but is not ordered by them."""
    return scope.source_conditions(of) if scope.story_id is not None else []


def _first_rows_query(
    candidates: Subquery, conditions: Sequence[ColumnElement[bool]], row_order: RowOrder, limit: int
) -> Branch:
    """Return the query for the first flags among the candidates that meet the conditions."""
    chosen = (
        select(candidates.c.flag_id)
        .where(*conditions)
        .order_by(*row_order.order_by_columns(candidates))
        .limit(limit)
        .subquery()
    )
    return flag_rows().join(chosen, chosen.c.flag_id == FLAGS.c.flag_id).order_by(*row_order.order_by_columns())


def _rows(connection: Connection, query: Branch, values: dict[str, Any]) -> list[FlagRow]:
    return [flag_row(row) for row in connection.execute(query, values)]
