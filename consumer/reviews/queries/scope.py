"""The filters and the order of flags, as conditions of statements and their parameters.

Conditions name parameters and have no values in them, so that one statement serves all scopes of the same form.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy import ColumnElement, bindparam, tuple_
from sqlalchemy.sql.selectable import FromClause

from consumer.reviews.flag_row import STATES, FlagRow, State
from consumer.reviews.kinds.rules import KINDS, Kind
from consumer.reviews.paging import Cursor
from consumer.reviews.tables import FLAGS

Key = Literal["certainty", "arrived_ms"]
KEYS: Final[tuple[Key, ...]] = ("certainty", "arrived_ms")


class Range(NamedTuple):
    """From one value to another, both included; None is no limit."""

    low: float | None
    high: float | None

    def holds(self, value: float) -> bool:
        """Return whether a value is in it."""
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def form(self) -> "Range":
        """Return the range with the same limits, whatever their values."""
        return Range(_any_number(self.low), _any_number(self.high))


ANY: Final = Range(None, None)
"""No limit at all."""


@dataclass(frozen=True, slots=True)
class RowOrder:
    """In which order rows come. Rows of the same key come by their numbers."""

    by: Key
    is_descending: bool

    def reversed(self) -> "RowOrder":
        """Return the way back."""
        return RowOrder(self.by, not self.is_descending)

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

    def beyond(self, of: FromClause = FLAGS) -> list[ColumnElement[bool]]:
        """Return the condition for rows that come after the place of a cursor."""
        keys = of.c[self.by], of.c.flag_id
        # Parameters of another type than the columns would keep PostgreSQL from using the index.
        place = tuple_(*(bindparam(f"at_{column.key}", type_=column.type) for column in keys))
        return [tuple_(*keys) < place if self.is_descending else tuple_(*keys) > place]

    def place(self, cursor: Cursor) -> dict[str, float]:
        """Return the parameters of that condition."""
        key = float(cursor.key) if self.by == "certainty" else int(cursor.key)
        return {f"at_{self.by}": key, "at_flag_id": cursor.row_id}


@dataclass(frozen=True, slots=True)
class Hits:
    """The flags that a search finds, in any state: by their texts, by their ids, and by their source.

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
    """The rows that a query selects. None stands for any."""

    states: tuple[State, ...] | None = None
    kinds: tuple[Kind, ...] | None = None
    source_id: int | None = None
    original_source_id: int | None = None
    story_id: int | None = None
    certainty: Range = ANY
    arrived_ms: Range = ANY
    # Flags that are left out.
    without: frozenset[int] = frozenset()
    # None where nothing is searched for.
    hits: Hits | None = None

    def form(self) -> "Scope":
        """Return what all scopes have in common that need the same statements."""
        return Scope(
            states=self.states,
            kinds=self.kinds,
            source_id=_any_number(self.source_id),
            original_source_id=_any_number(self.original_source_id),
            story_id=_any_number(self.story_id),
            certainty=self.certainty.form(),
            arrived_ms=self.arrived_ms.form(),
            without=frozenset([0] if self.without else ()),
        )

    def values(self) -> dict[str, Any]:
        """Return the parameters of the conditions."""
        limits = {name: limit for key in KEYS for name, limit in zip(_limits(key), self.range(key), strict=True)}
        return {**limits, **{name: getattr(self, name) for name in NUMBERS}, "without": tuple(self.without)}

    def range(self, key: Key) -> Range:
        """Return the range of a column."""
        return self.certainty if key == "certainty" else self.arrived_ms

    def equal(self) -> list[ColumnElement[bool]]:
        """Return the conditions that an index begins with, besides kind and state."""
        if self.story_id is not None:
            return [FLAGS.c.story_id == bindparam("story_id")]
        return self.of_sources(FLAGS)

    def kinds_and_states(self) -> Iterator[tuple[ColumnElement[bool], ColumnElement[bool]]]:
        """Yield each pair of a kind and a state: an index has each pair in order, but not several together."""
        for kind in self.kinds or KINDS:
            for state in self.states or STATES:
                yield FLAGS.c.kind == kind, FLAGS.c.state == state

    def within(self, key: Key, of: FromClause = FLAGS) -> list[ColumnElement[bool]]:
        """Return the conditions of the range of a column."""
        limits, (low, high) = self.range(key), _limits(key)
        column: ColumnElement[float] = of.c[key]
        lower = [] if limits.low is None else [column >= bindparam(low)]
        upper = [] if limits.high is None else [column <= bindparam(high)]
        return [*lower, *upper]

    def of_sources(self, of: FromClause) -> list[ColumnElement[bool]]:
        """Return the conditions for the sources."""
        named = [name for name in ("source_id", "original_source_id") if getattr(self, name) is not None]
        return [of.c[name] == bindparam(name) for name in named]


NUMBERS: Final = ("story_id", "source_id", "original_source_id")
"""The columns of which a scope has one value."""


def _any_number(value: float | None) -> int | None:
    """Return 0 for all numbers, and None for none."""
    return None if value is None else 0


def _limits(key: Key) -> tuple[str, str]:
    """Return the names of the parameters of a range."""
    return f"{key}_low", f"{key}_high"
