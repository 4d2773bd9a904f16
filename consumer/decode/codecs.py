"""The table of compressions. A compression with a function to decompress can be read; the others are only recognised.

To add a codec, give its entry in ``COMPRESSIONS`` such a function. Help texts and messages then include it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from consumer.decode.decompression import GZIP_MAGIC, ZSTD_MAGIC, gunzip, unzstd


@dataclass(frozen=True, slots=True)
class Compression:
    """A compression of whole files. ``name`` is also the name of its command-line tool, which decompresses with -dc."""

    name: str
    suffix: str
    magic: bytes


@dataclass(frozen=True, slots=True)
class Codec(Compression):
    """A compression that can be read.

    ``decompress`` takes chunks of compressed bytes and the maximum number of bytes to yield at once. It works in
    bounded memory, and raises ``BadRecord`` after the last chunk that it could decompress: ``truncated_input`` if the
    input ends early or cannot be decompressed, ``trailing_garbage`` if other data follows complete data.
    """

    decompress: Callable[[Iterator[bytes], int], Iterator[bytes]]


GZIP: Final = Codec("gzip", ".gz", GZIP_MAGIC, gunzip)
ZSTD: Final = Codec("zstd", ".zst", ZSTD_MAGIC, unzstd)
COMPRESSIONS: Final[tuple[Compression, ...]] = (
    GZIP,
    ZSTD,
    Compression("bzip2", ".bz2", b"BZh"),
    Compression("xz", ".xz", b"\xfd7zXZ\0"),
    Compression("lz4", ".lz4", b"\x04\x22\x4d\x18"),
)
CODECS: Final = tuple(compression for compression in COMPRESSIONS if isinstance(compression, Codec))
MAGIC_BYTES_MAX: Final = max(len(codec.magic) for codec in CODECS)


def compressions_for_help() -> str:
    """Return the list of readable compressions for help texts, beginning with "plain"."""
    *others, last = ("plain", *(codec.name for codec in CODECS))
    return f"{', '.join(others)} or {last}"


def formats_for_help() -> str:
    """Return the list of readable formats for help texts."""
    return f"JSON lines, CSV or TSV, {compressions_for_help()}"


def codec_of(opening: bytes, *, growing: bool = False) -> Codec | None:
    """Return the codec of input that begins with these bytes, or None for plain input.

    With ``growing``, the input is still being written, so the beginning of a codec's magic bytes is enough for that
    codec.
    """
    partial = (codec for codec in CODECS if growing and opening and codec.magic.startswith(opening))
    return next((codec for codec in CODECS if opening.startswith(codec.magic)), next(partial, None))


def is_undecided(opening: bytes) -> bool:
    """Return whether more bytes are needed to decide on the codec."""
    return any(len(opening) < len(codec.magic) and codec.magic.startswith(opening) for codec in CODECS)
