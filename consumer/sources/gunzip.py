"""Decompressing a stream of gzip data (RFC 1952) in bounded memory, up to where it is damaged."""

import zlib
from collections.abc import Iterator
from typing import Final

from consumer.model.article import Reason
from consumer.model.errors import BadRecord

MAGIC: Final = b"\x1f\x8b"
_WBITS_GZIP: Final = 31


def gunzip(compressed: Iterator[bytes], chunk_bytes_max: int) -> Iterator[bytes]:
    """Yield what the members of the stream decompress to, at most ``chunk_bytes_max`` at once.

    Raises ``BadRecord`` behind the last byte that could be had: ``truncated_input`` where the stream ends early or is
    damaged, ``trailing_garbage`` where something that is no gzip data follows a whole member. Zero bytes there are
    padding, as tapes and block devices have it.
    """
    feed = _Feed(compressed)
    while feed.more(len(MAGIC)):
        if feed.waiting == MAGIC[:1]:
            raise _ends_early(feed)
        if not feed.waiting.startswith(MAGIC):
            raise BadRecord(
                Reason.TRAILING_GARBAGE,
                f"from byte {feed.offset} on the file is no gzip data; nothing from there on was read",
            )
        yield from _member(feed, chunk_bytes_max)
        feed.skip_padding()


class _Feed:
    """Compressed bytes that wait to be decompressed; ``offset`` is where in the file they begin."""

    def __init__(self, compressed: Iterator[bytes]) -> None:
        self._compressed = compressed
        self.waiting = b""
        self.offset = 0

    def more(self, bytes_min: int) -> bool:
        """Wait for that many bytes; False when there are none at all any more."""
        while len(self.waiting) < bytes_min:
            chunk = next(self._compressed, b"")
            if not chunk:
                break
            self.waiting += chunk
        return bool(self.waiting)

    def left(self, waiting: bytes) -> None:
        """Of what waited, this is left."""
        self.offset += len(self.waiting) - len(waiting)
        self.waiting = waiting

    def skip_padding(self) -> None:
        while self.more(1):
            self.left(self.waiting.lstrip(b"\0"))
            if self.waiting:
                return


def _member(feed: _Feed, chunk_bytes_max: int) -> Iterator[bytes]:
    inflate = zlib.decompressobj(_WBITS_GZIP)
    while not inflate.eof:
        if not feed.more(1):
            while chunk := _pending(inflate, chunk_bytes_max):
                yield chunk
            raise _ends_early(feed)
        before = inflate.copy()
        try:
            chunk = inflate.decompress(feed.waiting, chunk_bytes_max)
        except zlib.error as error:
            yield from _salvage(before, feed.waiting)
            raise BadRecord(
                Reason.TRUNCATED_INPUT,
                f"the gzip data is damaged behind byte {feed.offset} of the file: {error}; the rest was not read",
            ) from error
        feed.left(inflate.unconsumed_tail or inflate.unused_data)
        if chunk:
            yield chunk


def _ends_early(feed: _Feed) -> BadRecord:
    size_bytes = feed.offset + len(feed.waiting)
    return BadRecord(
        Reason.TRUNCATED_INPUT,
        f"the gzip data ends early, after {size_bytes} bytes of the file; a later run judges the line when it is whole",
    )


def _pending(inflate: "zlib._Decompress", chunk_bytes_max: int) -> bytes:
    """What was taken in but not given out yet; damage at the very end shows only here."""
    try:
        return inflate.decompress(b"", chunk_bytes_max)
    except zlib.error:
        return b""


def _salvage(inflate: "zlib._Decompress", compressed: bytes) -> Iterator[bytes]:
    """What comes out before the error: a call that fails keeps its output to itself, so the bytes go in one by one."""
    for index in range(len(compressed)):
        try:
            chunk = inflate.decompress(compressed[index : index + 1])
        except zlib.error:
            return
        if chunk:
            yield chunk
