"""The multiply-xor string hash with the multiplier 1000003, over code points or over UTF-16 units.

Source: ``string_hash`` of CPython up to 3.2, which several SimHash programs adopted; some widened it to 128 bits for
longer fingerprints. A Java program sees UTF-16 units, so that its hashes differ beyond U+FFFF.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

_MULTIPLIER: Final = 1000003
_FIRST_SHIFT: Final = 7


def multiply_xor(units: Sequence[int], bits: int) -> int:
    """Hash units of a string to ``bits`` bits: x = first × 2⁷, then x × 1000003 xor unit, last xor length; none: 0."""
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
    """Hash the code points of a word to 64 bits."""
    return multiply_xor(code_points(word), 64)


def multiply_xor_128(word: str) -> int:
    """Hash the code points of a word to 128 bits."""
    return multiply_xor(code_points(word), 128)


def multiply_xor_utf16_64(word: str) -> int:
    """Hash the UTF-16 units of a word to 64 bits."""
    return multiply_xor(utf16_units(word), 64)


def multiply_xor_utf16_128(word: str) -> int:
    """Hash the UTF-16 units of a word to 128 bits."""
    return multiply_xor(utf16_units(word), 128)
