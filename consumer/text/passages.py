"""Finds the passages of a text that stand word for word in another one, wherever they stand there.

Runs of ``RUN_CHARS`` characters are looked up by hash; those that both texts have are joined. Time and memory grow with
the length of the texts, whatever they say. ``diff`` aligns two texts from end to end instead.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

RUN_CHARS: Final = 16
"""Runs that are looked up."""
PASSAGE_CHARS_MIN: Final = 40
"""Shorter passages are figures of speech."""
_BASE: Final = np.uint64(0x9E3779B97F4A7C15)


class Passage(NamedTuple):
    """A passage: where it begins in the text, in characters, and what it says."""

    at: int
    text: str

    @property
    def end(self) -> int:
        """Where the text goes on."""
        return self.at + len(self.text)


def passages(text: str, other: str) -> list[Passage]:
    """Return the passages of ``text`` that stand in ``other``, in order. They neither overlap nor touch."""
    ours, theirs = run_hashes(text), run_hashes(other)
    starts = np.flatnonzero(np.isin(ours, theirs))
    if not len(starts):
        return []
    # A passage ends where the next run that both texts have begins behind it.
    breaks = np.flatnonzero(np.diff(starts) > RUN_CHARS)
    begins, ends = starts[np.append(0, breaks + 1)], starts[np.append(breaks, len(starts) - 1)] + RUN_CHARS
    spans = zip(begins.tolist(), ends.tolist(), strict=True)
    return [Passage(at, text[at:end]) for at, end in spans if end - at >= PASSAGE_CHARS_MIN]


def run_hashes(text: str, size: int = RUN_CHARS) -> NDArray[np.uint64]:
    """Return the hash of the run of ``size`` characters that begins at each one, uint64[characters - size + 1]."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64) + np.uint64(1)
    count = max(len(codes) - size + 1, 0)
    hashes = np.zeros(count, np.uint64)
    for place in range(size):
        hashes = hashes * _BASE + codes[place : place + count]
    return hashes
