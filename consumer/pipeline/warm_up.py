"""Warms up a store before the first batch: looks up made-up articles until look-ups get no faster. Writes nothing.

Newly started servers of a store compile their code while they answer, and connections are made on first use. Without a
warm-up, the first batches take ten times as long as later ones. A warm-up takes seven rounds if the servers are already
warm, and one round if the store is empty.
"""

import time
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.fingerprint import Fingerprints, TextKind
from consumer.fingerprint.engine import TEXT_DIGEST_BYTES
from consumer.judge.search import Search
from consumer.judge.settings import JudgeSettings
from consumer.judge.tally import Tally
from consumer.judge.verdict_cells import VerdictCells
from consumer.judge.versions import ArrivalTime, VersionBuilder
from consumer.model.article import Article
from storage.interface import Store

ROUND_ARTICLES: Final = 256
_STEADY_RATIO: Final = 0.9
_STEADY_ROUNDS: Final = 6


class WarmUpResult(NamedTuple):
    """The number of rounds, and the seconds that the first and the fastest took."""

    rounds: int
    first_s: float
    fastest_s: float


def warm_up(
    look_up: Callable[[], bool], seconds_max: float, clock: Callable[[], float] = time.monotonic
) -> WarmUpResult:
    """Repeat a look-up until six in a row were less than a tenth faster than the fastest before, or time is up.

    ``look_up`` returns whether another round is useful; if not, its round is the last one.
    """
    until_s = clock() + seconds_max
    rounds_s: list[float] = []
    steady = 0
    useful = True
    while useful and steady < _STEADY_ROUNDS and clock() < until_s:
        began_s = clock()
        useful = look_up()
        round_s = clock() - began_s
        steady = steady + 1 if rounds_s and round_s > _STEADY_RATIO * min(rounds_s) else 0
        rounds_s.append(round_s)
    return WarmUpResult(len(rounds_s), rounds_s[0] if rounds_s else 0.0, min(rounds_s, default=0.0))


class RandomLookUps:
    """Look-ups of random fingerprints, as of articles that have just arrived."""

    def __init__(self, store: Store, settings: JudgeSettings) -> None:
        self._builder = VersionBuilder(settings.scheme.name, settings.plan, settings.lane1)
        self._code_words = settings.scheme.bits // 64
        self._bands = settings.scheme.sketch.bands
        # A separate tally, because these articles do not belong to the feed.
        self._tally = Tally()
        self._search = Search(store, settings, self._tally, VerdictCells(store, self._tally))
        self._bins = settings.scheme.sketch.bins
        # The same numbers in each run, so that the duration of the warm-up does not depend on luck.
        self._random = np.random.default_rng(1)

    def look_up(self) -> bool:
        """Look up made-up articles; return whether the rows read so far have at least one posting on average.

        Raises the store's errors.
        """
        versions = self._builder.versions(
            [Article(id=str(number), body="") for number in range(ROUND_ARTICLES)],
            [ArrivalTime(0, number) for number in range(ROUND_ARTICLES)],
            self._fingerprints(),
        )
        records = [version.record for version in versions]
        self._search.look_up_unstored(records)
        return self._tally.postings_read >= self._tally.row_reads

    def _fingerprints(self) -> Fingerprints:
        return Fingerprints(
            codes=self._numbers(self._code_words),
            sketches=self._random.integers(0, 256, (ROUND_ARTICLES, self._bins), np.uint8),
            one_bits=self._numbers(1)[:, 0],
            bands=self._numbers(self._bands),
            keywords=((),) * ROUND_ARTICLES,
            kinds=np.full(ROUND_ARTICLES, TextKind.LONG, np.uint8),
            text_digests=self._random.integers(0, 256, (ROUND_ARTICLES, TEXT_DIGEST_BYTES), np.uint8),
            keyword_counts=np.full(ROUND_ARTICLES, 100),
        )

    def _numbers(self, columns: int) -> npt.NDArray[np.uint64]:
        return self._random.integers(0, 1 << 64, (ROUND_ARTICLES, columns), np.uint64)
