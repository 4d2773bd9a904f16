"""Sketches: one-permutation MinHash over character shingles, in numpy, for a batch of texts.

Sources: Li, Owen, Zhang, "One Permutation Hashing" (NIPS 2012); Shrivastava, "Optimal Densification for
Fast and Accurate Minwise Hashing" (ICML 2017); Li, König, "b-Bit Minwise Hashing" (WWW 2010).

The top 8 bits of a shingle's 64-bit hash select a bin, which keeps the minimum of the other 56 bits. An empty bin takes
the minimum of another one before any use. The uses, by bin:

    bins 0 .. bands × band_minima − 1     lane-1 keys: consecutive minima fold into one band each
    the next ``one_bits`` bins              bit 8 of each minimum: the one-bit minima a posting carries
    all bins                              bits 0-7 of each minimum: the stored sketch

The top bits of a minimum are nearly always 0, its low bits are uniform: so all uses take low bits, and the one-bit
minima a bit that is not in the sketch. Bands and one-bit minima share no bin, so agreement in a band says nothing more
about the one-bit minima than similarity does.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.fingerprint.hashing import mix_64

SHINGLE_CJK: Final = 5
SHINGLE_OTHER: Final = 9
# Primary subtags (BCP 47) of the languages whose texts have the shorter shingles.
EAST_ASIAN: Final = frozenset({"zh", "yue", "wuu", "nan", "hak", "lzh", "ja", "ko"})
# From the CJK radicals on: Han, kana, bopomofo, Hangul and their extensions, up to emoji.
CJK_FROM: Final = 0x2E80
_POLYNOMIAL_BASE: Final = 0x9E3779B97F4A7C15
_BAND_SEED: Final = 0xD1B54A32D192ED03
_DONOR_SEED: Final = 0x9E3779B97F4A7C15
_BIN_SHIFT: Final = 56
_ACCIDENTAL: Final = 2.0**-8
_BANDS_MAX: Final = 16
_EMPTY: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
_SPACE: Final = 0x20
_SEPARATOR: Final = "\n"
# Code points processed at a time: arrays of this length stay in the processor's cache.
_CHUNK_CHARACTERS: Final = 1 << 16
_CHUNK_TEXTS: Final = 128
# Pieces of a text overlap by the longest shingle, and by the space that a piece may lose at either end.
_OVERLAP: Final = SHINGLE_OTHER + 2
# For `re` a word character is the same as in `_word_table`.
_OTHER_THAN_WORD: Final = re.compile(r"\W+")
# In a text of some hundred shingles an empty bin finds a filled one within a few probes.
_PROBES_FIRST: Final = 8


@dataclass(frozen=True, slots=True)
class SketchLayout:
    """Which minima are used for what; part of the scheme's digest."""

    bins: int = 256
    sketch_bits: int = 8
    bands: int = 4
    band_minima: int = 3
    one_bits: int = 64

    def __post_init__(self) -> None:
        """Refuse a layout that does not fit the arrays below, or uses a minimum twice for postings."""
        if (self.bins, self.sketch_bits, self.one_bits) != (256, 8, 64):
            raise ValueError("a sketch has 256 bins of 8 bits, and 64 one-bit minima")
        if not 0 <= self.bands <= _BANDS_MAX or self.band_minima < 1:
            raise ValueError("a sketch has 0 to 16 bands of at least one minimum")
        if self.bands * self.band_minima + self.one_bits > self.bins:
            raise ValueError("bands and one-bit minima need more minima than there are bins")


class Sketches(NamedTuple):
    """Sketches uint8[n, 256], one-bit minima uint64[n], bands uint64[n, bands] of n texts.

    ``filled_bins`` int64[n]: into how many of the bins shingles fell, which grows with the number of different ones.
    """

    sketches: npt.NDArray[np.uint8]
    one_bits: npt.NDArray[np.uint64]
    bands: npt.NDArray[np.uint64]
    filled_bins: npt.NDArray[np.int64]


def sketch_batch(texts: Sequence[str], layout: SketchLayout, languages: Sequence[str] | None = None) -> Sketches:
    """Sketch normalised texts; the result of each is independent of the others in the batch.

    ``languages`` are those that the texts declare (BCP 47, "" for none); None if no text declares one.
    A text without a word character has no shingle; all its minima are 0.
    """
    declared = np.array([declared_shingle(language) for language in languages or [""] * len(texts)], dtype=np.int64)
    minima = np.full((len(texts), layout.bins), _EMPTY, dtype=np.uint64)
    filled = np.zeros(len(texts), dtype=np.int64)
    start = 0
    while start < len(texts):
        end = _chunk_end(texts, start)
        if len(texts[start]) > _CHUNK_CHARACTERS:
            for piece in _pieces(texts[start]):
                _lower_minima([piece], declared[start:end], minima[start:end])
        else:
            _lower_minima(texts[start:end], declared[start:end], minima[start:end])
        filled[start:end] = np.count_nonzero(minima[start:end] != _EMPTY, axis=1)
        _densify(minima[start:end])
        start = end
    return _use(minima, filled, layout)


