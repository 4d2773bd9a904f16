"""Decides when a run deletes articles that have left the window, and guards against a wrong clock."""

import logging
from datetime import timedelta
from typing import Final, NamedTuple

from consumer.judge.judge import Judge
from storage.clock import MS_PER_S, Clock

HOLD_S: Final = 3_600
"""If a run begins more than a window after the newest article, it keeps that article's window for this long.

This leaves time to notice that the clock is wrong, correct it, and start again without losing articles.
"""
SWEEP_FACTOR: Final = 4
"""After each batch, at most this many times its number of articles are deleted, so that a backlog shrinks."""
_ALL_TIME_MS: Final = 1 << 62

log = logging.getLogger("dupwatch")


class _Hold(NamedTuple):
    """A pause of expiry: until ``until_ms`` articles expire as of ``newest_ms``.

    That is the newest arrival before the run, not counting those shortly before it.
    """

    newest_ms: int
    until_ms: int


class Expiry:
    """The expiry of one run: sweeps the store after each batch. Not thread-safe.

    ``window_ms`` is the window. ``keep_ms`` is how long an article is kept: the window plus the slack.
    """

    def __init__(self, judge: Judge, clock: Clock, window_ms: int, keep_ms: int) -> None:
        self._judge = judge
        self._clock = clock
        self._window_ms = window_ms
        self._hold: _Hold | None = None
        self._has_begun = False
        self.keep_ms = keep_ms

    def begin(self) -> None:
        """Compare the clock with the store, once, before anything is judged. Raises the store's errors."""
        if not self._has_begun:
            self._check_clock()
            self._has_begun = True

    def sweep(self, newest_ms: int, arrived: int) -> None:
        """Delete articles that have been kept for ``keep_ms``, and forget expired texts. Called after each batch.

        ``newest_ms`` is the newest arrival in the batch, ``arrived`` its number of articles. An arrival ahead of the
        clock counts as the clock's time. Raises the store's errors.
        """
        expiry_ms = min(newest_ms, self._expiry_ms())
        self._judge.sweep(expiry_ms - self.keep_ms, SWEEP_FACTOR * arrived)
        self._judge.forget_texts(expiry_ms, SWEEP_FACTOR * arrived)

    def _check_clock(self) -> None:
        now_ms = self._clock()
        newest_ms = self._judge.newest_ms(_ALL_TIME_MS)
        if newest_ms is not None and newest_ms - now_ms > self._window_ms:
            log.warning(
                "The newest article in the store is dated %s ahead of the clock of this machine, more than the window "
                "of %s, so new articles are not compared with it. If the clock is wrong, stop, correct it and start "
                "again. If it was wrong when that article arrived, there is nothing to do.",
                _span(newest_ms - now_ms),
                _span(self._window_ms),
            )
        # Articles of the last hour prove nothing: the same wrong clock may have timed them.
        recent_ms = min(HOLD_S * MS_PER_S, self._window_ms // 2)
        earlier_ms = self._judge.newest_ms(now_ms - recent_ms)
        if earlier_ms is None or now_ms - earlier_ms <= self._window_ms:
            return
        self._hold = _Hold(earlier_ms, now_ms + HOLD_S * MS_PER_S)
        log.warning(
            "Not counting the last %s, the newest article in the store arrived %s ago, more than the window of %s. If "
            "the clock of this machine is wrong, stop, correct it and start again; for %s nothing in the window of "
            "that article expires. If the feed has only paused, there is nothing to do.",
            _span(recent_ms),
            _span(now_ms - earlier_ms),
            _span(self._window_ms),
            _span(HOLD_S * MS_PER_S),
        )

    def _expiry_ms(self) -> int:
        """Return the time as of which articles expire."""
        now_ms = self._clock()
        if self._hold is not None and now_ms >= self._hold.until_ms:
            self._hold = None
            log.info("Articles expire by the current time again.")
        return now_ms if self._hold is None else self._hold.newest_ms


def _span(ms: int) -> str:
    return str(timedelta(seconds=ms // MS_PER_S))
