"""Crowds: thousands of articles with the words of one text in different orders, which share only its fingerprint.

What an article costs in it is counted, not timed: postings and records that are read, over every store.
"""

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

import pytest

from consumer.fingerprint import TextKind
from consumer.judge.candidates import CROWDED_VERIFICATIONS_MAX
from consumer.judge.detector import Detector
from consumer.judge.settings import JudgeSettings
from consumer.model.verdict import Verdict
from storage.interface import Store
from storage.postings import KeyedCode, PostingRow, truncated_to
from storage.records import StoredVersion, Version
from tests.builders import TIME_MS, make_tombstone
from tests.chaos.near_articles import SETTINGS, Text, edited, new_text, version_of
from tests.contract.conftest import MEMORY, Kind, SetClock
from tests.examples import drawn

CROWD = 300
LIMITED = replace(SETTINGS, verifications_max=100)
BASE = new_text(random.Random("crowds"))
ORIGINAL = 150


class _Counted:
    """A store that counts what it returns, independently of the judge's own counts."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.postings = self.records = 0

    def look_up(self, keys: Sequence[bytes], bytes_max: int | None = None) -> list[PostingRow]:
        """Look up, and count the postings."""
        rows = self._store.look_up(keys, bytes_max)
        self.postings += sum(len(row.postings) for row in rows)
        return rows

    def seek(self, places: Sequence[KeyedCode], postings_max: int) -> list[PostingRow]:
        """Seek, and count the postings."""
        rows = self._store.seek(places, postings_max)
        self.postings += sum(len(row.postings) for row in rows)
        return rows

    def read(self, references: Sequence[bytes]) -> list[StoredVersion | None]:
        """Read, and count the records."""
        self.records += len(references)
        return self._store.read(references)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


def crowd(chance: random.Random) -> list[Version]:
    """Return a crowd of articles, one of which has the base itself as its text."""
    texts = [replace(new_text(chance), fingerprint=BASE.fingerprint) for _ in range(CROWD)]
    return [version_of(f"crowd {n}", BASE if n == ORIGINAL else text, n) for n, text in enumerate(texts)]


@contextmanager
def crowded(kind: Kind, clock: SetClock, cap: int, settings: JudgeSettings = LIMITED) -> Iterator[Store]:
    """Open a store with the crowd in it, all kept, in which rows are cut at this cap."""
    with kind.opened(clock, cap) as store:
        detector = Detector(store, settings, lambda: TIME_MS)
        versions = crowd(random.Random("crowd"))
        for start in range(0, len(versions), 100):
            events = detector.judge(versions[start : start + 100])
            assert {event.verdict.outcome for event in events} == {"unique"}
        yield store


def judged(store: Store, version: Version, settings: JudgeSettings = LIMITED) -> Verdict:
    """Return the verdict of a process that remembers no earlier articles."""
    return Detector(store, settings, lambda: TIME_MS).judge([version])[0].verdict


@pytest.mark.parametrize("cap", [100, 1_000])
def test_a_copy_is_found_in_a_crowd(kind: Kind, clock: SetClock, cap: int) -> None:
    """A verbatim or slightly edited copy is found, though more candidates than the limit precede its original."""
    with crowded(kind, clock, cap) as store:
        for number, text in enumerate((BASE, edited(BASE, random.Random("edit"), 0.05))):
            verdict = judged(store, version_of(f"copy {number}", text, 1_000 + number))
            assert (verdict.outcome, verdict.duplicate_of) == ("duplicate", f"crowd {ORIGINAL}")
            assert verdict.truncated
        assert judged(store, version_of("new", new_text(random.Random("new")), 1_002)).truncated is False


def test_a_copy_is_found_where_all_rows_are_crowded(kind: Kind, clock: SetClock) -> None:
    """Where bands were made equal too, the copy's own code of lane 1 is searched in a row that was cut."""
    chance = random.Random("bands")
    with kind.opened(clock, 20) as store:
        detector = Detector(store, LIMITED, lambda: TIME_MS)
        texts = [replace(new_text(chance), fingerprint=BASE.fingerprint, bands=BASE.bands) for _ in range(60)]
        # It is ordered after all others: by its code in lane 1, and by its reference in lane 0.
        text = replace(texts[0], one_bits=2**64 - 1, sketch=bytes([1]) * 256)
        last = next(
            version for n in count() if (version := version_of(f"last {n}", text, 60)).record.reference > b"\xff"
        )
        detector.judge([*(version_of(f"crowd {n}", text, n) for n, text in enumerate(texts)), last])
        verdict = judged(store, version_of("copy", text, 1_000))
        assert (verdict.outcome, verdict.duplicate_of, verdict.truncated) == ("duplicate", last.record.id, True)


def last_of(text: Text) -> Version:
    """Return the article with this text that is ordered after all others with its code."""
    return next(version for n in count() if (version := version_of(f"last {n}", text, 600)).record.reference > b"\xff")


