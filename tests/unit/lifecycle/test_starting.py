"""Calls before the first batch can be left when the run is asked to stop."""

import threading

import pytest

from consumer.lifecycle.background import StartUpCalls
from consumer.lifecycle.stopping import StopSignal
from consumer.lifecycle.thread_progress import ThreadProgress, ThreadProgressed
from consumer.model.errors import StoppedBeforeStart, StoreBroken
from consumer.model.hooks import Hooks


class Asked(StopSignal):
    """Is asked to stop at the given turn of the thread."""

    def __init__(self, turns: int) -> None:
        super().__init__()
        self.turns = 0
        self._most = turns

    def listen(self, hooks: Hooks) -> None:
        """Count turns."""
        hooks.on(ThreadProgressed, self._turned)

    def _turned(self, _: ThreadProgressed) -> None:
        self.turns += 1
        if self.turns == self._most:
            self.requested_by = 15


def test_a_call_returns_its_result_or_raises_its_error() -> None:
    """As if it had been called directly."""
    starting = StartUpCalls(StopSignal(), ThreadProgress(Hooks()))
    assert starting.call(lambda: "answer") == "answer"

    def fail() -> None:
        raise StoreBroken("gone")

    with pytest.raises(StoreBroken, match="gone"):
        starting.call(fail)


def test_a_call_that_hangs_is_abandoned_when_the_run_is_asked_to_stop() -> None:
    """The wait is progress meanwhile."""
    release, asked = threading.Event(), Asked(3)
    try:
        with pytest.raises(StoppedBeforeStart):
            StartUpCalls(asked, ThreadProgress(Hooks(asked))).call(release.wait)
    finally:
        release.set()
    assert asked.turns == 3
