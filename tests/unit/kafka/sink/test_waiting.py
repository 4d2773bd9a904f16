"""A sink that waits long for its brokers reports it, and when the wait is over."""

from types import SimpleNamespace

import pytest

from consumer.kafka.sink import producing
from consumer.kafka.sink.producing import TROUBLE_AFTER_S, BrokerWait
from consumer.model.errors import Abandoned
from consumer.model.hooks import Hooks, Outage


@pytest.fixture
def now_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of the clock, which a test sets."""
    clock = [1_000.0]
    monkeypatch.setattr(producing, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    return clock


def keeping(reasons: list[str | None]) -> Hooks:
    """Return hooks whose listener keeps what is reported about the sink."""
    hooks = Hooks()
    hooks.on(Outage, lambda outage: reasons.append(outage.reason))
    return hooks


@pytest.fixture
def reasons() -> list[str | None]:
    """What was reported about the sink."""
    return []


@pytest.fixture
def waiting(reasons: list[str | None]) -> BrokerWait:
    """A wait that never gives up."""
    return BrokerWait(keeping(reasons), lambda: None)


def test_a_long_wait_is_reported_and_so_is_its_end(
    waiting: BrokerWait, reasons: list[str | None], now_s: list[float]
) -> None:
    """Once for each outage, with its last error; health and metrics go by it."""
    for _ in range(2):
        reasons.clear()
        waiting.note_no_progress("nothing is acknowledged", "")
        now_s[0] += TROUBLE_AFTER_S - 0.1
        waiting.note_no_progress("nothing is acknowledged", "")
        assert reasons == []
        now_s[0] += 0.1
        waiting.note_no_progress("nothing is acknowledged", "connection refused")
        waiting.note_no_progress("nothing is acknowledged", "connection refused")
        assert reasons == ["nothing is acknowledged: connection refused"]
        waiting.note_progress()
        waiting.note_progress()
        assert reasons == ["nothing is acknowledged: connection refused", None]


def test_short_waits_are_not_reported(waiting: BrokerWait, reasons: list[str | None], now_s: list[float]) -> None:
    """The time before the last progress does not count."""
    for _ in range(5):
        waiting.note_no_progress("nothing is acknowledged", "")
        now_s[0] += TROUBLE_AFTER_S - 0.1
        waiting.note_progress()
    assert reasons == []


def test_giving_up_ends_the_wait_at_once(reasons: list[str | None]) -> None:
    """A wait that has ended is not reported."""

    def refuse() -> None:
        raise Abandoned("asked to end")

    waiting = BrokerWait(keeping(reasons), refuse)
    with pytest.raises(Abandoned):
        waiting.note_no_progress("nothing is acknowledged", "")
    assert reasons == []
