"""Fingerprints in any number, distributed like those of real texts.

Fingerprints are not uniform: texts on one subject share words, so that some rows of the index are many times as long as
others, and that is what a look-up costs. The model is a mixture of classes, each with a share of ones of its own
for every bit (a latent class model, fitted by expectation and maximisation: Dempster, Laird and Rubin, 1977) to the
fingerprints of some thousand made texts. ``row_skew`` of what it draws can be compared with theirs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt

BITS: Final = 64
CLASSES: Final = 64
_ITERATIONS: Final = 40
_SAMPLED_AT_ONCE: Final = 1 << 16
_SHARE_LEAST: Final = 0.005


@dataclass(frozen=True, slots=True, eq=False)
class CodeModel:
    """How large each class is, float64[classes], and its shares of ones, float32[classes, 64]."""

    sizes: npt.NDArray[np.float64]
    shares: npt.NDArray[np.float32]

    @classmethod
    def fitted(cls, codes: npt.NDArray[np.uint64], *, classes: int = CLASSES) -> Self:
        """Fit the model to fingerprints uint64[n]; equal ones count as one."""
        bits = bits_of(np.unique(codes)).astype(np.float64)
        # Beginning at fingerprints, drawn to the middle: at equal shares all classes would stay equal.
        centres = bits[np.random.default_rng(0).choice(len(bits), classes, replace=len(bits) < classes)]
        shares = 0.25 + 0.5 * centres
        sizes = np.full(classes, 1 / classes)
        for _ in range(_ITERATIONS):
            fit = bits @ np.log(shares).T + (1 - bits) @ np.log(1 - shares).T + np.log(sizes)
            belongs = np.exp(fit - fit.max(axis=1, keepdims=True))
            belongs /= belongs.sum(axis=1, keepdims=True)
            weights = belongs.sum(axis=0) + 1e-9
            shares = np.clip(belongs.T @ bits / weights[:, np.newaxis], _SHARE_LEAST, 1 - _SHARE_LEAST)
            sizes = weights / weights.sum()
        return cls(sizes, shares.astype(np.float32))

    def sample(self, count: int, rng: np.random.Generator) -> npt.NDArray[np.uint64]:
        """Draw fingerprints: uint64[count]."""
        return np.concatenate([np.zeros(0, dtype=np.uint64), *self._chunks(count, rng)])

    def _chunks(self, count: int, rng: np.random.Generator) -> Iterator[npt.NDArray[np.uint64]]:
        for start in range(0, count, _SAMPLED_AT_ONCE):
            drawn = min(_SAMPLED_AT_ONCE, count - start)
            shares = self.shares[rng.choice(len(self.sizes), drawn, p=self.sizes)]
            yield codes_of(rng.random((drawn, BITS), dtype=np.float32) < shares)


def bits_of(codes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    """Take fingerprints apart: uint8[n, 64], the most significant bit first."""
    return np.unpackbits(codes.astype(">u8").view(np.uint8)).reshape(-1, BITS)


def codes_of(bits: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """Put bits [n, 64] together to fingerprints."""
    return np.packbits(bits, axis=1).view(">u8").astype(np.uint64).reshape(-1)


def near_copies(codes: npt.NDArray[np.uint64], flips: int, rng: np.random.Generator) -> npt.NDArray[np.uint64]:
    """Flip ``flips`` different bits, drawn by chance, in each of the fingerprints."""
    order = np.argsort(rng.random((len(codes), BITS)), axis=1)
    masks = np.zeros((len(codes), BITS), dtype=np.bool_)
    np.put_along_axis(masks, order[:, :flips], values=True, axis=1)
    return codes ^ codes_of(masks)


def row_skew(codes: npt.NDArray[np.uint64], block_bits: int = 16) -> float:
    """How many times the postings of a uniform index a look-up meets, over all blocks; 1.0 for uniform codes."""
    mask = np.uint64((1 << block_bits) - 1)
    met = 0.0
    for shift in range(0, BITS, block_bits):
        sizes = np.unique(codes >> np.uint64(shift) & mask, return_counts=True)[1].astype(np.float64)
        met += float((sizes * (sizes - 1)).sum())
    uniform = BITS / block_bits * len(codes) * (len(codes) - 1) / (1 << block_bits)
    return met / uniform
