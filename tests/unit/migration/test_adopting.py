"""What a fill adopts from the old store, and how later articles are judged."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from consumer.fingerprint import BlockPlan, Scheme
from consumer.fingerprint.facts import pack_facts
from consumer.judge.detector import Detector
from consumer.judge.events import retracted_event
from consumer.judge.settings import JudgeSettings
from consumer.migration.adopting import AdoptingJudge, AdoptionCounts
from consumer.model.verdict import Released, VerdictEvent
from consumer.store_tools import releases
from consumer.store_tools.inspection import verify
from consumer.store_tools.releases import Attribution
from storage.errors import StoreUnavailable
from storage.interface import Store
from storage.lmdb import LmdbOptions, LmdbStore
from storage.memory import MemoryStore
from storage.records import StoredVersion, Tombstone, Version, id_hash, reference_of
from tests.builders import TIME_MS, make_tombstone
from tests.chaos.near_articles import near_group, new_text, version_of

LAX = JudgeSettings(plan=BlockPlan.named("4x16"), scheme_digest="made")
STRICT = replace(LAX, similarity_min=0.99)
GROUP = near_group(random.Random("adopting"), "article", 4, 0)
FIRST, SECOND, THIRD, FOURTH = GROUP
ALONE = version_of("alone", new_text(random.Random("alone")), 9)
RELEASED_MS = TIME_MS + 10


def judged(
    settings: JudgeSettings, *batch: Version | Tombstone, store: Store | None = None
) -> tuple[Store, list[VerdictEvent]]:
    """Return a store, and the events that a consumer with these settings has sent."""
    judging = MemoryStore() if store is None else store
    return judging, Detector(judging, settings, lambda: TIME_MS).judge(batch)


def filling(store: Store, settings: JudgeSettings, before: Store | None) -> AdoptingJudge:
    """Return a fill; its clock differs, so that its own verdicts can be recognised."""
    return AdoptingJudge(store, settings, lambda: TIME_MS + 1_000, old_store=before)


def outcomes(events: Sequence[VerdictEvent]) -> list[str]:
    """Return the outcomes of events."""
    return [event.verdict.outcome for event in events]


def state(store: Store) -> dict[bytes, tuple[object, ...]]:
    """Return what a store holds of each version: the record, the verdict, and which of its postings exist."""
    found: dict[bytes, tuple[object, ...]] = {}
    for stored in store.scan():
        if isinstance(stored, StoredVersion):
            reference = stored.record.reference
            rows = store.look_up(stored.record.keys)
            found[reference] = (stored, [reference in row.postings["reference"].tolist() for row in rows])
    return found


def test_verdicts_are_adopted_byte_for_byte() -> None:
    """Whatever the new settings would decide."""
    before, sent = judged(STRICT, FIRST, SECOND)
    flags_before, flags = judged(LAX, FIRST, SECOND)
    now = filling(MemoryStore(), LAX, before)
    assert now.judge([FIRST, SECOND]) == sent
    assert outcomes(sent) == ["unique", "unique"]
    then = filling(MemoryStore(), STRICT, flags_before)
    assert then.judge([FIRST, SECOND]) == flags
    assert outcomes(flags) == ["unique", "duplicate"]


def test_a_guard_is_moved_to_its_next_revision() -> None:
    """What a bare frame hid by the first revision stays hidden; later stories are kept by the second."""
    first = replace(LAX, scheme=Scheme(facts=True), facts_shared_min=0.8, facts_revision=1)
    samples = pack_facts([[], *([f"{number} {fact}" for fact in range(9)] for number in range(3))])
    frame, *stories = (
        Version(msgspec.structs.replace(version.record, facts=facts), None)
        for version, facts in zip(GROUP, samples, strict=True)
    )
    before, sent = judged(first, frame, *stories[:2])
    assert outcomes(sent) == ["unique", "duplicate", "duplicate"]
    store, second = MemoryStore(), replace(first, facts_revision=2)
    filled = filling(store, second, before)
    assert filled.judge([frame, *stories[:2]]) == sent
    assert filled.adopted.kept_now == 2
    _, (event,) = judged(second, stories[2], store=store)
    assert event.verdict.outcome == "unique"


def test_later_articles_repeat_what_readers_know() -> None:
    """A copy is flagged against an article that was sent as unique, and not against one sent as a duplicate."""
    before, _ = judged(STRICT, FIRST, SECOND)
    store = MemoryStore()
    filling(store, LAX, before).judge([FIRST, SECOND])
    _, (event,) = judged(LAX, THIRD, store=store)
    assert event.verdict.duplicate_of in {FIRST.record.id, SECOND.record.id}
    before, _ = judged(LAX, FIRST, SECOND)
    store = MemoryStore()
    filling(store, STRICT, before).judge([FIRST, SECOND])
    copy = Version(
        msgspec.structs.replace(SECOND.record, reference=reference_of("copy", b"copy"), id="copy", sequence=9), None
    )
    _, (event,) = judged(STRICT, copy, store=store)
    assert event.verdict.outcome == "unique"


def test_articles_without_a_verdict_are_judged() -> None:
    """By the new settings, whether the old store knows them or not."""
    before, _ = judged(LAX, FIRST)
    before.create([SECOND])
    now = filling(MemoryStore(), LAX, before)
    assert outcomes(now.judge([FIRST, SECOND, THIRD, ALONE])) == ["unique", "duplicate", "duplicate", "unique"]
    assert (now.adopted.kept, now.tally.versions, now.tally.kept, now.tally.duplicates) == (1, 4, 2, 2)
    alone = filling(MemoryStore(), LAX, None)
    assert outcomes(alone.judge([FIRST, SECOND, ALONE])) == ["unique", "duplicate", "unique"]
    assert alone.adopted.kept == 0


def test_arrivals_are_those_in_force() -> None:
    """An article that is read again later keeps its first arrival."""
    before, _ = judged(LAX, FIRST)
    late = Version(msgspec.structs.replace(FIRST.record, time_ms=TIME_MS + 5_000, sequence=77), None)
    store = MemoryStore()
    filling(store, LAX, before).judge([late])
    (stored,) = store.read([FIRST.record.reference])
    assert stored is not None
    assert stored.record.arrival == FIRST.record.arrival


def test_only_kept_versions_can_be_found() -> None:
    """An adopted duplicate has no postings, as if it had been judged here."""
    before, _ = judged(LAX, *GROUP)
    store = MemoryStore()
    filling(store, LAX, before).judge(GROUP)
    assert store.stats().postings == before.stats().postings > 0


def test_differing_decisions_are_counted() -> None:
    """Kept articles that the new settings would flag, and flags that they would keep if the original is stored."""
    before, _ = judged(STRICT, *GROUP, ALONE)
    more = filling(MemoryStore(), LAX, before)
    more.judge([*GROUP, ALONE])
    assert (more.adopted.kept, more.adopted.flagged_now, more.adopted.kept_now) == (5, 3, 0)
    before, _ = judged(LAX, *GROUP)
    fewer = filling(MemoryStore(), STRICT, before)
    fewer.judge(GROUP)
    assert (fewer.adopted.duplicates, fewer.adopted.flagged_now, fewer.adopted.kept_now) == (3, 0, 3)
    without = filling(MemoryStore(), STRICT, before)
    without.judge(GROUP[1:])
    assert (without.adopted.duplicates, without.adopted.kept_now) == (3, 0)


def test_a_release_stays() -> None:
    """A flag that a person has undone does not return, and copies of the article are flagged."""
    before, _ = judged(LAX, FIRST, SECOND)
    flagged = releases.read_flagged(before, SECOND.record.reference)
    event = releases.release(before, flagged, Attribution("Kim", "another ferry"), lambda: RELEASED_MS).encoded
    store = MemoryStore()
    answer = filling(store, LAX, before).judge([FIRST, SECOND])[1]
    assert answer.encoded == event
    assert isinstance(answer.verdict.released, Released)
    assert judged(LAX, SECOND, store=store)[1] == [answer]
    assert list(verify(store, LAX))[-1].wrong == []


def test_retractions_are_adopted() -> None:
    """A known retraction keeps the event that was sent; an unknown one gets its own."""
    sent, again, other = (
        make_tombstone(article_id, event=retracted_event(article_id, time_ms=TIME_MS, decided_ms=at_ms).encoded)
        for article_id, at_ms in (("a", TIME_MS + 1), ("a", TIME_MS + 2), ("b", TIME_MS + 3))
    )
    before, _ = judged(LAX, sent)
    store = MemoryStore()
    answers = filling(store, LAX, before).judge([again, other])
    assert [answer.encoded for answer in answers] == [sent.event, other.event]
    assert store.history(id_hash("a")) == [sent]


class Cut:
    """A store that fails after a number of calls."""

    def __init__(self, store: Store, calls: int) -> None:
        self._store = store
        self._left = calls

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a call that fails when none is left."""
        call: Callable[..., Any] = getattr(self._store, name)

        def counted(*args: object) -> object:
            if self._left == 0:
                raise StoreUnavailable("cut")
            self._left -= 1
            return call(*args)

        return counted

    def together(self, work: Callable[[], Any]) -> object:
        """Count the calls within ``work``."""
        return work()


