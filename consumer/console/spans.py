"""The span of time that a page looks back on, as its query says it."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, NamedTuple

from consumer.console.faults import N_, PageError
from consumer.console.visit import Asked

FIELD: Final = "within"
_SECONDS: Final[Mapping[str, int]] = {"1h": 3_600, "24h": 86_400, "7d": 604_800}
_DEFAULT: Final = "24h"
_MS: Final = 1_000


class SpanTab(NamedTuple):
    """A link to the same page for another span."""

    name: str
    href: str
    is_here: bool


class Span(NamedTuple):
    """From when on, what that is called, and the links to others."""

    since_ms: int
    name: str
    tabs: tuple[SpanTab, ...]


def span_in(asked: Asked) -> Span:
    """Return the span that a query asks for. Raises ``PageError``."""
    wanted = asked.query.text(FIELD) or _DEFAULT
    if wanted not in _SECONDS:
        message = N_("%(field)s is %(value)s; it can be %(possible)s.")
        raise PageError(HTTPStatus.BAD_REQUEST, message, field=FIELD, value=wanted[:40], possible=", ".join(_SECONDS))
    names = {code: asked.language.span(seconds) for code, seconds in _SECONDS.items()}
    tabs = tuple(
        SpanTab(names[code], asked.path if code == _DEFAULT else f"{asked.path}?{FIELD}={code}", code == wanted)
        for code in _SECONDS
    )
    return Span(asked.desk.now_ms() - _SECONDS[wanted] * _MS, names[wanted], tabs)
