"""A store that reports its calls."""

import time
from collections.abc import Callable, Sequence
from typing import get_args, get_type_hints

import pytest

from storage.errors import StartAgain, StoreError, StoreFull, StoreRefused, StoreUnavailable
from storage.interface import Answer, Store
from storage.memory import MemoryStore
from storage.postings import KeyedCode
from storage.records import StoredVersion
from storage.seen import SeenChange, SeenTimes
from storage.watched import Ending, Operation, StoreCalled, StoreConnected, StoreRepeated, TimedOperation, WatchedStore
from tests.builders import make_tombstone, make_version

VERSION = make_version()
REFERENCE = VERSION.record.reference
DIGEST = b"d" * 16
CALLS: dict[Operation, Callable[[Store], object]] = {
    "agree": lambda store: store.agree(b"settings"),
    "retract": lambda store: store.retract([make_tombstone("other")]),
    "create": lambda store: store.create([VERSION]),
    "add": lambda store: store.add([VERSION.record]),
    "look_up": lambda store: store.look_up(VERSION.record.keys),
    "seek": lambda store: store.seek([KeyedCode(VERSION.record.keys[0], VERSION.record.fingerprint)], 9),
    "settle": lambda store: store.settle([(REFERENCE, b'{"outcome":"unique"}')]),
    "read": lambda store: store.read([REFERENCE]),
    "sketches": lambda store: store.sketches([REFERENCE]),
    "latest": lambda store: store.latest([VERSION.record.id_hash]),
    "bodies": lambda store: store.bodies([REFERENCE]),
    "remove": lambda store: store.remove([VERSION.record]),
    "seen": lambda store: store.seen([DIGEST]),
    "change_seen": lambda store: store.change_seen([SeenChange(DIGEST, None, SeenTimes(1, 2, 3, 4))]),
    "sweep": lambda store: store.sweep(0, 10),
    "forget_seen": lambda store: store.forget_seen(0, 10),
}
EMPTY: list[Callable[[Store], object]] = [
    lambda store: store.retract([]),
    lambda store: store.create([]),
    lambda store: store.add([]),
    lambda store: store.look_up([]),
    lambda store: store.seek([], 9),
    lambda store: store.settle([]),
    lambda store: store.read([]),
    lambda store: store.sketches([]),
    lambda store: store.latest([]),
    lambda store: store.bodies([]),
    lambda store: store.remove([]),
    lambda store: store.seen([]),
    lambda store: store.change_seen([]),
]
UNTOLD: list[Callable[[Store], object]] = [
    lambda store: store.settings(),
    lambda store: store.history(VERSION.record.id_hash),
    lambda store: list(store.scan()),
    lambda store: list(store.scan_seen()),
    lambda store: store.stats().versions,
    lambda store: store.release([]),
]


class CallReports:
    """What a store reported; only calls are expected."""

    def __init__(self) -> None:
        self.calls: list[tuple[TimedOperation, Ending]] = []
        self.seconds: list[float] = []

    def __call__(self, what: StoreCalled | StoreConnected | StoreRepeated) -> None:
        """Note it."""
        assert isinstance(what, StoreCalled)
        self.calls.append((what.operation, what.ending))
        self.seconds.append(what.seconds)


@pytest.fixture
def reports() -> CallReports:
    """Nothing yet."""
    return CallReports()


def test_each_call_of_a_run_is_reported_and_answered_by_the_store(reports: CallReports) -> None:
    """Under its own name; what it returns is what the store alone would."""
    plain = MemoryStore(clock=lambda: 0)
    watched: Store = WatchedStore(MemoryStore(clock=lambda: 0), reports)
    assert [call(watched) for call in CALLS.values()] == [call(plain) for call in CALLS.values()]
    assert reports.calls == [(operation, "ok") for operation in CALLS]
    assert CALLS.keys() == set(get_args(Operation))


