"""How many records of a partition or a feed may be bad, counted over a window of the last records."""

from dataclasses import dataclass
from typing import Final

Window = tuple[tuple[int, int], ...]
"""Pairs of counts: records, and bad ones among them; the oldest first."""

_PARTS: Final = 20
WINDOW_COUNTS_MAX: Final = _PARTS + 2
"""The largest number of counts in a window."""


@dataclass(frozen=True, slots=True)
class PoisonLimit:
    """More bad records than ``share_max`` of the last ``records_min`` records, or of slightly more, are too many.

    To keep windows small however small batches are, a count covers several batches until it has a 20th of
    ``records_min``. The oldest count is dropped as soon as the others have ``records_min`` records without it.
    """

    share_max: float
    records_min: int

    def after(self, window: Window, records: int, bad: int) -> Window:
        """Return the window after these records."""
        if not records:
            return window
        counts = [*window]
        if counts and counts[-1][0] < self.records_min / _PARTS:
            last = counts.pop()
            records, bad = records + last[0], bad + last[1]
        counts.append((records, bad))
        seen = sum(count for count, _ in counts)
        # A window from a run with a larger limit may have more counts than are kept.
        while seen - counts[0][0] >= self.records_min or len(counts) > WINDOW_COUNTS_MAX:
            seen -= counts.pop(0)[0]
        return tuple(counts)

    def exceeded(self, window: Window) -> bool:
        """Return whether too many records of a window are bad."""
        records, bad = totals(window)
        return records >= self.records_min and bad > self.share_max * records


def totals(window: Window) -> tuple[int, int]:
    """Return how many records a window has, and how many of them are bad."""
    return sum(records for records, _ in window), sum(bad for _, bad in window)
