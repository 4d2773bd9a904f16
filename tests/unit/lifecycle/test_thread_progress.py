"""How threads report that they make progress."""

import threading

import pytest

from consumer.lifecycle.thread_progress import MAIN, ThreadIdle, ThreadProgress, ThreadProgressed, WorkerProgressed
from consumer.model.hooks import Hooks


class Keeper:
    """Keeps what threads report."""

    def __init__(self) -> None:
        self.reports: list[ThreadProgressed | ThreadIdle | WorkerProgressed] = []

    def listen(self, hooks: Hooks) -> None:
        """Listen."""
        hooks.on(ThreadProgressed, self.reports.append)
        hooks.on(ThreadIdle, self.reports.append)
        hooks.on(WorkerProgressed, self.reports.append)


def test_each_thread_reports_under_its_own_name() -> None:
    """The main thread has a fixed name, whatever it is called."""
    keeper = Keeper()
    progress = ThreadProgress(Hooks(keeper))
    progress.report()
    for name in ("read-ahead", "client"):
        thread = threading.Thread(target=progress.report, name=name)
        thread.start()
        thread.join()
    progress.report_idle()
    assert keeper.reports == [
        ThreadProgressed(MAIN), ThreadProgressed("read-ahead"), ThreadProgressed("client"), ThreadIdle(MAIN),
    ]  # fmt: skip


def test_a_thread_rests_after_work_that_failed() -> None:
    """Otherwise it would seem to hang."""
    keeper = Keeper()
    with pytest.raises(ZeroDivisionError), ThreadProgress(Hooks(keeper)).at_work():
        raise ZeroDivisionError
    assert keeper.reports == [ThreadProgressed(MAIN), ThreadIdle(MAIN)]


def test_what_a_thread_does_for_the_main_thread_is_progress_of_that_too() -> None:
    """Only while it works for it: the same thread may work for itself afterwards."""
    keeper = Keeper()
    progress = ThreadProgress(Hooks(keeper))

    def work() -> None:
        with progress.at_work(for_judging=True):
            progress.report()
        progress.report()

    thread = threading.Thread(target=work, name="judge_0")
    thread.start()
    thread.join()
    turned = ThreadProgressed("judge_0")
    assert keeper.reports == [turned, WorkerProgressed(), turned, WorkerProgressed(), ThreadIdle("judge_0"), turned]
