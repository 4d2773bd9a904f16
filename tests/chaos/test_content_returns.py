"""Content that comes back, is removed and is replayed, through the judge, with packing in between where there is any.

Between two articles HBase packs its postings into sets and unpacks them again, with no compaction; the others sweep.
Each is judged by a process that remembers nothing, so that whatever is found is found by its postings.
"""

import random
from collections.abc import Callable
from itertools import cycle

import pytest

from consumer.judge.detector import Detector
from consumer.judge.events import reference_in
from consumer.model.verdict import decode_verdict
from consumer.pipeline.loop import parts_with_distinct_ids
from consumer.store_tools.inspection import verify
from storage.hbase.store import HbaseStore
from storage.interface import Store
from storage.postings import postings_of
from storage.records import Record, Version
from tests.builders import TIME_MS
from tests.chaos.mixed_feed import kept_by_brute_force, mixed_feed
from tests.chaos.near_articles import SETTINGS, edited, near_chain, new_text, version_of
from tests.chaos.test_kept_set import kept_of, ticking
from tests.hbase import packed_rows

Upkeep = Callable[[], None]
Judge = Callable[[Version], bytes]

FEED = 280
BATCH = 16
BATCHES_AN_UPKEEP = 5
SLIGHTLY = 0.04
"""The share of a text that a copy changes: it stays near."""


def pack(store: HbaseStore) -> None:
    """Pack all that is there."""
    packed_rows.wait_until_old()
    packed_rows.pack(store)


def unpack(store: HbaseStore) -> None:
    """Unpack all that was packed."""
    packed_rows.unpack(store)


UPKEEP = {"packed": [[pack]], "unpacked": [[pack, unpack]], "in turn": [[pack], [unpack]]}


@pytest.fixture(params=UPKEEP)
def upkeep(request: pytest.FixtureRequest, store: Store) -> Upkeep:
    """What is done to the store between two articles."""
    turns = cycle(UPKEEP[request.param])

    def do() -> None:
        if not isinstance(store, HbaseStore):
            store.sweep(TIME_MS - SETTINGS.window_ms, 1_000)
            return
        for step in next(turns):
            step(store)

    return do


@pytest.fixture
def judge(store: Store, upkeep: Upkeep) -> Judge:
    """Judge one article by a new process, and let upkeep follow; the event as it is stored."""
    clock = ticking()

    def judge_one(version: Version) -> bytes:
        (event,) = Detector(store, SETTINGS, clock).judge([version])
        upkeep()
        return event.encoded

    return judge_one


def outcome(event: bytes) -> str:
    """What it says, in a word."""
    return decode_verdict(event).outcome


def flagged_for(event: bytes) -> bytes | None:
    """The version that an article was flagged for."""
    verdict = decode_verdict(event)
    return None if verdict.duplicate_of is None else reference_in(verdict.duplicate_of, verdict.duplicate_of_version)


def times_found(store: Store, record: Record) -> set[int]:
    """How often a look-up finds each posting of a record: {1} where it is whole, {0} where it is gone."""
    postings = postings_of(record)
    rows = store.look_up([key for key, _ in postings])
    return {
        [found.tobytes() for found in row.postings].count(posting)
        for row, (_, posting) in zip(rows, postings, strict=True)
    }


def test_content_that_comes_back_gets_its_old_verdict_and_stays_replaced(store: Store, judge: Judge) -> None:
    """A, B and A again under one id: what comes then is flagged for B; for A only what came while it was in force."""
    chance = random.Random("A, B, A")
    a, b = new_text(chance), new_text(chance)
    first, second = version_of("changing", a, 10), version_of("changing", b, 20)
    events = [judge(first), judge(second)]
    assert [outcome(event) for event in events] == ["unique", "unique"]
    assert judge(version_of("changing", a, 30)) == events[0]
    assert flagged_for(judge(version_of("like B", edited(b, chance, SLIGHTLY), 40))) == second.record.reference
    late = version_of("like A, read late", edited(a, chance, SLIGHTLY), 15)
    late_event = judge(late)
    assert flagged_for(late_event) == first.record.reference
    after = version_of("like A, after B", edited(a, chance, SLIGHTLY), 50)
    assert outcome(judge(after)) == "unique"
    assert judge(version_of("changing", b, 60)) == events[1]
    assert judge(version_of("changing", a, 70)) == events[0]
    assert judge(late) == late_event
    assert [times_found(store, version.record) for version in (first, second, after, late)] == [{1}, {1}, {1}, {0}]


