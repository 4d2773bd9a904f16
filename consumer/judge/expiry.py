"""By which time a run has the store delete what has left the window: never by a clock that may be wrong."""

import logging
from datetime import timedelta
from typing import Final, NamedTuple

from consumer.judge.judge import Judge
from storage.clock import MS_PER_S, Clock

HOLD_S: Final = 3_600
"""How long a run that begins more than a window after the newest article deletes nothing that was in the window then.

Time to notice that the clock is wrong, to correct it, and to begin again with everything still there.
"""
SWEEP_FACTOR: Final = 4
"""A batch sweeps away up to this many times its own size, so that a backlog shrinks."""
_ALL_TIME_MS: Final = 1 << 62

log = logging.getLogger("dupwatch")


class _Hold(NamedTuple):
    """Until then, articles expire as they did at the newest arrival before the run."""

    newest_ms: int
    until_ms: int


class Expiry:
    """Sweeps a store after each batch, for one run.

    ``window_ms`` is the window, ``keep_ms`` the window and the slack: how long an article is kept. Not thread-safe.
    """

    def __init__(self, judge: Judge, clock: Clock, window_ms: int, keep_ms: int) -> None:
        self._judge = judge
        self._clock = clock
        self._window_ms = window_ms
        self._hold: _Hold | None = None
        self._has_begun = False
        self.keep_ms = keep_ms

    def begin(self) -> None:
        """Compare the clock with the store, once; called before anything is judged. Raises the store's errors."""
        if not self._has_begun:
            self._compare()
            self._has_begun = True

    def sweep(self, newest_ms: int, arrived: int) -> None:
        """Delete what has left the window; called after a batch of this many articles, with their newest arrival.

        Nothing expires by a time ahead of the clock. Raises the store's errors.
        """
        by_ms = min(newest_ms, self._by_ms())
        self._judge.sweep(by_ms - self.keep_ms, SWEEP_FACTOR * arrived)
        self._judge.forget(by_ms, SWEEP_FACTOR * arrived)

    def _compare(self) -> None:
        now_ms = self._clock()
        newest_ms = self._judge.newest_ms(_ALL_TIME_MS)
        if newest_ms is not None and newest_ms - now_ms > self._window_ms:
            log.warning(
                "The newest article of the store is dated %s ahead of the clock of this machine, more than the window "
                "of %s, so articles that come now are not compared with it. If the clock is wrong, stop, correct it "
                "and start again. If it was wrong when that article came, there is nothing to do.",
                _span(newest_ms - now_ms),
                _span(self._window_ms),
            )
        # What came since a start within the last hour says nothing: its clock may have been wrong already.
        recent_ms = min(HOLD_S * MS_PER_S, self._window_ms // 2)
        earlier_ms = self._judge.newest_ms(now_ms - recent_ms)
        if earlier_ms is None or now_ms - earlier_ms <= self._window_ms:
            return
        self._hold = _Hold(earlier_ms, now_ms + HOLD_S * MS_PER_S)
        log.warning(
            "The newest article of the store, apart from the last %s, came %s ago, more than the window of %s. If the "
            "clock of this machine is wrong, stop, correct it and start again: for %s nothing expires that was in the "
            "window then. If the feed has only paused, there is nothing to do.",
            _span(recent_ms),
            _span(now_ms - earlier_ms),
            _span(self._window_ms),
            _span(HOLD_S * MS_PER_S),
        )

    def _by_ms(self) -> int:
        now_ms = self._clock()
        if self._hold is not None and now_ms >= self._hold.until_ms:
            self._hold = None
            log.info("Articles expire by the present time again.")
        return now_ms if self._hold is None else self._hold.newest_ms


def _span(ms: int) -> str:
    return str(timedelta(seconds=ms // MS_PER_S))
