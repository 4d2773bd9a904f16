"""Expiry: what a run sweeps, whatever the clock says when it begins."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.fingerprint import BlockPlan
from consumer.judge.detector import Detector
from consumer.judge.expiry import HOLD_S, Expiry
from consumer.judge.settings import JudgeSettings
from storage.clock import now_ms
from storage.interface import Store
from storage.lmdb import LmdbOptions, LmdbStore
from storage.memory import MemoryStore
from storage.records import Record, Tombstone
from storage.seen import TEXT_DIGEST_BYTES, SeenChange, SeenTimes
from tests.builders import TIME_MS, make_version
from tests.machine_clock import DAY_S, HOUR_S, JUMPS_S, MachineClock

WINDOW_S = 7 * DAY_S
KEEP_S = 8 * DAY_S
SETTINGS = JudgeSettings(plan=BlockPlan.named("4x16"), scheme_digest="", window_ms=1000 * WINDOW_S)
SEEN = bytes(TEXT_DIGEST_BYTES)


@pytest.fixture(params=["memory", "lmdb"])
def store(request: pytest.FixtureRequest, tmp_path: Path, machine: MachineClock) -> Iterator[Store]:
    """An empty store by the time of this process."""
    del machine
    opened: Store = (
        MemoryStore()
        if request.param == "memory"
        else LmdbStore.open(tmp_path / "store", LmdbOptions(durability="process"))
    )
    yield opened
    opened.close()


class Feed:
    """A feed into a store: an article an hour; processes begin and end, and see the machine's clocks."""

    def __init__(self, store: Store, machine: MachineClock) -> None:
        self._store = store
        self._machine = machine
        self._articles = 0
        self.begin()

    def begin(self) -> None:
        """Begin another process."""
        self._machine.start_process()
        judge = Detector(self._store, SETTINGS, now_ms, seen_ms=1000 * KEEP_S)
        self._expiry = Expiry(judge, now_ms, SETTINGS.window_ms, 1000 * KEEP_S)
        self._expiry.begin()

    def arrive(self, articles: int = 1, every_s: int = HOUR_S) -> None:
        """Let so much time pass before each of these articles arrives."""
        for _ in range(articles):
            self._machine.go_on(every_s)
            self._articles += 1
            version = make_version(f"a{self._articles}", f"{self._articles}".encode(), time_ms=now_ms())
            self._store.create([version])
            self._expiry.sweep(now_ms(), 1)

    def left(self) -> list[int]:
        """Return the numbers of the articles that are stored."""
        return sorted(
            int(_record(whole).id.removeprefix("a")) for whole in self._store.scan() if not isinstance(whole, Tombstone)
        )


def _record(stored: object) -> Record:
    record = stored.record  # type: ignore[attr-defined]  # it is no tombstone
    assert isinstance(record, Record)
    return record


@pytest.fixture
def feed(store: Store, machine: MachineClock) -> Feed:
    """A feed of two days."""
    feed = Feed(store, machine)
    feed.arrive(48)
    return feed


