"""Filters and orders of flags, as conditions of statements and their parameters.

Conditions contain parameters instead of values, so that one statement serves all scopes of the same form.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy import ColumnElement, bindparam, select, tuple_
from sqlalchemy.sql.selectable import FromClause

from consumer.reviews.flag_row import STATES, FlagRow, State
from consumer.reviews.kinds.rules import KINDS, Kind
from consumer.reviews.paging import Cursor
from consumer.reviews.tables import FLAGS, LOOKING

Key = Literal["certainty", "arrived_ms"]
KEYS: Final[tuple[Key, ...]] = ("certainty", "arrived_ms")


OPENED_BY_OTHERS_MAX: Final = 1_000
"""A query leaves out at most this many flags that others have open: those opened most recently."""
BY_OTHERS: Final = (LOOKING.c.person_id != bindparam("person"), LOOKING.c.at_ms > bindparam("since_ms"))
OPENED_BY_OTHERS: Final = (
    select(LOOKING.c.flag_id).where(*BY_OTHERS).order_by(LOOKING.c.at_ms.desc()).limit(OPENED_BY_OTHERS_MAX)
)


class Seeker(NamedTuple):
    """A person who looks for a flag that nobody else has opened after ``since_ms``: the parameters of ``BY_OTHERS``."""

    person: int
    since_ms: int


class Range(NamedTuple):
    """A range of values, both ends included; None means no limit."""

    low: float | None
    high: float | None

    def contains(self, value: float) -> bool:
        """Return whether a value is in the range."""
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def form(self) -> "Range":
        """Return the range with 0 in place of each limit. It is equal for all ranges that have the same limits set."""
        return Range(_any_number(self.low), _any_number(self.high))


NO_LIMITS: Final = Range(None, None)
"""No limit at all."""


@dataclass(frozen=True, slots=True)
class RowOrder:
    """An order of rows: by a key, and by id among equal keys."""

    by: Key
    is_descending: bool

    def reversed(self) -> "RowOrder":
        """Return the reverse order."""
        return RowOrder(self.by, not self.is_descending)

    def key(self, row: FlagRow) -> tuple[float, int]:
        """Return the place of a row in this order."""
        return (row.certainty if self.by == "certainty" else row.arrived_ms), row.flag_id

    def is_after(self, key: tuple[float, int], other: tuple[float, int]) -> bool:
        """Return whether ``key`` comes after ``other`` in this order."""
        return key < other if self.is_descending else key > other

    def order_by_columns(self, table: FromClause = FLAGS) -> list[ColumnElement[object]]:
        """Return the columns of the ORDER BY clause."""
        columns: list[ColumnElement[object]] = [table.c[self.by], table.c.flag_id]
        return [column.desc() for column in columns] if self.is_descending else columns

    def after_cursor(self, table: FromClause = FLAGS) -> list[ColumnElement[bool]]:
        """Return the condition for rows after a cursor."""
        keys = table.c[self.by], table.c.flag_id
        # With parameters of another type, PostgreSQL would not use the index.
        place = tuple_(*(bindparam(f"at_{column.key}", type_=column.type) for column in keys))
        return [tuple_(*keys) < place if self.is_descending else tuple_(*keys) > place]

    def cursor_values(self, cursor: Cursor) -> dict[str, float]:
        """Return the parameters of ``after_cursor``."""
        key = float(cursor.key) if self.by == "certainty" else int(cursor.key)
        return {f"at_{self.by}": key, "at_flag_id": cursor.row_id}


@dataclass(frozen=True, slots=True)
class Hits:
    """The flags that a search finds by text, by id, and by source.

    Only undecided flags are found by text; flags in any state are found by id and source. ``by_characters``: no text
    has all words, so the hits are texts with all characters of the words. ``words_cut`` and ``ids_cut``: the search had
    too many words, or too many matching ids.
    """

    by_text: npt.NDArray[np.int64]
    by_id: npt.NDArray[np.int64]
    source_id: int | None
    by_characters: bool
    words_cut: bool
    ids_cut: bool


@dataclass(frozen=True, slots=True)
class Scope:
    """The rows that a query selects. None means any."""

    states: tuple[State, ...] | None = None
    kinds: tuple[Kind, ...] | None = None
    source_id: int | None = None
    original_source_id: int | None = None
    story_id: int | None = None
    certainty: Range = NO_LIMITS
    arrived_ms: Range = NO_LIMITS
    # Flags to leave out.
    without: frozenset[int] = frozenset()
    # If set, flags that others have open are left out. With ``hits``, ``without`` contains them instead.
    seeker: Seeker | None = None
    # None without a search.
    hits: Hits | None = None

    def form(self) -> "Scope":
        """Return the scope with placeholders for values, without hits. Scopes of the same form share statements."""
        return Scope(
            states=self.states,
            kinds=self.kinds,
            source_id=_any_number(self.source_id),
            original_source_id=_any_number(self.original_source_id),
            story_id=_any_number(self.story_id),
            certainty=self.certainty.form(),
            arrived_ms=self.arrived_ms.form(),
            without=frozenset([0] if self.without else ()),
            seeker=None if self.seeker is None else Seeker(0, 0),
        )

    def values(self) -> dict[str, Any]:
        """Return the parameters of the conditions."""
        limits = {name: limit for key in KEYS for name, limit in zip(_limits(key), self.range(key), strict=True)}
        values = {
            **limits,
            **{name: getattr(self, name) for name in SINGLE_VALUE_COLUMNS},
            "without": tuple(self.without),
        }
        return values if self.seeker is None else values | self.seeker._asdict()

    def range(self, key: Key) -> Range:
        """Return the range of a column."""
        return self.certainty if key == "certainty" else self.arrived_ms

    def equality_conditions(self) -> list[ColumnElement[bool]]:
        """Return the equality conditions for an index, in addition to kind and state."""
        if self.story_id is not None:
            return [FLAGS.c.story_id == bindparam("story_id")]
        return self.source_conditions(FLAGS)

    def exclusion_conditions(self) -> Iterator[ColumnElement[bool]]:
        """Yield the conditions that leave flags out."""
        if self.without:
            yield FLAGS.c.flag_id.not_in(bindparam("without", expanding=True))
        if self.seeker is not None:
            yield FLAGS.c.flag_id.not_in(OPENED_BY_OTHERS)

    def kind_state_conditions(self) -> Iterator[tuple[ColumnElement[bool], ColumnElement[bool]]]:
        """Yield the conditions for each kind and state. An index orders the rows of each such pair."""
        for kind in self.kinds or KINDS:
            for state in self.states or STATES:
                yield FLAGS.c.kind == kind, FLAGS.c.state == state

    def range_conditions(self, key: Key, table: FromClause = FLAGS) -> list[ColumnElement[bool]]:
        """Return the conditions of the range of a column."""
        limits, (low, high) = self.range(key), _limits(key)
        column: ColumnElement[float] = table.c[key]
        lower = [] if limits.low is None else [column >= bindparam(low)]
        upper = [] if limits.high is None else [column <= bindparam(high)]
        return [*lower, *upper]

    def source_conditions(self, table: FromClause) -> list[ColumnElement[bool]]:
        """Return the conditions for the sources of a scope."""
        named = [name for name in SOURCE_COLUMNS if getattr(self, name) is not None]
        return [table.c[name] == bindparam(name) for name in named]


SOURCE_COLUMNS: Final = ("source_id", "original_source_id")
SINGLE_VALUE_COLUMNS: Final = ("story_id", *SOURCE_COLUMNS)
"""The columns for which a scope has a single value."""


def _any_number(value: float | None) -> int | None:
    """Return 0 for any number, and None for None."""
    return None if value is None else 0


def _limits(key: Key) -> tuple[str, str]:
    """Return the parameter names of a range."""
    return f"{key}_low", f"{key}_high"