def filled_bins(texts: Sequence[str], layout: SketchLayout) -> npt.NDArray[np.int64]:
    """Return only this of the sketches of normalised texts that declare no language."""
    return sketch_batch(texts, layout).filled_bins


def no_sketches(texts: int, layout: SketchLayout) -> Sketches:
    """Return empty sketches for this many texts, for runs that decide nothing by them."""
    return Sketches(
        np.zeros((texts, 0), dtype=np.uint8),
        np.zeros(texts, dtype=np.uint64),
        np.zeros((texts, layout.bands), dtype=np.uint64),
        np.zeros(texts, dtype=np.int64),
    )


def _chunk_end(texts: Sequence[str], start: int) -> int:
    """Return the end of the chunk that begins at ``start``; a text longer than a chunk is alone."""
    end, characters = start + 1, len(texts[start])
    while end < min(len(texts), start + _CHUNK_TEXTS) and characters + len(texts[end]) <= _CHUNK_CHARACTERS:
        characters += len(texts[end])
        end += 1
    return end


def _pieces(text: str) -> Iterator[str]:
    """Cut a long text into texts that together have the same shingles."""
    piece = ""
    for start in range(0, len(text), _CHUNK_CHARACTERS):
        stop = start + _CHUNK_CHARACTERS
        piece = _OTHER_THAN_WORD.sub(" ", piece + text[start:stop])
        # A piece that is too short would count as a text shorter than a shingle.
        if len(piece) > _OVERLAP or stop >= len(text):
            yield piece
            piece = piece[-_OVERLAP:]


def declared_shingle(language: str) -> int:
    """Return the length of all shingles of a text that declares this language, 0 if it declares none.

    Without a language the script of a shingle's first character decides on its length. Texts with shingles of different
    lengths share none, so that their similarity is 0.
    """
    if not language:
        return 0
    primary = language.replace("_", "-").partition("-")[0].casefold()
    return SHINGLE_CJK if primary in EAST_ASIAN else SHINGLE_OTHER


