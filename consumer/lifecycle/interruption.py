"""What a run asks between two pieces of work: whether to continue with its batch."""

import time
from typing import Protocol

from typing_extensions import override

from consumer.lifecycle.stopping import StopSignal
from consumer.model.errors import Abandoned


class Interruption(Protocol):
    """Decides whether a batch is continued, and reports that the thread that works on it makes progress.

    A batch may take minutes. Between any two pieces of its work, and several times a second while it waits, one of
    these is called. What it raises ends the work or the wait: ``Abandoned`` where the batch is to be given up.
    """

    def while_preparing(self) -> None:
        """Report progress, and raise ``Abandoned`` where the run has to end.

        Called before each record and each piece of texts, in the thread that prepares batches, which may be ahead of
        the one that judges them.
        """
        ...

    def while_judging(self) -> None:
        """Report progress, and raise ``Abandoned`` where the run has to end or the begun batch is lost.

        Called before each call of the store, and while the store or the brokers of the sink are out of reach.
        """
        ...

    def while_idle(self) -> None:
        """Raise as ``while_judging``, without reporting progress.

        Called while the begun batch waits for worker processes: one that hangs has to show.
        """
        ...


class NoInterruption(Interruption):
    """Continues with every batch: such a run ends between two of them."""

    @override
    def while_preparing(self) -> None: ...

    @override
    def while_judging(self) -> None: ...

    @override
    def while_idle(self) -> None: ...


UNINTERRUPTED = NoInterruption()


class Drain(Interruption):
    """The time that a run has to finish its batch after it was asked to stop. It reports no progress."""

    def __init__(self, stopping: StopSignal, drain_s: float) -> None:
        self._stopping = stopping
        self._drain_s = drain_s

    def is_over(self) -> bool:
        """Return whether the run was asked to stop, and the time has passed since."""
        asked_s = self._stopping.asked_at_s
        return asked_s is not None and time.monotonic() - asked_s > self._drain_s

    @override
    def while_judging(self) -> None:
        if self.is_over():
            raise Abandoned(f"the batch could not be finished within {self._drain_s:g} s of being asked to stop")

    while_preparing = while_idle = while_judging
