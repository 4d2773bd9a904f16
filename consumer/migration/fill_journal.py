"""Saves how far a fill has come in the offsets of the new group."""

import time
from collections.abc import Callable, Sequence
from typing import Final

from typing_extensions import override

from consumer.model.dead_letter import DeadLetter
from consumer.model.record import End, Offsets, Partition
from consumer.model.verdict import Verdict
from consumer.pipeline.journal import Journal

SAVE_EVERY_S: Final = 5.0


class FillJournal(Journal):
    """Updates ``filled`` with each batch, and calls ``save`` at most every ``SAVE_EVERY_S``.

    What was not saved is filled again, with the same result.
    """

    def __init__(self, filled: dict[Partition, int], save: Callable[[], None]) -> None:
        self._filled = filled
        self._save = save
        self._next_save_s = time.monotonic() + SAVE_EVERY_S

    @override
    def begin(self, end: End) -> None:
        """Do nothing: the partitions of a fill belong to nobody else."""

    @override
    def abandon(self) -> None:
        raise AssertionError("a batch of a fill was abandoned")

    @override
    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        if not isinstance(end, Offsets):
            raise TypeError("the position in a topic is offsets")
        self._filled.update(end.next)
        if time.monotonic() >= self._next_save_s:
            self._save()
            self._next_save_s = time.monotonic() + SAVE_EVERY_S

    @override
    def finish(self) -> None:
        """Do nothing: the migration saves at the end of each round."""
