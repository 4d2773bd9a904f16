"""Decompresses a stream of Zstandard data (RFC 8878) in bounded memory, up to where it is damaged."""

import sys
from collections.abc import Iterator
from typing import Final

from consumer.decode.compressed_feed import CompressedFeed, ends_early
from consumer.model.article import Reason
from consumer.model.errors import BadRecord

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    # As a module: mypy does not look into a namespace package.
    import backports.zstd as zstd  # noqa: PLR0402

MAGIC: Final = b"\x28\xb5\x2f\xfd"
_SKIPPABLE_END: Final = b"\x2a\x4d\x18"
_SKIPPABLE_FIRST: Final = range(0x50, 0x60)
"""A frame without content begins with one of these bytes and then the other three."""
WINDOW_BITS_MAX: Final = 27
"""A window of 128 MB, as zstd itself accepts by default: a decompressor holds that much of what it has put out."""
_PIECE_BYTES: Final = 4_096
"""How much goes in at once: where a piece is damaged, what it would have decompressed to before that is lost."""


def unzstd(compressed: Iterator[bytes], chunk_bytes_max: int) -> Iterator[bytes]:
    """Yield what the frames of the stream decompress to, at most ``chunk_bytes_max`` at once.

    Raises ``BadRecord`` behind the last byte that it can decompress: ``truncated_input`` where the stream ends early,
    is damaged, or needs a larger window; ``trailing_garbage`` where something else follows a whole frame.
    """
    feed = CompressedFeed(compressed)
    while feed.more(len(MAGIC)):
        if not _begins_frame(feed.waiting[: len(MAGIC)]):
            raise BadRecord(
                Reason.TRAILING_GARBAGE,
                f"the file is not zstd data from byte {feed.offset} on; the rest was not read",
            )
        yield from _frame(feed, chunk_bytes_max)


def _begins_frame(opening: bytes) -> bool:
    """Return whether a frame may begin like this; of four bytes, whether one does."""
    skippable = opening[0] in _SKIPPABLE_FIRST and _SKIPPABLE_END.startswith(opening[1:])
    return skippable or MAGIC.startswith(opening)


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
