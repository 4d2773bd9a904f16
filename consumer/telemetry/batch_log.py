"""What goes by, in the log: dead letters now and then with their reasons, and at level debug every flag."""

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

EVERY_S: Final = 10.0
"""Not oftener are dead letters told: a feed of nothing else must not become a log of nothing else."""


class BatchLog:
    """Tells of batches what whoever runs it wants to find later; ids, never texts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told_s: float | None = None
        self._untold: Counter[str] = Counter()

    def listen(self, hooks: Hooks) -> None:
        """Log what is committed from now on."""
        hooks.on(BatchCommitted, self._committed)

    def _committed(self, batch: BatchCommitted) -> None:
        verdicts, letters = batch
        if log.isEnabledFor(logging.DEBUG):
            for verdict in verdicts:
                if verdict.outcome == "duplicate":
                    _tell_flag(verdict)
        if letters:
            self._untold.update(letter.reason for letter in letters)
            self._tell_letters(letters[-1])

    def _tell_letters(self, last: DeadLetter) -> None:
        now_s = self._clock()
        if self._told_s is not None and now_s - self._told_s < EVERY_S:
            return
        self._told_s = now_s
        reasons = ", ".join(f"{count} {reason}" for reason, count in self._untold.most_common())
        log.warning(
            "Records that cannot be judged became dead letters: %s",
            reasons,
            extra={
                "dead_letters": self._untold.total(),
                "last_source": last.position.source,
                "last_offset": last.position.offset,
            },
        )
        self._untold.clear()


def _tell_flag(verdict: Verdict) -> None:
    log.debug(
        "Flagged",
        extra={
            "article_id": verdict.id,
            "duplicate_of": verdict.duplicate_of,
            "distance": verdict.distance,
            "similarity": verdict.similarity,
        },
    )
