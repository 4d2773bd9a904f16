"""The check between two pieces of work that decides whether a run continues with its batch."""

import time
from typing import Protocol

from typing_extensions import override

from consumer.lifecycle.stopping import StopSignal
from consumer.model.errors import Abandoned


class Interruption(Protocol):
    """A check that decides whether a batch is continued, and reports the progress of its thread.

    A batch may take minutes. One of these methods is called between any two pieces of its work, and several times a
    second while it waits. An exception ends the work or the wait; it is ``Abandoned`` if the batch is to be given up.
    """

    def while_preparing(self) -> None:
        """Report progress, and raise ``Abandoned`` if the run has to end.

        Called before each record and each piece of the texts, in the thread that prepares batches, which may be ahead
        of the judging thread.
        """
        ...

    def while_judging(self) -> None:
        """Report progress, and raise ``Abandoned`` if the run has to end or the current batch is lost.

        Called before each call of the store, and while the store or the sink's brokers are unreachable.
        """
        ...

    def while_idle(self) -> None:
        """Raise ``Abandoned`` as ``while_judging`` does, but report no progress.

        Called while the current batch waits for worker processes, so that a worker that hangs is noticed.
        """
        ...


class NoInterruption(Interruption):
    """An interruption that lets every batch finish; the run ends between two batches."""

    @override
    def while_preparing(self) -> None: ...

    @override
    def while_judging(self) -> None: ...

    @override
    def while_idle(self) -> None: ...


UNINTERRUPTED = NoInterruption()


class Drain(Interruption):
    """The time limit for finishing a batch after the run was asked to stop. It reports no progress."""

    def __init__(self, stopping: StopSignal, drain_s: float) -> None:
        self._stopping = stopping
        self._drain_s = drain_s

    def is_over(self) -> bool:
        """Return whether the run was asked to stop more than ``drain_s`` seconds ago."""
        asked_s = self._stopping.requested_at_s
        return asked_s is not None and time.monotonic() - asked_s > self._drain_s

    @override
    def while_judging(self) -> None:
        if self.is_over():
            raise Abandoned(f"the batch could not be finished within {self._drain_s:g} s of being asked to stop")

    while_preparing = while_idle = while_judging
