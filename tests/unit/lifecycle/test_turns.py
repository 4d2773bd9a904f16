"""How threads report that they make progress."""

import threading

import pytest

from consumer.lifecycle.turns import MAIN, ThreadRested, ThreadTurned, Turns
from consumer.model.hooks import Hooks


class Keeper:
    """Keeps what threads report."""

    def __init__(self) -> None:
        self.reports: list[ThreadTurned | ThreadRested] = []

    def listen(self, hooks: Hooks) -> None:
        """Listen."""
        hooks.on(ThreadTurned, self.reports.append)
        hooks.on(ThreadRested, self.reports.append)


def test_each_thread_reports_under_its_own_name() -> None:
    """The main thread has a fixed name, whatever it is called."""
    keeper = Keeper()
    turns = Turns(Hooks(keeper))
    turns.turn()
    for name in ("read-ahead", "client"):
        thread = threading.Thread(target=turns.turn, name=name)
        thread.start()
        thread.join()
    turns.rest()
    assert keeper.reports == [
        ThreadTurned(MAIN), ThreadTurned("read-ahead"), ThreadTurned("client"), ThreadRested(MAIN),
    ]  # fmt: skip


def test_a_thread_rests_after_work_that_failed() -> None:
    """Otherwise it would seem to hang."""
    keeper = Keeper()
    with pytest.raises(ZeroDivisionError), Turns(Hooks(keeper)).at_work():
        raise ZeroDivisionError
    assert keeper.reports == [ThreadTurned(MAIN), ThreadRested(MAIN)]
