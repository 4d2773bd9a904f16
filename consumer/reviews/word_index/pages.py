"""The format of the word index: parts with the words of some flags, in pages of compressed numbers.

A part numbers its flags from 0. A page lists words by ascending number, and the flags that have each word. The order
and frequency of words in a text are not stored.
"""

import zlib
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

PART_FLAGS_MAX: Final = 1 << 14
"""The maximum number of flags in a part, limited by the memory for merging and by flag numbers of 16 bits."""
PAGE_ENTRIES: Final = 4_096
"""The number of entries (pairs of a word and a flag) after which a page ends. A word never spans two pages."""
_LEVEL: Final = 6
_COUNT_BYTES: Final = 4
_WIDTHS: Final = (8, 4, 2)
"""The number of bytes of a word, of the number of its flags, and of a flag."""

Numbers = npt.NDArray[np.int64]


class Entries(NamedTuple):
    """Pairs of a word and a flag of a part, ordered by word, then by flag."""

    words: Numbers
    flags: Numbers


class IndexPage(NamedTuple):
    """A page of packed entries; ``first`` is its smallest word."""

    first: int
    content: bytes


NO_NUMBERS: Final[Numbers] = np.zeros(0, np.int64)
NO_ENTRIES: Final = Entries(NO_NUMBERS, NO_NUMBERS)


def entries_of(texts: Sequence[Collection[int]]) -> Entries:
    """Return the entries of a part, given the words of its flags in order."""
    words = np.fromiter((word for text in texts for word in text), np.int64)
    flags = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    return _ordered(words, flags)


def merge_entries(parts: Sequence[Entries]) -> Entries:
    """Return the distinct entries of several lists, in order."""
    words, flags = _ordered(np.concatenate([part.words for part in parts]), np.concatenate([p.flags for p in parts]))
    is_new = np.ones(len(words), np.bool_)
    is_new[1:] = (np.diff(words) != 0) | (np.diff(flags) != 0)
    return Entries(words[is_new], flags[is_new])


def renumber(entries: Entries, numbers: Numbers) -> Entries:
    """Return the entries with new flag numbers. Entries whose new number is below 0 are left out."""
    flags = numbers[entries.flags]
    remains = flags >= 0
    return Entries(entries.words[remains], flags[remains])


def split(entries: Entries, word: int) -> tuple[Entries, Entries]:
    """Return the entries before a word, and the rest."""
    at = int(np.searchsorted(entries.words, word))
    return Entries(entries.words[:at], entries.flags[:at]), Entries(entries.words[at:], entries.flags[at:])


def pack_entries(entries: Entries) -> Iterator[IndexPage]:
    """Yield entries as pages."""
    words, flags = entries
    starts = np.flatnonzero(np.diff(words, prepend=-1))
    start = 0
    while start < len(words):
        # End at the first word that starts after the page is full.
        at = int(np.searchsorted(starts, start + PAGE_ENTRIES))
        end = int(starts[at]) if at < len(starts) else len(words)
        yield _page(words[start:end], flags[start:end])
        start = end


def unpack_page(content: bytes) -> Entries:
    """Return the entries of a page."""
    steps, counts, gaps = _planes_of(content)
    times = _numbers(counts)
    starts = np.cumsum(times) - times
    # The first flag of each word is stored as is, so the sum of all earlier differences is subtracted.
    differences = _numbers(gaps)
    sums = np.cumsum(differences)
    before = np.repeat(sums[starts] - differences[starts], times)
    return Entries(np.repeat(np.cumsum(_numbers(steps)), times), sums - before)


def flags_with_word(content: bytes, word: int) -> Numbers:
    """Return the flags that have a word, given the page where it would be."""
    steps, counts, gaps = _planes_of(content)
    words = np.cumsum(_numbers(steps))
    at = int(np.searchsorted(words, word))
    if at == len(words) or words[at] != word:
        return NO_NUMBERS
    times = _numbers(counts)
    start = int(times[:at].sum())
    found: Numbers = np.cumsum(_numbers(gaps[:, start : start + int(times[at])]))
    return found


def is_among(numbers: Numbers, ordered: Numbers) -> npt.NDArray[np.bool_]:
    """Return whether each number is in ``ordered``, which is ascending."""
    if not len(ordered):
        return np.zeros(len(numbers), np.bool_)
    places = np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)
    found: npt.NDArray[np.bool_] = ordered[places] == numbers
    return found


def pack_ids(ids: Numbers) -> bytes:
    """Pack the ids of a part's flags, in the order of their numbers."""
    return zlib.compress(_planes(np.diff(ids, prepend=0), 8), _LEVEL)


def unpack_ids(content: bytes) -> Numbers:
    """Return the ids that ``pack_ids`` packed."""
    return np.cumsum(_numbers(np.frombuffer(zlib.decompress(content), np.uint8).reshape(8, -1)))


def _ordered(words: Numbers, flags: Numbers) -> Entries:
    order = np.lexsort((flags, words))
    return Entries(words[order], flags[order])


def _page(words: Numbers, flags: Numbers) -> IndexPage:
    starts = np.flatnonzero(np.diff(words, prepend=-1))
    distinct = words[starts]
    gaps = np.diff(flags, prepend=0)
    gaps[starts] = flags[starts]
    lists = (np.diff(distinct, prepend=0), np.diff(starts, append=len(words)), gaps)
    planes = b"".join(_planes(numbers, width) for numbers, width in zip(lists, _WIDTHS, strict=True))
    content = len(distinct).to_bytes(_COUNT_BYTES, "little") + planes
    return IndexPage(int(distinct[0]), zlib.compress(content, _LEVEL))


def _planes_of(content: bytes) -> list[npt.NDArray[np.uint8]]:
    """Return the byte planes of word differences, flag counts and flag differences."""
    data = np.frombuffer(zlib.decompress(content), np.uint8)
    count = int(data[:_COUNT_BYTES].view("<u4")[0])
    second, third = _COUNT_BYTES + _WIDTHS[0] * count, _COUNT_BYTES + (_WIDTHS[0] + _WIDTHS[1]) * count
    lists = (data[_COUNT_BYTES:second], data[second:third], data[third:])
    return [planes.reshape(width, -1) for planes, width in zip(lists, _WIDTHS, strict=True)]


def _planes(numbers: Numbers, width: int) -> bytes:
    """Return the lowest bytes of all numbers, then the second-lowest, and so on: similar bytes compress better."""
    whole = np.ascontiguousarray(numbers, "<i8").view(np.uint8).reshape(len(numbers), 8)
    return whole[:, :width].T.tobytes()


def _numbers(planes: npt.NDArray[np.uint8]) -> Numbers:
    """Return the numbers that ``_planes`` split."""
    whole = np.zeros((planes.shape[1], 8), np.uint8)
    whole[:, : len(planes)] = planes.T
    return whole.view("<i8").reshape(-1).astype(np.int64, copy=False)
