"""Page cursors: the key of the row before or after a page, encoded for links."""

import base64
import binascii
import math
from typing import Final, Literal, NamedTuple

import msgspec

from consumer.model.errors import DupwatchError

_CHARS_MAX: Final = 200
_ID_MAX: Final = 2**63 - 1


class BadCursor(DupwatchError):  # noqa: N818  # named for the cursor
    """A text is not a valid cursor."""


class Cursor(NamedTuple):
    """The key of the row that a page follows or precedes."""

    side: Literal["after", "before"]
    key: float
    row_id: int


_DECODER: Final = msgspec.json.Decoder(tuple[Literal["after", "before"], int | float, int])


def encode_cursor(cursor: Cursor) -> str:
    """Return a cursor as letters, digits, - and _."""
    return base64.urlsafe_b64encode(msgspec.json.encode(tuple(cursor))).rstrip(b"=").decode()


def decode_cursor(text: str) -> Cursor:
    """Return the cursor that a text encodes. Raises ``BadCursor`` for any other text."""
    bad = BadCursor("this is not a valid page cursor; start at the first page")
    if len(text) > _CHARS_MAX:
        raise bad
    try:
        side, key, row_id = _DECODER.decode(
            base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        )
    except (ValueError, binascii.Error, msgspec.DecodeError):
        raise bad from None
    if not math.isfinite(key) or abs(key) > _ID_MAX or not 0 <= row_id <= _ID_MAX:
        raise bad
    return Cursor(side, key, row_id)