def test_what_no_run_asks_is_passed_on_and_not_reported(reports: CallReports) -> None:
    """Calls of commands that look into a store are not among its metrics."""
    plain, watched = MemoryStore(clock=lambda: 0), WatchedStore(MemoryStore(clock=lambda: 0), reports)
    for store in (plain, watched):
        store.create([VERSION])
        store.agree(b"settings")
    reports.calls.clear()
    assert [call(watched) for call in UNTOLD] == [call(plain) for call in UNTOLD]
    assert reports.calls == []


def test_a_call_about_nothing_is_not_reported(reports: CallReports) -> None:
    """Else the many batches without a retraction would make the store look fast."""
    for call in EMPTY:
        call(WatchedStore(MemoryStore(), reports))
    assert reports.calls == []


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (StoreUnavailable("away"), "unavailable"),
        (StoreFull("full"), "full"),
        (StoreRefused("other settings"), "refused"),
        (StoreError("lost"), "error"),
        (ValueError("a defect"), "error"),
        (KeyboardInterrupt(), "error"),
    ],
)
def test_a_call_that_fails_is_reported_and_raises(reports: CallReports, error: BaseException, ending: Ending) -> None:
    """With how it ended, and how long that took."""

    class Failing(MemoryStore):
        def read(self, references: Sequence[bytes]) -> list[StoredVersion | None]:
            time.sleep(0.01)
            raise error

    with pytest.raises(type(error)):
        WatchedStore(Failing(), reports).read([REFERENCE])
    assert reports.calls == [("read", ending)]
    assert reports.seconds[0] >= 0.01


def test_a_call_that_will_be_made_again_is_not_reported(reports: CallReports) -> None:
    """It did not fail; but its batch starts again."""

    class StartingAgain(MemoryStore):
        def read(self, references: Sequence[bytes]) -> list[StoredVersion | None]:
            raise StartAgain

    with pytest.raises(StartAgain):
        WatchedStore(StartingAgain(), reports).read([REFERENCE])
    assert reports.calls == []


def test_calls_within_a_batch_are_reported_one_by_one(reports: CallReports) -> None:
    """The batch is the business of the store inside, which may write all of it at once."""
    batches = []

    class Writing(MemoryStore):
        def together(self, work: Callable[[], Answer]) -> Answer:
            batches.append("begun")
            answer = work()
            batches.append("ended")
            return answer

    watched = WatchedStore(Writing(), reports)
    assert len(watched.together(lambda: watched.create([VERSION]) + watched.create([VERSION]))) == 2
    assert reports.calls == [("create", "ok"), ("create", "ok")]
    assert batches == ["begun", "ended"]


def test_a_store_that_can_be_interrupted_is_still_watched_and_wrapped_once(reports: CallReports) -> None:
    """What ``proceed`` raises is raised instead of making the call, and is no call."""
    steps: list[str] = []

    def proceed() -> None:
        steps.append("proceed")
        if len(steps) > 1:
            raise StoreUnavailable("stop")

    inner = MemoryStore(clock=lambda: 0)
    store = WatchedStore.interruptible(WatchedStore(inner, reports), proceed)
    assert store.inner is inner
    store.create([VERSION])
    with pytest.raises(StoreUnavailable):
        store.read([REFERENCE])
    assert reports.calls == [("create", "ok")]
    again = WatchedStore.interruptible(store, lambda: steps.append("outer"))
    with pytest.raises(StoreUnavailable):
        again.stats()
    assert steps == ["proceed", "proceed", "outer", "proceed"]


def test_closing_closes_the_store() -> None:
    """The one inside."""
    closed = []

    class Closing(MemoryStore):
        def close(self) -> None:
            closed.append(True)

    WatchedStore(Closing(), CallReports()).close()
    assert closed == [True]


def test_it_has_all_that_a_store_has() -> None:
    """A call that is added to the port is added here too, with the same words."""
    for name in dir(Store):
        if not name.startswith("_"):
            assert get_type_hints(vars(WatchedStore)[name]) == get_type_hints(getattr(Store, name))