@pytest.mark.parametrize("calls", range(15))
def test_a_crash_anywhere_does_not_change_the_result(calls: int) -> None:
    """After a crash between any two calls of the store, judging the batch again leads to the same state."""
    before, _ = judged(LAX, *GROUP[:3])
    batch = [*GROUP, ALONE]
    whole, cut = MemoryStore(), MemoryStore()
    events = filling(whole, LAX, before).judge(batch)
    first: Any = Cut(cut, calls)
    try:
        filling(first, LAX, before).judge(batch)
    except StoreUnavailable:
        assert calls < 14
    assert filling(cut, LAX, before).judge(batch) == events
    assert state(cut) == state(whole)


def test_filling_again_changes_nothing() -> None:
    """The events are the same, and the batch counts as replayed."""
    before, sent = judged(LAX, *GROUP)
    store = MemoryStore()
    filling(store, LAX, before).judge(GROUP)
    once = state(store)
    again = filling(store, LAX, before)
    assert again.judge(GROUP) == sent
    assert state(store) == once
    assert (again.tally.replays, again.adopted.kept, again.adopted.duplicates) == (4, 0, 0)


class Unlocked(MemoryStore):
    """An old store that may be far away: the store that is filled must not be locked while it answers."""

    def __init__(self) -> None:
        super().__init__()
        self.filled: LmdbStore | None = None
        self.asked = 0

    def read(self, references: Sequence[bytes]) -> list[StoredVersion | None]:
        """Read, unless the other store is locked."""
        self._check()
        return super().read(references)

    def history(self, id_hash: bytes) -> list[StoredVersion | Tombstone]:
        """Read, unless the other store is locked."""
        self._check()
        return super().history(id_hash)

    def _check(self) -> None:
        if self.filled is not None:
            assert not self.filled._environment.in_batch
            self.asked += 1


