"""Files are looked at again and again, whatever a look does."""

import logging
import threading

import pytest

from consumer.lifecycle.background import PAUSE_S, PeriodicCheck

WAIT_S = 60


def test_looks_go_on_after_one_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    """The failure is logged; the file may be another one the next time."""
    looks: list[int] = []
    enough = threading.Event()

    def look() -> None:
        looks.append(len(looks))
        if len(looks) == 1:
            raise RuntimeError("of all things")
        if len(looks) == 3:
            enough.set()

    with caplog.at_level(logging.ERROR), PeriodicCheck("files", look, 0.01):
        assert enough.wait(WAIT_S)
    seen = len(looks)
    assert seen >= 3
    assert [record.getMessage() for record in caplog.records] == ["A periodic check failed (files)"]
    assert not [thread for thread in threading.enumerate() if thread.name == "files"]


def test_a_look_that_hangs_holds_up_nobody() -> None:
    """Neither who opens the context nor who leaves it; its thread does not keep the process."""
    begun, go_on = threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        go_on.wait(WAIT_S)

    with PeriodicCheck("hanging", hang, 0.01):
        assert begun.wait(WAIT_S)
    (left,) = [thread for thread in threading.enumerate() if thread.name == "hanging"]
    assert left.daemon
    go_on.set()
    left.join(WAIT_S)
    assert not left.is_alive()


def test_a_change_counts_within_two_seconds() -> None:
    """As the documentation promises."""
    assert PAUSE_S < 2
