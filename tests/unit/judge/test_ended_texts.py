"""What verdicts say of near versions that were retracted or replaced: which, and when they say nothing."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import msgspec
import pytest
from typing_extensions import override

from consumer.fingerprint import TextKind
from consumer.judge import events
from consumer.judge.comparison import compare
from consumer.judge.decision import EndedNeighbour, Neighbour, VersionState, state_of
from consumer.judge.detector import Detector
from consumer.judge.events import ended_before
from consumer.judge.settings import JudgeSettings, SourceRule
from consumer.model.verdict import EndedBefore, Verdict
from storage.interface import Store
from storage.memory import MemoryStore
from storage.records import Arrival, Record, Release, StoredVersion, Tombstone, Version
from tests.builders import TIME_MS, make_record, make_tombstone
from tests.chaos.mixed_feed import mixed_feed
from tests.chaos.near_articles import SETTINGS, edited, flips, new_text, version_of

TEXT = new_text(random.Random("ended"))
WINDOW_MS = SETTINGS.window_ms


def judged(store: Store, *arrived: Version | Tombstone, by: JudgeSettings = SETTINGS) -> list[Verdict]:
    """Judge these one after the other, each by a judge that remembers nothing."""
    return [Detector(store, by, lambda: TIME_MS).judge([each])[0].verdict for each in arrived]


def retracted(name: str, sequence: int, time_ms: int = TIME_MS) -> Tombstone:
    """A retraction of the article of that name."""
    return make_tombstone(name, time_ms, sequence)


def names(verdicts: Sequence[Verdict]) -> list[str | None]:
    """Return the ids that verdicts name as ended; None where they say nothing."""
    return [each.ended_before.id if isinstance(each.ended_before, EndedBefore) else None for each in verdicts]


def test_the_text_of_an_ended_version_is_named() -> None:
    """With its version, when it ended, and how similar it is. A replay gets the same verdict."""
    store = MemoryStore()
    first, again = version_of("first", TEXT, 0), version_of("again", TEXT, 2, TIME_MS + 2_000)
    (_, _, verdict) = judged(store, first, retracted("first", 1, TIME_MS + 1_000), again)
    assert verdict.outcome == "unique"
    assert verdict.ended_before == EndedBefore(
        id="first",
        version=events.version_name(first.record.reference),
        ended_at="2023-11-14T22:13:21.000Z",
        similarity=1.0,
    )
    assert judged(store, again) == [verdict]
    assert names(judged(store, version_of("copy", TEXT, 3, TIME_MS + 3_000))) == [None]


def test_a_chain_of_edits_names_the_most_similar_and_among_equals_the_latest() -> None:
    """Whatever came in between; what is not near any more is not named."""
    chance = random.Random("chain")
    texts = [TEXT, edited(TEXT, chance, 0.1), edited(TEXT, chance, 0.5)]
    store = MemoryStore()
    for number, text in enumerate([*texts, TEXT]):
        judged(store, version_of(f"article {number}", text, 2 * number), retracted(f"article {number}", 2 * number + 1))
    assert names(judged(store, version_of("again", TEXT, 20))) == ["article 3"]
    judged(store, retracted("again", 21))
    assert names(judged(store, version_of("edited", texts[1], 22))) == ["article 1"]


@pytest.mark.parametrize(("gap_ms", "said"), [(WINDOW_MS, "first"), (WINDOW_MS + 1, None)])
def test_only_what_arrived_within_the_window_is_named(gap_ms: int, said: str | None) -> None:
    """It would be no duplicate either, however lately it was retracted."""
    store = MemoryStore()
    judged(store, version_of("first", TEXT, 0), retracted("first", 1, TIME_MS + gap_ms - 1))
    assert names(judged(store, version_of("again", TEXT, 2, TIME_MS + gap_ms))) == [said]


def test_what_ends_later_is_a_flag_and_nothing_is_said_of_its_own_versions() -> None:
    """Nor of a duplicate, nor of an article that had ended itself before the other one arrived."""
    store = MemoryStore()
    judged(store, retracted("before", 1), version_of("first", TEXT, 2), retracted("first", 5))
    verdicts = judged(store, version_of("second", TEXT, 4), version_of("before", TEXT, 0), version_of("first", TEXT, 9))
    assert [verdict.outcome for verdict in verdicts] == ["duplicate", "unique", "unique"]
    assert names(verdicts) == [None] * 3


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({}, "first"),
        ({"mirror": SourceRule(never_with=("wire",))}, None),
        ({"wire": SourceRule(never_with=("mirror",))}, None),
        ({"mirror": SourceRule(flag="never")}, None),
        ({"wire": SourceRule(flag="never")}, "first"),
        ({"mirror": SourceRule(within_source=False)}, "first"),
    ],
)
def test_rules_for_sources_hold(rules: Mapping[str, SourceRule], said: str | None) -> None:
    """What could not be flagged for the ended version does not name it."""
    by = replace(SETTINGS, sources=MappingProxyType(rules))
    store = MemoryStore()
    again = version_of("again", TEXT, 2, source="mirror")
    assert names(judged(store, version_of("first", TEXT, 0), retracted("first", 1), again, by=by))[2] == said


def test_a_released_pair_is_not_named() -> None:
    """A person has decided that the one does not repeat the other; a third article names the one that ended last."""
    store = MemoryStore()
    first, second = version_of("first", TEXT, 0), version_of("second", TEXT, 1)
    flag = judged(store, first, second)[1]
    event = events.released_event(flag, by=None, reason=None, decided_ms=TIME_MS).encoded
    store.release([Release(second.record.reference, event, first.record.reference)])
    store.add([second.record])
    judged(store, retracted("first", 2), retracted("second", 3))
    assert judged(store, second)[0].ended_before is msgspec.UNSET
    assert names(judged(store, version_of("third", TEXT, 4))) == ["second"]


def test_many_that_ended_are_compared_as_arrays_and_beyond_the_limit_the_verdict_says_so() -> None:
    """Of 40, of which the limit lets 32 be read, one is named all the same."""
    for kind in (TextKind.LONG, TextKind.SHORT):
        text = new_text(random.Random("many"), kind)
        store = MemoryStore()
        for number in range(40):
            judged(
                store, version_of(f"article {number}", text, 2 * number), retracted(f"article {number}", 2 * number + 1)
            )
        (whole,) = judged(store, version_of("whole", text, 90))
        assert (names([whole]), whole.truncated) == (["article 39"], False)
        judged(store, retracted("whole", 91))
        (cut,) = judged(store, version_of("cut", text, 92), by=replace(SETTINGS, verifications_max=32))
        assert (names([cut]), cut.truncated) == (["article 31"], True)


def test_plain_simhash_has_no_similarity() -> None:
    """As in matches; the latest end decides."""
    by = replace(SETTINGS, verify=False, lane1=False)
    near = replace(TEXT, fingerprint=TEXT.fingerprint ^ flips(random.Random("plain"), 2))
    store = MemoryStore()
    judged(store, version_of("first", TEXT, 0), retracted("first", 1), version_of("second", near, 2), by=by)
    (_, verdict) = judged(store, retracted("second", 3), version_of("again", TEXT, 4), by=by)
    assert isinstance(verdict.ended_before, EndedBefore)
    assert (verdict.ended_before.id, verdict.ended_before.similarity) == ("second", None)


def test_of_two_judges_the_first_one_decides_what_is_said() -> None:
    """One looks up before a second copy came and ended, the other afterwards: both answer what was stored first."""

    class Settling(MemoryStore):
        """Has another judge judge the same version just before the verdict is written."""

        rival: Sequence[Verdict] = ()

        @override
        def settle(self, verdicts: Sequence[tuple[bytes, bytes]], removing: Sequence[Record] = ()) -> list[bool]:
            if not self.rival and verdicts and verdicts[0][0] == again.record.reference:
                self.rival = [msgspec.json.decode(verdicts[0][1], type=Verdict)]
                judged(self, retracted("second", 3), version_of("second", TEXT, 2))
                self.rival = [*self.rival, *judged(self, again)]
            return super().settle(verdicts, removing)

    store = Settling()
    again = version_of("again", TEXT, 9)
    judged(store, version_of("first", TEXT, 0), retracted("first", 1))
    (verdict,) = judged(store, again)
    assert names(store.rival) == ["first", "second"]
    assert names([verdict, *judged(store, again)]) == ["second", "second"]


def test_what_becomes_a_duplicate_in_the_same_batch_is_not_named() -> None:
    """A crash left it pending, and it had ended by then."""
    # Each near the next one, the first and the last not near each other.
    left_text = replace(TEXT, sketch=_changed(TEXT.sketch, 0))
    again_text = replace(TEXT, sketch=_changed(left_text.sketch, 200))
    store = MemoryStore()
    left, again = version_of("left", left_text, 1), version_of("again", again_text, 3)
    judged(store, version_of("original", TEXT, 0))
    store.create([left])
    store.add([left.record])
    judged(store, retracted("left", 2))
    verdicts = [event.verdict for event in Detector(store, SETTINGS, lambda: TIME_MS).judge([left, again])]
    assert [verdict.outcome for verdict in verdicts] == ["duplicate", "unique"]
    assert names(verdicts) == [None, None]


def _changed(sketch: bytes, start: int) -> bytes:
    """Return the sketch of a text that is a fifth less similar."""
    end = start + 50
    return sketch[:start] + bytes((byte + 1) % 256 for byte in sketch[start:end]) + sketch[end:]


def test_it_is_what_a_comparison_with_everything_finds() -> None:
    """Over a feed of copies, edits, new versions and retractions: for every unique verdict, and for no other."""
    store = MemoryStore()
    judge = Detector(store, SETTINGS, lambda: TIME_MS)
    said = 0
    for arrived in mixed_feed(500, "ended texts"):
        if isinstance(arrived, Version) and store.read([arrived.record.reference]) == [None]:
            expected = _by_brute_force(store, arrived)
            verdict = judge.judge([arrived])[0].verdict
            is_said = verdict.ended_before is not msgspec.UNSET
            assert (verdict.ended_before if is_said else None) == (expected if verdict.outcome == "unique" else None)
            said += is_said
        else:
            judge.judge([arrived])
    assert said > 3


def _by_brute_force(store: Store, version: Version) -> EndedBefore | None:
    """Return what the verdict on a version should say if it is unique."""
    ended = [
        stored._replace(ends_at=None)
        for stored in store.scan()
        if isinstance(stored, StoredVersion)
        and stored.ends_at is not None
        and stored.ends_at <= version.record.arrival
        and state_of(stored) is not VersionState.DUPLICATE
    ]
    ends = {stored.record.reference: stored.ends_at for stored in store.scan() if isinstance(stored, StoredVersion)}
    found = []
    for other, pair in zip(ended, compare(StoredVersion(version.record, None, None), ended, SETTINGS), strict=True):
        ends_at = ends[other.record.reference]
        if pair.near and ends_at is not None:
            found.append(EndedNeighbour(Neighbour(other.record, pair.distance, pair.similarity), ends_at))
    return ended_before(found)


def test_ties_are_broken_by_similarity_then_by_the_latest_end_then_by_reference() -> None:
    """Whatever order they were read in."""

    def ended(name: str, similarity: float | None, time_ms: int, sequence: int = 0) -> EndedNeighbour:
        record = make_record(name)
        return EndedNeighbour(Neighbour(record, 0, similarity), Arrival(time_ms, sequence, b""))

    same = sorted((ended("a", 0.9, 5, 1), ended("b", 0.9, 5, 1)), key=lambda each: each.neighbour.record.reference)
    ranked = [ended("best", 0.95, 1), *same, ended("c", 0.9, 5, 0), ended("d", 0.9, 4, 9), ended("e", None, 9)]
    for start in range(len(ranked)):
        those = ranked[start:]
        random.Random(start).shuffle(those)
        found = ended_before(those)
        assert found is not None
        assert found.id == ranked[start].neighbour.record.id
    assert ended_before(()) is None
