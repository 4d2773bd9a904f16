"""From a message to an article: what the key says, what the value says, and what happens when they do not agree."""

import pytest

from consumer.decode.article import FieldMap, decode
from consumer.decode.message import IdFrom, decode_message
from consumer.model.article import Article
from consumer.model.errors import BadRecord
from consumer.model.limits import DecodeLimits
from consumer.model.record import RawRecord
from tests.builders import raw_message

LIMITS = DecodeLimits()


def decoded(record: RawRecord, id_from: IdFrom = "key") -> Article:
    """Decode as a run does."""
    fields = FieldMap(id="meta.id")

    def value(data: bytes, key: str | None) -> Article:
        return decode(data, fields, LIMITS, "text", key)

    return decode_message(record, value, id_from, LIMITS.id_bytes_max)


@pytest.mark.parametrize(
    "value",
    [
        b'{"body": "x"}',
        b'{"meta": {"id": "a"}, "body": "x"}',
        b'{"meta": {"id": null}, "body": "x"}',
        b'{"meta": {"id": ""}, "body": "x"}',
    ],
)
def test_the_key_is_the_id(value: bytes) -> None:
    """Whether the value repeats it or not; fields are mapped as in a file. An empty id under a key is none."""
    assert decoded(raw_message(value)) == Article("a", "x")


def test_a_number_in_the_value_is_the_same_id_as_its_digits_in_the_key() -> None:
    """A producer that writes its ids as integers sends their digits as keys."""
    assert decoded(raw_message(b'{"meta": {"id": 7}, "body": "x"}', b"7")).id == "7"


def test_a_message_without_a_value_retracts_its_key() -> None:
    """An empty value is not the same: it is no JSON."""
    assert decoded(raw_message(None)) == Article("a", None)
    with pytest.raises(BadRecord, match="invalid_json"):
        decoded(raw_message(b""))


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (raw_message(b'{"body": "x"}', None), "missing_key"),
        (raw_message(None, None), "missing_key"),
        (raw_message(b'{"body": "x"}', b"\xff"), "invalid_key"),
        (raw_message(None, b"\xff"), "invalid_key"),
        (raw_message(None, b""), "empty_id"),
        (raw_message(None, b"x" * 513), "id_too_long"),
        (raw_message(None, b"x\0"), "nul_character"),
        (raw_message(b'{"meta": {"id": "b"}, "body": "x"}'), "key_contradicts_id"),
        (raw_message(b'{"meta": {"id": 1.5}, "body": "x"}'), "id_wrong_type"),
    ],
)
def test_what_is_no_article_is_told_from_what_is(record: RawRecord, reason: str) -> None:
    """Each with a reason of its own."""
    with pytest.raises(BadRecord) as raised:
        decoded(record)
    assert raised.value.reason == reason


def test_the_value_can_be_asked_for_the_id() -> None:
    """The key means nothing then, and a message without a value names nothing."""
    assert decoded(raw_message(b'{"meta": {"id": "b"}, "body": "x"}', b"\xff"), "value").id == "b"
    with pytest.raises(BadRecord, match="missing_id"):
        decoded(raw_message(b'{"body": "x"}'), "value")
    with pytest.raises(BadRecord, match="null_value"):
        decoded(raw_message(None), "value")


def test_a_fault_found_while_reading_is_the_answer() -> None:
    """Nothing of such a record is decoded."""
    fault = BadRecord("record_too_long", "far too long")
    with pytest.raises(BadRecord, match="far too long"):
        decoded(raw_message(b"{", fault=fault))
