"""Finds the rows of a page: by indexes as far as they go, and then row by row, but never more than so many."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy import ColumnElement, Connection, Select, and_, case, func, literal, select, tuple_, union_all
from sqlalchemy.sql.selectable import FromClause, Subquery

from consumer.reviews.flag_row import KINDS, STATES, FlagRow, Kind, State, flag_row, flag_rows
from consumer.reviews.paging import Cursor
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

Key = Literal["certainty", "arrived_ms"]
KEYS: Final[tuple[Key, ...]] = ("certainty", "arrived_ms")


class Range(NamedTuple):
    """From one value to another, both included; None is no limit."""

    low: float | None
    high: float | None

    def holds(self, value: float) -> bool:
        """Return whether a value is in it."""
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


@dataclass(frozen=True, slots=True)
class Way:
    """In which order rows come. Rows of the same key come by their numbers."""

    by: Key
    is_descending: bool

    def reversed(self) -> "Way":
        """Return the way back."""
        return Way(self.by, not self.is_descending)

    def key(self, row: FlagRow) -> tuple[float, int]:
        """Return where a row is on this way."""
        return (row.certainty if self.by == "certainty" else row.arrived_ms), row.flag_id

    def passes(self, key: tuple[float, int], other: tuple[float, int]) -> bool:
        """Tell whether the first of two keys comes after the other."""
        return key < other if self.is_descending else key > other

    def ordered(self, of: FromClause = FLAGS) -> list[ColumnElement[object]]:
        """Return what a query is to be ordered by."""
        columns: list[ColumnElement[object]] = [of.c[self.by], of.c.flag_id]
        return [column.desc() for column in columns] if self.is_descending else columns

    def beyond(self, cursor: Cursor | None, of: FromClause = FLAGS) -> list[ColumnElement[bool]]:
        """Return the condition for rows that come after a place."""
        if cursor is None:
            return []
        columns = tuple_(of.c[self.by], of.c.flag_id)
        # A number of another type than the column's would keep PostgreSQL from using the index.
        key = float(cursor.key) if self.by == "certainty" else int(cursor.key)
        place = (key, cursor.row_id)
        return [columns < place if self.is_descending else columns > place]


@dataclass(frozen=True, slots=True)
class Hits:
    """What a search finds, in any state: flags whose texts match, flags whose ids do, and all flags of a source.

    Texts are searched of undecided flags only. ``by_characters``: no text has the words, and these have all of their
    characters. ``words_cut`` and ``ids_cut``: there were more words than are looked up, or ids that begin like this.
    """

    by_text: npt.NDArray[np.int64]
    by_id: npt.NDArray[np.int64]
    source_id: int | None
    by_characters: bool
    words_cut: bool
    ids_cut: bool


@dataclass(frozen=True, slots=True)
class Scope:
    """Which rows are looked for. None stands for any. ``ranges`` are by column."""

    states: Sequence[State] | None = None
    kinds: Sequence[Kind] | None = None
    source_id: int | None = None
    original_source_id: int | None = None
    story_id: int | None = None
    ranges: Mapping[str, Range] = field(default_factory=dict)
    # Flags that are left out.
    without: frozenset[int] = frozenset()
    # None where nothing is searched for.
    hits: Hits | None = None

    def equal(self) -> list[ColumnElement[bool]]:
        """Return the conditions that an index begins with, besides kind and state."""
        if self.story_id is not None:
            return [FLAGS.c.story_id == self.story_id]
        return self.of_sources(FLAGS)

    def kinds_and_states(self) -> Iterator[tuple[ColumnElement[bool], ColumnElement[bool]]]:
        """Yield each pair of a kind and a state: an index has each pair in order, but not several together."""
        for kind in self.kinds or KINDS:
            for state in self.states or STATES:
                yield FLAGS.c.kind == kind, FLAGS.c.state == state

    def within(self, key: Key, of: FromClause = FLAGS) -> list[ColumnElement[bool]]:
        """Return the conditions of the range of a column."""
        limits = self.ranges.get(key, Range(None, None))
        column: ColumnElement[float] = of.c[key]
        lower = [] if limits.low is None else [column >= limits.low]
        upper = [] if limits.high is None else [column <= limits.high]
        return [*lower, *upper]

    def of_sources(self, of: FromClause) -> list[ColumnElement[bool]]:
        """Return the conditions for the sources."""
        source = [] if self.source_id is None else [of.c.source_id == self.source_id]
        if self.original_source_id is None:
            return source
        return [*source, of.c.original_source_id == self.original_source_id]


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


class Found(NamedTuple):
    """Rows in order, where to go on, and whether that is for the rows that were looked at, not for those found."""

    rows: list[FlagRow]
    more: Cursor | None
    is_partial: bool


def found(connection: Connection, scope: Scope, way: Way, rows_max: int, cursor: Cursor | None) -> Found:
    """Return up to ``rows_max`` rows that come after a place."""
    other: Key = "arrived_ms" if way.by == "certainty" else "certainty"
    across = scope.within(other)
    if across:
        few = united(branches(scope, Way(other, is_descending=False), across, SORTED_MAX + 1))
        if connection.execute(select(func.count()).select_from(few)).scalar_one() <= SORTED_MAX:
            conditions = [*scope.within(way.by, few), *_of_story(scope, few), *way.beyond(cursor, few)]
            return cut(_rows(connection, few, conditions, way, rows_max + 1), rows_max, way)
    conditions = [*scope.within(way.by), *way.beyond(cursor)]
    if not across and not _of_story(scope, FLAGS):
        all_of_them = united(branches(scope, way, conditions, rows_max + 1))
        return cut(_rows(connection, all_of_them, [], way, rows_max + 1), rows_max, way)
    each_max = EXAMINED_MAX // len(list(scope.kinds_and_states()))
    examined = branches(scope, way, conditions, each_max)
    candidates = united(examined)
    chosen = [*scope.within(other, candidates), *_of_story(scope, candidates)]
    rows = _rows(connection, candidates, chosen, way, rows_max + 1)
    end = _end(connection, examined, each_max, way)
    if end is None:
        return cut(rows, rows_max, way)
    rows = [row for row in rows if not way.passes(way.key(row), end)]
    return cut(rows, rows_max, way) if len(rows) > rows_max else Found(rows, Cursor("after", *end), is_partial=True)


def counts(connection: Connection, scope: Scope) -> dict[State, Count]:
    """Return how many rows of a scope are in each of its states, by indexes alone."""
    ranged: list[Key] = [key for key in KEYS if scope.within(key)]
    parts = [
        _counting(replace(scope, kinds=(kind,), states=(state,)), kind, state, key)
        for kind in scope.kinds or KINDS
        for state in scope.states or STATES
        for key in ranged or KEYS[:1]
    ]
    found: dict[tuple[Kind, State], list[Count]] = {}
    for kind, state, rows, is_exact in connection.execute(union_all(*parts)):
        found.setdefault((kind, state), []).append(Count(rows, bool(is_exact)))
    # Of two orders one may get to the end of the range, or further than the other.
    best = {pair: max(several, key=lambda count: (count.is_exact, count.rows)) for pair, several in found.items()}
    return {
        state: total(count for (_, of), count in best.items() if of == state).cut(COUNTED_MAX)
        for state in scope.states or STATES
    }


def _counting(scope: Scope, kind: Kind, state: State, key: Key) -> Select[Any]:
    """Return the query that counts one kind and state, in the order of a key."""
    other: Key = "arrived_ms" if key == "certainty" else "certainty"
    is_filtered = bool(scope.within(other) or _of_story(scope, FLAGS))
    limit = COUNT_EXAMINED_MAX if is_filtered else COUNTED_MAX + 1
    (branch,) = branches(scope, Way(key, is_descending=False), scope.within(key), limit)
    entries = branch.subquery()
    conditions = [*scope.within(other, entries), *_of_story(scope, entries)]
    rows = func.count(case((and_(*conditions), 1))) if conditions else func.count()
    return select(literal(kind), literal(state), rows, case((func.count() < limit, 1), else_=0)).select_from(entries)


def count_new(connection: Connection, scope: Scope, after_id: int) -> Count:
    """Return how many rows of a scope came after a flag, among the first rows that did."""
    names = ("flag_id", "kind", "state", "story_id", "source_id", "original_source_id", *KEYS)
    columns = [FLAGS.c[name] for name in names]
    rows = select(*columns).where(FLAGS.c.flag_id > after_id).order_by(FLAGS.c.flag_id).limit(NEW_EXAMINED_MAX)
    candidates = rows.subquery("candidates")
    conditions = [
        *scope.of_sources(candidates),
        *(condition for key in KEYS for condition in scope.within(key, candidates)),
        *([] if scope.story_id is None else [candidates.c.story_id == scope.story_id]),
        candidates.c.kind.in_(scope.kinds or KINDS),
        candidates.c.state.in_(scope.states or STATES),
    ]
    chosen = func.count(case((and_(*conditions), 1)))
    found = connection.execute(select(chosen, func.count()).select_from(candidates)).one()
    return Count(found[0], is_exact=found[1] < NEW_EXAMINED_MAX)


Branch = Select[Any]


def branches(scope: Scope, way: Way, conditions: Sequence[ColumnElement[bool]], limit: int) -> list[Branch]:
    """Return a query for each kind and state: the first rows, by an index alone."""
    columns = [FLAGS.c.flag_id, FLAGS.c.certainty, FLAGS.c.arrived_ms]
    if scope.story_id is not None:
        columns += [FLAGS.c.source_id, FLAGS.c.original_source_id]
    left_out = [FLAGS.c.flag_id.not_in(scope.without)] if scope.without else []
    return [
        select(*columns).where(*scope.equal(), *pair, *conditions, *left_out).order_by(*way.ordered()).limit(limit)
        for pair in scope.kinds_and_states()
    ]


def _of_story(scope: Scope, of: FromClause) -> list[ColumnElement[bool]]:
    """Return the conditions for sources within a story: its index has them, but not in order."""
    return scope.of_sources(of) if scope.story_id is not None else []


def united(parts: Sequence[Branch]) -> Subquery:
    """Return the rows of several queries as one."""
    if len(parts) == 1:
        return parts[0].subquery("candidates")
    # SQLite takes no order within a union, but within a query of its own.
    return union_all(*(select(part.subquery()) for part in parts)).subquery("candidates")


def _rows(
    connection: Connection, candidates: Subquery, conditions: Sequence[ColumnElement[bool]], way: Way, limit: int
) -> list[FlagRow]:
    chosen = select(candidates.c.flag_id).where(*conditions).order_by(*way.ordered(candidates)).limit(limit).subquery()
    query = flag_rows().join(chosen, chosen.c.flag_id == FLAGS.c.flag_id).order_by(*way.ordered())
    return [flag_row(row) for row in connection.execute(query)]


def _end(connection: Connection, parts: Sequence[Branch], each_max: int, way: Way) -> tuple[float, int] | None:
    """Return the first place at which a branch had to stop; None where all rows were looked at."""
    lasts = united([part.limit(1).offset(each_max - 1) for part in parts])
    ends = [(row[0], row[1]) for row in connection.execute(select(lasts.c[way.by], lasts.c.flag_id))]
    if not ends:
        return None
    return max(ends) if way.is_descending else min(ends)


def cut(rows: list[FlagRow], rows_max: int, way: Way) -> Found:
    """Return the first of these rows, and where others follow."""
    if len(rows) <= rows_max:
        return Found(rows, None, is_partial=False)
    rows = rows[:rows_max]
    return Found(rows, Cursor("after", *way.key(rows[-1])), is_partial=False)
