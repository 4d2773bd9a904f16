"""The headers of a dead letter in a topic: why it is one, and where its record came from.

The letter itself is the record: its key, its value, and its own headers, which stand before those named here. Where
Kafka Connect has a name for something its name is used, with its value as Connect writes it (text, numbers in decimal),
so that tools for Connect's dead letters read these too. What Connect has no name for begins with ``dupwatch-``.

A record may bring headers of any name, also of these. A letter's begin with its ``dupwatch-schema``: whatever stands
before it is the record's own affair.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from consumer.model.dead_letter import SCHEMA
from consumer.model.ports import Rejection
from consumer.model.record import NO_TIME_MS, Header, Headers

TOPIC: Final = "__connect.errors.topic"
PARTITION: Final = "__connect.errors.partition"
OFFSET: Final = "__connect.errors.offset"
STAGE: Final = "__connect.errors.stage"
EXCEPTION: Final = "__connect.errors.exception.class.name"
MESSAGE: Final = "__connect.errors.exception.message"
SCHEMA_NAME: Final = "dupwatch-schema"
REASON: Final = "dupwatch-reason"
DETAIL: Final = "dupwatch-detail"
POSITION: Final = "dupwatch-position"
TIMESTAMP: Final = "dupwatch-timestamp-ms"
SIZE: Final = "dupwatch-size-bytes"
SHA256: Final = "dupwatch-sha256"
REPLAYS: Final = "dupwatch-replays"

_LETTER_NAMES: Final = frozenset(
    {
        TOPIC,
        PARTITION,
        OFFSET,
        STAGE,
        EXCEPTION,
        MESSAGE,
        SCHEMA_NAME,
        REASON,
        DETAIL,
        POSITION,
        TIMESTAMP,
        SIZE,
        SHA256,
    }
)
_DIGITS_MAX: Final = len(str(2**63))
_CONVERTING: Final = b"VALUE_CONVERTER"
"""Connect's name of the stage that makes something of a record's bytes, which is where all letters come from."""
_BAD_RECORD: Final = b"consumer.errors.BadRecord"


class Origin(NamedTuple):
    """Which record of which topic became a letter."""

    topic: str
    partition: int
    offset: int


class LetterHeaders(NamedTuple):
    """What the headers of a letter say.

    ``origin`` is None for a record that came from a file; ``position`` says where it stood, "FILE:LINE". Of a value
    that is cut, ``size_bytes`` and ``sha256`` (hex) tell of the whole; they are None of one that is whole.
    ``timestamp_ms`` is the record's own time, None where it had none. ``replays`` is how often the record was replayed
    before. ``own`` are the record's headers.
    """

    reason: str
    detail: str
    origin: Origin | None
    position: str
    timestamp_ms: int | None
    size_bytes: int | None
    sha256: str | None
    replays: int
    own: tuple[Header, ...]


def letter_headers(rejection: Rejection) -> Headers:
    """The headers of a rejected record's letter, its own before those of the letter.

    A record that brings the headers of an earlier letter gets new ones in their place.
    """
    record, letter = rejection.record, rejection.letter
    message = record.message
    told = {  # the schema first, since it is where a reader begins
        SCHEMA_NAME: SCHEMA,
        REASON: letter.reason,
        DETAIL: letter.detail,
        MESSAGE: f"{letter.reason}: {letter.detail}",
    }
    if message is None:
        told[POSITION] = f"{letter.position.source}:{letter.position.line}"
    else:
        told |= {TOPIC: message.topic, PARTITION: f"{message.partition}", OFFSET: f"{message.offset}"}
        if message.timestamp_ms != NO_TIME_MS:
            told[TIMESTAMP] = f"{message.timestamp_ms}"
    if len(record.data) < record.size_bytes:
        told |= {SIZE: f"{record.size_bytes}", SHA256: letter.sha256}
    own = [] if message is None else own_headers(message.headers)
    # A name or a detail that quotes the input may have lone surrogates, which are no UTF-8.
    encoded = [(name, text.encode(errors="backslashreplace")) for name, text in told.items()]
    return [*own, *encoded, (STAGE, _CONVERTING), (EXCEPTION, _BAD_RECORD)]


def read_headers(headers: Sequence[Header]) -> LetterHeaders | None:
    """What ``letter_headers`` wrote; None for headers of something else. Raises ``ValueError`` for damaged ones."""
    start = _start(headers)
    if start is None:
        return None
    text = {name: (value or b"").decode(errors="replace") for name, value in headers[start:] if name in _LETTER_NAMES}
    origin = None
    if TOPIC in text:
        origin = Origin(text[TOPIC], _number(text, PARTITION), _number(text, OFFSET))
    return LetterHeaders(
        reason=text.get(REASON, ""),
        detail=text.get(DETAIL, ""),
        origin=origin,
        position=text.get(POSITION, ""),
        timestamp_ms=_number(text, TIMESTAMP) if TIMESTAMP in text else None,
        size_bytes=_number(text, SIZE) if SIZE in text else None,
        sha256=text.get(SHA256),
        replays=_replays(headers),
        own=tuple(own_headers(headers)),
    )


def own_headers(headers: Sequence[Header]) -> Headers:
    """A record's headers without those of its letter, in their order; all of them where it is no letter."""
    start = _start(headers)
    if start is None:
        return list(headers)
    # What somebody added on the way, after the letter was written, stays.
    return [*headers[:start], *(header for header in headers[start:] if header[0] not in _LETTER_NAMES)]


def replayed_headers(own: Sequence[Header], replays: int) -> Headers:
    """The headers of a letter's record when it is sent again: its own, and how often it was sent again so far."""
    return [*(header for header in own if header[0] != REPLAYS), (REPLAYS, b"%d" % (replays + 1))]


def _start(headers: Sequence[Header]) -> int | None:
    """Where the headers of the letter begin; None where it is no letter."""
    starts = (at for at, (name, value) in enumerate(headers) if name == SCHEMA_NAME and value == SCHEMA.encode())
    return next(starts, None)


def _replays(headers: Iterable[Header]) -> int:
    """How often a record was replayed; the header may be anybody's, so what is no number counts as none."""
    value = {name: value for name, value in headers}.get(REPLAYS)  # noqa: C416  # the last one of that name
    return int(value) if value is not None and value.isdigit() and len(value) <= len(str(2**63)) else 0


def _number(text: dict[str, str], name: str) -> int:
    found = text.get(name, "")
    digits = found.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX):
        raise ValueError(f"the header {name} of a dead letter is no number: {found!r}")
    return int(found)
