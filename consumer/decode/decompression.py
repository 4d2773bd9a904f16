"""Decompresses gzip data (RFC 1952) and Zstandard data (RFC 8878) in bounded memory, up to where they are damaged."""

import sys
import zlib
from collections.abc import Iterator
from typing import Final

from consumer.model.article import Reason
from consumer.model.errors import BadRecord

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    # As a module: mypy does not look into a namespace package.
    import backports.zstd as zstd  # noqa: PLR0402

GZIP_MAGIC: Final = b"\x1f\x8b"
WBITS: Final = 31
"""zlib's ``wbits`` for gzip data: the largest window, and a gzip header."""
ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_SKIPPABLE_END: Final = b"\x2a\x4d\x18"
_SKIPPABLE_FIRST: Final = range(0x50, 0x60)
"""A frame without content begins with one of these bytes, followed by ``_SKIPPABLE_END``."""
WINDOW_BITS_MAX: Final = 27
"""A window of 128 MB, the default limit of zstd. A decompressor keeps up to that much of its output in memory."""
_PIECE_BYTES: Final = 4_096
"""The size of the pieces of zstd input. If a piece is damaged, its output may be lost."""


class CompressedFeed:
    """A buffer of compressed bytes. ``offset`` is where ``waiting`` begins in the file."""

    def __init__(self, compressed: Iterator[bytes]) -> None:
        self._compressed = compressed
        self.waiting = b""
        self.offset = 0

    def more(self, bytes_min: int) -> bool:
        """Read until ``bytes_min`` bytes are waiting, or the input ends. Return whether any bytes are waiting."""
        while len(self.waiting) < bytes_min:
            chunk = next(self._compressed, b"")
            if not chunk:
                break
            self.waiting += chunk
        return bool(self.waiting)

    def keep(self, waiting: bytes) -> None:
        """Keep only these bytes, which must be the last of the waiting bytes."""
        self.offset += len(self.waiting) - len(waiting)
        self.waiting = waiting

    def take(self, bytes_max: int) -> bytes:
        """Remove and return the first ``bytes_max`` of the waiting bytes, or all if there are fewer."""
        taken = self.waiting[:bytes_max]
        self.keep(self.waiting[bytes_max:])
        return taken

    def put_back(self, unused: bytes) -> None:
        """Put unused bytes back before the waiting bytes."""
        self.offset -= len(unused)
        self.waiting = unused + self.waiting


def ends_early(codec: str, feed: CompressedFeed) -> BadRecord:
    """Return the error for input that ends in the middle of compressed data."""
    size_bytes = feed.offset + len(feed.waiting)
    return BadRecord(
        Reason.TRUNCATED_INPUT,
        f"the {codec} data ends early, after {size_bytes} bytes of the file; rerun when the file is complete",
    )


def gunzip(compressed: Iterator[bytes], chunk_bytes_max: int) -> Iterator[bytes]:
    """Yield the content of the members of a gzip stream, at most ``chunk_bytes_max`` bytes at once.

    Raises ``BadRecord`` after the last byte that it can decompress: ``truncated_input`` if the stream ends early or is
    damaged, ``trailing_garbage`` if other data stands at the beginning or after a complete member. Zero bytes after a
    member are padding, which tapes and block devices add.
    """
    feed = CompressedFeed(compressed)
    while feed.more(len(GZIP_MAGIC)):
        if feed.waiting == GZIP_MAGIC[:1]:
            raise ends_early("gzip", feed)
        if not feed.waiting.startswith(GZIP_MAGIC):
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
    """Return pending output. Damage at the very end of the input shows only here."""
    try:
        return inflate.decompress(b"", chunk_bytes_max)
    except zlib.error:
        return b""


def _salvage(inflate: "zlib._Decompress", compressed: bytes) -> Iterator[bytes]:
    """Yield the output before the error. Feeds single bytes, because a failing call returns nothing."""
    for index in range(len(compressed)):
        try:
            chunk = inflate.decompress(compressed[index : index + 1])
        except zlib.error:
            return
        if chunk:
            yield chunk


def unzstd(compressed: Iterator[bytes], chunk_bytes_max: int) -> Iterator[bytes]:
    """Yield the content of the frames of a zstd stream, at most ``chunk_bytes_max`` bytes at once.

    Raises ``BadRecord`` after the last chunk that it can decompress: ``truncated_input`` if the stream ends early, is
    damaged, or needs a larger window or a dictionary; ``trailing_garbage`` if other data stands at the beginning or
    after a complete frame.
    """
    feed = CompressedFeed(compressed)
    while feed.more(len(ZSTD_MAGIC)):
        if not _begins_frame(feed.waiting[: len(ZSTD_MAGIC)]):
            raise BadRecord(
                Reason.TRAILING_GARBAGE,
                f"the file is not zstd data from byte {feed.offset} on; the rest was not read",
            )
        yield from _frame(feed, chunk_bytes_max)


def _begins_frame(opening: bytes) -> bool:
    """Return whether a frame may begin with these bytes. With four bytes the answer is certain."""
    skippable = opening[0] in _SKIPPABLE_FIRST and _SKIPPABLE_END.startswith(opening[1:])
    return skippable or ZSTD_MAGIC.startswith(opening)


def _frame(feed: CompressedFeed, chunk_bytes_max: int) -> Iterator[bytes]:
    inflate = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: WINDOW_BITS_MAX})
    while not inflate.eof:
        piece = b""
        if inflate.needs_input:
            if not feed.more(1):
                raise ends_early("zstd", feed)
            piece = feed.take(_PIECE_BYTES)
        try:
            chunk = inflate.decompress(piece, chunk_bytes_max)
        except zstd.ZstdError as error:
            raise BadRecord(
                Reason.TRUNCATED_INPUT,
                f"the zstd data cannot be decompressed after byte {feed.offset - len(piece)} of the file: {error}; the "
                "rest was not read. It must not need a dictionary, nor a window above "
                f"{1 << WINDOW_BITS_MAX >> 20} MB",
            ) from error
        if chunk:
            yield chunk
    feed.put_back(inflate.unused_data)
