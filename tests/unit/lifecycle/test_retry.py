"""Waiting for a store that is out of reach, until it is back or the batch is abandoned."""

import time

import pytest

from consumer.lifecycle import retry
from consumer.lifecycle.interruption import UNINTERRUPTED
from consumer.lifecycle.retry import StoreRetry
from consumer.model.errors import Abandoned
from consumer.model.hooks import Hooks, Outage
from storage.backoff import Backoff
from storage.errors import StoreRefused, StoreUnavailable
from tests.unit.flickering import Flickering

AWAY = StoreUnavailable("no route")


class Outages:
    """Keeps what is reported about the store."""

    def __init__(self) -> None:
        self.reasons: list[str | None] = []

    def listen(self, hooks: Hooks) -> None:
        """Listen to outages."""
        hooks.on(Outage, lambda outage: self.reasons.append(outage.reason))


def test_a_call_is_repeated_until_it_succeeds() -> None:
    """Each failure is reported, and so is the end of the outage."""
    outages, store = Outages(), Flickering(3, AWAY)
    assert StoreRetry(UNINTERRUPTED.while_judging, Hooks(outages)).call(store.call) == 4
    assert outages.reasons == ["no route"] * 3 + [None]


def test_pauses_grow() -> None:
    """Consumers do not hammer a store that is away, nor all call it at the moment it is back."""
    began_s = time.monotonic()
    StoreRetry(UNINTERRUPTED.while_judging, Hooks()).call(Flickering(4, AWAY).call)
    assert time.monotonic() - began_s > 0.5 * (0.1 + 0.2 + 0.4 + 0.8)


def test_waiting_ends_when_the_batch_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """``proceed`` is called many times within a pause, so that a rebalance does not wait for it to end."""
    monkeypatch.setattr(retry, "_PAUSES", Backoff(600.0, 600.0))
    store = Flickering(10**9, AWAY)
    checks = 0

    def proceed() -> None:
        nonlocal checks
        checks += 1
        if checks > 5:
            raise Abandoned("taken away")

    with pytest.raises(Abandoned, match="taken away"):
        StoreRetry(proceed, Hooks()).call(store.call)
    assert store.calls == 1


def test_other_errors_are_raised_at_once() -> None:
    """A store that refuses settings will refuse them again."""

    def refuse() -> None:
        raise StoreRefused("other settings")

    with pytest.raises(StoreRefused):
        StoreRetry(UNINTERRUPTED.while_judging, Hooks()).call(refuse)
