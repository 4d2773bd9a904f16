"""Finds the passages of a text that repeat another text word for word, in one piece or several.

Runs of ``RUN_CHARS`` characters are looked up by hash. Common runs that touch or overlap are joined into a passage,
even if they are apart in the other text. Time and memory grow linearly with the length of the texts. ``diff`` aligns
two texts from end to end instead.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

RUN_CHARS: Final = 16
"""The length of the runs that are looked up."""
PASSAGE_CHARS_MIN: Final = 40
"""Shorter passages are phrases, and not reported."""
_BASE: Final = np.uint64(0x9E3779B97F4A7C15)


class Passage(NamedTuple):
    """A passage: its offset in the text, in characters, and its text."""

    at: int
    text: str

    @property
    def end(self) -> int:
        """The offset after the passage."""
        return self.at + len(self.text)


def passages(text: str, other: str) -> list[Passage]:
    """Return the passages of ``text`` whose runs occur in ``other``, in order. Passages neither overlap nor touch."""
    ours, theirs = run_hashes(text), run_hashes(other)
    starts = np.flatnonzero(np.isin(ours, theirs))
    if not len(starts):
        return []
    # A passage ends if the next common run begins after the passage's end.
    breaks = np.flatnonzero(np.diff(starts) > RUN_CHARS)
    begins, ends = starts[np.append(0, breaks + 1)], starts[np.append(breaks, len(starts) - 1)] + RUN_CHARS
    spans = zip(begins.tolist(), ends.tolist(), strict=True)
    return [Passage(at, text[at:end]) for at, end in spans if end - at >= PASSAGE_CHARS_MIN]


def run_hashes(text: str, size: int = RUN_CHARS) -> NDArray[np.uint64]:
    """Return the hashes of all runs of ``size`` characters, uint64[characters - size + 1]."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64) + np.uint64(1)
    count = max(len(codes) - size + 1, 0)
    hashes = np.zeros(count, np.uint64)
    for place in range(size):
        hashes = hashes * _BASE + codes[place : place + count]
    return hashes
