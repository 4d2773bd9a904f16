"""Texts that come back after their window has ended."""

from collections.abc import Callable, Iterator, Sequence
from random import Random

import msgspec
import pytest
from typing_extensions import override

from consumer.fingerprint import TextKind
from consumer.judge.detector import Detector
from consumer.judge.seen_texts import TextMemory
from consumer.model.verdict import SeenBefore, Verdict
from consumer.text.timestamps import rfc3339
from storage.clock import MS_PER_DAY
from storage.errors import StoreError
from storage.interface import Store
from storage.memory import MemoryStore
from storage.records import Version
from storage.seen import SeenChange, SeenTimes, merge_entries
from storage.watched import Result, StoreCall, WatchedStore
from tests.builders import TIME_MS, make_record
from tests.chaos.near_articles import SETTINGS

WINDOW_MS = SETTINGS.window_ms
KEEP_MS = 30 * MS_PER_DAY


def detector(store: Store, keep_ms: int = KEEP_MS) -> Detector:
    """Return a judge that remembers texts."""
    return Detector(store, SETTINGS, lambda: TIME_MS, seen_ms=keep_ms)


def version(article_id: str, days: float, text: bytes = b"text", sequence: int = 0) -> Version:
    """Return a version with this text that arrives so many days after the first."""
    # The reference has the id; everything that is compared follows from the text.
    return at(article_id, TIME_MS + int(days * MS_PER_DAY), text, sequence)


def at(article_id: str, time_ms: int, text: bytes = b"text", sequence: int = 0) -> Version:
    """Return the same for a time in milliseconds."""
    return Version(make_record(article_id, text, time_ms, sequence, kind=int(TextKind.LONG)), None)


def verdict(judge: Detector, arrived: Version) -> Verdict:
    """Judge a version alone."""
    return judge.judge([arrived])[0].verdict


def said(first: float, last: float, times: int) -> SeenBefore:
    """Return what a verdict says, in days after the first article."""
    moments = (rfc3339(TIME_MS + int(days * MS_PER_DAY)) for days in (first, last))
    return SeenBefore(first=next(moments), last=next(moments), times=times)


