"""The course of a run (when each article was due, was sent and got its verdict), and a report of its figures."""

import threading
from collections import Counter
from dataclasses import dataclass, field
from math import nan
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9, 100.0)
LATE_S: Final = 0.010
"""An article sent later than this after it was due is counted as late."""
NAMED_MAX: Final = 5
"""The maximum number of articles without a verdict that a report names."""


class WaitPercentiles(NamedTuple):
    """The number of articles, and percentiles of the seconds from due to verdict, which are nan without articles."""

    articles: int
    p50: float
    p90: float
    p99: float
    p99_9: float
    longest: float


class Report(NamedTuple):
    """The figures of a run.

    ``waits`` leaves out the warm-up, and all articles without a verdict; ``minutes`` has the waits of each minute,
    warm-up included. The other fields count all articles. ``copies_flagged`` counts copies with a flag, and
    ``originals_flagged`` other articles with one. ``late_by_s`` is the longest delay in sending. ``refused`` counts
    refusals by HTTP status, and ``failed`` other failures by reason. ``missing`` are the ids of sent articles without a
    verdict, refused and failed ones included. ``foreign`` counts verdicts of other articles in the topic, ``repeated``
    further verdicts of the same articles.
    """

    waits: WaitPercentiles
    minutes: tuple[WaitPercentiles, ...]
    planned: int
    sent: int
    copies: int
    copies_flagged: int
    originals_flagged: int
    late: int
    late_by_s: float
    refused: dict[int, int]
    failed: dict[str, int]
    missing: tuple[str, ...]
    foreign: int
    repeated: int


@dataclass(slots=True)
class Trial:
    """A run while it lasts. Senders and readers on different threads note what happens.

    ``due_s`` has the time at which each article is due, in seconds from the start, and ``is_copy`` whether it repeats
    another. Ids are ``prefix``, a hyphen, and the number of the article.
    """

    prefix: str
    due_s: npt.NDArray[np.float64]
    is_copy: npt.NDArray[np.bool_] = field(init=False)
    sent_s: npt.NDArray[np.float64] = field(init=False)
    answered_s: npt.NDArray[np.float64] = field(init=False)
    flagged: npt.NDArray[np.bool_] = field(init=False)
    refused: Counter[int] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    answers: int = 0
    given_up: int = 0
    foreign: int = 0
    repeated: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.sent_s = np.full(len(self.due_s), np.nan)
        self.answered_s = np.full(len(self.due_s), np.nan)
        self.is_copy = np.zeros(len(self.due_s), np.bool_)
        self.flagged = np.zeros(len(self.due_s), np.bool_)

    def note_sent(self, number: int, at_s: float) -> None:
        """Note that an article is being sent, ``at_s`` seconds after the start."""
        self.sent_s[number] = at_s

    def note_verdict(self, article_id: str, at_s: float, *, is_flag: bool) -> bool:
        """Note a verdict, and return whether it is the first one of an article of this run."""
        prefix, _, number = article_id.rpartition("-")
        with self._lock:
            if prefix != self.prefix or not number.isdecimal() or int(number) >= len(self.due_s):
                self.foreign += 1
                return False
            place = int(number)
            if not np.isnan(self.answered_s[place]):
                self.repeated += 1
                return False
            self.answered_s[place] = at_s
            self.flagged[place] = is_flag
            self.answers += 1
            return True

    def note_refused(self, status: int) -> None:
        """Note that the service refused an article."""
        with self._lock:
            self.refused[status] += 1
            self.given_up += 1

    def note_failed(self, reason: str) -> None:
        """Note that an article could not be sent, or that its answer did not come."""
        with self._lock:
            self.failed[reason] += 1
            self.given_up += 1

    @property
    def open(self) -> int:
        """The number of planned articles that have no answer yet."""
        return len(self.due_s) - self.answers - self.given_up

    def report(self, warm_up_s: float = 0.0) -> Report:
        """Return the figures. The waits leave out articles that were due before ``warm_up_s``."""
        is_sent = ~np.isnan(self.sent_s)
        has_verdict = ~np.isnan(self.answered_s)
        delays_s = (self.sent_s - self.due_s)[is_sent]
        counts = has_verdict & (self.due_s >= warm_up_s)
        minutes = (self.due_s // 60).astype(int)
        waits_s = self.answered_s - self.due_s
        return Report(
            waits=wait_percentiles(waits_s[counts]),
            minutes=tuple(
                wait_percentiles(waits_s[has_verdict & (minutes == minute)]) for minute in np.unique(minutes)
            ),
            planned=len(self.due_s),
            sent=int(is_sent.sum()),
            copies=int((self.is_copy & is_sent).sum()),
            copies_flagged=int((self.flagged & self.is_copy).sum()),
            originals_flagged=int((self.flagged & ~self.is_copy).sum()),
            late=int((delays_s > LATE_S).sum()),
            late_by_s=float(delays_s.max(initial=0.0)),
            refused=dict(self.refused),
            failed=dict(self.failed),
            missing=tuple(f"{self.prefix}-{number}" for number in np.flatnonzero(is_sent & ~has_verdict)),
            foreign=self.foreign,
            repeated=self.repeated,
        )


def wait_percentiles(seconds: npt.NDArray[np.float64]) -> WaitPercentiles:
    """Return the percentiles of these waits: p90 is the smallest wait that 90 % of the articles do not exceed."""
    if not len(seconds):
        return WaitPercentiles(0, nan, nan, nan, nan, nan)
    # Rounded because floating-point errors make 99.9 % of 41,000 a little more than 40,959.
    ranks = np.ceil(np.round(len(seconds) * np.array(PERCENTILES) / 100, 6)).astype(int)
    p50, p90, p99, p99_9, longest = np.sort(seconds)[ranks - 1].tolist()
    return WaitPercentiles(len(seconds), p50, p90, p99, p99_9, longest)