def sketch_similarity(a: npt.NDArray[np.uint8], b: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Estimate the Jaccard similarity of the shingle sets of sketches, uint8[..., 256], broadcast.

    Unrelated minima agree by chance in 1 of 256 cases; this is corrected, and the result clipped to [0, 1]. Equal
    sketches give exactly 1.0.
    """
    # Eight comparisons are counted with one word: the sum of bytes that are 0 or 1 is a count of bits.
    equal = np.ascontiguousarray(a == b).view(np.uint64)
    agreement = np.bitwise_count(equal).sum(axis=-1, dtype=np.uint16) / np.float64(a.shape[-1])
    similarity: npt.NDArray[np.float64] = np.clip((agreement - _ACCIDENTAL) / (1.0 - _ACCIDENTAL), 0.0, 1.0)
    return similarity


class _Characters(NamedTuple):
    """Texts as code points, uint64, one after the other; runs of other than word characters are one space.

    Text t is at ``starts[t]:ends[t]``; ``rows`` has the number of the text of every code point.
    """

    codes: npt.NDArray[np.uint64]
    rows: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]


def _lower_minima(texts: Sequence[str], declared: npt.NDArray[np.int64], minima: npt.NDArray[np.uint64]) -> None:
    """Lower every text's row of ``minima`` to the minima of its shingles."""
    characters = _characters(texts)
    lengths = _shingle_lengths(characters, declared)
    positions, hashes = _shingle_hashes(characters.codes, lengths)
    bins = (hashes >> np.uint64(_BIN_SHIFT)).astype(np.int64)
    cells = characters.rows[positions] * minima.shape[1] + bins
    np.minimum.at(minima.reshape(-1), cells, hashes & np.uint64((1 << _BIN_SHIFT) - 1))


def _characters(texts: Sequence[str]) -> _Characters:
    # The first character of a text follows a separator, which is not a word character, so that other than word
    # characters at its beginning are dropped. Of those at its end one space stays, outside `ends`.
    joined = "".join(f"{text}{_SEPARATOR}" for text in texts)
    codes = np.frombuffer(joined.encode("utf-32-le"), dtype="<u4")
    is_word = _word_table()[codes]
    keep = is_word.copy()
    keep[1:] |= is_word[:-1]
    separators = np.cumsum([len(text) + 1 for text in texts]) - 1
    stops = np.cumsum(keep)[separators]
    starts = np.concatenate(([0], stops[:-1]))
    kept = np.where(is_word, codes, np.uint32(_SPACE))[keep].astype(np.uint64)
    rows = np.repeat(np.arange(len(texts)), stops - starts)
    return _Characters(kept, rows, starts, np.maximum(stops - 1, starts))


@cache
def _word_table() -> npt.NDArray[np.bool_]:
    """Return for every code point whether it is a word character: a letter or digit to ``str.isalnum``, or ``_``."""
    characters = np.arange(0x110000, dtype=np.uint32).view("<U1")
    table = np.strings.isalnum(characters)
    table[ord("_")] = True
    return table


def _shingle_lengths(characters: _Characters, declared: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the length of the shingle that begins at each code point, 0 for none."""
    codes, rows, starts, ends = characters
    is_cjk = codes >= np.uint64(CJK_FROM)
    # A space counts as what follows it, so that punctuation in Chinese does not begin a long shingle.
    is_cjk[:-1] |= (codes[:-1] == np.uint64(_SPACE)) & is_cjk[1:]
    by_script = np.where(is_cjk, SHINGLE_CJK, SHINGLE_OTHER)
    by_language = declared[rows]
    lengths = np.where(by_language > 0, by_language, by_script)
    lengths[np.arange(len(codes)) + lengths > ends[rows]] = 0
    shingles = np.bincount(rows, weights=lengths > 0, minlength=len(starts))
    whole = (shingles == 0) & (ends > starts)
    lengths[starts[whole]] = (ends - starts)[whole]
    return lengths


def _shingle_hashes(
    codes: npt.NDArray[np.uint64], lengths: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Hash all shingles; return their positions, in no particular order, and the hashes."""
    padded = np.concatenate((codes, np.zeros(SHINGLE_OTHER, dtype=np.uint64)))
    base = np.uint64(_POLYNOMIAL_BASE)
    rolling = np.zeros(len(codes), dtype=np.uint64)
    positions, hashes = [], []
    for length in range(1, SHINGLE_OTHER + 1):
        rolling *= base
        rolling += padded[length - 1 : length - 1 + len(codes)]
        chosen = np.flatnonzero(lengths == length)
        if len(chosen):
            positions.append(chosen)
            hashes.append(rolling[chosen] + np.uint64(length))
    if not positions:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
    return np.concatenate(positions), mix_64(np.concatenate(hashes))


@cache
def _donors() -> npt.NDArray[np.uint8]:
    """Return for every bin the order in which it tries the others if it is empty: uint8[256, 255], a fixed shuffle."""
    bins = np.arange(256, dtype=np.uint64)
    ranks = mix_64((bins[:, np.newaxis] << np.uint64(8) | bins) + np.uint64(_DONOR_SEED))
    order = np.argsort(ranks, axis=1, kind="stable").astype(np.uint8)
    donors: npt.NDArray[np.uint8] = order[order != bins[:, np.newaxis]].reshape(256, 255)
    return donors


def _densify(minima: npt.NDArray[np.uint64]) -> None:
    """Fill every empty bin from the first filled one in its order; rows without any become 0."""
    filled = minima != _EMPTY
    minima[~filled.any(axis=1)] = 0
    rows, bins = np.nonzero(minima == _EMPTY)
    for probes in (_PROBES_FIRST, 255):
        order = _donors()[bins, :probes]
        met = filled[rows[:, np.newaxis], order]
        donors = order[np.arange(len(rows)), np.argmax(met, axis=1)]
        found = met.any(axis=1)
        minima[rows[found], bins[found]] = minima[rows[found], donors[found]]
        rows, bins = rows[~found], bins[~found]


def _use(minima: npt.NDArray[np.uint64], filled: npt.NDArray[np.int64], layout: SketchLayout) -> Sketches:
    band_bins = layout.bands * layout.band_minima
    folded = np.full((len(minima), layout.bands), _BAND_SEED, dtype=np.uint64)
    grouped = minima[:, :band_bins].reshape(len(minima), layout.bands, layout.band_minima)
    for member in range(layout.band_minima):
        folded = mix_64(folded + grouped[:, :, member])
    one_bits = minima[:, band_bins : band_bins + layout.one_bits] >> np.uint64(layout.sketch_bits) & np.uint64(1)
    packed = np.packbits(one_bits.astype(np.uint8), axis=1).view(">u8").astype(np.uint64).reshape(-1)
    return Sketches((minima & np.uint64(0xFF)).astype(np.uint8), packed, folded, filled)
