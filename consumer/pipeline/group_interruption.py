"""When a run that shares its partitions with other consumers gives up a batch, and what of its work is progress."""

from collections.abc import Callable

from typing_extensions import override

from consumer.lifecycle.interruption import Drain, Interruption
from consumer.lifecycle.turns import Turns


class ReportedDrain(Interruption):
    """Ends the work when the time to stop is over, and reports the progress of threads: before there is a source."""

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
    """Also gives up the begun batch when its partitions are gone; batches after it are prepared all the same.

    ``check`` raises ``Abandoned`` where the begun batch no longer belongs to this run.
    """

    def __init__(self, turns: Turns, drain: Drain, check: Callable[[], None]) -> None:
        super().__init__(turns, drain)
        self._check = check

    @override
    def while_idle(self) -> None:
        super().while_idle()
        self._check()
