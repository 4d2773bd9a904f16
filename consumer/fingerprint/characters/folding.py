"""Computes the length of a text after folding, without folding it, because one character can become eighteen.

The result is the sum of the lengths of the folded characters. Folding may then compose characters, so the sum is an
upper bound. It is exact except for a few characters in a million.
"""

import unicodedata
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

# Blocks with characters that become several; a test checks that no other character does.
_GROWING: Final = (
    (0x00A0, 0x3400),
    (0xFB00, 0xFFF0),
    (0x1D100, 0x1D200),
    (0x1F100, 0x1F300),
)
_CODE_POINTS: Final = 0x110000
GROWTH_MAX: Final = 18
"""The maximum length of a folded character, that of U+FDFA."""


def folded_length(text: str) -> int:
    """Return the number of characters of a text after folding, or slightly more. Needs 5 bytes per character."""
    if text.isascii():
        return len(text)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    return int(_lengths()[codes].sum(dtype=np.int64))


@cache
def _lengths() -> npt.NDArray[np.uint8]:
    """Return the number of characters that each code point becomes, at least 1."""
    lengths = np.ones(_CODE_POINTS, dtype=np.uint8)
    for first, end in _GROWING:
        lengths[first:end] = [_length(chr(code)) for code in range(first, end)]
    return lengths


def _length(character: str) -> int:
    composed = unicodedata.normalize("NFKC", character).casefold()
    return max(1, len(unicodedata.normalize("NFKC", composed)))