def test_a_batch_is_written_at_once_and_counted_once(tmp_path: Path) -> None:
    """Also where the map has to grow several times, and the batch begins again."""
    before = Unlocked()
    gone = make_tombstone("gone", event=retracted_event("gone", time_ms=TIME_MS, decided_ms=TIME_MS).encoded)
    many = near_group(random.Random("many"), "many", 40, 100)
    judged(LAX, *GROUP[:3], gone, *many[:30], store=before)
    options = LmdbOptions(durability="process", map_bytes=1 << 16, clock=lambda: TIME_MS)
    store = LmdbStore.open(tmp_path / "store", options)
    size, environment = store._environment._map_bytes(), store._environment._env
    committed = environment.info()["last_txnid"]
    before.filled = store
    batch: list[Version | Tombstone] = [*GROUP, ALONE, gone, *many]
    fill, in_memory = filling(store, STRICT, before), filling(MemoryStore(), STRICT, before)
    assert fill.judge(batch) == in_memory.judge(batch)
    assert before.asked == 4
    assert store._environment._map_bytes() > size
    assert environment.info()["last_txnid"] == committed + 1
    assert state(store) == state(in_memory.store)
    assert fill.adopted == in_memory.adopted == AdoptionCounts(2, 31, 0, 31)
    assert (fill.tally.versions, fill.tally.kept, fill.tally.replays) == (
        in_memory.tally.versions,
        in_memory.tally.kept,
        in_memory.tally.replays,
    )
    assert fill.tally.settle_s > 0
    store.close()


def test_only_settled_versions_are_adopted() -> None:
    """Versions without a verdict in force are left alone."""
    before, sent = judged(LAX, FIRST)
    before.create([SECOND])
    store = MemoryStore()
    assert filling(store, LAX, before).adopt([FIRST, SECOND, ALONE]) == {FIRST.record.reference: sent[0]}
    assert store.read([SECOND.record.reference, ALONE.record.reference]) == [None, None]
