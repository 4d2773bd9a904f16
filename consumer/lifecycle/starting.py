"""Calls that a consumer waits for before its first batch. It can be stopped while it waits."""

from collections.abc import Callable
from typing import Final, TypeVar

from consumer.lifecycle.background_call import Call
from consumer.lifecycle.stopping import Stopping
from consumer.model.errors import NotBegun

Result = TypeVar("Result")

_ASK_S: Final = 0.1


class Starting:
    """Makes calls to stores and brokers while a run is built; ``beat`` is called ten times a second meanwhile."""

    def __init__(self, stopping: Stopping, beat: Callable[[], None]) -> None:
        self._stopping = stopping
        self._beat = beat

    def check(self) -> None:
        """Call ``beat`` once. Raises ``NotBegun`` if the run was asked to stop: there is no batch to finish."""
        self._beat()
        if self._stopping.asked():
            raise NotBegun("the run was asked to stop before it had begun")

    def call(self, work: Callable[[], Result]) -> Result:
        """Make a call and raise its errors; if the run is asked to stop, abandon the call."""
        call = Call(work)
        while not call.ended(_ASK_S):
            self.check()
        return call.result()
