"""The headers of a dead letter in a topic, there and back."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.kafka.sink.letter_headers import (
    POSITION,
    REASON,
    SCHEMA_NAME,
    SHA256,
    SIZE,
    STAGE,
    TIMESTAMP,
    TOPIC,
    LetterHeaders,
    letter_headers,
    own_headers,
    read_headers,
    replayed_headers,
)
from consumer.model.dead_letter import SCHEMA, LetterPosition, dead_letter
from consumer.model.errors import BadRecord
from consumer.model.letter import LetterOrigin
from consumer.model.ports import Rejection
from consumer.model.record import RawRecord

OWN = (("trace", b"\x00\xff"), ("empty", None), ("trace", b"again"))
MESSAGE = RawRecord(0, 41, b"", 0, None, None, None, ("articles", 3), b"a1", OWN, 1_700_000_000_123)
LINE = RawRecord(7, 41, b"", 0, None, None)
NAMES = ("a", "é", TOPIC, STAGE, SCHEMA_NAME, REASON, POSITION, TIMESTAMP, SIZE, SHA256)
FAULT = BadRecord("invalid_json", "it ends within a string")


def rejection(
    read: RawRecord = MESSAGE, data: bytes = b'{"id', fault: BadRecord = FAULT, more_bytes: int = 0
) -> Rejection:
    """A record that was rejected; of its value so many bytes more were not kept."""
    size_bytes = len(data) + more_bytes
    sha256 = bytes(range(32)) if more_bytes else None
    record = replace(read, data=data, size_bytes=size_bytes, sha256=sha256, fault=fault)
    position = LetterPosition("feed.jsonl", 7, 41)
    return Rejection(record, dead_letter(fault, position, data, size_bytes=size_bytes, sha256=sha256))


def read(headers: list[tuple[str, bytes | None]]) -> LetterHeaders:
    """What a letter's headers say."""
    found = read_headers(headers)
    assert found is not None
    return found


def test_the_names_are_those_of_connect_where_it_has_any() -> None:
    """A tool for Connect's dead letters finds origin, stage and error; the record's own headers stand first."""
    headers = letter_headers(rejection())
    assert tuple(headers[:3]) == OWN
    assert dict(headers[3:]) == {
        "__connect.errors.topic": b"articles",
        "__connect.errors.partition": b"3",
        "__connect.errors.offset": b"41",
        "__connect.errors.stage": b"VALUE_CONVERTER",
        "__connect.errors.exception.class.name": b"consumer.errors.BadRecord",
        "__connect.errors.exception.message": b"invalid_json: it ends within a string",
        "dupwatch-schema": SCHEMA.encode(),
        "dupwatch-reason": b"invalid_json",
        "dupwatch-detail": b"it ends within a string",
        "dupwatch-timestamp-ms": b"1700000000123",
    }


def test_there_and_back() -> None:
    """What was written is read, the record's own headers untouched and in their order."""
    assert read(letter_headers(rejection())) == LetterHeaders(
        reason="invalid_json",
        detail="it ends within a string",
        origin=LetterOrigin("articles", 3, 41),
        position="",
        timestamp_ms=1_700_000_000_123,
        size_bytes=None,
        sha256=None,
        replays=0,
        own=OWN,
    )


def test_size_and_digest_of_a_value_that_is_cut() -> None:
    """They tell of the whole, and are there only where the value is not the whole."""
    found = read(letter_headers(rejection(more_bytes=100)))
    assert (found.size_bytes, found.sha256) == (104, bytes(range(32)).hex())


def test_a_record_without_a_time() -> None:
    """It stays without one."""
    assert read(letter_headers(rejection(replace(MESSAGE, time_ms=-1)))).timestamp_ms is None


def test_a_record_of_a_file() -> None:
    """It has no origin in a topic, but a file and a line."""
    found = read(letter_headers(rejection(LINE)))
    assert (found.origin, found.position, found.own) == (None, "feed.jsonl:7", ())


