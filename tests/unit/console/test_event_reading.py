"""What is read from the topic of flags, and what of it is skipped."""

import logging
from dataclasses import replace

import pytest

from consumer.console.event_reading import NewerEvent, read_events
from consumer.model.article import Reason, record_too_long
from consumer.model.errors import BadRecord
from consumer.model.verdict import encode
from consumer.telemetry.metrics.console import EventSkipped
from tests.unit.console.events_made import flag, record, release

_NOT_EVENTS = [
    b"",
    b"{",
    b"\xff\xfe",
    b"[]",
    b'{"schema":"other/1"}',
    b'{"schema":7}',
    b"[" * 100_000,
    encode(flag(1, arrived_at="2025-13-45T99:00:00.000Z")),
    encode(flag(1)).replace(b'"similarity":0.9', b'"similarity":9'),
]


def test_events_are_read_in_order() -> None:
    """Flags and releases, with members that a later version has added left out."""
    more = encode(flag(2)).replace(b'"id":"a2"', b'"id":"a2","new":[1]')
    records = [record(encode(flag(1))), record(more, 1), record(encode(release(1)), 2)]
    reported: list[object] = []
    assert read_events(records, reported.append) == [flag(1), flag(2), release(1)]
    assert reported == []


@pytest.mark.parametrize("value", _NOT_EVENTS, ids=range(len(_NOT_EVENTS)))
def test_what_is_no_event_is_counted_and_logged(value: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """With its place in the topic; the records around it are taken."""
    records = [record(encode(flag(1))), record(value, 7), record(encode(flag(2)), 8)]
    reported: list[object] = []
    with caplog.at_level(logging.WARNING, "dupwatch"):
        assert read_events(records, reported.append) == [flag(1), flag(2)]
    assert reported == [EventSkipped("not_an_event")]
    (line,) = caplog.messages
    assert "p.duplicates [0] offset 7" in line


def test_what_never_was_whole_is_skipped() -> None:
    """A tombstone, a record beyond the limit, and one that the client cannot return."""
    large = replace(record(b"x", 1), fault=record_too_long(9, 8))
    broken = replace(record(b"x", 2), fault=BadRecord(Reason.UNREADABLE_MESSAGE, "odd headers"))
    reported: list[object] = []
    assert read_events([record(None), large, broken], reported.append) == []
    assert reported == [EventSkipped("null_value"), EventSkipped("too_large"), EventSkipped("unreadable_message")]


def test_an_event_of_a_newer_version_is_not_skipped() -> None:
    """A console of that version can read it; and what is beside it is not counted twice when it does."""
    newer = encode(flag(1)).replace(b"dupwatch.verdict/1", b"dupwatch.verdict/2")
    reported: list[object] = []
    with pytest.raises(NewerEvent, match=r"p\.duplicates \[0\] offset 5 is a dupwatch\.verdict/2 event"):
        read_events([record(b"{"), record(newer, 5)], reported.append)
    assert reported == []
