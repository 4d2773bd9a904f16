"""Texts as stores on disk keep them: UTF-8, in Snappy's block format."""

from typing import Any

import snappy


class UnreadableBodyError(ValueError):
    """Bytes that ``pack_body`` did not make."""


def pack_body(body: str) -> bytes:
    """A text as it is kept."""
    packed: bytes = snappy.compress(body.encode())
    return packed


def unpack_body(packed: bytes) -> str:
    """The text that ``pack_body`` packed. Raises ``UnreadableBodyError``."""
    try:
        text: Any = snappy.decompress(packed)
        return bytes(text).decode()
    except (snappy.UncompressError, UnicodeDecodeError) as error:
        raise UnreadableBodyError(f"the text cannot be unpacked ({error})") from error
