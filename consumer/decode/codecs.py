"""The compressions that input may come in: the one table of them, in which an entry with a decoder is readable.

To add a codec, give its entry in ``COMPRESSIONS`` a function that decompresses: help texts and messages follow.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from consumer.decode.decompression import GZIP_MAGIC, ZSTD_MAGIC, gunzip, unzstd


@dataclass(frozen=True, slots=True)
class Compression:
    """A compression of whole files. Its command line tool has this ``name``, and writes to standard output with -dc."""

    name: str
    suffix: str
    magic: bytes


@dataclass(frozen=True, slots=True)
class Codec(Compression):
    """A compression that can be read.

    ``decompress`` takes compressed bytes in chunks, and how many bytes to yield at once at most. It works in bounded
    memory, and raises ``BadRecord`` behind the last byte that it could decompress: ``truncated_input`` where the input
    ends early or is damaged, ``trailing_garbage`` where something else follows it.
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


def described_forms() -> str:
    """Return how input may be written, for help texts: plain, or in one of the codecs."""
    *others, last = ("plain", *(codec.name for codec in CODECS))
    return f"{', '.join(others)} or {last}"


def described_feeds() -> str:
    """Return how articles may be written, for help texts."""
    return f"JSON lines, CSV or TSV, {described_forms()}"


def codec_of(opening: bytes, *, growing: bool = False) -> Codec | None:
    """Return the codec of input that begins with these bytes, None for plain input.

    Of input that is still being written, ``growing``, the first bytes of a magic count where there is nothing more.
    """
    begun = (codec for codec in CODECS if growing and opening and codec.magic.startswith(opening))
    return next((codec for codec in CODECS if opening.startswith(codec.magic)), next(begun, None))


def is_undecided(opening: bytes) -> bool:
    """Return whether the next byte may decide on the codec."""
    return any(len(opening) < len(codec.magic) and codec.magic.startswith(opening) for codec in CODECS)
