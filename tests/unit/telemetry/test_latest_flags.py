"""The latest flags: how many are held, when the store is read, and what a failing store does."""

import threading
import time
from collections.abc import Iterator, Sequence

import pytest

from consumer.judge.decision import Duplicate, Neighbour
from consumer.judge.events import duplicate_event, released_event
from consumer.model.hooks import Hooks
from consumer.model.verdict import Verdict, decode_verdict
from consumer.pipeline.batches import BatchCommitted
from consumer.telemetry import latest_flags
from consumer.telemetry.latest_flags import LatestFlags, LatestSnapshot
from storage.errors import StoreUnavailable
from storage.memory import MemoryStore
from storage.records import Release, StoredVersion
from tests.builders import TIME_MS, make_version
from tests.cli.command import TIMEOUT_S, wait_for
from tests.unit.telemetry.flagged import flagged


class SlowStore(MemoryStore):
    """Counts reads, and waits or fails on demand."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.go_on = threading.Event()
        self.go_on.set()
        self.error: Exception | None = None

    def read(self, references: Sequence[bytes]) -> list[StoredVersion | None]:
        """Read, or fail."""
        self.reads += 1
        self.go_on.wait(TIMEOUT_S)
        if self.error is not None:
            raise self.error
        return super().read(references)


@pytest.fixture
def store() -> SlowStore:
    """An empty one."""
    return SlowStore()


@pytest.fixture
def failures() -> list[int]:
    """One for each failure."""
    return []


@pytest.fixture
def latest(store: SlowStore, failures: list[int]) -> Iterator[LatestFlags]:
    """Of a run that has just begun; three are held."""
    flags = LatestFlags(3, TIME_MS, lambda: failures.append(1))
    flags.read_from(store)
    yield flags
    store.go_on.set()
    flags.close()


def flag(store: MemoryStore, number: int) -> Verdict:
    """A flag of its own."""
    article = make_version(f"copy-{number}", b"%d" % number, f"Copy {number}.", time_ms=TIME_MS + 1)
    return flagged(store, article, make_version(f"first-{number}", b"%d" % number, f"First {number}."))


def ids(latest: LatestSnapshot) -> list[str]:
    """Whose flags these are."""
    return [flag.verdict.id for flag in latest.flags]


def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the store said counts as old."""
    monkeypatch.setattr(latest_flags, "_FRESH_S", 0.0)


def test_the_newest_come_first_and_no_more_are_held_than_allowed(store: SlowStore, latest: LatestFlags) -> None:
    """The last three flags are held, with both articles; other verdicts are ignored."""
    flags = [flag(store, number) for number in range(5)]
    Hooks(latest).report(BatchCommitted(flags[:2], []))
    Hooks(latest).report(BatchCommitted(flags[2:], []))
    now = latest.latest(TIMEOUT_S)
    assert ids(now) == ["copy-4", "copy-3", "copy-2"]
    assert (now.seen, now.trouble) == (5, None)
    first = now.flags[0]
    assert first.article is not None
    assert first.original is not None
    assert (first.article.record.id, first.original.record.id) == ("copy-4", "first-4")


def test_what_is_unique_is_no_flag(store: SlowStore, latest: LatestFlags) -> None:
    """Only duplicates are held and counted."""
    flag(store, 1)
    kept = store.history(make_version("first-1", b"1").record.id_hash)[0]
    assert isinstance(kept, StoredVersion)
    assert kept.verdict is not None
    Hooks(latest).report(BatchCommitted([decode_verdict(kept.verdict)], []))
    assert latest.latest(TIMEOUT_S) == LatestSnapshot((), 0, "2023-11-14T22:13:20.000Z", None)


def test_a_flag_that_comes_again_is_held_once(store: SlowStore, latest: LatestFlags) -> None:
    """A batch that is judged again after a crash moves its flags to the top, without repeating them."""
    flags = [flag(store, number) for number in range(2)]
    Hooks(latest).report(BatchCommitted(flags, []))
    Hooks(latest).report(BatchCommitted(flags[:1], []))
    assert ids(latest.latest(TIMEOUT_S)) == ["copy-0", "copy-1"]


