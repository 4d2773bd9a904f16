"""What a fill makes of content that ended and came back, whether the old store knows stretches or not."""

from dataclasses import replace

import msgspec

from consumer.judge.detector import Detector
from consumer.judge.settings import JudgeSettings
from consumer.migration.adopting import AdoptingJudge
from storage.memory import MemoryStore
from storage.records import ALLOW, BankMatch, StoredVersion, Version
from tests.builders import TIME_MS
from tests.protocol.articles import FAR, RETURNING_OFTEN, make_article
from tests.protocol.returns import message, retraction
from tests.protocol.texts import MODES

RETURNS = MODES[RETURNING_OFTEN]
BEFORE = replace(RETURNS, stretches_max=0)
A0, B1, A2, B3, A4 = (message(place, "AB"[place % 2], (0, FAR)[place % 2]) for place in range(5))
FEED = (A0, B1, A2, B3, A4)


def in_force(settings: JudgeSettings, *feed: Version) -> MemoryStore:
    """Return a store whose consumers have judged these, one by one."""
    store = MemoryStore()
    detector = Detector(store, settings, lambda: TIME_MS)
    for arrived in feed:
        detector.judge([arrived])
    return store


def filled(before: MemoryStore, *feed: Version, settings: JudgeSettings = RETURNS) -> MemoryStore:
    """Return a store that was filled from these messages."""
    store = MemoryStore()
    for arrived in feed:
        AdoptingJudge(store, settings, lambda: TIME_MS + 1_000, old_store=before).judge([arrived])
    return store


def stored_in(store: MemoryStore) -> dict[bytes, StoredVersion]:
    """Return all versions."""
    return {each.record.reference: each for each in store.scan() if isinstance(each, StoredVersion)}


def without_origin(version: Version) -> Version:
    """Return a delivery as programs stored it that kept no origins."""
    return version._replace(record=msgspec.structs.replace(version.record, feed=None))


def test_stretches_are_adopted() -> None:
    """Each is stored again with its number, its arrival, its origin and its verdict; filling again changes nothing."""
    before = in_force(RETURNS, *FEED)
    now = filled(before, *FEED, A2, A0, B3)
    assert stored_in(now) == stored_in(before)
    assert len(stored_in(now)) == len(FEED)


def test_a_fill_that_begins_later_keeps_the_numbers_of_the_store_in_force() -> None:
    """What lies before the fill is not stored, and names nothing else."""
    before = in_force(RETURNS, *FEED)
    known = stored_in(before)
    now = filled(before, *FEED[2:])
    assert stored_in(now) == {reference: known[reference] for reference in stored_in(now)}
    assert sorted(each.record.sequence for each in stored_in(now).values()) == [2, 3, 4]


def test_what_the_store_in_force_took_for_a_replay_returns() -> None:
    """A store without stretches has two verdicts for five messages. They stay; what came back is judged."""
    before = in_force(BEFORE, *map(without_origin, FEED))
    assert len(stored_in(before)) == 2
    now = stored_in(filled(before, *FEED))
    assert [(each.record.sequence, each.record.stretch) for each in sorted_by_arrival(now)] == [
        (0, None),
        (1, None),
        (2, 1),
        (3, 1),
        (4, 2),
    ]
    for reference, known in stored_in(before).items():
        assert now[reference].verdict == known.verdict


def test_a_replay_of_the_store_in_force_stays_one() -> None:
    """A message that brought nothing new, and was read again after the end of its content, begins nothing."""
    unchanged = message(1, "A")
    feed = (A0, unchanged, message(2, "B", FAR))
    before = in_force(BEFORE, *map(without_origin, feed))
    assert len(stored_in(filled(before, *feed, unchanged))) == 2


def test_a_store_without_stretches_is_filled_without() -> None:
    """Where the new settings allow none, content that came back gets the verdict that it had."""
    before = in_force(RETURNS, *FEED)
    assert len(stored_in(filled(before, *FEED, settings=BEFORE))) == 5
    older = in_force(BEFORE, *map(without_origin, FEED))
    assert len(stored_in(filled(older, *FEED, settings=BEFORE))) == 2


def test_a_retraction_is_followed_by_the_stretch_that_was_judged() -> None:
    """A copy that was kept in between stays the one that the returned article repeats."""
    gone, copy = retraction(1), make_article(2)
    before = MemoryStore()
    detector = Detector(before, RETURNS, lambda: TIME_MS)
    sent = [detector.judge([arrived])[0] for arrived in (A0, gone, copy, A4)]
    assert sent[-1].verdict.duplicate_of == copy.record.id
    judge = AdoptingJudge(MemoryStore(), RETURNS, lambda: TIME_MS + 1_000, old_store=before)
    assert [judge.judge([arrived])[0] for arrived in (A0, gone, copy, A4)] == sent


def sorted_by_arrival(stored: dict[bytes, StoredVersion]) -> list[StoredVersion]:
    """Return versions in order of arrival."""
    return sorted(stored.values(), key=lambda each: each.record.arrival)


def test_what_was_found_in_banks_is_adopted() -> None:
    """A copy that a bank allowed stays kept, whatever the banks of the fill say."""
    original, copy = make_article(0), make_article(1)
    match = BankMatch("notices", "closure", ALLOW, "equal", 1.0)
    allowed = copy._replace(record=msgspec.structs.replace(copy.record, bank_matches=(match,)))
    before = in_force(RETURNS, original, allowed)
    now = filled(before, original, copy)
    assert stored_in(now) == stored_in(before)
    assert stored_in(now)[copy.reference].record.bank_matches == (match,)
