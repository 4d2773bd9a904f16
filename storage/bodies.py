"""Texts as stores on disk keep them: UTF-8, in Snappy's block format."""

from typing import Any

import snappy


def pack_body(body: str) -> bytes:
    """A text as it is kept."""
    packed: bytes = snappy.compress(body.encode())
    return packed


def unpack_body(packed: bytes) -> str:
    """The text that ``pack_body`` packed."""
    text: Any = snappy.decompress(packed)
    return bytes(text).decode()
