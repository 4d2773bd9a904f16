"""What is waited for before the first batch."""

import threading

import pytest

from consumer.lifecycle.starting import Starting
from consumer.lifecycle.stopping import Stopping
from consumer.model.errors import NotBegun, StoreBroken


class Asked(Stopping):
    """Is asked to stop after so many turns."""

    def __init__(self, turns: int) -> None:
        super().__init__()
        self.turns = 0
        self._most = turns

    def beat(self) -> None:
        """Turn once."""
        self.turns += 1
        if self.turns == self._most:
            self.asked_by = 15


def test_a_call_gives_its_answer_or_its_error() -> None:
    """As if it had been made here."""
    starting = Starting(Stopping(), lambda: None)
    assert starting.call(lambda: "answer") == "answer"

    def fail() -> None:
        raise StoreBroken("gone")

    with pytest.raises(StoreBroken, match="gone"):
        starting.call(fail)


def test_who_is_asked_to_stop_leaves_a_call_that_does_not_come_back() -> None:
    """It turns while it waits."""
    release, asked = threading.Event(), Asked(3)
    try:
        with pytest.raises(NotBegun):
            Starting(asked, asked.beat).call(release.wait)
    finally:
        release.set()
    assert asked.turns == 3
