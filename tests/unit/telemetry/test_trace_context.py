"""Parsing the headers of W3C Trace Context."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from consumer.files.lines import Position
from consumer.model.record import RawRecord
from consumer.telemetry.trace_context import TraceContext, contexts, parse
from tests.builders import raw_message

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01".encode()


def record(*headers: tuple[str, bytes | None]) -> RawRecord:
    """A message with these headers."""
    return raw_message(b"", headers=headers)


def test_a_context_is_read() -> None:
    """Ids, flags and state."""
    assert parse(PARENT, b"vendor=x") == TraceContext(int(TRACE, 16), int(SPAN, 16), 1, "vendor=x")


@pytest.mark.parametrize(
    "parent",
    [
        b"",
        b"00",
        f"00-{TRACE}-{SPAN}".encode(),
        f"ff-{TRACE}-{SPAN}-01".encode(),
        f"00-{TRACE.upper()}-{SPAN}-01".encode(),
        f"00-{'0' * 32}-{SPAN}-01".encode(),
        f"00-{TRACE}-{'0' * 16}-01".encode(),
        f"00-{TRACE}-{SPAN}-01-more".encode(),
        f"00-{TRACE}-{SPAN}-01x".encode(),
        b"\xff\xfe",
    ],
)
def test_what_is_no_context(parent: bytes) -> None:
    """It is ignored, and the article is judged."""
    assert parse(parent, b"") is None


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    """Section 4.3: more may follow what the first version has."""
    parsed = parse(f"01-{TRACE}-{SPAN}-03-more".encode(), b"")
    assert parsed is not None
    assert parsed.flags == 3


@given(st.binary(max_size=60) | st.from_regex(rb"0[01]-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-x)?", fullmatch=True))
def test_it_is_read_as_opentelemetry_reads_it(parent: bytes) -> None:
    """For any header, the result is that of OpenTelemetry's propagator."""
    text = parent.decode("latin-1")
    span = get_current_span(TraceContextTextMapPropagator().extract({"traceparent": text})).get_span_context()
    parsed = parse(parent, b"")
    # Its pattern lets spaces of every kind stand around a value; no header of a message has them.
    if text == text.strip():
        assert (parsed is not None) == span.is_valid
    if parsed is not None:
        assert (parsed.trace_id, parsed.span_id) == (span.trace_id, span.span_id)


def test_each_context_is_named_once_and_so_many_at_most() -> None:
    """Articles of one request share a context; the number of dropped ones is returned."""
    others = [f"00-{TRACE}-{number:016x}-01".encode() for number in range(1, 6)]
    records = [record(("traceparent", parent)) for parent in [PARENT, PARENT, *others, PARENT]]
    found, dropped = contexts(records, 3)
    assert [context.span_id for context in found] == [int(SPAN, 16), 1, 2]
    assert dropped == 3
    assert contexts(records, 100)[1] == 0


def test_traces_that_nobody_records_are_left_out() -> None:
    """A link to them would lead nowhere, and they do not count towards the limit."""
    silent = f"00-{TRACE}-{SPAN}-00".encode()
    found, dropped = contexts([record(("traceparent", silent)), record(("traceparent", PARENT))], 1)
    assert ([context.flags for context in found], dropped) == ([1], 0)


def test_headers_that_are_missing_or_come_twice() -> None:
    """Two parents count as none, two states as one; a record of a file has no headers."""
    assert contexts([record(), record(("traceparent", None)), record(("tracestate", b"a=1"))], 9) == ([], 0)
    assert contexts([record(("traceparent", PARENT), ("traceparent", PARENT))], 9) == ([], 0)
    both = record(("tracestate", b"a=1"), ("traceparent", PARENT), ("tracestate", b"b=2"))
    assert [context.state for context in contexts([both], 9)[0]] == ["a=1,b=2"]
    assert contexts([RawRecord(1, 0, b"", 0, None, None, Position())], 9) == ([], 0)
    assert [
        context.state for context in contexts([record(("traceparent", PARENT), ("tracestate", b"x" * 600))], 9)[0]
    ] == [""]
