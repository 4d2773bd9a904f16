"""The judge on small cases: sources that are never flagged, swept articles, what a verdict contains."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from types import MappingProxyType

import msgspec
import pytest

from consumer.judge.detector import Detector
from consumer.judge.known_originals import FLOOD_COPIES_MIN, KnownOriginals
from consumer.judge.settings import JudgeSettings, SourceRule
from consumer.model.verdict import Verdict, decode_verdict
from storage.errors import StoreError, StoreUnavailable
from storage.interface import Store
from storage.memory import MemoryStore
from storage.postings import PostingRow
from storage.records import Record, StoredVersion, Tombstone, Version
from tests.builders import RETRACTED, TIME_MS, make_tombstone
from tests.chaos.near_articles import SETTINGS, near_group

GROUP = near_group(random.Random("detector"), "article", 4, 0)


def from_source(version: Version, source: str) -> Version:
    """Return the same article from another source."""
    return Version(msgspec.structs.replace(version.record, source=source), None)


def ticking() -> Callable[[], int]:
    """Return a clock that never shows the same time twice, so that a verdict that is built again differs."""
    return count(TIME_MS).__next__


def judged(
    store: Store, *batches: Sequence[Version], by: JudgeSettings = SETTINGS, detector: Detector | None = None
) -> list[Verdict]:
    """Return the verdicts of some batches, by one detector."""
    judge = detector or Detector(store, by, lambda: TIME_MS)
    return [event.verdict for batch in batches for event in judge.judge(batch)]


@pytest.mark.parametrize("in_one_batch", [True, False])
@pytest.mark.parametrize("place", range(4))
def test_what_is_never_flagged_is_kept_wherever_it_comes(place: int, *, in_one_batch: bool) -> None:
    """Others are flagged against it as against any kept version; it is kept and never claimed."""
    by = replace(SETTINGS, sources=MappingProxyType({"pinned": SourceRule(flag="never")}))
    group = [from_source(version, "pinned") if number == place else version for number, version in enumerate(GROUP)]
    batches = [group] if in_one_batch else [[version] for version in group]
    verdicts = judged(MemoryStore(), *batches, by=by)
    kept = [number for number, verdict in enumerate(verdicts) if verdict.outcome == "unique"]
    assert kept == sorted({0, place})


@pytest.mark.parametrize("remembers", [True, False])
@pytest.mark.parametrize("in_one_batch", [True, False])
def test_what_may_not_repeat_the_best_repeats_another(*, in_one_batch: bool, remembers: bool) -> None:
    """Of kept articles all near a copy, the rules exclude the most similar; the flag names the next, and says so."""
    by = replace(SETTINGS, sources=MappingProxyType({"mirror": SourceRule(never_with=("wire",))}))
    wire, blog, mirror = (
        from_source(version, source) for version, source in zip(GROUP, ("wire", "blog", "mirror"), strict=False)
    )
    equal = Version(
        msgspec.structs.replace(wire.record, id="copy", reference=b"c" * 32, sequence=9, source="mirror"), None
    )
    apart = replace(by, sources=MappingProxyType({"wire": SourceRule(never_with=("mirror", "blog"))}))
    batches = [[wire, blog, equal]] if in_one_batch else [[wire], [blog], [equal]]
    known = KnownOriginals(100)
    if remembers:
        for version in (wire, blog):
            known.remember(version.record)
    detector = Detector(MemoryStore(), apart, lambda: TIME_MS, known)
    verdicts = judged(MemoryStore(), *batches, detector=detector)
    assert [verdict.outcome for verdict in verdicts] == ["unique", "unique", "duplicate"]
    assert verdicts[2].duplicate_of == blog.record.id
    assert [match.id for match in verdicts[2].matches] == [blog.record.id]
    (asked,) = detector.query([mirror])
    assert [match.record.id for match in asked.matches] == [blog.record.id]


def test_answers_come_in_the_order_of_the_batch() -> None:
    """The order is kept with tombstones in the batch, and though versions are decided in order of arrival."""
    batch: list[Version | Tombstone] = [GROUP[2], make_tombstone("gone", event=RETRACTED.encoded), GROUP[0], GROUP[1]]
    events = Detector(MemoryStore(), SETTINGS, lambda: TIME_MS).judge(batch)
    assert events[1] == RETRACTED
    verdicts = [events[n].verdict for n in (0, 2, 3)]
    assert [verdict.id for verdict in verdicts] == ["article.2", "article.0", "article.1"]
    assert [verdict.outcome for verdict in verdicts] == ["duplicate", "unique", "duplicate"]


def test_a_verdict_is_decoded_only_where_another_wrote_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge returns its own verdicts with their bytes; a verdict that the store returns is decoded once."""
    decoded: list[bytes] = []

    def noted(data: bytes) -> Verdict:
        decoded.append(data)
        return decode_verdict(data)

    monkeypatch.setattr("consumer.model.verdict.decode_verdict", noted)
    store = MemoryStore()
    answers = [event for batch in (GROUP[:2], GROUP[2:]) for event in Detector(store, SETTINGS, ticking()).judge(batch)]
    assert decoded == []
    stored = store.read([version.record.reference for version in GROUP])
    assert [answer.encoded for answer in answers] == [each and each.verdict for each in stored]
    assert Detector(store, SETTINGS, ticking()).judge(GROUP) == answers
    assert decoded == [answer.encoded for answer in answers]


