"""Queries: they answer what a verdict would, and store nothing."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

import msgspec

from consumer.judge.detector import Detector
from consumer.judge.events import version_name
from consumer.judge.judge import QueryResult
from consumer.judge.settings import SourceRule
from consumer.model.verdict import EndedBefore, decode_verdict
from storage.memory import MemoryStore
from storage.postings import PostingRow
from storage.records import StoredVersion, Tombstone, Version
from tests.builders import TIME_MS
from tests.chaos.mixed_feed import mixed_feed
from tests.chaos.near_articles import SETTINGS, new_text, version_of


def unseen(store: MemoryStore) -> Iterator[Version | Tombstone]:
    """Yield each article of a feed just before it is judged for the first time; replays are judged and skipped."""
    detector = Detector(store, SETTINGS, count(TIME_MS).__next__)
    for arrived in mixed_feed(600, "query"):
        if isinstance(arrived, Tombstone) or store.read([arrived.record.reference])[0] is None:
            yield arrived
        detector.judge([arrived])


def test_a_query_says_what_the_verdict_will_say_and_stores_nothing() -> None:
    """Just before an article is judged, a query returns the same matches in the same order, and stores nothing."""
    store = MemoryStore()
    asked: dict[bytes, list[str]] = {}
    ended: dict[bytes, EndedBefore | None] = {}
    for arrived in unseen(store):
        if isinstance(arrived, Version):
            before = store.stats()
            (found,) = Detector(store, SETTINGS, lambda: TIME_MS).query([arrived])
            assert not found.truncated
            assert store.stats() == before
            assert store.read([arrived.record.reference]) == [None]
            asked[arrived.record.reference] = [version_name(match.record.reference) for match in found.matches]
            ended[arrived.record.reference] = found.ended_before
    answered = 0
    for stored in store.scan():
        if isinstance(stored, StoredVersion) and stored.verdict is not None:
            verdict = decode_verdict(stored.verdict)
            names = asked[stored.record.reference]
            assert bool(names) == (verdict.outcome == "duplicate")
            # A known copy is compared with the originals that this process knows, and names one of those.
            assert {match.version for match in verdict.matches} <= set(names)
            if not names:
                said = verdict.ended_before
                assert (None if said is msgspec.UNSET else said) == ended[stored.record.reference]
            answered += bool(names)
    assert answered > 100
    assert any(ended.values())


def test_a_query_passes_over_what_is_pending() -> None:
    """Only kept versions are matched; of those that may yet be, the answer says that there are some."""
    store = MemoryStore()
    first = version_of("first", new_text(random.Random("pending")), 0)
    store.create([first])
    store.add([first.record])
    copy = Version(msgspec.structs.replace(first.record, id="copy", reference=b"c" * 32), None)
    detector = Detector(store, SETTINGS, lambda: TIME_MS)
    assert detector.query([copy]) == [QueryResult([], truncated=False, pending=True)]
    detector.judge([first])
    (found,) = detector.query([copy])
    assert ([match.record.id for match in found.matches], found.pending) == ([first.record.id], False)


def test_a_query_for_a_source_that_is_never_flagged_finds_nothing() -> None:
    """A query does not report an article as a duplicate that the judge would keep."""
    store = MemoryStore()
    settings = replace(SETTINGS, sources={"wire": SourceRule(flag="never")})
    first = version_of("first", new_text(random.Random("never")), 0)
    detector = Detector(store, settings, lambda: TIME_MS)
    detector.judge([first])
    record = msgspec.structs.replace(first.record, id="copy", reference=b"c" * 32)
    versions = [Version(msgspec.structs.replace(record, source=name), None) for name in ("other", "wire")]
    flagged, never = (detector.query([version])[0] for version in versions)
    assert (len(flagged.matches), never.matches) == (1, [])


def test_a_query_finds_nothing_of_a_source_that_is_kept_apart() -> None:
    """As the judge flags nothing for it, whichever of the two sources has the rule."""
    first = version_of("first", new_text(random.Random("apart")), 0)
    record = msgspec.structs.replace(first.record, id="copy", reference=b"c" * 32)
    for rules in ({"wire": SourceRule(never_with=("mirror",))}, {"mirror": SourceRule(never_with=("wire",))}):
        detector = Detector(MemoryStore(), replace(SETTINGS, sources=rules), lambda: TIME_MS)
        detector.judge([first])
        versions = [Version(msgspec.structs.replace(record, source=name), None) for name in ("other", "mirror")]
        flagged, apart = (detector.query([version])[0] for version in versions)
        assert (len(flagged.matches), apart.matches) == (1, [])


def test_those_of_one_query_are_answered_as_if_each_were_alone() -> None:
    """Among them some that are stored, and near others of the query: what is stored counts, not that it was asked."""
    feed = [arrived for arrived in mixed_feed(300, "together") if isinstance(arrived, Version)]
    store = MemoryStore()
    judge = Detector(store, SETTINGS, count(TIME_MS).__next__)
    for version in feed[: len(feed) // 2]:
        judge.judge([version])
    detector = Detector(store, SETTINGS, lambda: TIME_MS)
    alone = [detector.query([version])[0] for version in feed]
    assert detector.query(feed) == alone
    assert sum(bool(result.matches) for result in alone) > 50


def test_a_query_looks_up_all_of_its_articles_at_once() -> None:
    """However many they are."""

    class CountingStore(MemoryStore):
        look_ups = 0

        def look_up(self, keys: Sequence[bytes], bytes_max: int | None = None) -> list[PostingRow]:
            self.look_ups += 1
            return super().look_up(keys, bytes_max)

    store = CountingStore()
    versions = [version_of(f"{number}", new_text(random.Random(number)), number) for number in range(40)]
    Detector(store, SETTINGS, lambda: TIME_MS).query(versions)
    assert store.look_ups == 1
