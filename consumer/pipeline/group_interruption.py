"""Interruptions that report progress, and give up a batch at the deadline or when its partitions are lost."""

from collections.abc import Callable

from typing_extensions import override

from consumer.lifecycle.interruption import Drain, Interruption
from consumer.lifecycle.thread_progress import ThreadProgress


class ReportedDrain(Interruption):
    """A drain that also reports the progress of threads: for services, and for runs before their source is open."""

    def __init__(self, progress: ThreadProgress, drain: Drain) -> None:
        self._progress = progress
        self._drain = drain

    @override
    def while_preparing(self) -> None:
        self._progress.report()
        self._drain.while_preparing()

    @override
    def while_judging(self) -> None:
        self._progress.report()
        self.while_idle()

    @override
    def while_idle(self) -> None:
        self._drain.while_idle()


class GroupInterruption(ReportedDrain):
    """An interruption that also gives up the current batch when its partitions are lost. Preparing continues.

    ``check`` raises ``Abandoned`` if the current batch no longer belongs to this run.
    """

    def __init__(self, progress: ThreadProgress, drain: Drain, check: Callable[[], None]) -> None:
        super().__init__(progress, drain)
        self._check = check

    @override
    def while_idle(self) -> None:
        super().while_idle()
        self._check()
