"""Dead letters: records that could not be judged, with the reason and enough of the input to find and fix them."""

import base64
import codecs
import hashlib
from typing import Final, Literal

import msgspec

from consumer.model.errors import BadRecord

DEAD_LETTER_RAW_BYTES_MAX = 64 * 1024
SCHEMA: Final = "dupwatch.dead-letter/1"


class LetterPosition(msgspec.Struct, frozen=True):
    """The position of the record: a line and its first byte in a file, or an offset in a partition, with ``line`` 0."""

    source: str
    line: int
    offset: int


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A rejected record.

    ``raw`` is the input as text; input that is not UTF-8 is in ``raw_base64`` instead. If ``cut``, the letter holds
    only the first bytes of the input. ``size_bytes`` and ``sha256`` always describe the whole input.
    """

    schema: Literal["dupwatch.dead-letter/1"] = SCHEMA
    reason: str
    detail: str
    position: LetterPosition
    raw: str | None
    raw_base64: str | None
    size_bytes: int
    sha256: str
    cut: bool


def dead_letter(
    fault: BadRecord,
    position: LetterPosition,
    data: bytes,
    *,
    size_bytes: int | None = None,
    sha256: bytes | None = None,
    raw_bytes_max: int = DEAD_LETTER_RAW_BYTES_MAX,
) -> DeadLetter:
    """Return the dead letter of a record.

    If ``data`` is only the beginning of the record, ``size_bytes`` and ``sha256`` (32 bytes) describe the whole record.
    The letter keeps at most ``raw_bytes_max`` bytes. Of a text, it may keep up to three fewer, so as not to cut a
    character in two.
    """
    head = data[:raw_bytes_max]
    size = len(data) if size_bytes is None else size_bytes
    cut = len(head) < size
    raw: str | None = None
    raw_base64: str | None = None
    try:
        raw = codecs.getincrementaldecoder("utf-8")().decode(head, final=not cut)
    except UnicodeDecodeError:
        raw_base64 = base64.b64encode(head).decode("ascii")
    return DeadLetter(
        reason=fault.reason,
        detail=fault.detail,
        position=position,
        raw=raw,
        raw_base64=raw_base64,
        size_bytes=size,
        sha256=(hashlib.sha256(data).digest() if sha256 is None else sha256).hex(),
        cut=cut,
    )


def encode(letter: DeadLetter) -> bytes:
    """Return the letter as one line of JSON, without the line end."""
    return msgspec.json.encode(letter)
