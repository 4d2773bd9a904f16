"""Hashes of 64 bits: FNV-1a for words, and the SplitMix64 finalizer, which mixes short inputs."""

from typing import Final

import numpy as np
import numpy.typing as npt

_MASK_64: Final = (1 << 64) - 1
_FNV_OFFSET_64: Final = 0xCBF29CE484222325
_FNV_PRIME_64: Final = 0x00000100000001B3
_MIX_FIRST: Final = 0xBF58476D1CE4E5B9
_MIX_SECOND: Final = 0x94D049BB133111EB


def fnv1a_64(data: bytes) -> int:
    """Hash bytes with FNV-1a, unsigned, 64 bits.

    Source: Fowler, Noll, Vo, "The FNV Non-Cryptographic Hash Algorithm" (RFC 9923).
    """
    digest = _FNV_OFFSET_64
    for byte in data:
        digest = ((digest ^ byte) * _FNV_PRIME_64) & _MASK_64
    return digest


def mix_64(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Mix every value so that each input bit flips about half of the output bits; a bijection.

    Source: the finalizer of SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
    Generators", OOPSLA 2014) with the constants of Stafford's mix 13.
    """
    mixed = values ^ (values >> np.uint64(30))
    mixed *= np.uint64(_MIX_FIRST)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(_MIX_SECOND)
    mixed ^= mixed >> np.uint64(31)
    return mixed
