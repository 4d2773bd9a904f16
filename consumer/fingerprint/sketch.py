"""Sketches: one-permutation MinHash over character shingles, in numpy, for a batch of texts.

Sources: Li, Owen, Zhang, "One Permutation Hashing" (NIPS 2012); Shrivastava, "Optimal Densification for
Fast and Accurate Minwise Hashing" (ICML 2017); Li, König, "b-Bit Minwise Hashing" (WWW 2010).

The top 8 bits of a shingle's 64-bit hash select a bin, which keeps the minimum of the other 56 bits. Then each empty
bin takes the minimum of another bin. The uses, by bin:

    bins 0 .. bands × band_minima − 1     lane-1 keys: each band folds ``band_minima`` consecutive minima
    the next ``one_bits`` bins            bit 8 of each minimum: the one-bit minima of a posting
    all bins                              bits 0-7 of each minimum: the stored sketch, unless it is marked

The top bits of a minimum are nearly always 0 and its low bits are uniform, so all uses take low bits, and the one-bit
minima take a bit that is not in the sketch. Bands and one-bit minima share no bin. So texts that agree in a band
are no more likely to agree in one-bit minima than other texts of the same similarity.

A *marked* sketch shows which bins were empty: their byte is 0. The byte of a filled bin is 1 + (minimum >> 9) mod 255.
Only bins that at least one of the two texts fills are compared, and no minimum is compared twice. So the estimate is
more exact for short texts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.fingerprint.hashing import mix_64
from consumer.fingerprint.shingles import WORDS, HashedChunk, Shingling, hashed_chunks

SketchSimilarity = Callable[[npt.NDArray[np.uint8], npt.NDArray[np.uint8]], npt.NDArray[np.float64]]
"""A function that estimates the similarity of shingle sets from two arrays of sketches, uint8[..., 256], broadcast."""
_BAND_SEED: Final = 0xD1B54A32D192ED03
_DONOR_SEED: Final = 0x9E3779B97F4A7C15
_BIN_SHIFT: Final = 56
_CHANCE: Final = 2.0**-8
_BANDS_MAX: Final = 16
_MARKED_SHIFT: Final = 9
_MARKED_VALUES: Final = 255
_Bins = npt.NDArray[np.uint64] | npt.NDArray[np.uint8]
_EMPTY: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
# In a text of a few hundred shingles, an empty bin finds a filled one within a few probes.
_PROBES_FIRST: Final = 8


@dataclass(frozen=True, slots=True)
class SketchLayout:
    """The uses of the minima; part of the scheme's digest."""

    bins: int = 256
    sketch_bits: int = 8
    bands: int = 4
    band_minima: int = 3
    one_bits: int = 64

    def __post_init__(self) -> None:
        """Raise ValueError for a layout that does not fit the arrays below, or uses a minimum twice for postings."""
        if (self.bins, self.sketch_bits, self.one_bits) != (256, 8, 64):
            raise ValueError("a sketch has 256 bins of 8 bits, and 64 one-bit minima")
        if not 0 <= self.bands <= _BANDS_MAX or self.band_minima < 1:
            raise ValueError("a sketch has 0 to 16 bands of at least one minimum")
        if self.bands * self.band_minima + self.one_bits > self.bins:
            raise ValueError("bands and one-bit minima need more minima than there are bins")


class Sketches(NamedTuple):
    """Sketches uint8[n, 256], one-bit minima uint64[n], bands uint64[n, bands] of n texts.

    ``filled_bins`` int64[n]: the number of bins with shingles, which grows with the number of different shingles.
    """

    sketches: npt.NDArray[np.uint8]
    one_bits: npt.NDArray[np.uint64]
    bands: npt.NDArray[np.uint64]
    filled_bins: npt.NDArray[np.int64]


