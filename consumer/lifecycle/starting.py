"""Calls that a consumer waits for before its first batch. It can be stopped while it waits."""

from collections.abc import Callable
from typing import Final, TypeVar

from consumer.lifecycle.background_call import Call
from consumer.lifecycle.stopping import Stopping
from consumer.lifecycle.turns import Turns
from consumer.model.errors import NotBegun

Result = TypeVar("Result")

_CHECK_EVERY_S: Final = 0.1


class Starting:
    """Makes calls to stores and brokers while a run is built, and reports progress ten times a second meanwhile."""

    def __init__(self, stopping: Stopping, turns: Turns) -> None:
        self._stopping = stopping
        self._turns = turns

    def proceed(self) -> None:
        """Report progress. Raises ``NotBegun`` if the run was asked to stop: there is no batch to finish."""
        self._turns.turn()
        if self._stopping.asked():
            raise NotBegun("the run was asked to stop before it had begun")

    def call(self, work: Callable[[], Result]) -> Result:
        """Make a call and raise its errors; if the run is asked to stop, abandon the call."""
        call = Call(work)
        while not call.ended(_CHECK_EVERY_S):
            self.proceed()
        return call.result()
