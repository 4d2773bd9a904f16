"""Word hashes of published SimHash programs: multiply-xor, Jenkins' lookup3, MD5 and SHA-1.

Sources:

- Multiply-xor: ``string_hash`` of CPython up to 3.2, with the multiplier 1000003. Several programs adopted it, and some
  widened it to 128 bits. A Java program hashes UTF-16 units, so its hashes differ beyond U+FFFF.
- lookup3: Bob Jenkins, lookup3.c (May 2006, public domain), burtleburtle.net/bob/c/lookup3.c, function ``hashlittle2``.
- MD5 and SHA-1: RFC 1321 and FIPS 180-4. Programs use their leading bits for an even spread, not for security.
"""

import hashlib
import struct
from collections.abc import Sequence
from typing import Final

import numpy as np

_MULTIPLIER: Final = 1000003
_FIRST_SHIFT: Final = 7
_MASK_32: Final = 0xFFFFFFFF
_INITIAL: Final = 0xDEADBEEF
_BLOCK_BYTES: Final = 12
# The rotations of the mixing steps; a, b and c take turns.
_MIX_ROTATIONS: Final = (4, 6, 8, 16, 19, 4)
_FINAL_ROTATIONS: Final = (14, 11, 25, 16, 4, 14, 24)


def multiply_xor(units: Sequence[int], bits: int) -> int:
    """Return the hash of a string's units, modulo 2 to the power of ``bits``; 0 without units.

    It starts with x = first unit × 2⁷, sets x = x × 1000003 xor unit for each unit, and ends with x xor the length.
    """
    if not units:
        return 0
    mask = (1 << bits) - 1
    state = units[0] << _FIRST_SHIFT & mask
    for unit in units:
        state = (state * _MULTIPLIER ^ unit) & mask
    return state ^ len(units)


def code_points(text: str) -> list[int]:
    """Return the code points of a text."""
    return list(map(ord, text))


def utf16_units(text: str) -> list[int]:
    """Return the UTF-16 units of a text. Raises ``UnicodeEncodeError`` for a lone surrogate."""
    units: list[int] = np.frombuffer(text.encode("utf-16-le"), dtype="<u2").tolist()
    return units


def multiply_xor_64(word: str) -> int:
    """Return the 64-bit hash of a word's code points."""
    return multiply_xor(code_points(word), 64)


def multiply_xor_128(word: str) -> int:
    """Return the 128-bit hash of a word's code points."""
    return multiply_xor(code_points(word), 128)


def multiply_xor_utf16_64(word: str) -> int:
    """Return the 64-bit hash of a word's UTF-16 units."""
    return multiply_xor(utf16_units(word), 64)


def multiply_xor_utf16_128(word: str) -> int:
    """Return the 128-bit hash of a word's UTF-16 units."""
    return multiply_xor(utf16_units(word), 128)


def hashlittle2(data: bytes, primary: int = 0, secondary: int = 0) -> tuple[int, int]:
    """Return the two 32-bit hashes of bytes, the primary first; the other arguments are the initial values."""
    a = b = c = (_INITIAL + len(data) + primary) & _MASK_32
    c = (c + secondary) & _MASK_32
    if not data:
        return c, b
    # The last block, full or not, is mixed differently from the blocks before it; missing bytes count as zeros.
    padded = data.ljust(-(-len(data) // _BLOCK_BYTES) * _BLOCK_BYTES, b"\0")
    *blocks, last = struct.iter_unpack("<III", padded)
    for block in blocks:
        a, b, c = _mix(*_add((a, b, c), block))
    return _finish(*_add((a, b, c), last))


def jenkins_64(word: str) -> int:
    """Return the 64-bit hash of a word in UTF-8: primary × 2³² + secondary, with initial values of 0."""
    primary, secondary = hashlittle2(word.encode())
    return primary << 32 | secondary


def _add(state: tuple[int, int, int], block: tuple[int, int, int]) -> tuple[int, int, int]:
    return (state[0] + block[0]) & _MASK_32, (state[1] + block[1]) & _MASK_32, (state[2] + block[2]) & _MASK_32


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    for rotation in _MIX_ROTATIONS:
        a = (a - c & _MASK_32) ^ _rotate(c, rotation)
        c = (c + b) & _MASK_32
        a, b, c = b, c, a
    return a, b, c


def _finish(a: int, b: int, c: int) -> tuple[int, int]:
    for rotation in _FINAL_ROTATIONS:
        c = ((c ^ b) - _rotate(b, rotation)) & _MASK_32
        a, b, c = b, c, a
    # After seven steps the three have moved by one place: b and a now hold the final c and b.
    return b, a


def _rotate(value: int, places: int) -> int:
    return (value << places | value >> 32 - places) & _MASK_32


def md5_64(word: str) -> int:
    """Return the leading 64 bits of the MD5 of a word in UTF-8."""
    return md5_128(word) >> 64


def md5_128(word: str) -> int:
    """Return the MD5 of a word in UTF-8."""
    return int.from_bytes(hashlib.md5(word.encode(), usedforsecurity=False).digest())


def sha1_64(word: str) -> int:
    """Return the leading 64 bits of the SHA-1 of a word in UTF-8."""
    return sha1_128(word) >> 64


def sha1_128(word: str) -> int:
    """Return the leading 128 of the 160 bits of the SHA-1 of a word in UTF-8."""
    return int.from_bytes(hashlib.sha1(word.encode(), usedforsecurity=False).digest()[:16])