def test_a_text_that_keeps_coming_back_says_so() -> None:
    """From the first copy beyond the window on, whatever it is flagged for, with the day on which it all began."""
    judge = detector(MemoryStore())
    verdicts = [verdict(judge, version(str(day), day)) for day in range(0, 25, 3)]
    assert [each.outcome for each in verdicts] == ["unique", "duplicate", "duplicate"] * 3
    assert [each.seen_before for each in verdicts] == [
        *[msgspec.UNSET] * 3,
        *[said(0, day - 3, day // 3) for day in range(9, 25, 3)],
    ]
    assert judge.tally.seen_before == 6


def test_the_window_is_left_to_the_postings() -> None:
    """A text that was first seen as long ago as the window reaches is a plain duplicate."""
    judge = detector(MemoryStore())
    judge.judge([version("first", 0)])
    assert verdict(judge, version("second", WINDOW_MS / MS_PER_DAY)).seen_before is msgspec.UNSET
    late = verdict(judge, at("third", TIME_MS + WINDOW_MS + 1))
    assert late.seen_before == said(0, 7, 2)


def test_nothing_is_asked_or_said_without_it() -> None:
    """The default costs no call of the store, and events keep their bytes."""
    called: list[str] = []

    class Noting(WatchedStore):
        @override
        def _call(self, name: StoreCall, items: int, call: Callable[[], Result]) -> Result:
            called.append(name)
            return call()

    judge = detector(Noting(MemoryStore()), 0)
    for day in (0, 9):
        assert b"seen_before" not in judge.judge([version(str(day), day)])[0].encoded
    assert judge.forget_texts(TIME_MS, 10) == 0
    assert {"seen", "change_seen", "forget_seen"}.isdisjoint(called)


def test_a_text_that_was_away_for_too_long_is_new() -> None:
    """As if it had been forgotten, whether the store has come to that or not."""
    judge = detector(MemoryStore())
    for day in (0, 9):
        judge.judge([version(str(day), day)])
    assert verdict(judge, version("within", 39)).seen_before == said(0, 9, 2)
    assert verdict(judge, version("beyond", 70)).seen_before is msgspec.UNSET
    assert verdict(judge, version("again", 79)).seen_before == said(70, 70, 1)


def test_a_replay_counts_nothing_twice_and_gets_the_same_bytes() -> None:
    """Of settled versions as of a batch that grew; a new text of the same id counts apart."""
    store = MemoryStore()
    batch = [version("a", 0), version("b", 20), version("b", 21, b"other")]
    first = [detector(store).judge([each])[0].encoded for each in batch]
    before = dict(store.scan_seen())
    for _ in range(3):
        assert [detector(store).judge([each])[0].encoded for each in batch] == first
    assert dict(store.scan_seen()) == before
    assert sorted(seen.times for seen in before.values()) == [1, 2]


def test_a_batch_writes_each_text_once() -> None:
    """A flood of copies is one entry, and copies in one batch see those before them, in order of arrival."""
    changes: list[Sequence[SeenChange]] = []

    class Counting(MemoryStore):
        @override
        def change_seen(self, changes_: Sequence[SeenChange]) -> list[bool]:
            changes.append(changes_)
            return super().change_seen(changes_)

    store = Counting()
    batch = [version(str(day), day) for day in (20, 0, 10)]
    events = detector(store).judge(batch)
    assert [event.verdict.seen_before for event in events] == [said(0, 10, 2), msgspec.UNSET, said(0, 0, 1)]
    assert [len(each) for each in changes] == [1]
    assert [seen.times for _, seen in store.scan_seen()] == [3]
    detector(store).judge(batch)
    assert len(changes) == 1


def test_what_came_late_moves_the_beginning_and_is_not_counted() -> None:
    """It may be a replay: a lower bound is promised."""
    store = MemoryStore()
    judge = detector(store)
    judge.judge([version("new", 5)])
    judge.judge([version("late", 0)])
    assert [seen for _, seen in store.scan_seen()] == [SeenTimes(TIME_MS, TIME_MS + 5 * MS_PER_DAY, 0, 1)]


def test_texts_without_a_character_are_not_remembered() -> None:
    """They all look the same."""
    store = MemoryStore()
    empty = Version(make_record("a", b"", kind=0, keys=()), None)
    detector(store).judge([empty])
    assert list(store.scan_seen()) == []


class Racing(MemoryStore):
    """A store in which somebody else sees the text between reading and writing, so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self._left = times

    @override
    def change_seen(self, changes: Sequence[SeenChange]) -> list[bool]:
        if self._left:
            self._left -= 1
            for digest in [change.digest for change in changes]:
                (now,) = self.seen([digest])
                other = SeenTimes(TIME_MS - 1, TIME_MS, 1_000, 1) if now is None else now._replace(times=now.times + 1)
                super().change_seen([SeenChange(digest, now, other)])
        return super().change_seen(changes)


def test_what_another_process_saw_meanwhile_is_kept() -> None:
    """A lost compare-and-set is counted, and repeated from what is stored."""
    store = Racing(3)
    judge = detector(store)
    judge.judge([version("a", 1)])
    assert [seen for _, seen in store.scan_seen()] == [SeenTimes(TIME_MS - 1, TIME_MS + MS_PER_DAY, 0, 4)]
    assert judge.tally.lost_compare_and_sets == 3


def test_a_compare_and_set_that_is_always_lost_fails_the_batch() -> None:
    """Instead of going on for ever, or in silence."""
    with pytest.raises(StoreError, match="1 text lost a compare-and-set 1000 times in a row"):
        detector(Racing(2_000)).judge([version("a", 1)])


class Killed(Exception):  # noqa: N818  # what became of the process
    """The process ends here."""


def crashing(store: Store, calls: int) -> Store:
    """Return a store that ends the process at its call of this number."""

    class Crashing(WatchedStore):
        left = calls

        @override
        def _call(self, name: StoreCall, items: int, call: Callable[[], Result]) -> Result:
            self.left -= 1
            if self.left < 0:
                raise Killed
            return call()

    return Crashing(store)


def series(random: Random) -> Iterator[Version]:
    """Twenty texts that come back every one to six days for 60 days, in order of arrival."""
    arrivals = []
    for text in range(20):
        days = random.random() * 3
        while days < 60:
            arrivals.append((days, text))
            days += 1 + random.random() * 5
    for sequence, (days, text) in enumerate(sorted(arrivals)):
        yield version(f"article {sequence}", days, f"text {text}".encode(), sequence)


@pytest.mark.parametrize("seed", range(5))
def test_series_say_the_right_first_day_after_kills_and_replays(seed: int) -> None:
    """Every copy beyond the window of the first says so; never more times than there were."""
    random = Random(seed)  # a feed
    arrived = list(series(random))
    store = MemoryStore()
    events: dict[bytes, bytes] = {}
    start = 0
    while start < len(arrived):
        end = start + random.randint(1, 12)
        for calls in (random.randint(0, 12), random.randint(0, 12), 1_000):
            try:
                for each, event in zip(
                    arrived[start:end], detector(crashing(store, calls)).judge(arrived[start:end]), strict=True
                ):
                    assert events.setdefault(each.reference, event.encoded) == event.encoded
            except Killed:
                continue
        # Sometimes what was committed is read again.
        start = end if random.random() < 0.8 else max(0, end - 20)
    earlier: dict[bytes, list[int]] = {}
    for each in arrived:
        times = earlier.setdefault(each.record.text_digest, [])
        found = msgspec.json.decode(events[each.reference], type=Verdict).seen_before
        if times and times[0] < each.record.time_ms - WINDOW_MS:
            assert isinstance(found, SeenBefore)
            assert (found.first, found.last, found.times) == (rfc3339(times[0]), rfc3339(times[-1]), len(times))
        else:
            assert found is msgspec.UNSET
        times.append(each.record.time_ms)


def test_a_query_says_it_too_and_remembers_nothing() -> None:
    """Of an article that would arrive now."""
    store = MemoryStore()
    judge = detector(store)
    judge.judge([version("a", 0)])
    before = list(store.scan_seen())
    found = judge.query([version("b", 8), version("c", 8, b"new"), version("d", 8)])
    assert [each.seen_before for each in found] == [said(0, 0, 1), None, said(0, 0, 1)]
    assert list(store.scan_seen()) == before


def test_two_memories_of_the_same_arrivals_count_them_once() -> None:
    """As after a copy, in whichever order."""
    old, new = SeenTimes(1, 50, 3, 20), SeenTimes(10, 60, 1, 4)
    assert merge_entries(old, new) == merge_entries(new, old) == SeenTimes(1, 60, 1, 20)
    assert merge_entries(old, old) == old


def test_an_attempt_keeps_the_settings() -> None:
    """What a batch counts is kept apart, what it remembers is not."""
    judge = detector(MemoryStore())
    attempt = judge.attempt()
    assert attempt.seen_texts == TextMemory(judge.store, judge.seen_ms, SETTINGS.window_ms, attempt.tally)
    assert attempt.tally is not judge.tally
