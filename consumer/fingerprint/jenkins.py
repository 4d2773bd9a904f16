"""Jenkins' lookup3, the function ``hashlittle2``.

Source: Bob Jenkins, lookup3.c (May 2006, public domain), burtleburtle.net/bob/c/lookup3.c.
"""

import struct
from typing import Final

_MASK_32: Final = 0xFFFFFFFF
_INITIAL: Final = 0xDEADBEEF
_BLOCK_BYTES: Final = 12
# The rotations of the mixing steps; a, b and c take turns.
_MIX_ROTATIONS: Final = (4, 6, 8, 16, 19, 4)
_FINAL_ROTATIONS: Final = (14, 11, 25, 16, 4, 14, 24)


def hashlittle2(data: bytes, primary: int = 0, secondary: int = 0) -> tuple[int, int]:
    """Hash bytes to two numbers of 32 bits, the primary first; the other arguments are the initial values."""
    a = b = c = (_INITIAL + len(data) + primary) & _MASK_32
    c = (c + secondary) & _MASK_32
    if not data:
        return c, b
    # The last block, full or not, is mixed differently from those before it; missing bytes count as zeros.
    padded = data.ljust(-(-len(data) // _BLOCK_BYTES) * _BLOCK_BYTES, b"\0")
    *blocks, last = struct.iter_unpack("<III", padded)
    for block in blocks:
        a, b, c = _mixed(*_added((a, b, c), block))
    return _finished(*_added((a, b, c), last))


def jenkins_64(word: str) -> int:
    """Hash the UTF-8 of a word to 64 bits: primary × 2³² + secondary, both initial values 0."""
    primary, secondary = hashlittle2(word.encode())
    return primary << 32 | secondary


def _added(state: tuple[int, int, int], block: tuple[int, int, int]) -> tuple[int, int, int]:
    return (state[0] + block[0]) & _MASK_32, (state[1] + block[1]) & _MASK_32, (state[2] + block[2]) & _MASK_32


def _mixed(a: int, b: int, c: int) -> tuple[int, int, int]:
    for rotation in _MIX_ROTATIONS:
        a = (a - c & _MASK_32) ^ _rotated(c, rotation)
        c = (c + b) & _MASK_32
        a, b, c = b, c, a
    return a, b, c


def _finished(a: int, b: int, c: int) -> tuple[int, int]:
    for rotation in _FINAL_ROTATIONS:
        c = ((c ^ b) - _rotated(b, rotation)) & _MASK_32
        a, b, c = b, c, a
    # After seven steps the three are rotated by one place.
    return b, a


def _rotated(value: int, places: int) -> int:
    return (value << places | value >> 32 - places) & _MASK_32
