"""When a batch of topics is given up, and which of its work counts as progress."""

import time

import pytest

from consumer.lifecycle.interruption import Drain
from consumer.lifecycle.stopping import StopSignal
from consumer.lifecycle.thread_progress import ThreadProgress, ThreadProgressed
from consumer.model.errors import Abandoned
from consumer.model.hooks import Hooks
from consumer.pipeline.group_interruption import GroupInterruption


class BegunBatch:
    """A source with a begun batch, which may belong to another consumer by now."""

    is_lost = False

    def check(self) -> None:
        """Give it up if it is lost."""
        if self.is_lost:
            raise Abandoned("its partitions were reassigned")


class Interrupted:
    """An interruption, and what it depends on and reports."""

    def __init__(self) -> None:
        self.turns = 0
        self.stopping = StopSignal()
        hooks = Hooks()
        hooks.on(ThreadProgressed, self._turned)
        self.batch = BegunBatch()
        self.interruption = GroupInterruption(ThreadProgress(hooks), Drain(self.stopping, 0.0), self.batch.check)

    def _turned(self, _: ThreadProgressed) -> None:
        self.turns += 1


def test_decoding_and_calls_of_the_store_are_progress_and_waiting_for_workers_is_not() -> None:
    """A worker process that hangs has to show on the health page."""
    given = Interrupted()
    given.interruption.while_preparing()
    assert given.turns == 1
    given.interruption.while_judging()
    assert given.turns == 2
    given.interruption.while_idle()
    assert given.turns == 2


def test_a_batch_whose_partitions_are_gone_is_given_up() -> None:
    """The batches after it are prepared all the same: whether they are lost too shows when they begin."""
    given = Interrupted()
    given.batch.is_lost = True
    given.interruption.while_preparing()
    for check in (given.interruption.while_judging, given.interruption.while_idle):
        with pytest.raises(Abandoned, match="reassigned"):
            check()


def test_all_work_ends_when_the_time_to_stop_is_over() -> None:
    """Exit code 0 within kafka.drain_s."""
    given = Interrupted()
    given.stopping.requested_by, given.stopping.requested_at_s = 15, time.monotonic() - 1
    for check in (
        given.interruption.while_preparing,
        given.interruption.while_judging,
        given.interruption.while_idle,
    ):
        with pytest.raises(Abandoned, match="asked to stop"):
            check()
