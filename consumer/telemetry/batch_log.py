"""Logs a summary of new dead letters at most every few seconds, and every flag at level debug."""

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from consumer.model.dead_letter import DeadLetter
from consumer.model.hooks import Hooks
from consumer.model.verdict import Verdict
from consumer.pipeline.batches import BatchCommitted

log = logging.getLogger("dupwatch")

SUMMARY_PAUSE_S: Final = 10.0
"""The minimum number of seconds between two summaries, so that a feed of bad records does not fill the log."""


class BatchLog:
    """A log of batches for operators, with ids and without texts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._logged_s: float | None = None
        self._unlogged: Counter[str] = Counter()

    def listen(self, hooks: Hooks) -> None:
        """Log batches committed from now on."""
        hooks.on(BatchCommitted, self._log_batch)

    def _log_batch(self, batch: BatchCommitted) -> None:
        verdicts, letters = batch
        if log.isEnabledFor(logging.DEBUG):
            for verdict in verdicts:
                if verdict.outcome == "duplicate":
                    _log_flag(verdict)
        if letters:
            self._unlogged.update(letter.reason for letter in letters)
            self._log_letters(letters[-1])

    def _log_letters(self, last: DeadLetter) -> None:
        now_s = self._clock()
        if self._logged_s is not None and now_s - self._logged_s < SUMMARY_PAUSE_S:
            return
        self._logged_s = now_s
        reasons = ", ".join(f"{count} {reason}" for reason, count in self._unlogged.most_common())
        log.warning(
            "Records could not be judged and became dead letters: %s",
            reasons,
            extra={
                "dead_letters": self._unlogged.total(),
                "last_source": last.position.source,
                "last_offset": last.position.offset,
            },
        )
        self._unlogged.clear()


def _log_flag(verdict: Verdict) -> None:
    log.debug(
        "Flagged",
        extra={
            "article_id": verdict.id,
            "duplicate_of": verdict.duplicate_of,
            "distance": verdict.distance,
            "similarity": verdict.similarity,
        },
    )