def test_a_copy_of_a_known_original_names_it_and_is_not_posted() -> None:
    """The detector knows the original from the second copy on."""
    store = MemoryStore()
    detector = Detector(store, SETTINGS, lambda: TIME_MS)
    verdicts = judged(store, [GROUP[0]], [GROUP[1]], [GROUP[2]], [GROUP[3]], detector=detector)
    assert [verdict.duplicate_of for verdict in verdicts] == [None, *["article.0"] * 3]
    assert (detector.tally.known_copies, detector.tally.duplicates, detector.tally.kept) == (2, 3, 1)
    assert store.stats().postings == len(GROUP[0].record.keys)


def test_a_retracted_original_is_no_longer_known() -> None:
    """An article after the retraction is kept, even by a process that remembers the original."""
    store = MemoryStore()
    detector = Detector(store, SETTINGS, lambda: TIME_MS)
    judged(store, [GROUP[0]], [GROUP[1]], detector=detector)
    detector.judge([make_tombstone(GROUP[0].record.id, sequence=2)])
    late = Version(msgspec.structs.replace(GROUP[2].record, sequence=3), None)
    assert judged(store, [late], detector=detector)[0].outcome == "unique"


def test_an_article_that_is_swept_while_it_is_judged_is_an_error() -> None:
    """A window shorter than the lag is an error, not a guess."""

    class Sweeping(MemoryStore):
        def read(self, references: object) -> list[StoredVersion | None]:
            self.sweep(1 << 60, 100)
            return super().read(references)  # type: ignore[arg-type]  # as it is given

    with pytest.raises(StoreError, match="expired while it was judged"):
        judged(Sweeping(), GROUP[:2])


def test_a_flag_says_what_both_share() -> None:
    """The shared keywords, the distance, the similarity and the original."""
    verdicts = judged(MemoryStore(), [GROUP[0]], [GROUP[1]])
    assert verdicts[1].shared_keywords == ("harbour", "ferry")
    assert verdicts[1].cluster == verdicts[1].duplicate_of == "article.0"
    assert 0.72 <= (verdicts[1].similarity or 0) < 1
    expected = int.from_bytes(GROUP[0].record.fingerprint) ^ int.from_bytes(GROUP[1].record.fingerprint)
    assert verdicts[1].distance == expected.bit_count()


def test_a_flood_counts_from_its_hundredth_copy_on() -> None:
    """However many copies follow, in whatever batches, it is one flood; fewer copies are none."""
    detector = Detector(MemoryStore(), SETTINGS, lambda: TIME_MS)
    flood = near_group(random.Random("flood"), "flooded", FLOOD_COPIES_MIN + 3, 0, share=0.0)
    judged(MemoryStore(), flood[:1], flood[1:FLOOD_COPIES_MIN], detector=detector)
    assert (detector.tally.floods, detector.tally.flood_copies) == (0, 0)
    judged(MemoryStore(), flood[FLOOD_COPIES_MIN:], GROUP[:1], GROUP[1:], detector=detector)
    assert (detector.tally.floods, detector.tally.flood_copies) == (1, 3)


def test_what_was_looked_at_is_counted_article_by_article() -> None:
    """The candidates and comparisons of each article, and the similarity of each pair."""
    detector = Detector(MemoryStore(), SETTINGS, lambda: TIME_MS)
    judged(MemoryStore(), GROUP[:1], GROUP[1:2], detector=detector)
    tally = detector.tally
    counts = [
        distribution.count
        for distribution in (tally.candidates, tally.suspects, tally.verifications, tally.similarities)
    ]
    assert counts == [2, 2, 2, 1]
    assert [distribution.total for distribution in (tally.candidates, tally.verifications)] == [1, 1]
    assert 0.72 <= tally.similarities.total < 1


