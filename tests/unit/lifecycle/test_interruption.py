"""Whether a run continues with its batch."""

import time
from collections.abc import Callable

import pytest

from consumer.lifecycle.interruption import UNINTERRUPTED, Drain, Interruption
from consumer.lifecycle.stopping import StopSignal
from consumer.model.errors import Abandoned


def every_check(interruption: Interruption) -> list[Callable[[], None]]:
    """Return all that a batch asks."""
    return [interruption.while_preparing, interruption.while_judging, interruption.while_idle]


def test_a_run_without_limits_finishes_its_batch() -> None:
    """Nothing is raised, whatever the batch is doing."""
    for check in every_check(UNINTERRUPTED):
        check()


def test_a_stopped_run_has_limited_time_to_finish() -> None:
    """The clock starts when it is asked to stop, and ends every kind of work."""
    stopping = StopSignal()
    drain = Drain(stopping, 60.0)
    for check in every_check(drain):
        check()
    stopping.requested_by, stopping.requested_at_s = 15, time.monotonic()
    for check in every_check(drain):
        check()
    assert not drain.is_over()
    stopping.requested_at_s -= 60
    assert drain.is_over()
    for check in every_check(drain):
        with pytest.raises(Abandoned, match=r"within 60 s"):
            check()
