"""
How long a text becomes when it is folded, known before it is: one character can become eighteen.

The length is the sum of what each character becomes by itself. Folding may join characters afterwards, so it is an
upper bound, and for all but a few characters in a million the exact length.
"""

import unicodedata
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

# All characters outside of these become one character at most; a test asks every code point.
_GROWING: Final = (
    (0x00A0, 0x3400),
    (0xFB00, 0xFFF0),
    (0x1D100, 0x1D200),
    (0x1F100, 0x1F300),
)
_CODE_POINTS: Final = 0x110000
GROWTH_MAX: Final = 18
"""What U+FDFA becomes, the longest of all."""


def folded_length(text: str) -> int:
    """Tell how many characters a text has after folding, within memory of four bytes for each it has before."""
    if text.isascii():
        return len(text)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    return int(_lengths()[codes].sum(dtype=np.int64))


@cache
def _lengths() -> npt.NDArray[np.uint8]:
    """Tell for every code point how many characters it becomes, 1 where that is none."""
    lengths = np.ones(_CODE_POINTS, dtype=np.uint8)
    for first, end in _GROWING:
        lengths[first:end] = [_length(chr(code)) for code in range(first, end)]
    return lengths


def _length(character: str) -> int:
    composed = unicodedata.normalize("NFKC", character).casefold()
    return max(1, len(unicodedata.normalize("NFKC", composed)))
