"""Waiting for a store that is out of reach: again and again, until it is back or there is no more sense in it."""

import time

import pytest

from consumer.lifecycle.retry import Backoff, Drain
from consumer.lifecycle.stopping import Stopping
from consumer.model.errors import Abandoned
from consumer.model.hooks import Hooks, Outage
from storage.errors import StoreRefused, StoreUnavailable
from tests.unit.flickering import Flickering

AWAY = StoreUnavailable("no route")


class Notes:
    """Writes down what it is told of the store."""

    def __init__(self) -> None:
        self.told: list[str | None] = []

    def listen(self, hooks: Hooks) -> None:
        """Listen."""
        hooks.on(Outage, lambda outage: self.told.append(outage.why))


def never() -> None:
    """Nothing stands against waiting."""


def test_a_call_is_made_again_until_it_is_answered() -> None:
    """The watcher hears of each failure, and that it is over."""
    notes, store = Notes(), Flickering(3, AWAY)
    assert Backoff(never, Hooks(notes)).call(store.call) == 4
    assert notes.told == ["no route"] * 3 + [None]


def test_pauses_grow() -> None:
    """A store that comes back is not met by everybody at once, and one that is away is not hammered."""
    began_s = time.monotonic()
    Backoff(never, Hooks()).call(Flickering(4, AWAY).call)
    assert time.monotonic() - began_s > 0.5 * (0.1 + 0.2 + 0.4 + 0.8)


def test_waiting_ends_when_the_batch_is_given_up() -> None:
    """Asked many times a second, so that a rebalance does not wait for a pause to end."""
    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1
        if asked > 5:
            raise Abandoned("taken away")

    began_s = time.monotonic()
    with pytest.raises(Abandoned, match="taken away"):
        Backoff(check, Hooks()).call(Flickering(10**9, AWAY).call)
    assert time.monotonic() - began_s < 2


def test_only_a_store_out_of_reach_is_waited_for() -> None:
    """One that refuses has said why, and will say it again."""

    def refuse() -> None:
        raise StoreRefused("other settings")

    with pytest.raises(StoreRefused):
        Backoff(never, Hooks()).call(refuse)


def test_a_run_that_is_to_stop_has_its_time_to_finish() -> None:
    """And no more than that."""
    stopping = Stopping()
    drain = Drain(stopping, 0.2)
    drain.check()
    stopping.asked_by, stopping.asked_at_s = 15, time.monotonic()
    drain.check()
    time.sleep(0.25)
    with pytest.raises(Abandoned, match=r"within 0\.2 s"):
        drain.check()