class Minima:
    """The minima of a batch of texts, lowered chunk by chunk."""

    def __init__(self, texts: int, layout: SketchLayout, *, is_marked: bool = False) -> None:
        self._layout = layout
        self._marked = is_marked
        self._minima = np.full((texts, layout.bins), _EMPTY, dtype=np.uint64)
        self._filled = np.zeros((texts, layout.bins), dtype=np.bool_)

    def add(self, chunk: HashedChunk) -> None:
        """Lower the minima of each text by its shingles in a chunk. Chunks must be added in order."""
        minima = self._minima[chunk.texts]
        bins = (chunk.hashes >> np.uint64(_BIN_SHIFT)).astype(np.int64)
        cells = chunk.characters.rows[chunk.positions] * self._layout.bins + bins
        np.minimum.at(minima.reshape(-1), cells, chunk.hashes & np.uint64((1 << _BIN_SHIFT) - 1))
        if chunk.is_last:
            self._filled[chunk.texts] = minima != _EMPTY
            _densify(minima)

    def sketches(self) -> Sketches:
        """Return the sketches, once all chunks have been added."""
        return Sketches(
            _marked(self._minima, self._filled) if self._marked else (self._minima & np.uint64(0xFF)).astype(np.uint8),
            _one_bits(self._minima, self._layout),
            _bands(self._minima, self._layout),
            np.count_nonzero(self._filled, axis=1),
        )


def sketch_batch(
    texts: Sequence[str],
    layout: SketchLayout,
    languages: Sequence[str] | None = None,
    shingling: Shingling = WORDS,
    *,
    is_marked: bool = False,
) -> Sketches:
    """Return the sketches of normalised texts; each is independent of the others in the batch.

    ``languages`` are declared by the texts (BCP 47, or "" for none); None if no text declares one. All minima of a text
    without a shingle are 0.
    """
    minima = Minima(len(texts), layout, is_marked=is_marked)
    for chunk in hashed_chunks(texts, languages, shingling):
        minima.add(chunk)
    return minima.sketches()


def filled_bins(texts: Sequence[str], layout: SketchLayout, shingling: Shingling = WORDS) -> npt.NDArray[np.int64]:
    """Return ``Sketches.filled_bins`` of normalised texts that declare no language."""
    return sketch_batch(texts, layout, None, shingling).filled_bins


def no_sketches(texts: int, layout: SketchLayout) -> Sketches:
    """Return empty sketches for this many texts, for runs that do not use them."""
    return Sketches(
        np.zeros((texts, 0), dtype=np.uint8),
        np.zeros(texts, dtype=np.uint64),
        np.zeros((texts, layout.bands), dtype=np.uint64),
        np.zeros(texts, dtype=np.int64),
    )


