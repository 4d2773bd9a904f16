"""Texts as LMDB and HBase stores keep them: UTF-8, compressed in Snappy's block format."""

from typing import Any

import snappy


class UnreadableBodyError(ValueError):
    """Bytes that are not a text from ``pack_body``."""


def pack_body(body: str) -> bytes:
    """Compress a text."""
    packed: bytes = snappy.compress(body.encode())
    return packed


def unpack_body(packed: bytes) -> str:
    """Restore the text that ``pack_body`` compressed. Raises ``UnreadableBodyError``."""
    try:
        text: Any = snappy.decompress(packed)
        return bytes(text).decode()
    except (snappy.UncompressError, UnicodeDecodeError) as error:
        raise UnreadableBodyError(f"the text cannot be decompressed ({error})") from error
