"""Hashes of 64 bits: FNV-1a for words, the SplitMix64 finalizer and keyed SipHash for short inputs."""

from typing import Final

import numpy as np
import numpy.typing as npt

_MASK_64: Final = (1 << 64) - 1
_FNV_OFFSET_64: Final = 0xCBF29CE484222325
_FNV_PRIME_64: Final = 0x00000100000001B3
_MIX_FIRST: Final = 0xBF58476D1CE4E5B9
_MIX_SECOND: Final = 0x94D049BB133111EB
_SIP_START: Final = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_SIP_LENGTH: Final = np.uint64(8 << 56)
_SIP_END: Final = np.uint64(0xFF)
# The number of values hashed together: few enough for their state to stay in the processor's cache.
_SIP_VALUES: Final = 1 << 12


def fnv1a_64(data: bytes) -> int:
    """Return the FNV-1a hash of bytes, 64 bits, unsigned.

    Source: Fowler, Noll, Vo, "The FNV Non-Cryptographic Hash Algorithm" (RFC 9923).
    """
    digest = _FNV_OFFSET_64
    for byte in data:
        digest = ((digest ^ byte) * _FNV_PRIME_64) & _MASK_64
    return digest


def mix_64(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return each value mixed so that every input bit flips about half of the output bits; a bijection.

    Source: the finalizer of SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
    Generators", OOPSLA 2014) with the constants of Stafford's mix 13.
    """
    mixed = values ^ (values >> np.uint64(30))
    mixed *= np.uint64(_MIX_FIRST)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(_MIX_SECOND)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def siphash_13(values: npt.NDArray[np.uint64], first: int, second: int) -> npt.NDArray[np.uint64]:
    """Return the SipHash-1-3 of the 8 bytes (little-endian) of each value, with the key ``first``, ``second``.

    Source: Aumasson, Bernstein, "SipHash: A Fast Short-Input PRF" (INDOCRYPT 2012), with one round for each word of the
    input and three at the end.
    """
    hashed = np.empty_like(values)
    for start in range(0, len(values), _SIP_VALUES):
        piece = slice(start, start + _SIP_VALUES)
        hashed[piece] = _siphash_13(values[piece], first, second)
    return hashed


def _siphash_13(values: npt.NDArray[np.uint64], first: int, second: int) -> npt.NDArray[np.uint64]:
    a, b, c, d = (
        np.full(len(values), start ^ half, np.uint64)
        for start, half in zip(_SIP_START, (first, second, first, second), strict=True)
    )
    d ^= values
    _sip_round(a, b, c, d)
    a ^= values
    d ^= _SIP_LENGTH
    _sip_round(a, b, c, d)
    a ^= _SIP_LENGTH
    c ^= _SIP_END
    for _ in range(3):
        _sip_round(a, b, c, d)
    return a ^ b ^ c ^ d


def _sip_round(
    a: npt.NDArray[np.uint64], b: npt.NDArray[np.uint64], c: npt.NDArray[np.uint64], d: npt.NDArray[np.uint64]
) -> None:
    """Apply one round of SipHash to its state, in place."""
    a += b
    _rotate(b, 13)
    b ^= a
    _rotate(a, 32)
    c += d
    _rotate(d, 16)
    d ^= c
    a += d
    _rotate(d, 21)
    d ^= a
    c += b
    _rotate(b, 17)
    b ^= c
    _rotate(c, 32)


def _rotate(values: npt.NDArray[np.uint64], bits: int) -> None:
    high = values << np.uint64(bits)
    values >>= np.uint64(64 - bits)
    values |= high
