"""Work beside the pages: repeated, woken, and never ended by what goes wrong."""

import logging
import math
import threading
import time

import pytest

from consumer.console.intake import background as module
from consumer.console.intake.background import BackgroundWork, WorkSchedule
from consumer.model.errors import SinkError
from consumer.model.hooks import Hooks, Outage, RunPart
from consumer.reviews.database import DatabaseUnavailable
from storage.backoff import Backoff
from storage.errors import StoreUnavailable
from tests.cli.command import TIMEOUT_S, wait_for

LONG_S = 3_600.0


class Work:
    """Work that does what it is told, and what is said of it."""

    def __init__(self) -> None:
        self.turns = 0
        self.more = 0
        self.error: Exception | None = None
        self.outages: list[Outage] = []
        self.hooks = Hooks()
        self.hooks.on(Outage, self.outages.append)

    def __call__(self) -> bool:
        """Do it."""
        self.turns += 1
        if self.error is not None:
            raise self.error
        self.more -= 1
        return self.more > 0

    def background(self, pause_s: float = LONG_S) -> BackgroundWork:
        """A thread for it."""
        return BackgroundWork("work", self, WorkSchedule(pause_s, "sink"), self.hooks, threading.Event())


def test_it_is_repeated_and_at_once_where_there_is_more() -> None:
    """With a long pause only as long as there is more, and when it is woken."""
    work = Work()
    work.more = 5
    with work.background() as background:
        wait_for(lambda: work.turns == 5)
        time.sleep(0.05)
        assert work.turns == 5
        background.wake()
        wait_for(lambda: work.turns == 6)
    turns = work.turns
    time.sleep(0.02)
    assert work.turns == turns


def test_it_is_repeated_after_a_pause() -> None:
    """Without being woken."""
    work = Work()
    with work.background(0.01):
        wait_for(lambda: work.turns > 3)


@pytest.mark.parametrize(
    ("error", "part"),
    [
        (DatabaseUnavailable("gone"), "database"),
        (StoreUnavailable("gone"), "store"),
        (SinkError("gone"), "sink"),
        (ZeroDivisionError("gone"), "sink"),
    ],
)
def test_what_goes_wrong_is_said_until_it_goes_well(
    error: Exception, part: RunPart, caplog: pytest.LogCaptureFixture
) -> None:
    """With the part that is out of reach; a defect leaves a traceback in the log, and does not end it either."""
    work = Work()
    work.error = error
    with caplog.at_level(logging.WARNING, "dupwatch"), work.background(0.01):
        wait_for(lambda: work.turns > 1)
        assert work.outages[0] == Outage(part, "work", "gone")
        work.error = None
        wait_for(lambda: work.outages[-1] == Outage(part, "work", None))
    first = caplog.records[0]
    assert "The work thread waits: gone" in first.getMessage()
    assert bool(first.exc_info) is isinstance(error, ZeroDivisionError)
    assert len([line for line in caplog.messages if "waits" in line]) == 1


def test_another_part_takes_the_place_of_the_first() -> None:
    """So that readiness says what is away now."""
    work = Work()
    work.error = DatabaseUnavailable("gone")
    with work.background(0.01):
        wait_for(lambda: bool(work.outages))
        work.error = StoreUnavailable("away")
        wait_for(lambda: Outage("store", "work", "away") in work.outages)
    assert Outage("database", "work", None) in work.outages


def test_pauses_grow_while_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """And waking it does not make it hurry: who wakes it does not know what it waits for."""
    monkeypatch.setattr(module, "_PAUSES", Backoff(0.1, 10.0))
    work = Work()
    work.error = SinkError("gone")
    began_s = time.monotonic()
    with work.background(0.0) as background:
        for _ in range(150):
            background.wake()
            time.sleep(0.005)
        # At 0, 0.1, 0.3, 0.7 s and so on.
        assert work.turns <= 2 + math.log2(1 + (time.monotonic() - began_s) / 0.1)


def test_it_ends_at_once_though_it_pauses() -> None:
    """Whether it waits for work or for something to come back."""
    for error in (None, SinkError("gone")):
        work = Work()
        work.error = error
        with work.background():
            wait_for(lambda work=work: work.turns > 0)  # type: ignore[misc]
            began_s = time.monotonic()
        assert time.monotonic() - began_s < TIMEOUT_S


def test_work_that_does_not_end_says_that_it_goes_well(caplog: pytest.LogCaptureFixture) -> None:
    """Reading a topic, for example: what was away before is back, though the work was not done again."""
    work, over = Work(), threading.Event()
    work.error = SinkError("gone")

    def endless() -> bool:
        if work() or work.error is None:
            over.wait(30)
        return False

    background = BackgroundWork("work", endless, WorkSchedule(LONG_S, "sink"), work.hooks, threading.Event())
    with caplog.at_level(logging.WARNING, "dupwatch"), background:
        wait_for(lambda: bool(work.outages))
        work.error = None
        turns = work.turns
        wait_for(lambda: work.turns > turns)
        assert work.outages[-1].reason == "gone"
        background.report_recovery()
        assert work.outages[-1] == Outage("sink", "work", None)
        over.set()
    assert "The work thread goes on." in caplog.messages
