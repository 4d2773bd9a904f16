"""Interruptions of lasting runs, which report progress, and give up a batch in time or with its partitions."""

from collections.abc import Callable

from typing_extensions import override

from consumer.lifecycle.interruption import Drain, Interruption
from consumer.lifecycle.turns import Turns


class ReportedDrain(Interruption):
    """An interruption for runs before their source is open: a drain that also reports the progress of threads."""

    def __init__(self, turns: Turns, drain: Drain) -> None:
        self._turns = turns
        self._drain = drain

    @override
    def while_preparing(self) -> None:
        self._turns.turn()
        self._drain.while_preparing()

    @override
    def while_judging(self) -> None:
        self._turns.turn()
        self.while_idle()

    @override
    def while_idle(self) -> None:
        self._drain.while_idle()


class GroupInterruption(ReportedDrain):
    """An interruption that also gives up the current batch when its partitions are lost, but prepares later ones.

    ``check`` raises ``Abandoned`` if the current batch no longer belongs to this run.
    """

    def __init__(self, turns: Turns, drain: Drain, check: Callable[[], None]) -> None:
        super().__init__(turns, drain)
        self._check = check

    @override
    def while_idle(self) -> None:
        super().while_idle()
        self._check()
