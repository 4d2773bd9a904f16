"""Random hyperplanes over weighted vectors: each bit says on which side of a hyperplane the vector is.

Source: Charikar, "Similarity Estimation Techniques from Rounding Algorithms" (STOC 2002), with entries of ±1
(Achlioptas, "Database-friendly random projections", JCSS 2003). For D features and f bits, these entries form a D × f
matrix. The row of a feature is computed from its name when needed, so D need not be known, and no matrix is stored.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from consumer.fingerprint.hashing import fnv1a_64, mix_64
from consumer.fingerprint.summing import fingerprint_batch, hash_words

# The increment of SplitMix64: a row is that generator's output when it is seeded with the feature's hash.
_INCREMENT: Final = 0x9E3779B97F4A7C15
_MASK_64: Final = (1 << 64) - 1
_WORD_BITS: Final = 64


def hyperplanes_64(feature: str) -> int:
    """Return the feature's row of the matrix for 64 bits: a 1 stands for +1, a 0 for −1."""
    return _row(feature, 64)


def hyperplanes_128(feature: str) -> int:
    """Return the feature's row of the matrix for 128 bits. Its first half is the row for 64 bits."""
    return _row(feature, 128)


def fingerprint_vectors(features: Sequence[str], vectors: npt.NDArray[np.float64], bits: int) -> npt.NDArray[np.uint64]:
    """Return the fingerprints, uint64[n, bits // 64], of vectors, float64[n, len(features)].

    Weights may be negative. ``round_weights`` rounds them first.
    """
    rows = hash_words([_row(feature, bits) for feature in features], bits)
    texts, places = np.nonzero(vectors)
    offsets = np.searchsorted(texts, np.arange(len(vectors) + 1))
    return fingerprint_batch(rows[places], vectors[texts, places], offsets)


def _row(feature: str, bits: int) -> int:
    seed = fnv1a_64(feature.encode())
    states = [seed + number * _INCREMENT & _MASK_64 for number in range(1, bits // _WORD_BITS + 1)]
    return int.from_bytes(mix_64(np.array(states, dtype=np.uint64)).astype(">u8").tobytes())
