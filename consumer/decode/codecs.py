"""The compressions in which input may come: one entry in ``CODECS`` makes another one readable."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from consumer.decode.gunzip import MAGIC, gunzip


class Codec(NamedTuple):
    """One compression. Its command line tool is called ``name`` too, and writes to standard output with ``-dc``.

    ``decompress`` takes compressed bytes in chunks, and how many bytes to yield at once at most. It works in bounded
    memory, and raises ``BadRecord`` behind the last byte that it could decompress: ``truncated_input`` where the input
    ends early or is damaged, ``trailing_garbage`` where something else follows it.
    """

    name: str
    suffix: str
    magic: bytes
    decompress: Callable[[Iterator[bytes], int], Iterator[bytes]]


GZIP: Final = Codec("gzip", ".gz", MAGIC, gunzip)
CODECS: Final = (GZIP,)
MAGIC_BYTES_MAX: Final = max(len(codec.magic) for codec in CODECS)


def codec_of(opening: bytes) -> Codec | None:
    """Return the codec of input that begins with these bytes, None for plain input.

    An opening that is shorter than a magic, and its beginning, counts: a file that is still being written begins so.
    """
    return next((codec for codec in CODECS if opening and codec.magic.startswith(opening[: len(codec.magic)])), None)


def is_undecided(opening: bytes) -> bool:
    """Return whether the next byte may decide on the codec."""
    return any(len(opening) < len(codec.magic) and codec.magic.startswith(opening) for codec in CODECS)
