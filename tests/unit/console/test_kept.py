"""What takes long to compute: by a thread, kept, and never waited for for long."""

import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from consumer.console.intake import cached_result as module
from consumer.console.intake.cached_result import FRESH_S, CachedResult
from tests.cli.command import wait_for

WAIT_S = 60.0


class Computing:
    """Counts up; each time takes until it may go on."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.times = 0
        self.error: Exception | None = None

    def __call__(self) -> Iterator[str]:
        """Yield twice."""
        self.times += 1
        if self.error is not None:
            raise self.error
        yield f"{self.times}, first"
        self.may_go_on.wait(WAIT_S)
        yield f"{self.times}, whole"


@pytest.fixture(autouse=True)
def now_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which a test sets: what was found stays fresh until then."""
    now = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def rest(kept: CachedResult[str]) -> None:
    """Wait until nothing is computed any more: what was found is fresh from then on."""
    wait_for(lambda: kept._thread is None)


def test_what_takes_no_time_is_waited_for(now_s: list[float]) -> None:
    """Whoever asks has it at once, and has the same while it is fresh; then it is computed anew."""
    computing = Computing()
    kept = CachedResult("computing", computing)
    assert (kept.latest(WAIT_S) or "").startswith("1, ")
    rest(kept)
    assert kept.latest(WAIT_S) == "1, whole"
    assert computing.times == 1
    now_s[0] += FRESH_S
    assert (kept.latest(WAIT_S) or "").startswith("2, ")
    rest(kept)
    assert kept.latest(WAIT_S) == "2, whole"
    kept.close()


def test_what_takes_long_is_not_waited_for() -> None:
    """There is nothing at first; then what there is so far, and what was found before while it is computed again."""
    computing, gate = Computing(), threading.Event()

    def slow() -> Iterator[str]:
        gate.wait(WAIT_S)
        yield from computing()

    kept = CachedResult("computing", slow)
    assert kept.latest(0.05) is None
    assert computing.times == 0
    computing.may_go_on.clear()
    gate.set()
    wait_for(lambda: kept.latest(0.05) == "1, first")
    computing.may_go_on.set()
    wait_for(lambda: kept.latest(0.05) == "1, whole")
    kept.close()


def test_it_rests_for_longer_than_it_worked(now_s: list[float]) -> None:
    """So that pages cost a twentieth of a processor at most, however often they are opened."""
    computing = Computing()

    def slow() -> Iterator[str]:
        now_s[0] += 3.0
        yield from computing()

    kept = CachedResult("computing", slow)
    kept.latest(WAIT_S)
    rest(kept)
    now_s[0] += 59.0
    assert kept.latest(0) == "1, whole"
    assert computing.times == 1
    now_s[0] += 2.0
    kept.latest(0)
    kept.close()
    assert computing.times == 2


def test_many_who_ask_at_once_have_it_computed_once() -> None:
    """Nobody starts a second thread."""
    computing = Computing()
    computing.may_go_on.clear()
    kept = CachedResult("computing", computing)
    asking = [threading.Thread(target=kept.latest, args=(WAIT_S,)) for _ in range(20)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(WAIT_S)
    assert computing.times == 1
    computing.may_go_on.set()
    kept.close()


def test_what_goes_wrong_is_raised_until_something_is_found(now_s: list[float]) -> None:
    """And later only logged: what was found before says how old it is."""
    computing = Computing()
    computing.error = OSError("no disk")
    kept = CachedResult("computing", computing)
    with pytest.raises(OSError, match="no disk"):
        kept.latest(WAIT_S)
    computing.error = None
    now_s[0] += FRESH_S
    kept.latest(WAIT_S)
    rest(kept)
    computing.error = OSError("no disk")
    now_s[0] += FRESH_S
    assert kept.latest(WAIT_S) == "2, whole"
    rest(kept)
    assert kept.latest(WAIT_S) == "2, whole"
    assert computing.times == 3
    kept.close()


def test_after_the_end_nothing_is_computed(now_s: list[float]) -> None:
    """And what is being computed is waited for: its database closes next."""
    computing = Computing()
    computing.may_go_on.clear()
    kept = CachedResult("computing", computing)
    assert kept.latest(WAIT_S) == "1, first"
    threading.Timer(0.1, computing.may_go_on.set).start()
    kept.close()
    assert all(thread.name != "computing" for thread in threading.enumerate())
    assert kept.latest(0) == "1, whole"
    now_s[0] += FRESH_S
    kept.latest(0)
    assert computing.times == 1
