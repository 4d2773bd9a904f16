"""Histograms: counts of values in a few buckets, in constant memory."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from threading import Lock
from typing import Final

COUNT_BOUNDS: Final = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
"""Upper bounds of the buckets for counts. All bounds are inclusive."""
SHARE_BOUNDS: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 1.0)
"""Upper bounds of the buckets for similarities, closer together where thresholds are set."""


class Histogram:
    """The number of values up to each of the ascending ``bounds``, and above the last one. Thread-safe.

    ``count`` is the number of all values, and ``total`` is their sum.

    ``add`` loops over a plain list: batches are small, and numpy pays off only from about a hundred values.
    """

    __slots__ = ("_counts", "_lock", "bounds", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.total = 0.0
        self._lock = Lock()
        self._counts = [0] * (len(self.bounds) + 1)

    def add(self, values: Iterable[float]) -> None:
        """Count these values."""
        bounds, counts = self.bounds, self._counts
        with self._lock:
            for value in values:
                counts[bisect_left(bounds, value)] += 1
                self.total += value

    def merge(self, other: "Histogram") -> None:
        """Add the counts of a histogram with the same bounds, which no other thread may change in the meantime."""
        with self._lock:
            self._counts = [sum(pair) for pair in zip(self._counts, other._counts, strict=True)]  # noqa: SLF001  # of the same class
            self.total += other.total

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(self._counts)

    def cumulative(self) -> list[int]:
        """Return the number of values up to each bound, followed by the number of all values."""
        return list(accumulate(self._counts))
