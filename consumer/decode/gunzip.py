"""Decompresses a stream of gzip data (RFC 1952) in bounded memory, up to where it is damaged."""

import zlib
from collections.abc import Iterator
from typing import Final

from consumer.decode.compressed_feed import CompressedFeed, ends_early
from consumer.model.article import Reason
from consumer.model.errors import BadRecord

MAGIC: Final = b"\x1f\x8b"
WBITS: Final = 31
"""zlib's number for gzip data: the largest window, with a header of gzip."""


def gunzip(compressed: Iterator[bytes], chunk_bytes_max: int) -> Iterator[bytes]:
    """Yield what the members of the stream decompress to, at most ``chunk_bytes_max`` at once.

    Raises ``BadRecord`` behind the last byte that it can decompress: ``truncated_input`` where the stream ends early or
    is damaged, ``trailing_garbage`` where something that is not gzip data follows a whole member. Zero bytes there are
    padding, as tapes and block devices add it.
    """
    feed = CompressedFeed(compressed)
    while feed.more(len(MAGIC)):
        if feed.waiting == MAGIC[:1]:
            raise ends_early("gzip", feed)
        if not feed.waiting.startswith(MAGIC):
            raise BadRecord(
                Reason.TRAILING_GARBAGE,
                f"the file is not gzip data from byte {feed.offset} on; the rest was not read",
            )
        yield from _member(feed, chunk_bytes_max)
        _skip_padding(feed)


def _skip_padding(feed: CompressedFeed) -> None:
    while feed.more(1):
        feed.keep(feed.waiting.lstrip(b"\0"))
        if feed.waiting:
            return


def _member(feed: CompressedFeed, chunk_bytes_max: int) -> Iterator[bytes]:
    inflate = zlib.decompressobj(WBITS)
    while not inflate.eof:
        if not feed.more(1):
            while chunk := _pending(inflate, chunk_bytes_max):
                yield chunk
            raise ends_early("gzip", feed)
        before = inflate.copy()
        try:
            chunk = inflate.decompress(feed.waiting, chunk_bytes_max)
        except zlib.error as error:
            yield from _salvage(before, feed.waiting)
            raise BadRecord(
                Reason.TRUNCATED_INPUT,
                f"the gzip data is damaged after byte {feed.offset} of the file: {error}; the rest was not read",
            ) from error
        feed.keep(inflate.unconsumed_tail or inflate.unused_data)
        if chunk:
            yield chunk


def _pending(inflate: "zlib._Decompress", chunk_bytes_max: int) -> bytes:
    """Return what was taken in but not returned yet; damage at the very end shows only here."""
    try:
        return inflate.decompress(b"", chunk_bytes_max)
    except zlib.error:
        return b""


def _salvage(inflate: "zlib._Decompress", compressed: bytes) -> Iterator[bytes]:
    """Yield what comes out before the error; a call that fails returns nothing, so the bytes go in one by one."""
    for index in range(len(compressed)):
        try:
            chunk = inflate.decompress(compressed[index : index + 1])
        except zlib.error:
            return
        if chunk:
            yield chunk
