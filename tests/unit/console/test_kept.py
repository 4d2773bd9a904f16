"""What takes long to compute: by a thread, kept, and never waited for for long."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from consumer.console.intake import kept as module
from consumer.console.intake.kept import Kept

WAIT_S = 30.0


def wait_for(holds: Callable[[], bool]) -> None:
    """Wait until the condition holds."""
    until_s = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < until_s
        time.sleep(0.005)


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
def _not_fresh_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found is new for a moment only."""
    monkeypatch.setattr(module, "FRESH_S", 0.2)


def test_what_takes_no_time_is_waited_for() -> None:
    """Whoever asks has it at once, and has the same while it is fresh; then it is computed anew."""
    computing = Computing()
    kept = Kept("computing", computing)
    assert (kept.latest(WAIT_S) or "").startswith("1, ")
    wait_for(lambda: kept.latest(WAIT_S) == "1, whole")
    assert computing.times == 1
    wait_for(lambda: kept.latest(WAIT_S) == "2, whole")
    kept.close()


def test_what_takes_long_is_not_waited_for() -> None:
    """There is nothing at first; then what there is so far, and what was found before while it is computed again."""
    computing, gate = Computing(), threading.Event()

    def slow() -> Iterator[str]:
        gate.wait(WAIT_S)
        yield from computing()

    kept = Kept("computing", slow)
    began_s = time.monotonic()
    assert kept.latest(0.05) is None
    assert time.monotonic() - began_s < WAIT_S / 2
    computing.may_go_on.clear()
    gate.set()
    wait_for(lambda: kept.latest(0.05) == "1, first")
    computing.may_go_on.set()
    wait_for(lambda: kept.latest(0.05) == "1, whole")
    kept.close()


def test_it_rests_for_longer_than_it_worked(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that pages cost a twentieth of a processor at most, however often they are opened."""
    computing, now = Computing(), [100.0]
    monkeypatch.setattr("consumer.console.intake.kept.time.monotonic", lambda: now[0])

    def slow() -> Iterator[str]:
        now[0] += 3.0
        yield from computing()

    kept = Kept("computing", slow)
    kept.latest(WAIT_S)
    kept.close()
    again = Kept("computing", slow)
    wait_until = threading.Event()
    again.latest(WAIT_S)
    while again.latest(WAIT_S) != "2, whole":
        wait_until.wait(0.005)
    now[0] += 59.0
    again.latest(0)
    assert computing.times == 2
    now[0] += 2.0
    again.latest(0)
    again.close()
    assert computing.times == 3


def test_many_who_ask_at_once_have_it_computed_once() -> None:
    """Nobody starts a second thread."""
    computing = Computing()
    computing.may_go_on.clear()
    kept = Kept("computing", computing)
    asking = [threading.Thread(target=kept.latest, args=(WAIT_S,)) for _ in range(20)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(WAIT_S)
    assert computing.times == 1
    computing.may_go_on.set()
    kept.close()


def test_what_goes_wrong_is_raised_until_something_is_found() -> None:
    """And later only logged: what was found before says how old it is."""
    computing = Computing()
    computing.error = OSError("no disk")
    kept = Kept("computing", computing)
    with pytest.raises(OSError, match="no disk"):
        kept.latest(WAIT_S)
    computing.error = None
    time.sleep(0.25)
    wait_for(lambda: (kept.latest(WAIT_S) or "").endswith("whole"))
    computing.error = OSError("no disk")
    times = computing.times
    wait_for(lambda: kept.latest(WAIT_S) is not None and computing.times > times)
    assert (kept.latest(WAIT_S) or "").endswith("whole")
    kept.close()


def test_after_the_end_nothing_is_computed() -> None:
    """And what is being computed is waited for: its database closes next."""
    computing = Computing()
    computing.may_go_on.clear()
    kept = Kept("computing", computing)
    assert kept.latest(WAIT_S) == "1, first"
    threading.Timer(0.1, computing.may_go_on.set).start()
    kept.close()
    assert all(thread.name != "computing" for thread in threading.enumerate())
    assert kept.latest(0) == "1, whole"
    time.sleep(0.25)
    kept.latest(0)
    assert computing.times == 1
