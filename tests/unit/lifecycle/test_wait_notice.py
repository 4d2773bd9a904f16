"""A sink that waits for its brokers says so when it has become long, and when it is over."""

from types import SimpleNamespace

import pytest

from consumer.model.errors import Abandoned
from consumer.model.hooks import Hooks, Outage
from consumer.sinks import producing
from consumer.sinks.producing import TROUBLE_AFTER_S, Waiting


@pytest.fixture
def now_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the clock shows."""
    clock = [1_000.0]
    monkeypatch.setattr(producing, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    return clock


def keeping(told: list[str | None]) -> Hooks:
    """Hooks whose listener keeps what is reported of the sink."""
    hooks = Hooks()
    hooks.on(Outage, lambda outage: told.append(outage.why))
    return hooks


@pytest.fixture
def told() -> list[str | None]:
    """What was reported of the sink."""
    return []


@pytest.fixture
def waiting(told: list[str | None]) -> Waiting:
    """One that waits for ever."""
    return Waiting(keeping(told), lambda: None)


def test_trouble_is_told_once_it_is_long_and_again_when_it_is_over(
    waiting: Waiting, told: list[str | None], now_s: list[float]
) -> None:
    """Once for each outage, with its last error; health and metrics go by it."""
    for _ in range(2):
        told.clear()
        waiting.still("nothing is acknowledged", "")
        now_s[0] += TROUBLE_AFTER_S - 0.1
        waiting.still("nothing is acknowledged", "")
        assert told == []
        now_s[0] += 0.1
        waiting.still("nothing is acknowledged", "connection refused")
        waiting.still("nothing is acknowledged", "connection refused")
        assert told == ["nothing is acknowledged: connection refused"]
        waiting.moved()
        waiting.moved()
        assert told == ["nothing is acknowledged: connection refused", None]


def test_what_moves_in_time_is_no_trouble(waiting: Waiting, told: list[str | None], now_s: list[float]) -> None:
    """Time that has passed before something moved does not count."""
    for _ in range(5):
        waiting.still("nothing is acknowledged", "")
        now_s[0] += TROUBLE_AFTER_S - 0.1
        waiting.moved()
    assert told == []


def test_whoever_gives_up_is_heard_at_once(told: list[str | None]) -> None:
    """Nothing is told of a wait that has ended."""

    def give_up() -> None:
        raise Abandoned("asked to end")

    waiting = Waiting(keeping(told), give_up)
    with pytest.raises(Abandoned):
        waiting.still("nothing is acknowledged", "")
    assert told == []
