"""What is read from the topics of flags and near misses, and what of them is skipped."""

import logging
from dataclasses import replace

import pytest

from consumer.console.intake.event_reading import SKIPS_LOGGED_MAX, NewerEvent, read_near_misses, read_verdicts
from consumer.model.article import Reason, record_too_long
from consumer.model.errors import BadRecord
from consumer.model.near_miss import encode as encode_near_miss
from consumer.model.verdict import encode
from consumer.telemetry.metrics.console import EventSkipped
from tests.unit.console.events_made import MISSED_TOPIC, flag, missed, of_earlier_version, record, release, version

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
    encode(flag(1)).replace(b'"distance":3', b'"distance":1' + b"0" * 30),
    encode(flag(1)).replace(b'"source":"s1"', b'"source":7'),
    encode(flag(1)).replace(b'"source":"s1"', b'"source":"%s"' % (b"s" * 513)),
    encode(flag(1)).replace(b'"original_source":"s0"', b'"original_source":"%s"' % (b"s" * 513)),
]


def near(old: str, new: str) -> bytes:
    """A near miss of which something is replaced."""
    event = encode_near_miss(missed(1)).decode()
    assert old in event
    return event.replace(old, new).encode("utf-8", "surrogatepass")


_NOT_NEAR_MISSES = [
    b"",
    b"\xff\xfe",
    b"[" * 100_000,
    encode(flag(1)),
    near('"similarity":0.7', '"similarity":NaN'),
    near('"similarity":0.7', '"similarity":-0.1'),
    near('"similarity":0.7', '"similarity":null'),
    near('"distance":9', '"distance":129'),
    near('"distance":9', '"distance":1' + "0" * 30),
    near('"sampled_in":20.0', '"sampled_in":0.5'),
    near('"sampled_in":20.0', '"sampled_in":1e308'),
    near('"sampled_in":20.0', '"sampled_in":1e999'),
    near('"id":"a1"', '"id":""'),
    near('"id":"a1"', '"id":"\\u0000"'),
    near('"id":"a1"', '"id":"\\ud800"'),
    near('"id":"a1"', '"id":"\ud800"'),
    near('"id":"a1"', f'"id":"{"a" * 513}"'),
    near('"id":"a1"', f'"id":"{"a" * 1_000_000}"'),
    near('"original":"a0"', f'"original":"{"码" * 171}"'),
    near(f'"version":"{version(1)}"', '"version":"xyz"'),
    near(f'"version":"{version(1)}"', f'"version":"{"ab" * 300}"'),
    near('"source":"post"', f'"source":"{"s" * 513}"'),
    near('"original_source":"wire"', '"original_source":7'),
    near("2025-11-24T", "2025-13-45T"),
    near("2025-11-24T", "٢٠٢٥-11-24T"),
    near('"original":"a0","original_version":"' + version(0), '"original":"a1","original_version":"' + version(1)),
]


def test_events_are_read_in_order() -> None:
    """Flags and releases, with members that a later version has added left out, and without those of this version."""
    more = encode(flag(2)).replace(b'"id":"a2"', b'"id":"a2","new":[1]')
    earlier = of_earlier_version(flag(3))
    records = [
        record(value, at) for at, value in enumerate([encode(flag(1)), more, encode(release(1)), encode(earlier)])
    ]
    reported: list[object] = []
    assert read_verdicts(records, reported.append) == [flag(1), flag(2), release(1), earlier]
    assert reported == []