def test_the_time_of_judging_is_looking_up_or_settling() -> None:
    """Time that the store spends on reads is looking up, time for writes is settling, even where it fails."""
    took_s = 0.02

    class Slow(MemoryStore):
        def look_up(self, keys: Sequence[bytes], bytes_max: int | None = None) -> list[PostingRow]:
            time.sleep(took_s)
            return super().look_up(keys, bytes_max)

        def settle(self, verdicts: Sequence[tuple[bytes, bytes]], removing: Sequence[Record] = ()) -> list[bool]:
            time.sleep(2 * took_s)
            raise StoreUnavailable("it is gone")

    detector = Detector(Slow(), SETTINGS, lambda: TIME_MS)
    began_s = time.perf_counter()
    with pytest.raises(StoreUnavailable):
        detector.judge(GROUP[:1])
    all_s = time.perf_counter() - began_s
    assert detector.tally.look_up_s >= took_s
    assert detector.tally.settle_s >= 2 * took_s
    assert detector.tally.look_up_s + detector.tally.settle_s <= all_s


def test_far_articles_are_all_kept() -> None:
    """Articles that have nothing in common are not flagged."""
    chance = random.Random("far")
    far = [near_group(chance, f"group {n}", 1, n)[0] for n in range(20)]
    assert {verdict.outcome for verdict in judged(MemoryStore(), far)} == {"unique"}


def test_a_version_without_candidates_is_not_read_again() -> None:
    """What creating it returned is enough; a version with candidates is read, since something may have ended it."""
    detector = Detector(MemoryStore(), SETTINGS, lambda: TIME_MS)
    judged(MemoryStore(), GROUP[:1], detector=detector)
    assert detector.tally.record_reads == 0
    store = MemoryStore()
    detector = Detector(store, SETTINGS, lambda: TIME_MS)
    judged(store, GROUP[:1], GROUP[1:2], detector=detector)
    assert detector.tally.record_reads == 2


def test_a_lost_version_that_was_swept_is_an_error_at_once() -> None:
    """It is not decided again and again."""

    class Sweeping(MemoryStore):
        rounds = 0

        def settle(self, verdicts: Sequence[tuple[bytes, bytes]], removing: Sequence[Record] = ()) -> list[bool]:
            self.rounds += 1
            self.sweep(1 << 60, 100)
            return super().settle(verdicts, removing)

    store = Sweeping()
    with pytest.raises(StoreError, match="expired while it was judged"):
        judged(store, [GROUP[0]])
    assert store.rounds == 1


def test_duplicates_of_a_batch_are_settled_with_one_call_and_removed_with_another() -> None:
    """Known copies, other duplicates and claims take one call; the kept ones and the removal another."""
    calls: list[tuple[str, int, int]] = []

    class Noting(MemoryStore):
        def settle(self, verdicts: Sequence[tuple[bytes, bytes]], removing: Sequence[Record] = ()) -> list[bool]:
            calls.append(("settle", len(verdicts), len(removing)))
            return super().settle(verdicts, removing)

        def remove(self, records: Sequence[Record]) -> None:
            calls.append(("remove", len(records), 0))
            super().remove(records)

    store = Noting()
    detector = Detector(store, SETTINGS, lambda: TIME_MS)
    others = near_group(random.Random("others"), "other", 2, 100)
    judged(store, GROUP[:2], detector=detector)
    calls.clear()
    verdicts = judged(store, [GROUP[2], *others], detector=detector)
    assert [verdict.outcome for verdict in verdicts] == ["duplicate", "unique", "duplicate"]
    assert detector.tally.known_copies == 1
    assert calls == [("settle", 2, 0), ("settle", 1, 1)]
    assert store.stats().postings == len(GROUP[0].record.keys) + len(others[0].record.keys)


def test_postings_of_duplicates_are_deleted_where_a_batch_is_judged_again() -> None:
    """A crash may come after a duplicate was settled and before its postings were deleted."""

    class Hoarding(MemoryStore):
        dies = True

        def settle(self, verdicts: Sequence[tuple[bytes, bytes]], removing: Sequence[Record] = ()) -> list[bool]:
            if removing and self.dies:
                raise StoreUnavailable("it is gone")
            return super().settle(verdicts, removing)

    store = Hoarding()
    with pytest.raises(StoreUnavailable):
        judged(store, GROUP[:2])
    assert store.stats().postings == 2 * len(GROUP[0].record.keys)
    store.dies = False
    for batch in (GROUP[:2], GROUP[1:2]):
        assert judged(store, batch)[-1].outcome == "duplicate"
        assert store.stats().postings == len(GROUP[0].record.keys)
