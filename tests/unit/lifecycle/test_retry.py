"""Waiting for a store that is out of reach, until it is back or the batch is abandoned."""

import time

import pytest

from consumer.lifecycle.retry import Backoff, Drain
from consumer.lifecycle.stopping import Stopping
from consumer.model.errors import Abandoned
from consumer.model.hooks import Hooks, Outage
from storage.errors import StoreRefused, StoreUnavailable
from tests.unit.flickering import Flickering

AWAY = StoreUnavailable("no route")


class Outages:
    """Keeps what is reported about the store."""

    def __init__(self) -> None:
        self.reasons: list[str | None] = []

    def listen(self, hooks: Hooks) -> None:
        """Listen to outages."""
        hooks.on(Outage, lambda outage: self.reasons.append(outage.why))


def never() -> None:
    """Allow to wait for ever."""


def test_a_call_is_repeated_until_it_succeeds() -> None:
    """Each failure is reported, and so is the end of the outage."""
    outages, store = Outages(), Flickering(3, AWAY)
    assert Backoff(never, Hooks(outages)).call(store.call) == 4
    assert outages.reasons == ["no route"] * 3 + [None]


def test_pauses_grow() -> None:
    """Consumers do not hammer a store that is away, nor all call it at the moment it is back."""
    began_s = time.monotonic()
    Backoff(never, Hooks()).call(Flickering(4, AWAY).call)
    assert time.monotonic() - began_s > 0.5 * (0.1 + 0.2 + 0.4 + 0.8)


def test_waiting_ends_when_the_batch_is_abandoned() -> None:
    """``check`` is called many times a second, so that a rebalance does not wait for a pause to end."""
    checks = 0

    def check() -> None:
        nonlocal checks
        checks += 1
        if checks > 5:
            raise Abandoned("taken away")

    began_s = time.monotonic()
    with pytest.raises(Abandoned, match="taken away"):
        Backoff(check, Hooks()).call(Flickering(10**9, AWAY).call)
    assert time.monotonic() - began_s < 2


def test_other_errors_are_raised_at_once() -> None:
    """A store that refuses settings will refuse them again."""

    def refuse() -> None:
        raise StoreRefused("other settings")

    with pytest.raises(StoreRefused):
        Backoff(never, Hooks()).call(refuse)


def test_a_stopped_run_has_limited_time_to_finish() -> None:
    """The clock starts when it is asked to stop."""
    stopping = Stopping()
    drain = Drain(stopping, 0.2)
    drain.check()
    stopping.asked_by, stopping.asked_at_s = 15, time.monotonic()
    drain.check()
    assert not drain.is_over()
    time.sleep(0.25)
    assert drain.is_over()
    with pytest.raises(Abandoned, match=r"within 0\.2 s"):
        drain.check()