@pytest.mark.parametrize("value", _NOT_EVENTS, ids=range(len(_NOT_EVENTS)))
def test_what_is_no_event_is_counted_and_logged(value: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """With its place in the topic; the records around it are taken."""
    records = [record(encode(flag(1))), record(value, 7), record(encode(flag(2)), 8)]
    reported: list[object] = []
    with caplog.at_level(logging.WARNING, "dupwatch"):
        assert read_verdicts(records, reported.append) == [flag(1), flag(2)]
    assert reported == [EventSkipped("not_an_event")]
    (line,) = caplog.messages
    assert "p.duplicates [0] offset 7" in line


def test_a_wrong_file_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """All that is skipped is counted; the log names the first ones of a batch, and where the others end."""
    reported: list[object] = []
    records = [replace(record(b"nonsense"), start=number) for number in range(SKIPS_LOGGED_MAX + 5)]
    assert read_verdicts(records, reported.append) == []
    assert reported == [EventSkipped("not_an_event")] * len(records)
    *named, rest = caplog.messages
    assert len(named) == SKIPS_LOGGED_MAX
    assert rest == f"5 more records up to p.duplicates [0] offset {len(records) - 1} are skipped for similar reasons."


def test_what_never_was_whole_is_skipped() -> None:
    """A tombstone, a record beyond the limit, and one that the client cannot return."""
    large = replace(record(b"x", 1), fault=record_too_long(9, 8))
    broken = replace(record(b"x", 2), fault=BadRecord(Reason.UNREADABLE_MESSAGE, "odd headers"))
    reported: list[object] = []
    assert read_verdicts([record(None), large, broken], reported.append) == []
    assert reported == [EventSkipped("null_value"), EventSkipped("too_large"), EventSkipped("unreadable_message")]


def test_an_event_of_a_newer_version_is_not_skipped() -> None:
    """A console of that version can read it; and what is beside it is not counted twice when it does."""
    newer = encode(flag(1)).replace(b"dupwatch.verdict/1", b"dupwatch.verdict/2")
    reported: list[object] = []
    with pytest.raises(NewerEvent, match=r"p\.duplicates \[0\] offset 5 is a dupwatch\.verdict/2 event"):
        read_verdicts([record(b"{"), record(newer, 5)], reported.append)
    assert reported == []


def test_near_misses_are_read_in_order() -> None:
    """With members that a later version has added left out; hostile texts are texts."""
    bidi = missed(3, id="<script>\u202e\x1b[31m", source="\x00" * 512)
    events = [missed(1), missed(2), bidi]
    more = encode_near_miss(missed(2)).replace(b'"id":"a2"', b'"id":"a2","new":[1]')
    values = [encode_near_miss(missed(1)), more, encode_near_miss(bidi)]
    reported: list[object] = []
    records = [record(value, at, MISSED_TOPIC) for at, value in enumerate(values)]
    assert read_near_misses(records, reported.append) == events
    assert reported == []


@pytest.mark.parametrize("value", _NOT_NEAR_MISSES, ids=range(len(_NOT_NEAR_MISSES)))
def test_what_is_no_near_miss_is_counted_and_logged(value: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """With its place in the topic; the records around it are taken."""
    around = [encode_near_miss(missed(1)), value, encode_near_miss(missed(2))]
    reported: list[object] = []
    with caplog.at_level(logging.WARNING, "dupwatch"):
        records = [record(each, at, MISSED_TOPIC) for at, each in enumerate(around, 6)]
        assert read_near_misses(records, reported.append) == [missed(1), missed(2)]
    assert reported == [EventSkipped("not_an_event")]
    (line,) = caplog.messages
    assert "p.near-misses [0] offset 7 is skipped: it can never be read as a near miss" in line
    assert len(line) < 1_000


def test_a_near_miss_of_a_newer_version_is_not_skipped() -> None:
    """As with flags; one that only claims to be of another family is."""
    event = encode_near_miss(missed(1))
    newer = event.replace(b"dupwatch.near-miss/1", b"dupwatch.near-miss/2")
    reported: list[object] = []
    with pytest.raises(NewerEvent, match=r"p\.near-misses \[0\] offset 5 is a dupwatch\.near-miss/2 event"):
        read_near_misses([record(newer, 5, MISSED_TOPIC)], reported.append)
    assert read_near_misses([record(encode(flag(1)), 6, MISSED_TOPIC)], reported.append) == []
    assert reported == [EventSkipped("not_an_event")]
