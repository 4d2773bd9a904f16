"""The port that keeps track of how far a run got, and the journals of runs that own what they read."""

import logging
from collections.abc import Sequence
from typing import Protocol

from typing_extensions import override

from consumer.model.dead_letter import DeadLetter
from consumer.model.record import End
from consumer.model.verdict import Verdict

log = logging.getLogger("dupwatch")


class Journal(Protocol):
    """Records every batch: before it is judged, and after its verdicts and dead letters are flushed."""

    def begin(self, end: End) -> None:
        """Begin a batch that ends there. Raises ``Abandoned`` if it no longer belongs to this run."""
        ...

    def abandon(self) -> None:
        """Give up the current batch: its output is void, and the source delivers it again."""
        ...

    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """Have a later run begin after this batch. Raises ``Abandoned`` if it no longer belongs to this run."""
        ...

    def finish(self) -> None:
        """Note that the source was read to its end."""
        ...


class ExclusiveJournal(Journal):
    """For files and streams, which belong to one run: it gives up a batch only when it is asked to stop."""

    @override
    def begin(self, end: End) -> None:
        """Do nothing: the batch cannot be taken away."""

    @override
    def abandon(self) -> None:
        """Do nothing: the run ends, and a later one begins after the last committed batch."""


class NoJournal(ExclusiveJournal):
    """For a stream, or for a store that ends with the process: such a run cannot be resumed."""

    @override
    def abandon(self) -> None:
        """Log that the records of this batch will never be judged."""
        log.warning("The last records read have no verdicts: the run did not finish in time after it was asked to stop")

    @override
    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """Keep nothing."""

    @override
    def finish(self) -> None:
        """Keep nothing."""
