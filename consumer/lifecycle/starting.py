"""What a consumer waits for before its first batch. Whoever asks it to stop then has not to wait too."""

from collections.abc import Callable
from typing import Final, TypeVar

from consumer.lifecycle.background_call import Call
from consumer.lifecycle.stopping import Stopping
from consumer.model.errors import NotBegun

Result = TypeVar("Result")

_ASK_S: Final = 0.1


class Starting:
    """Makes calls of stores and brokers while a run is built; ``beat`` is called ten times a second meanwhile."""

    def __init__(self, stopping: Stopping, beat: Callable[[], None]) -> None:
        self._stopping = stopping
        self._beat = beat

    def check(self) -> None:
        """Turn once. Raises ``NotBegun`` where the run was asked to stop: nothing was begun that is to be finished."""
        self._beat()
        if self._stopping.asked():
            raise NotBegun("the run was asked to stop before it had begun")

    def call(self, work: Callable[[], Result]) -> Result:
        """Make a call; it is left to itself where it would hold up the end of the run. Raises what it raises."""
        call = Call(work)
        while not call.ended(_ASK_S):
            self.check()
        return call.result()
