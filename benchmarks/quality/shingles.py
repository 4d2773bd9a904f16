"""Texts as sets of shingles, exactly: equal numbers mean equal shingles, so no hash can make two of one."""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.quality.feed import CJK

Int64 = npt.NDArray[np.int64]

NON_WORD = re.compile(r"\W+")
# Soft hyphen, zero-width space, non-joiner, joiner, word joiner, byte order mark.
INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
_BEGINS_CJK = re.compile(f"{CJK.pattern}| (?={CJK.pattern})")


class ShingleSets(NamedTuple):
    """Sets in one array: set ``i`` is ``members[starts[i]:starts[i + 1]]``, ascending, without repeats."""

    members: Int64
    starts: Int64

    def sizes(self) -> Int64:
        """Return how many shingles each set has."""
        return np.diff(self.starts)


def normalise(text: str, *, drop_invisible: bool = False) -> str:
    """NFKC, casefold, then each run of non-word characters becomes one space; a text without words becomes empty.

    Zero-width characters and soft hyphens count as non-word unless they are dropped first, as a reader sees the text.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    if drop_invisible:
        folded = INVISIBLE.sub("", folded)
    normalised = NON_WORD.sub(" ", folded)
    return "" if normalised == " " else normalised


def shingle_sets(texts: Sequence[str], shingle_chars: int, cjk_shingle_chars: int) -> ShingleSets:
    """Return the sets of the shingles of normalised texts.

    A shingle that begins with a Chinese or Japanese character, or a space before one, has ``cjk_shingle_chars``
    characters, every other one ``shingle_chars``. A text that is too short for any has one shingle, itself; an empty
    one has none. Shingles are numbered rare first (by the number of texts they occur in), the order that prefix
    filtering wants.
    """
    # NUL is a non-word character, so it cannot be in a normalised text; behind each text there is room for a shingle.
    joined = "".join(text + "\0" * max(shingle_chars, cjk_shingle_chars) for text in texts)
    codes = np.frombuffer(joined.encode("utf-32-le"), dtype=np.uint32)
    begins_cjk = np.zeros(len(codes), dtype=np.bool_)
    begins_cjk[[match.start() for match in _BEGINS_CJK.finditer(joined)]] = True
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    starts = (
        np.cumsum(lengths + max(shingle_chars, cjk_shingle_chars)) - lengths - max(shingle_chars, cjk_shingle_chars)
    )
    owners, places = np.repeat(np.arange(len(texts)), lengths), _ranges(starts, lengths)
    widths = np.where(begins_cjk[places], cjk_shingle_chars, shingle_chars)
    fits = places + widths <= (starts + lengths)[owners]
    alone = np.bincount(owners[fits], minlength=len(texts)) == 0
    chosen = fits | (alone[owners] & (places == starts[owners]))
    owners, places, widths = owners[chosen], places[chosen], widths[chosen]
    members = np.zeros(len(places), dtype=np.int64)
    for width in {shingle_chars, cjk_shingle_chars}:
        of_width = widths == width
        # Names of shingles of two lengths are told apart by the lowest bit.
        members[of_width] = _window_names(codes, width)[places[of_width]] << 1 | (width == cjk_shingle_chars)
    return _sets_rare_first(owners, members, len(texts))


def _ranges(starts: Int64, lengths: Int64) -> Int64:
    """Concatenate the ranges ``starts[i] … starts[i] + lengths[i]``."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + lengths, lengths)


def _window_names(codes: npt.NDArray[np.uint32], width: int) -> Int64:
    """Name the window of ``width`` characters that begins at each place; equal names mean equal windows.

    Windows are named by pairs of names of shorter windows (Karp, Miller and Rosenberg, "Rapid identification of
    repeated patterns in strings, trees and arrays", STOC 1972): 1, 2, 4, … characters, and the rest at the end.
    """
    by_width = {1: np.unique(codes, return_inverse=True)[1].astype(np.uint32)}

    def name(span: int) -> npt.NDArray[np.uint32]:
        if span not in by_width:
            head = 1 << (span - 1).bit_length() - 1
            tail = name(span - head)
            left = name(head)[: max(0, len(codes) - span + 1)]
            pair = left.astype(np.int64) * (len(codes) + 1) + tail[head : head + len(left)]
            by_width[span] = np.unique(pair, return_inverse=True)[1].astype(np.uint32)
        return by_width[span]

    return name(width).astype(np.int64)


def _sets_rare_first(owners: Int64, members: Int64, sets: int) -> ShingleSets:
    """Sort and de-duplicate (set, member) pairs, with the members renumbered by the number of sets they are in."""
    span = int(members.max(initial=0)) + 1
    # Sorting and comparing neighbours takes half of np.unique's time, which hashes.
    owned = np.sort(owners * span + members)
    owners, members = np.divmod(owned[np.diff(owned, prepend=-1) != 0], span)
    rarity = np.argsort(np.bincount(members, minlength=span), kind="stable")
    number = np.empty(span, dtype=np.int64)
    number[rarity] = np.arange(span)
    renumbered = np.sort(owners * span + number[members]) % span
    starts = np.searchsorted(owners, np.arange(sets + 1))
    return ShingleSets(renumbered, starts.astype(np.int64))