def test_a_duplicate_that_was_replaced_and_comes_back_is_the_duplicate_it_was(store: Store, judge: Judge) -> None:
    """A, a duplicate, is followed by B and A under one id: its postings stay away, and others are flagged as before."""
    chance = random.Random("duplicate, B, duplicate")
    text, b = new_text(chance), new_text(chance)
    original = version_of("original", text, 0)
    a = version_of("changing", edited(text, chance, SLIGHTLY), 10)
    events = [judge(version) for version in (original, a, version_of("changing", b, 20))]
    assert [outcome(event) for event in events] == ["unique", "duplicate", "unique"]
    assert judge(Version(a.record, None)) == events[1]
    assert times_found(store, a.record) == {0}
    assert flagged_for(judge(version_of("like both", edited(text, chance, SLIGHTLY), 30))) == original.record.reference


def test_what_was_removed_stays_removed_and_what_was_kept_is_found(store: Store, judge: Judge) -> None:
    """Replayed, a duplicate gets no postings again and a kept one loses none: the next copy is flagged for that."""
    chance = random.Random("removed")
    text = new_text(chance)
    original, copy = (version_of(name, edited(text, chance, SLIGHTLY), n) for n, name in enumerate(("one", "other")))
    events = [judge(original), judge(copy)]
    assert flagged_for(events[1]) == original.record.reference
    for _ in range(2):
        assert [judge(original), judge(copy)] == events
        assert (times_found(store, original.record), times_found(store, copy.record)) == ({1}, {0})
    assert flagged_for(judge(version_of("next", edited(text, chance, SLIGHTLY), 9))) == original.record.reference


def crashed_before_settling(store: Store, upkeep: Upkeep, version: Version) -> None:
    """What a process leaves that ends after it wrote an article's postings; then comes upkeep."""
    store.create([version])
    store.add([version.record])
    upkeep()


def test_a_duplicate_whose_postings_outlive_it_is_matched_by_nothing(
    store: Store, upkeep: Upkeep, judge: Judge
) -> None:
    """Packed while it was pending, removed only then: what is near to it alone is kept, and found."""
    first, second, third = near_chain(random.Random("outlived"), "chain", 3, 0)
    assert outcome(judge(first)) == "unique"
    crashed_before_settling(store, upkeep, second)
    event = judge(second)
    assert flagged_for(event) == first.record.reference
    assert outcome(judge(third)) == "unique"
    assert judge(second) == event
    assert (times_found(store, first.record), times_found(store, third.record)) == ({1}, {1})


def test_a_kept_article_whose_process_crashed_is_found_once(store: Store, upkeep: Upkeep, judge: Judge) -> None:
    """Its postings are written, packed, and written again when it is judged: each is found once, and so are copies."""
    chance = random.Random("crashed")
    text = new_text(chance)
    original = version_of("original", text, 0)
    crashed_before_settling(store, upkeep, original)
    event = judge(original)
    assert outcome(event) == "unique"
    assert times_found(store, original.record) == {1}
    assert flagged_for(judge(version_of("copy", edited(text, chance, SLIGHTLY), 1))) == original.record.reference
    assert judge(original) == event
    assert times_found(store, original.record) == {1}


def test_a_mixed_feed_keeps_what_brute_force_keeps(store: Store, upkeep: Upkeep) -> None:
    """New versions, retractions, replays and floods, with upkeep in between: nothing that counts is ever missed."""
    feed = mixed_feed(FEED, "upkeep")[:FEED]
    clock = ticking()
    events: list[bytes] = []
    batches = [part for at in range(0, FEED, BATCH) for part in parts_with_distinct_ids(feed[at : at + BATCH])]
    for number, batch in enumerate(batches):
        events += [event.encoded for event in Detector(store, SETTINGS, clock).judge(batch)]
        if number % BATCHES_AN_UPKEEP == 0:
            upkeep()
    assert kept_of(feed, events) == kept_by_brute_force(feed)
    *_, findings = verify(store, SETTINGS)
    assert findings.wrong == []
    again = Detector(store, SETTINGS, clock)
    assert [event.encoded for batch in batches for event in again.judge(batch)] == events