def test_the_store_is_read_only_when_somebody_asks_and_not_too_often(store: SlowStore, latest: LatestFlags) -> None:
    """A run alone reads nothing; many requests within a second cause one read."""
    Hooks(latest).report(BatchCommitted([flag(store, 1)], []))
    assert store.reads == 0
    for _ in range(20):
        latest.latest(TIMEOUT_S)
    assert store.reads == 1


def test_a_run_and_who_asks_do_not_wait_for_a_slow_store(
    store: SlowStore, latest: LatestFlags, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the store is slow, flags are shown without articles after a short wait; the run is not delayed."""
    later(monkeypatch)
    store.go_on.clear()
    Hooks(latest).report(BatchCommitted([flag(store, 1)], []))
    began_s = time.monotonic()
    now = latest.latest(0.1)
    assert time.monotonic() - began_s < TIMEOUT_S / 2
    assert (now.flags[0].article, now.trouble) == (None, "The store has not been read yet.")
    Hooks(latest).report(BatchCommitted([flag(store, 2)], []))
    assert ids(latest.latest(0)) == ["copy-2", "copy-1"]
    store.go_on.set()
    wait_for(lambda: latest.latest(1).flags[0].article is not None)


@pytest.mark.parametrize("error", [StoreUnavailable("nobody answers"), RuntimeError("a defect")])
def test_a_store_that_fails_is_counted_and_asked_again(
    latest: LatestFlags,
    store: SlowStore,
    failures: list[int],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    """Articles read before are still shown, with a notice; the next request tries again."""
    later(monkeypatch)
    Hooks(latest).report(BatchCommitted([flag(store, 1)], []))
    latest.latest(TIMEOUT_S)
    store.error = error
    now = latest.latest(TIMEOUT_S)
    assert now.trouble is not None
    assert now.flags[0].article is not None
    assert failures
    # A traceback is for a defect alone.
    assert ("Traceback" in caplog.text) == isinstance(error, RuntimeError)
    store.error = None
    wait_for(lambda: latest.latest(TIMEOUT_S).trouble is None)


def test_a_release_shows(store: SlowStore, latest: LatestFlags, monkeypatch: pytest.MonkeyPatch) -> None:
    """A released flag is marked as such."""
    later(monkeypatch)
    flagged = flag(store, 1)
    Hooks(latest).report(BatchCommitted([flagged], []))
    before = latest.latest(TIMEOUT_S).flags[0]
    assert not before.released
    assert before.original is not None
    event = released_event(flagged, by="me", reason=None, decided_ms=TIME_MS + 9).encoded
    store.release([Release(before.reference, event, before.original.record.reference)])
    wait_for(lambda: latest.latest(TIMEOUT_S).flags[0].released)


def test_who_asks_before_there_is_a_store_gets_an_answer() -> None:
    """The pages are served before the store is open."""
    latest = LatestFlags(3, TIME_MS, lambda: None)
    began_s = time.monotonic()
    assert latest.latest(TIMEOUT_S).flags == ()
    assert time.monotonic() - began_s < TIMEOUT_S / 2
    latest.close()


def test_plain_simhash_has_no_similarity(store: SlowStore, latest: LatestFlags) -> None:
    """A flag without an estimate is held like any other."""
    near = Neighbour(make_version("b").record, 3, None)
    event = duplicate_event(Duplicate(make_version("a").record, near, (near,)), truncated=True, decided_ms=TIME_MS)
    Hooks(latest).report(BatchCommitted([event.verdict], []))
    now = latest.latest(TIMEOUT_S).flags[0]
    assert (now.verdict.similarity, now.article) == (None, None)


def test_who_asks_right_after_a_flag_sees_its_articles(store: SlowStore, latest: LatestFlags) -> None:
    """An earlier read does not hide a new flag, but not every request reads the store."""
    Hooks(latest).report(BatchCommitted([flag(store, 1)], []))
    assert latest.latest(TIMEOUT_S).flags[0].article is not None
    began_s = time.monotonic()
    Hooks(latest).report(BatchCommitted([flag(store, 2)], []))
    assert latest.latest(TIMEOUT_S).flags[0].article is not None
    assert store.reads == 2
    Hooks(latest).report(BatchCommitted([flag(store, 3)], []))
    latest.latest(TIMEOUT_S)
    assert time.monotonic() - began_s >= 0.15