def sketch_similarity(a: npt.NDArray[np.uint8], b: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Estimate the Jaccard similarity of shingle sets from two arrays of sketches, uint8[..., 256], broadcast.

    Unrelated minima agree by chance in 1 of 256 cases. The estimate corrects for this, and is clipped to [0, 1]. Equal
    sketches give exactly 1.0.
    """
    agreement = _counts(a == b) / np.float64(a.shape[-1])
    similarity: npt.NDArray[np.float64] = np.clip((agreement - _CHANCE) / (1.0 - _CHANCE), 0.0, 1.0)
    return similarity


def marked_sketch_similarity(a: npt.NDArray[np.uint8], b: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Estimate the Jaccard similarity of shingle sets from two arrays of marked sketches, uint8[..., 256], broadcast.

    Only bins that at least one text fills are compared. Filled bins agree by chance in 1 of 255 cases; the estimate
    corrects for this. Equal sketches give exactly 1.0, or 0.0 if neither text has a shingle.
    """
    filled_a, filled_b, either = (_counts(filled != 0).astype(np.float64) for filled in (a, b, a | b))
    both = filled_a + filled_b - either
    equal = _counts(a == b) - (a.shape[-1] - either)
    values = np.float64(_MARKED_VALUES)
    similarity: npt.NDArray[np.float64] = np.clip(
        (values * equal - both) / ((values - 1.0) * np.maximum(either, 1.0)), 0.0, 1.0
    )
    return similarity


def _counts(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint16]:
    """Return the number of true flags along the last axis, whose length is a multiple of 8."""
    # Flags are bytes of 0 or 1, so the bit count of a word counts eight of them.
    counts: npt.NDArray[np.uint16] = np.bitwise_count(np.ascontiguousarray(flags).view(np.uint64)).sum(
        axis=-1, dtype=np.uint16
    )
    return counts


@cache
def _donors() -> npt.NDArray[np.uint8]:
    """Return the order in which each empty bin tries the others: uint8[256, 255], a fixed shuffle."""
    bins = np.arange(256, dtype=np.uint64)
    ranks = mix_64((bins[:, np.newaxis] << np.uint64(8) | bins) + np.uint64(_DONOR_SEED))
    order = np.argsort(ranks, axis=1, kind="stable").astype(np.uint8)
    donors: npt.NDArray[np.uint8] = order[order != bins[:, np.newaxis]].reshape(256, 255)
    return donors


def densified_sketches(sketches: npt.NDArray[np.uint8], bins: int) -> npt.NDArray[np.uint8]:
    """Return the first bytes of sketches, uint8[n, bins], with each 0 replaced by the value of another bin.

    In a marked sketch zeros are empty bins; filling them lets bands of bytes find short texts too. Other sketches have
    few zeros.
    """
    densified = sketches[:, :bins].copy()
    _fill(densified, sketches, sketches != 0)
    return densified


def _densify(minima: npt.NDArray[np.uint64]) -> None:
    """Fill every empty bin in place; rows without a filled bin become 0."""
    filled = minima != _EMPTY
    minima[~filled.any(axis=1)] = 0
    _fill(minima, minima, filled)


def _fill(bins: _Bins, values: _Bins, filled: npt.NDArray[np.bool_]) -> None:
    """Give each unfilled bin of ``bins`` the value of the first filled bin in its order, in place.

    ``values`` and ``filled`` have all 256 bins of each row; ``bins`` may have fewer. Rows without a filled bin stay as
    they are.
    """
    rows, places = np.nonzero(~filled[:, : bins.shape[1]] & filled.any(axis=1, keepdims=True))
    for probes in (_PROBES_FIRST, 255):
        order = _donors()[places, :probes]
        can_give = filled[rows[:, np.newaxis], order]
        donors = order[np.arange(len(rows)), np.argmax(can_give, axis=1)]
        has_donor = can_give.any(axis=1)
        bins[rows[has_donor], places[has_donor]] = values[rows[has_donor], donors[has_donor]]
        rows, places = rows[~has_donor], places[~has_donor]


def _bands(minima: npt.NDArray[np.uint64], layout: SketchLayout) -> npt.NDArray[np.uint64]:
    folded = np.full((len(minima), layout.bands), _BAND_SEED, dtype=np.uint64)
    grouped = minima[:, : layout.bands * layout.band_minima].reshape(len(minima), layout.bands, layout.band_minima)
    for member in range(layout.band_minima):
        folded = mix_64(folded + grouped[:, :, member])
    return folded


def _one_bits(minima: npt.NDArray[np.uint64], layout: SketchLayout) -> npt.NDArray[np.uint64]:
    first = layout.bands * layout.band_minima
    one_bits = minima[:, first : first + layout.one_bits] >> np.uint64(layout.sketch_bits) & np.uint64(1)
    return np.packbits(one_bits.astype(np.uint8), axis=1).view(">u8").astype(np.uint64).reshape(-1)


def _marked(minima: npt.NDArray[np.uint64], filled: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    values = (minima >> np.uint64(_MARKED_SHIFT)) % np.uint64(_MARKED_VALUES) + np.uint64(1)
    return np.where(filled, values, 0).astype(np.uint8)