@pytest.mark.parametrize("kind_of_text", drawn([TextKind.LONG, TextKind.SHORT], 2))
@pytest.mark.parametrize(("others", "outcome"), [(255, "duplicate"), (256, "unique")])
def test_a_copy_hides_only_behind_256_others_with_its_code(
    kind: Kind, clock: SetClock, kind_of_text: TextKind, others: int, outcome: str
) -> None:
    """None of which is near: other texts with the same minima, or short posts of the same keywords."""
    chance = random.Random("minima")
    texts = [replace(BASE, kind=kind_of_text, sketch=chance.randbytes(256)) for _ in range(others + 1)]
    with kind.opened(clock, 20) as store:
        detector = Detector(store, SETTINGS, lambda: TIME_MS)
        original = last_of(texts[-1])
        versions = [*(version_of(f"crowd {n}", text, n) for n, text in enumerate(texts[:-1])), original]
        assert {event.verdict.outcome for event in detector.judge(versions)} == {"unique"}
        # Its own posting takes no place, though it is ordered before that of the original.
        verdict = judged(store, version_of("copy", texts[-1], 1_000), SETTINGS)
        assert (verdict.outcome, verdict.truncated) == (outcome, True)
        assert verdict.duplicate_of == (original.record.id if outcome == "duplicate" else None)


@pytest.mark.parametrize(("others", "outcome"), [(99, "duplicate"), (100, "unique")])
def test_a_copy_hides_behind_retracted_ones_beyond_the_limit(clock: SetClock, others: int, outcome: str) -> None:
    """Their postings stay, and the earliest are read first: each was unique when it came."""
    with MEMORY.opened(clock, 1_000) as store:
        detector = Detector(store, LIMITED, lambda: TIME_MS)
        for n in range(others):
            assert detector.judge([version_of(f"washed {n}", BASE, 2 * n)])[0].verdict.outcome == "unique"
            store.retract([make_tombstone(f"washed {n}", TIME_MS, 2 * n + 1)])
        assert judged(store, version_of("original", BASE, 500)).outcome == "unique"
        verdict = judged(store, version_of("copy", BASE, 1_000))
        assert (verdict.outcome, verdict.truncated) == (outcome, outcome == "unique")


@pytest.mark.parametrize("cap", [100, 1_000])
def test_what_an_article_of_a_crowd_costs_is_bounded(kind: Kind, clock: SetClock, cap: int) -> None:
    """Rows are cut at the cap, and only a few records are read of those that are alike in lane 0 only."""
    chance = random.Random("cost")
    with crowded(kind, clock, cap) as store:
        counted = _Counted(store)
        detector = Detector(counted, LIMITED, lambda: TIME_MS)  # type: ignore[arg-type]  # the rest is the store's
        batch = [
            version_of(f"more {n}", replace(new_text(chance), fingerprint=BASE.fingerprint), 1_000 + n)
            for n in range(32)
        ]
        verdicts = [event.verdict for event in detector.judge(batch)]
        assert all(verdict.outcome == "unique" and verdict.truncated for verdict in verdicts)
        # Rows of lane 0 are read once for 16 articles; rows of lane 1 hold almost only an article's own postings.
        in_row = truncated_to(cap) if cap < CROWD else CROWD + len(batch)
        assert counted.postings <= 2 * 4 * in_row + len(batch) * 8
        # They have the same candidates, and each also reads itself.
        assert counted.records <= CROWDED_VERIFICATIONS_MAX + len(batch) + 1
        assert detector.tally.crowded_articles == len(batch)
        assert detector.tally.crowded_rows == (len(batch) * 4 if cap < CROWD else 0)
        assert store.stats().crowded_rows == (4 if cap < CROWD else 0)
        assert store.stats().widest_row == CROWD + len(batch)


def test_a_crowd_costs_no_multiple_of_its_size(clock: SetClock) -> None:
    """The limit is generous: without the choice in numpy it takes hundreds of times as long."""
    chance = random.Random("time")
    with MEMORY.opened(clock, 10_000) as store:
        detector = Detector(store, SETTINGS, lambda: TIME_MS)
        for start in range(0, 4_000, 1_000):
            versions = [_shuffle(chance, start + n) for n in range(1_000)]
            store.create(versions)
            store.add([version.record for version in versions])
        ordinary, alike = [], []
        for turn in range(5):
            first = 10_000 + 1_000 * turn
            ordinary.append(_seconds(detector, [version_of(f"o{n}", new_text(chance), n) for n in _numbers(first)]))
            alike.append(_seconds(detector, [_shuffle(chance, n) for n in _numbers(first + 500)]))
        assert min(alike) < 40 * min(ordinary)


def _numbers(first: int) -> range:
    return range(first, first + 64)


def _shuffle(chance: random.Random, number: int) -> Version:
    text: Text = replace(new_text(chance), fingerprint=BASE.fingerprint)
    return version_of(f"shuffle {number}", text, number)


def _seconds(detector: Detector, versions: Sequence[Version]) -> float:
    began_s = time.process_time()
    detector.judge(versions)
    return time.process_time() - began_s