def test_text_that_is_no_utf8() -> None:
    """A detail that quotes half a surrogate pair is written with an escape."""
    found = read(letter_headers(rejection(fault=BadRecord("lone_surrogate", "in \ud83d"))))
    assert found.detail == "in \\ud83d"


def test_letter_headers_do_not_pile_up() -> None:
    """A letter that comes in as a record, and is rejected again, has the new headers only."""
    first = letter_headers(rejection())
    message = replace(MESSAGE, partition=("other", 3), start=5, headers=tuple(first))
    second = letter_headers(rejection(message, fault=BadRecord("missing_id", "no id")))
    assert len(second) == len(first)
    found = read(second)
    assert (found.reason, found.origin, found.own) == ("missing_id", LetterOrigin("other", 3, 5), OWN)


def test_headers_that_others_piled_up() -> None:
    """A record that went round by other tools, and has the headers of two letters, loses both."""
    piled = [*letter_headers(rejection()), *letter_headers(rejection(replace(MESSAGE, headers=())))]
    assert own_headers(piled) == list(OWN)


def test_what_is_added_on_the_way_stays() -> None:
    """A header that somebody put behind those of the letter is the record's from then on."""
    headers = [*letter_headers(rejection()), ("mirrored-from", b"elsewhere")]
    assert read(headers).own == (*OWN, ("mirrored-from", b"elsewhere"))


def test_a_letter_of_connect_keeps_its_headers() -> None:
    """Where the input is itself a topic of Connect's dead letters, what Connect said is the record's own."""
    connect = (("__connect.errors.topic", b"theirs"), ("__connect.errors.offset", b"9"), ("dupwatch-reason", b"mine"))
    headers = letter_headers(rejection(replace(MESSAGE, headers=connect)))
    found = read(headers)
    assert (found.origin, found.reason, found.own) == (LetterOrigin("articles", 3, 41), "invalid_json", connect)


def test_replays_are_counted() -> None:
    """A replayed record has its own headers and one that counts; rejected again it is a letter that knows the count."""
    once = replayed_headers(read(letter_headers(rejection())).own, 0)
    assert once == [*OWN, ("dupwatch-replays", b"1")]
    again = read(letter_headers(rejection(replace(MESSAGE, headers=tuple(once)))))
    assert again.replays == 1
    assert replayed_headers(again.own, again.replays) == [*OWN, ("dupwatch-replays", b"2")]


@pytest.mark.parametrize("value", [b"", b"-1", b"x", b"9" * 5000, None])
def test_a_count_that_is_none(value: bytes | None) -> None:
    """Anybody may send a header of that name: what is no number counts as not replayed."""
    headers = letter_headers(rejection(replace(MESSAGE, headers=(("dupwatch-replays", value),))))
    assert read(headers).replays == 0


def test_headers_of_something_else() -> None:
    """A record that is no letter of ours is none, and keeps all its headers."""
    others = [("__connect.errors.topic", b"t"), ("dupwatch-schema", b"dupwatch.verdict/1"), ("dupwatch-schema", None)]
    assert read_headers(others) is None
    assert own_headers(others) == others
    assert read_headers([]) is None


@pytest.mark.parametrize(
    "name", ["__connect.errors.partition", "__connect.errors.offset", "dupwatch-size-bytes", "dupwatch-timestamp-ms"]
)
def test_damaged_headers(name: str) -> None:
    """A number that is none is told by the header's name."""
    headers = [*letter_headers(rejection(more_bytes=1)), (name, "１".encode())]
    with pytest.raises(ValueError, match=name):
        read_headers(headers)


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.none() | st.binary())))
def test_whatever_a_record_brings_is_kept(own: list[tuple[str, bytes | None]]) -> None:
    """A record's own headers come back as they were, whatever their names."""
    found = read(letter_headers(rejection(replace(MESSAGE, headers=tuple(own), time_ms=-1))))
    assert list(found.own) == own
    assert found._replace(own=()) == read(letter_headers(rejection()))._replace(own=(), timestamp_ms=None)
