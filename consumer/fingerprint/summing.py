"""SimHash: adds up weighted hashes bit by bit; the signs of the sums are the fingerprint.

Source: Charikar, "Similarity Estimation Techniques from Rounding Algorithms" (STOC 2002); Manku, Jain,
Das Sarma, "Detecting Near-Duplicates for Web Crawling" (WWW 2007).

Bit order: the first of ``bits`` bits is the most significant one. Tie rule: a bit is 1 where its sum is > 0, or in some
schemes where it is >= 0 (``tie``).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

# The engine's weights are multiples of 2**-20. float64 adds them exactly, in any order, while sums stay below
# 2**(53 - 20).
WEIGHT_SCALE: Final = float(1 << 20)
WEIGHT_SUM_MAX: Final = float(1 << 32)
_WORD_BITS: Final = 64
# The limit on features summed together, because each of their bits takes 8 bytes until it is summed.
_PIECE_FEATURES: Final = 1 << 13


def bit_sums(features: Iterable[tuple[int, float]], bits: int = 64) -> list[float]:
    """Return the sum of weights for each bit, most significant first: + where a hash has a 1, − where it has a 0.

    Sums are correctly rounded (``math.fsum``), so the order of the features does not matter. Raises ``ValueError`` if a
    hash is negative or wider than ``bits``.
    """
    pairs = list(features)
    for value, _ in pairs:
        _check_width(value, bits)
    return [
        math.fsum(weight if value >> position & 1 else -weight for value, weight in pairs)
        for position in range(bits - 1, -1, -1)
    ]


def simhash(features: Iterable[tuple[int, float]], bits: int = 64, *, tie: bool = False) -> int:
    """Return the fingerprint, of ``bits`` bits, of (hash, weight) pairs.

    A sum of 0, including that of no features, gives the bit ``tie``. Raises ``ValueError`` if a hash is negative or
    wider than ``bits``.
    """
    fingerprint = 0
    for bit_sum in bit_sums(features, bits):
        fingerprint = fingerprint << 1 | (bit_sum > 0 or (tie and bit_sum == 0))
    return fingerprint


def hamming_distance(a: int, b: int) -> int:
    """Return the number of bits in which two fingerprints differ. Raises ``ValueError`` if one is negative."""
    if a < 0 or b < 0:
        raise ValueError("a fingerprint is an unsigned number, but one is negative")
    return (a ^ b).bit_count()


def split_blocks(fingerprint: int, bits: int = 64, blocks: int = 4) -> tuple[int, ...]:
    """Return the blocks of a fingerprint, of equal width, the most significant first.

    Raises ``ValueError`` if the number of blocks does not divide ``bits``, or the fingerprint has more bits.
    """
    if blocks < 1 or bits % blocks:
        raise ValueError(f"{bits} bits cannot be cut into {blocks} equal blocks")
    _check_width(fingerprint, bits)
    width = bits // blocks
    return tuple(fingerprint >> bits - width * (number + 1) & (1 << width) - 1 for number in range(blocks))


def round_weights(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return weights rounded to multiples of 2**-20, halves to even, as the engine adds them."""
    return np.rint(weights * WEIGHT_SCALE) / WEIGHT_SCALE


def hash_words(hashes: Sequence[int], bits: int) -> npt.NDArray[np.uint64]:
    """Return hashes of ``bits`` bits as uint64[n, bits // 64], the most significant word first."""
    joined = b"".join(value.to_bytes(bits // 8) for value in hashes)
    return np.frombuffer(joined, dtype=">u8").astype(np.uint64).reshape(len(hashes), bits // _WORD_BITS)


def fingerprint_number(code: npt.NDArray[np.uint64]) -> int:
    """Return a fingerprint, uint64[words] with the most significant word first, as one number."""
    return int.from_bytes(code.astype(">u8").tobytes())


def fingerprint_batch(
    hashes: npt.NDArray[np.uint64],
    weights: npt.NDArray[np.float64],
    offsets: npt.NDArray[np.int64],
    *,
    tie: bool = False,
) -> npt.NDArray[np.uint64]:
    """Return the fingerprints of many texts: uint64[texts, words], the most significant word first.

    Text t has the features ``offsets[t]:offsets[t + 1]`` of ``hashes``, uint64[features, words], and ``weights``.
    ``round_weights`` rounds the weights first; the result equals ``simhash`` of the rounded pairs, bit for bit. Raises
    ``ValueError`` if the weights of a text add up to 2**32 or more, because sums would no longer be exact.
    """
    rounded = round_weights(weights)
    width = _WORD_BITS * hashes.shape[1]
    fingerprints = np.zeros((len(offsets) - 1, width), dtype=np.bool_)
    for text in range(len(offsets) - 1):
        start, end = offsets[text], offsets[text + 1]
        own_weights = rounded[start:end]
        total = own_weights.sum()
        if np.abs(own_weights).sum() >= WEIGHT_SUM_MAX:
            raise ValueError("the weights of a text add up to 2**32 or more, which cannot be summed exactly")
        # The sum with signs is (weights of ones) − (weights of zeros) = 2 × (weights of ones) − total.
        doubled = 2.0 * _ones(hashes[start:end], own_weights)
        fingerprints[text] = doubled >= total if tie else doubled > total
    return np.packbits(fingerprints, axis=1).view(">u8").astype(np.uint64)


def _ones(hashes: npt.NDArray[np.uint64], weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return, for each bit, the sum of the weights of features that have a 1. Sums are exact, whatever the pieces."""
    sums = np.zeros(_WORD_BITS * hashes.shape[1], dtype=np.float64)
    for start in range(0, len(hashes), _PIECE_FEATURES):
        piece = slice(start, start + _PIECE_FEATURES)
        # Unpacking the bytes of a big-endian hash yields its bits, the most significant first.
        bits = np.unpackbits(hashes[piece].astype(">u8").view(np.uint8), axis=1)
        sums += weights[piece] @ bits.astype(np.float64)
    return sums


def _check_width(value: int, bits: int) -> None:
    if value < 0:
        raise ValueError(f"a hash or fingerprint is an unsigned number, but {value} is negative")
    if value >> bits:
        raise ValueError(f"{value:#x} does not fit into {bits} bits")


def cosine(keywords: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Return the cosine of the angle between two weighted keyword vectors, 0 if one has no keyword."""
    lengths = math.hypot(*keywords.values()) * math.hypot(*other.values())
    if not lengths:
        return 0.0
    shared = math.fsum(weight * other[word] for word, weight in keywords.items() if word in other)
    return min(shared / lengths, 1.0)
