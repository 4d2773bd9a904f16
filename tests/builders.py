"""Versions and tombstones for tests: every field has a value that works, and a test names only what it is about."""

import hashlib
from typing import Any

from consumer.files.lines import Position
from consumer.judge.events import retracted_event
from consumer.kafka.message import TopicRecord
from consumer.model.ports import JudgedRecord
from consumer.model.record import RawRecord
from consumer.model.verdict import VerdictEvent
from storage.records import Record, Tombstone, Version, reference_of

TIME_MS = 1_700_000_000_000
"""When things arrive unless a test says otherwise."""


def make_key(value: int, *, lane: int = 0, number: int = 0) -> bytes:
    """A posting key of a plan of blocks of 16 bits, or of a band."""
    return bytes([lane << 4 | number]) + value.to_bytes(2, "big")


def keys_of(fingerprint: bytes, one_bits: bytes) -> tuple[bytes, ...]:
    """The block keys of the fingerprint, 16 bits each, and four band keys, which are just pieces of the minima."""
    count = len(fingerprint) // 2
    blocks = [make_key(int.from_bytes(fingerprint[2 * n : 2 * n + 2], "big"), number=n) for n in range(count)]
    bands = [make_key(int.from_bytes(one_bits[2 * n : 2 * n + 2], "big"), lane=1, number=n) for n in range(4)]
    return (*blocks, *bands)


def make_record(
    article_id: str = "a",
    content: bytes = b"content",
    time_ms: int = TIME_MS,
    sequence: int = 0,
    keys: tuple[bytes, ...] | None = None,
    *,
    code_bytes: int = 8,
    **fields: Any,  # noqa: ANN401  # whichever of the record's fields a test is about
) -> Record:
    """A record whose fingerprint, minima and sketch follow from ``content``, and its keys from those.

    ``code_bytes`` is the width of its fingerprint.
    """
    noise = hashlib.blake2b(content, digest_size=64).digest()
    values: dict[str, Any] = {
        "reference": reference_of(article_id, content),
        "id": article_id,
        "time_ms": time_ms,
        "sequence": sequence,
        "scheme": "test/1",
        "kind": 0,
        "fingerprint": noise[:8] + noise[32 : 24 + code_bytes],
        "one_bits": noise[8:16],
        "sketch": noise * 2,
        "text_digest": noise[16:32],
        "keywords": (("harbour", 2.5), ("ferry", 1.25)),
        "source": "wire",
        "title": "A ferry in the harbour",
    } | fields
    values["keys"] = keys_of(values["fingerprint"], values["one_bits"]) if keys is None else keys
    return Record(**values)


def make_version(
    article_id: str = "a",
    content: bytes = b"content",
    body: str | None = "The ferry came in at dawn.",
    **fields: Any,  # noqa: ANN401  # as in make_record
) -> Version:
    """A version of ``make_record``, with a body."""
    return Version(make_record(article_id, content, **fields), body)


RETRACTED = retracted_event("a", time_ms=TIME_MS, decided_ms=TIME_MS)
"""The event of a retraction."""


def make_tombstone(
    article_id: str = "a",
    time_ms: int = TIME_MS,
    sequence: int = 0,
    event: bytes = RETRACTED.encoded,
    place: bytes | None = None,
) -> Tombstone:
    """A tombstone; ``place`` is where the retraction stood in the feed, by default its time and sequence."""
    where = f"retraction {time_ms} {sequence}".encode() if place is None else place
    return Tombstone(reference_of(article_id, where), article_id, time_ms, sequence, event)


def raw_line(number: int, data: bytes = b"{}") -> RawRecord:
    """A line of a file."""
    return RawRecord(number, 0, data, len(data), None, None, Position(number, 0))


def answers(*events: bytes) -> list[JudgedRecord]:
    """Answers to the lines of a file, whose events are these bytes whatever they say."""
    return [
        JudgedRecord(raw_line(number), VerdictEvent(event, RETRACTED.verdict)) for number, event in enumerate(events, 1)
    ]


def raw_message(
    value: bytes | None,
    key: bytes | None = b"a",
    *,
    offset: int = 0,
    timestamp_ms: int = TIME_MS,
    topic: str = "articles",
    partition: int = 0,
    **fields: Any,  # noqa: ANN401  # whichever of the message's fields a test is about
) -> TopicRecord:
    """A record of a topic."""
    data = value or b""
    given: dict[str, Any] = {"line": 0, "size_bytes": len(data), "sha256": None, "fault": None} | fields
    return TopicRecord(
        start=offset,
        data=data,
        partition=(topic, partition),
        key=key,
        time_ms=timestamp_ms,
        is_null=value is None,
        **given,
    )
