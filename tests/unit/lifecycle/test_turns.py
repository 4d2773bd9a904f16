"""How threads report that they make progress."""

import threading

import pytest

from consumer.lifecycle.turns import MAIN, ThreadRested, ThreadTurned, Turns, WorkerTurned
from consumer.model.hooks import Hooks


class Keeper:
    """Keeps what threads report."""

    def __init__(self) -> None:
        self.reports: list[ThreadTurned | ThreadRested | WorkerTurned] = []

    def listen(self, hooks: Hooks) -> None:
        """Listen."""
        hooks.on(ThreadTurned, self.reports.append)
        hooks.on(ThreadRested, self.reports.append)
        hooks.on(WorkerTurned, self.reports.append)


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


def test_what_a_thread_does_for_the_main_thread_is_progress_of_that_too() -> None:
    """Only while it works for it: the same thread may work for itself afterwards."""
    keeper = Keeper()
    turns = Turns(Hooks(keeper))

    def work() -> None:
        with turns.at_work(for_main=True):
            turns.turn()
        turns.turn()

    thread = threading.Thread(target=work, name="judge_0")
    thread.start()
    thread.join()
    turned = ThreadTurned("judge_0")
    assert keeper.reports == [turned, WorkerTurned(), turned, WorkerTurned(), ThreadRested("judge_0"), turned]
