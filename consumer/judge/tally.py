"""Counts the costs and results of judging, for metrics and summaries."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Final, NamedTuple

from consumer.model.histogram import COUNT_BOUNDS, SHARE_BOUNDS, Histogram


class Cost(NamedTuple):
    """The cost of judging: counts of articles and postings, and seconds."""

    versions: int
    postings_read: int
    look_up_s: float
    settle_s: float

    def since(self, earlier: "Cost") -> "Cost":
        """Return the cost since ``earlier``."""
        return Cost(
            self.versions - earlier.versions,
            self.postings_read - earlier.postings_read,
            self.look_up_s - earlier.look_up_s,
            self.settle_s - earlier.settle_s,
        )


def _of_counts() -> Histogram:
    return Histogram(COUNT_BOUNDS)


@dataclass(slots=True)
class Tally:
    """The counts and times of a detector or an attempt.

    ``candidates``, ``suspects`` and ``verifications`` are distributions over articles, ``similarities`` over the pairs
    that were compared. ``look_up_s`` is the time spent looking up; ``settle_s`` is the rest of judging, mostly writing.
    """

    versions: int = 0
    kept: int = 0
    duplicates: int = 0
    retractions: int = 0
    without_keywords: int = 0
    seen_before: int = 0
    with_parts: int = 0
    ended_before: int = 0
    near_misses: int = 0
    part_row_reads: int = 0
    part_postings_read: int = 0
    common_anchors: int = 0
    replays: int = 0
    returned: int = 0
    stretches_limited: int = 0
    known_copies: int = 0
    row_reads: int = 0
    postings_read: int = 0
    sketch_reads: int = 0
    record_reads: int = 0
    lost_compare_and_sets: int = 0
    truncated: int = 0
    crowded_rows: int = 0
    crowded_articles: int = 0
    floods: int = 0
    flood_copies: int = 0
    candidates: Histogram = field(default_factory=_of_counts)
    suspects: Histogram = field(default_factory=_of_counts)
    verifications: Histogram = field(default_factory=_of_counts)
    similarities: Histogram = field(default_factory=partial(Histogram, SHARE_BOUNDS))
    look_up_s: float = 0.0
    settle_s: float = 0.0

    def add(self, other: "Tally") -> None:
        """Add the counts and times of another tally."""
        for name in _NAMES:
            value, addend = getattr(self, name), getattr(other, name)
            if isinstance(value, Histogram):
                value.merge(addend)
            else:
                setattr(self, name, value + addend)

    def cost(self) -> Cost:
        """Return the counts and times that make up the cost of judging."""
        return Cost(self.versions, self.postings_read, self.look_up_s, self.settle_s)

    @contextmanager
    def looking_up(self) -> Iterator[None]:
        """Add the time spent inside to ``look_up_s``, even after an error."""
        began_s = time.perf_counter()
        try:
            yield
        finally:
            self.look_up_s += time.perf_counter() - began_s

    @contextmanager
    def settling(self) -> Iterator[None]:
        """Add the time spent inside to ``settle_s``, excluding time counted by ``looking_up``."""
        began_s, looked_up_s = time.perf_counter(), self.look_up_s
        try:
            yield
        finally:
            looked_up_s = self.look_up_s - looked_up_s
            self.settle_s += time.perf_counter() - began_s - looked_up_s


_NAMES: Final = tuple(counter.name for counter in fields(Tally))
