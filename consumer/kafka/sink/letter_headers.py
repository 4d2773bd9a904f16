"""The headers of a dead letter in a topic: why the record was rejected, and where it came from.

The letter itself is the record: its key, its value, and its own headers, followed by the headers named here. If Kafka
Connect has a name for a header, that name is used, with the value as Connect writes it (text, decimal numbers), so that
tools for Connect's dead letters can read these letters too. The other names begin with ``dupwatch-``.

A record may have headers of its own with any name, including these names. The headers of a letter begin with
``dupwatch-schema``; everything before it belongs to the record.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from consumer.model.dead_letter import SCHEMA
from consumer.model.letter import LetterOrigin
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
_CONVERTER_STAGE: Final = b"VALUE_CONVERTER"
"""Connect's name for the stage that converts a record's bytes, where all rejections happen."""
_BAD_RECORD: Final = b"consumer.errors.BadRecord"


class LetterHeaders(NamedTuple):
    """The contents of a letter's headers.

    For a record from a file, ``origin`` is None and ``position`` is "FILE:LINE". For a value that was cut,
    ``size_bytes`` and ``sha256`` (hex) describe the original; otherwise they are None. ``timestamp_ms`` is the record's
    own time, or None if it had none. ``replays`` counts earlier replays of the record. ``own`` has the record's
    headers.
    """

    reason: str
    detail: str
    origin: LetterOrigin | None
    position: str
    timestamp_ms: int | None
    size_bytes: int | None
    sha256: str | None
    replays: int
    own: tuple[Header, ...]


def letter_headers(rejection: Rejection) -> Headers:
    """Return the headers of a rejected record's letter: the record's own, then those of the letter.

    Headers of an earlier letter are replaced.
    """
    record, letter = rejection.record, rejection.letter
    texts = {  # the schema first, since readers look for it
        SCHEMA_NAME: SCHEMA,
        REASON: letter.reason,
        DETAIL: letter.detail,
        MESSAGE: f"{letter.reason}: {letter.detail}",
    }
    if record.partition is None:
        texts[POSITION] = f"{letter.position.source}:{letter.position.line}"
    else:
        topic, number = record.partition
        texts |= {TOPIC: topic, PARTITION: f"{number}", OFFSET: f"{record.start}"}
    if record.time_ms != NO_TIME_MS:
        texts[TIMESTAMP] = f"{record.time_ms}"
    if len(record.data) < record.size_bytes:
        texts |= {SIZE: f"{record.size_bytes}", SHA256: letter.sha256}
    own = own_headers(record.headers)
    # A detail that quotes the input may contain lone surrogates, which UTF-8 cannot encode.
    encoded = [(name, text.encode(errors="backslashreplace")) for name, text in texts.items()]
    return [*own, *encoded, (STAGE, _CONVERTER_STAGE), (EXCEPTION, _BAD_RECORD)]


def read_headers(headers: Sequence[Header]) -> LetterHeaders | None:
    """Return the contents of headers that ``letter_headers`` wrote; None for other headers.

    Raises ``ValueError`` for damaged headers.
    """
    start = _start(headers)
    if start is None:
        return None
    text = {name: (value or b"").decode(errors="replace") for name, value in headers[start:] if name in _LETTER_NAMES}
    origin = None
    if TOPIC in text:
        origin = LetterOrigin(text[TOPIC], _number(text, PARTITION), _number(text, OFFSET))
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
    """Return a record's headers without those of its letter, in order; all headers if it is not a letter."""
    start = _start(headers)
    if start is None:
        return list(headers)
    # Headers that were added after the letter was written are kept.
    return [*headers[:start], *(header for header in headers[start:] if header[0] not in _LETTER_NAMES)]


def replayed_headers(own: Sequence[Header], replays: int) -> Headers:
    """Return the headers of a replayed record: its own, and the number of replays including this one."""
    return [*(header for header in own if header[0] != REPLAYS), (REPLAYS, b"%d" % (replays + 1))]


def _start(headers: Sequence[Header]) -> int | None:
    """Return the index where the headers of the letter begin; None if it is not a letter."""
    starts = (index for index, (name, value) in enumerate(headers) if name == SCHEMA_NAME and value == SCHEMA.encode())
    return next(starts, None)


def _replays(headers: Iterable[Header]) -> int:
    """Return how often a record was replayed. Any producer may write this header, so invalid values count as 0."""
    value = {name: value for name, value in headers}.get(REPLAYS)  # noqa: C416  # the last header of that name
    return int(value) if value is not None and value.isdigit() and len(value) <= _DIGITS_MAX else 0


def _number(text: dict[str, str], name: str) -> int:
    value = text.get(name, "")
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX):
        raise ValueError(f"the header {name} of a dead letter is not a number: {value!r}")
    return int(value)
