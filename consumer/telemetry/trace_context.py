"""Reads the trace context of messages: W3C Trace Context, level 1 (https://www.w3.org/TR/trace-context/).

OpenTelemetry's propagator takes about ten times as long per message, and a batch has hundreds of messages.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from consumer.model.record import Header, RawRecord

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
_FORM: Final = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_INVALID_VERSION: Final = b"ff"
_FIRST_VERSION: Final = b"00"
_SAMPLED: Final = 1
_STATE_BYTES_MAX: Final = 512
"""Section 3.3.1.5: at least this much of a state should be kept. Longer states are dropped, as that section allows."""


class TracedFeed(NamedTuple):
    """The source of records, as named in spans. ``group`` is None for a source without groups."""

    system: str
    group: str | None = None


class TraceContext(NamedTuple):
    """A position in a trace. ``state`` is the value of tracestate, empty if there is none."""

    trace_id: int
    span_id: int
    flags: int
    state: str

    @property
    def is_sampled(self) -> bool:
        """Whether the trace may have been recorded (section 3.2.2.5.1)."""
        return bool(self.flags & _SAMPLED)


def contexts(records: Iterable[RawRecord], contexts_max: int) -> tuple[list[TraceContext], int]:
    """Return the distinct contexts of these records, at most ``contexts_max``, and how many more there are.

    Only contexts of recorded traces count, because links to others would lead nowhere.
    """
    headers = (record.headers for record in records)
    values = dict.fromkeys(found for pairs in headers if (found := _values(pairs)) is not None)
    read = (parse(parent, state) for parent, state in values)
    recorded = [context for context in read if context is not None and context.is_sampled]
    return recorded[:contexts_max], max(len(recorded) - contexts_max, 0)


def parse(parent: bytes, state: bytes) -> TraceContext | None:
    """Parse both headers. Return None if they have no valid context. Unknown parts of later versions are ignored."""
    found = _FORM.fullmatch(parent.strip())
    if found is None or found[1] == _INVALID_VERSION or (found[1] == _FIRST_VERSION and found[5] is not None):
        return None
    trace_id, span_id = int(found[2], 16), int(found[3], 16)
    if not trace_id or not span_id:
        return None
    kept = state.decode("ascii", errors="ignore") if len(state) <= _STATE_BYTES_MAX else ""
    return TraceContext(trace_id, span_id, int(found[4], 16), kept)


def _values(headers: Sequence[Header]) -> tuple[bytes, bytes] | None:
    """Return both headers of a message; None if it has no traceparent, or several (section 3.2)."""
    parents = [value for name, value in headers if name == TRACEPARENT and value is not None]
    if len(parents) != 1:
        return None
    return parents[0], b",".join(value for name, value in headers if name == TRACESTATE and value is not None)
