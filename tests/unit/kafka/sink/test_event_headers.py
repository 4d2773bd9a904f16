"""The headers of verdict events."""

import msgspec
import pytest

from consumer.kafka.sink.event_headers import (
    cloud_event_attributes,
    event_headers,
    event_id,
    side_headers,
)
from consumer.model.ports import JudgedRecord
from consumer.model.record import RawRecord
from consumer.model.verdict import Verdict, VerdictEvent
from tests.builders import raw_message

FLAG = Verdict(
    id="a/1",
    version="ab" * 16,
    outcome="duplicate",
    scheme="test/1",
    arrived_at="2026-01-02T03:04:05.678Z",
    decided_at="2026-01-02T03:04:06.789Z",
)
TRACE = (
    ("traceparent", b"00-ab-cd-01"),
    ("other", b"x"),
    ("tracestate", b"\xff"),
    ("baggage", b"1"),
    ("baggage", None),
)


def answer(verdict: Verdict = FLAG, *, from_topic: bool = True) -> JudgedRecord:
    """An answer to a record of a topic, or of a file."""
    message = raw_message(b"", b"a/1", offset=42, partition=3, headers=TRACE)
    record = message if from_topic else RawRecord(7, 42, b"", 0, None, None)
    return JudgedRecord(record, VerdictEvent.of(verdict))


def test_an_event_says_what_it_is_and_where_its_record_stood() -> None:
    """Schema, scheme, outcome and origin as text; of the record's headers only those of the trace, untouched."""
    assert event_headers(answer()) == [
        ("dupwatch-schema", b"dupwatch.verdict/1"),
        ("dupwatch-scheme", b"test/1"),
        ("dupwatch-outcome", b"duplicate"),
        ("dupwatch-origin-topic", b"articles"),
        ("dupwatch-origin-partition", b"3"),
        ("dupwatch-origin-offset", b"42"),
        ("traceparent", b"00-ab-cd-01"),
        ("tracestate", b"\xff"),
        ("baggage", b"1"),
        ("baggage", None),
    ]


def test_what_is_not_there_has_no_header() -> None:
    """A retraction has no scheme, and a line of a file no origin."""
    retracted = msgspec.structs.replace(FLAG, outcome="retracted", version=None, scheme=None)
    assert event_headers(answer(retracted, from_topic=False)) == [
        ("dupwatch-schema", b"dupwatch.verdict/1"),
        ("dupwatch-outcome", b"retracted"),
    ]


def test_a_cloud_event_has_its_attributes() -> None:
    """The required attributes of CloudEvents 1.0 in binary mode, the optional time and subject, and our own headers."""
    headers = event_headers(answer(), "/feeds/news")
    assert headers[:7] == [
        ("ce_specversion", b"1.0"),
        ("ce_id", event_id(FLAG).encode()),
        ("ce_source", b"/feeds/news"),
        ("ce_type", b"io.dupwatch.verdict.duplicate"),
        ("ce_time", b"2026-01-02T03:04:06.789Z"),
        ("ce_subject", b"a/1"),
        ("content-type", b"application/json"),
    ]
    assert headers[7:] == event_headers(answer())


def test_an_event_has_one_id_however_often_it_is_sent() -> None:
    """The id is of the verdict, not of its record; another version, outcome, article or retraction has another."""
    others = [
        msgspec.structs.replace(FLAG, **other)
        for other in (
            {},
            {"version": "cd" * 16},
            {"outcome": "unique"},
            {"id": "a/2"},
            {"outcome": "retracted", "version": None},
            {"outcome": "retracted", "version": None, "arrived_at": "2026-01-02T03:04:05.679Z"},
        )
    ]
    assert len({event_id(verdict) for verdict in others}) == len(others)
    moved = msgspec.structs.replace(FLAG, truncated=True)
    assert event_id(moved) == event_id(FLAG)


def test_a_subject_has_no_control_characters() -> None:
    """An id that cannot be an attribute is left out; ideographic spaces are no control characters."""
    for article_id, there in (("a\nb", False), ("a\x85", False), ("a\u3000b", True), ("", False)):
        verdict = msgspec.structs.replace(FLAG, id=article_id)
        assert ("ce_subject" in dict(cloud_event_attributes(verdict, "/f"))) is there


@pytest.mark.parametrize("name", ["near-miss", "bank-match"])
def test_what_goes_with_a_verdict_is_another_event(name: str) -> None:
    """Its schema, type and id are its own, it has no outcome, and the rest is as of the verdict."""
    schema = f"dupwatch.{name}/1"
    of_verdict, own = dict(event_headers(answer())), dict(side_headers(answer(), schema))
    assert own == {name: value for name, value in of_verdict.items() if name != "dupwatch-outcome"} | {
        "dupwatch-schema": schema.encode()
    }
    cloud, of_flag = dict(side_headers(answer(), schema, "/feed")), dict(event_headers(answer(), "/feed"))
    assert cloud["ce_type"] == f"io.dupwatch.{name}".encode()
    assert cloud["ce_id"] != of_flag["ce_id"]
    assert (cloud["ce_source"], cloud["ce_subject"]) == (b"/feed", b"a/1")
    assert own.items() <= cloud.items()


def test_events_about_several_items_are_several_events() -> None:
    """What an event is about is part of its id; repeated, it has the same one."""
    schema = "dupwatch.bank-match/1"

    def event(about: str) -> bytes | None:
        return dict(side_headers(answer(), schema, "/feed", about))["ce_id"]

    assert len({event(""), event("spam/offer"), event("spam/other")}) == 3
    assert event("spam/offer") == event("spam/offer")
    assert side_headers(answer(), schema, about="spam/offer") == side_headers(answer(), schema)
