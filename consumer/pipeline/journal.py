"""The port that records the progress of a run, and the journal of runs that cannot be resumed."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence

from typing_extensions import override

from consumer.model.dead_letter import DeadLetter
from consumer.model.record import End
from consumer.model.verdict import Verdict

log = logging.getLogger("dupwatch")


class Journal(ABC):
    """The record of a run's progress. The loop calls it before a batch is judged and after its output is flushed."""

    def begin(self, end: End) -> None:  # noqa: B027  # most journals have nothing to do
        """Begin the batch that ends at ``end``. Raises ``Abandoned`` if the batch no longer belongs to this run."""

    @abstractmethod
    def abandon(self) -> None:
        """Give up the current batch: its output is void. If the run can be resumed, its records are judged later."""

    @abstractmethod
    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """Make later runs begin after this batch. Raises ``Abandoned`` if the batch no longer belongs to this run."""

    def finish(self) -> None:  # noqa: B027  # most sources have no end
        """Note that the source was read to its end."""


class NoJournal(Journal):
    """The journal of a run that cannot be resumed, for example because its source is a stream."""

    @override
    def abandon(self) -> None:
        """Log that the records of this batch have no verdicts."""
        log.warning("The last records read have no verdicts: the run did not finish in time after it was asked to stop")

    @override
    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """Record nothing."""
