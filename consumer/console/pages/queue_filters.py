"""Reads and writes the filters and the order of the queue in the query of a URL.

Pages of the queue pass the query on, so that the next flag comes from the same selection.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, get_args
from urllib.parse import urlencode

from consumer.console.faults import N_, PageError
from consumer.console.visit import Fields, fields_of
from consumer.reviews.flag_row import STATES
from consumer.reviews.kinds.rules import KINDS
from consumer.reviews.queue import Filters, Order
from consumer.reviews.word_index.results import QueueSearch
from consumer.reviews.word_index.words import WordCutter
from consumer.text.timestamps import day_begins_ms

FIELD: Final = "queue"
"""The form field that carries the query."""
ANY: Final = "any"
"""The value of the field ``state`` for flags in all states."""
SOURCE_CHARS_MAX: Final = 300
SEARCH_CHARS_MAX: Final = 200
"""The maximum number of characters of a search."""
_QUERY_CHARS_MAX: Final = 20_000


_ORDERS: Final[tuple[str, ...]] = get_args(Order)
_DEFAULTS: Final = {"state": "open", "order": "certainty"}


@dataclass(frozen=True, slots=True)
class QueueSelection:
    """A selection of the queue: filters and order. ``fields`` are the query fields that describe it."""

    filters: Filters
    order: Order
    fields: Mapping[str, str]

    @property
    def query(self) -> str:
        """The query of a URL for this selection; "" for the default, open flags with the least certain first."""
        return urlencode(self.fields)

    @property
    def is_narrowed(self) -> bool:
        """Whether the selection has a search, or a filter other than the state."""
        return bool(self.fields.keys() - _DEFAULTS.keys())

    @property
    def is_filtered(self) -> bool:
        """Whether the selection has a filter other than the state and the search."""
        return bool(self.fields.keys() - _DEFAULTS.keys() - {"q"})

    def field(self, name: str) -> str:
        """Return the value of a field for a form."""
        return self.fields.get(name, _DEFAULTS.get(name, ""))

    def with_fields(self, **changed: str) -> str:
        """Return the query with some fields changed."""
        return urlencode(_non_default({**self.fields, **changed}))


def selection_in(query: Fields, cutter: WordCutter | None) -> QueueSelection:
    """Return the selection in a query. Raises ``PageError`` if it is invalid."""
    searched = query.text("q", SEARCH_CHARS_MAX)
    values: dict[str, Any] = {
        "state": one_of(query, "state", (*STATES, ANY)) or "open",
        "kind": one_of(query, "kind", KINDS),
        "source": query.text("source", SOURCE_CHARS_MAX) or None,
        "original_source": query.text("original_source", SOURCE_CHARS_MAX) or None,
        "story_id": query.integer("story_id") if query.text("story_id") else None,
        "similarity_min": _share(query, "similarity_min"),
        "similarity_max": _share(query, "similarity_max"),
        "arrived_from_ms": _day_ms(query, "from", days=0),
        "arrived_to_ms": _day_ms(query, "to", days=1),
        "search": QueueSearch(searched, None if cutter is None else cutter.terms_of(searched)) if searched else None,
    }
    if values["state"] == ANY:
        values["state"] = None
    order: Any = one_of(query, "order", _ORDERS) or "certainty"
    names = {*values, "q", "from", "to", "order"} - {"search"}
    return QueueSelection(Filters(**values), order, _non_default({name: query.text(name) for name in names}))


def selection_of(form: Fields, cutter: WordCutter | None) -> QueueSelection:
    """Return the selection that a form carries. Raises ``PageError``."""
    return selection_in(fields_of(form.text(FIELD, _QUERY_CHARS_MAX).encode()), cutter)


def _non_default(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields with values other than the defaults, sorted."""
    return {name: value for name, value in sorted(fields.items()) if value and _DEFAULTS.get(name) != value}


def one_of(query: Fields, name: str, possible: tuple[str, ...]) -> str | None:
    """Return the value of a field, or None if it is missing. Raises ``PageError`` unless it is one of ``possible``."""
    value = query.text(name)
    if value and value not in possible:
        message = N_("“%(field)s” cannot be %(value)s. Possible values: %(possible)s.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, field=name, value=value[:40], possible=", ".join(possible))
    return value or None


def _share(query: Fields, name: str) -> float | None:
    value = query.number(name)
    if value is not None and not 0 <= value <= 1:
        raise PageError(HTTPStatus.BAD_REQUEST, N_("“%(field)s” must be a similarity from 0 to 1."), field=name)
    return value


def _day_ms(query: Fields, name: str, *, days: int) -> int | None:
    """Return when the UTC day ``days`` after the one in a field begins, in milliseconds; None for an empty field."""
    day = query.day(name, later_days=days)
    return None if day is None else day_begins_ms(day)