@pytest.mark.parametrize("jump_s", JUMPS_S)
def test_a_step_while_it_runs_expires_nothing_of_the_window(feed: Feed, machine: MachineClock, jump_s: int) -> None:
    """Articles go when they have been kept for window and slack, and not before."""
    machine.set_wall(jump_s)
    feed.arrive(KEEP_S // HOUR_S - 48)
    assert feed.left() == list(range(1, KEEP_S // HOUR_S + 1))
    feed.arrive(10)
    assert feed.left() == list(range(10, KEEP_S // HOUR_S + 11))


def test_nothing_expires_for_an_hour_after_a_start_far_ahead(
    feed: Feed, machine: MachineClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says what to do; with the right clock again, everything is still there, and expires when it is due."""
    machine.set_wall(20 * DAY_S)
    feed.begin()
    (line,) = [record.message for record in caplog.records]
    assert "arrived 20 days, 0:00:00 ago, more than the window of 7 days, 0:00:00" in line
    assert "stop, correct it and start again; for 1:00:00 nothing in the window of that article expires" in line
    feed.arrive(every_s=HOLD_S - 1)
    machine.set_wall(-20 * DAY_S)
    feed.begin()
    feed.arrive(24)
    assert feed.left() == list(range(1, 48 + 1 + 24 + 1))


def test_after_the_hour_articles_expire(feed: Feed, machine: MachineClock, caplog: pytest.LogCaptureFixture) -> None:
    """The clock was right, and the feed had paused."""
    caplog.set_level(logging.INFO)
    machine.go_on(20 * DAY_S)
    feed.begin()
    feed.arrive(20)
    assert feed.left() == list(range(49, 69))
    assert caplog.records[-1].message == "Articles expire by the current time again."


def test_a_second_start_within_the_hour_holds_as_well(feed: Feed, machine: MachineClock) -> None:
    """A supervisor starts it again and again: what came since the first start does not make the clock right."""
    machine.set_wall(20 * DAY_S)
    for _ in range(5):
        feed.begin()
        feed.arrive(every_s=HOLD_S // 6)
    assert feed.left() == list(range(1, 48 + 5 + 1))


def test_a_run_now_and_then_does_not_grow_for_ever(feed: Feed, machine: MachineClock) -> None:
    """Each is shorter than an hour, and a month after the one before it: what had left the window by then goes."""
    for _ in range(20):
        machine.go_on(30 * DAY_S)
        feed.begin()
        feed.arrive(every_s=1)
    assert feed.left() == [67, 68]


def test_a_short_pause_holds_nothing(feed: Feed, machine: MachineClock, caplog: pytest.LogCaptureFixture) -> None:
    """Shorter than the window: nothing is logged."""
    machine.go_on(6 * DAY_S)
    feed.begin()
    feed.arrive(2)
    assert (feed.left()[0], caplog.records) == (2, [])


def test_an_empty_store_is_no_reason_to_wait(
    store: Store, machine: MachineClock, caplog: pytest.LogCaptureFixture
) -> None:
    """There is nothing to lose."""
    Feed(store, machine)
    assert caplog.records == []


def test_a_start_far_behind_is_reported(feed: Feed, machine: MachineClock, caplog: pytest.LogCaptureFixture) -> None:
    """Articles would not be compared with those that are there, and nobody would know; none of them expires."""
    machine.set_wall(-20 * DAY_S)
    feed.begin()
    feed.arrive(10)
    (line,) = [record.message for record in caplog.records]
    assert "is dated 20 days, 0:00:00 ahead of the clock of this machine" in line
    assert feed.left() == list(range(1, 59))


def test_nothing_expires_by_a_time_ahead_of_the_clock(store: Store, machine: MachineClock) -> None:
    """As where an earlier run had a wrong clock, and its lines are still to come after those of that time."""
    store.create([make_version("a", time_ms=TIME_MS)])
    machine.go_on(HOUR_S)
    expiry = Expiry(Detector(store, SETTINGS, now_ms), now_ms, SETTINGS.window_ms, 1000 * KEEP_S)
    expiry.begin()
    expiry.sweep(TIME_MS + 20_000 * DAY_S, 10)
    assert store.stats().versions == 1


def test_remembered_texts_are_kept_as_well(store: Store, feed: Feed, machine: MachineClock) -> None:
    """What is remembered for years is not forgotten by a clock that is wrong for minutes."""
    seen = SeenTimes(now_ms(), now_ms(), 0, 1)
    assert store.change_seen([SeenChange(SEEN, None, seen)]) == [True]
    machine.set_wall(1_000 * DAY_S)
    feed.begin()
    feed.arrive(every_s=1)
    assert store.seen([SEEN]) == [seen]
    feed.arrive(2)
    assert store.seen([SEEN]) == [None]
