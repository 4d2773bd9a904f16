"""Which near misses go with verdicts: those that would be flags with lower thresholds, of the versions drawn."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

import jsonschema
import msgspec
import pytest

from consumer.judge.comparison_batch import ComparisonBatch
from consumer.judge.detector import Detector
from consumer.judge.near_misses import NearMisses
from consumer.judge.settings import JudgeSettings, SourceRule
from consumer.model.near_miss import NearMiss, decode_near_miss
from consumer.model.verdict import VerdictEvent
from consumer.store_tools.releases import Attribution, read_flagged, release
from storage.interface import Store
from storage.memory import MemoryStore
from storage.records import StoredVersion, Version
from tests.builders import TIME_MS
from tests.chaos.near_articles import SETTINGS, are_near, edited, new_text, version_of

MARGIN: Final = 0.15
LOWERED: Final = replace(SETTINGS, similarity_min=SETTINGS.similarity_min - MARGIN)
SCHEMA: Final = json.loads((Path(__file__).parents[3] / "docs/schemas/near-miss.schema.json").read_text())


def judge(store: Store, by: JudgeSettings = SETTINGS, share: float = 1.0, margin: float = MARGIN) -> Detector:
    """A judge that draws near misses."""
    return Detector(store, by, lambda: TIME_MS, near_misses=NearMisses(by, share, margin))


def missed_pair(seed: int = 0) -> tuple[Version, Version]:
    """Two articles that are near with the lowered threshold, and not near with the other."""
    chance = random.Random(f"missed {seed}")
    while True:
        text = new_text(chance)
        pair = version_of("first", text, 1), version_of("second", edited(text, chance, 0.33), 2)
        if are_near(*pair, settings=LOWERED) and not are_near(*pair):
            return pair


def near_misses(events: Sequence[VerdictEvent]) -> list[NearMiss | None]:
    """What goes with each verdict."""
    return [None if event.near_miss is None else decode_near_miss(event.near_miss) for event in events]


def from_source(version: Version, source: str) -> Version:
    """The same article from another source."""
    return Version(msgspec.structs.replace(version.record, source=source), None)


@pytest.mark.parametrize("in_one_batch", [True, False])
def test_a_near_miss_goes_with_the_verdict_on_the_later_article(*, in_one_batch: bool) -> None:
    """It names both, their sources and figures, and fits its schema; the earlier article has none."""
    first, second = missed_pair()
    second = from_source(second, "blog")
    detector = judge(MemoryStore(), share=0.999_999)
    batches = [[first, second]] if in_one_batch else [[first], [second]]
    nothing, found = near_misses([event for batch in batches for event in detector.judge(batch)])
    assert nothing is None
    assert found is not None
    assert (found.id, found.original) == ("second", "first")
    assert (found.source, found.original_source) == ("blog", "wire")
    assert found.version == second.record.reference[16:].hex()
    assert found.original_version == first.record.reference[16:].hex()
    assert LOWERED.similarity_min <= found.similarity < found.threshold == SETTINGS.similarity_min
    assert found.sampled_in == pytest.approx(1.000_001)
    jsonschema.validate(msgspec.to_builtins(found), SCHEMA)
    assert detector.tally.near_misses == 1


def test_verdicts_are_the_same_with_and_without() -> None:
    """Near misses change no byte of any verdict, and none of what is stored."""
    chance = random.Random("same")
    feed = crowd(chance, 60)
    stores = MemoryStore(), MemoryStore()
    without = Detector(stores[0], SETTINGS, lambda: TIME_MS)
    told = [[event.encoded for event in judge_.judge(feed)] for judge_ in (without, judge(stores[1]))]
    assert told[0] == told[1]
    assert sorted(map(repr, stores[0].scan())) == sorted(map(repr, stores[1].scan()))
    assert all(event.near_miss is None for event in Detector(MemoryStore(), SETTINGS, lambda: TIME_MS).judge(feed))


def crowd(chance: random.Random, size: int) -> list[Version]:
    """Edits of a few texts, many of them about as like each other as the threshold asks."""
    texts = [new_text(chance) for _ in range(2)]
    return [
        version_of(f"article {n}", edited(chance.choice(texts), chance, chance.uniform(0.02, 0.3)), n)
        for n in range(size)
    ]


def test_it_is_what_the_article_would_be_flagged_for_with_a_lower_threshold() -> None:
    """In a crowd a judge with the lowered threshold, asked just before, names the same original; else nothing is."""
    chance = random.Random("lowered")
    store = MemoryStore()
    detector, lower = judge(store), Detector(store, LOWERED, lambda: TIME_MS)
    counts = {"flags": 0, "near misses": 0, "nothing": 0}
    for version in crowd(chance, 150):
        (asked,) = lower.query([version])
        (event,) = detector.judge([version])
        (found,) = near_misses([event])
        if event.verdict.outcome == "duplicate":
            counts["flags"] += 1
            assert found is None
        elif asked.matches:
            counts["near misses"] += 1
            assert found is not None
            assert found.original == asked.matches[0].record.id
            assert found.distance == asked.matches[0].distance
        else:
            counts["nothing"] += 1
            assert found is None
    assert min(counts.values()) > 2, counts
    assert detector.tally.sketch_reads, "no article had so many candidates that sketches rule some out"


def test_the_margin_ends_what_is_a_near_miss() -> None:
    """A pair beyond it is none."""
    first, second = missed_pair()
    (_, found) = near_misses(judge(MemoryStore()).judge([first, second]))
    assert found is not None
    missing = SETTINGS.similarity_min - found.similarity
    for margin, is_one in ((missing + 0.001, True), (missing - 0.001, False)):
        (_, again) = near_misses(judge(MemoryStore(), margin=margin).judge([first, second]))
        assert (again is not None) == is_one


def test_rules_of_sources_count() -> None:
    """The threshold is the pair's own: a pair that is flagged elsewhere may miss a stricter one just so."""
    first, second = missed_pair()
    (_, found) = near_misses(judge(MemoryStore()).judge([first, second]))
    assert found is not None
    lower = round(found.similarity - 0.05, 2)
    strict = replace(
        SETTINGS, similarity_min=lower, sources=MappingProxyType({"wire": SourceRule(similarity_min=lower + 0.1)})
    )
    (_, by_rule) = near_misses(judge(MemoryStore(), strict).judge([first, second]))
    assert by_rule is not None
    assert by_rule.threshold == pytest.approx(lower + 0.1)
    events = judge(MemoryStore(), strict).judge([from_source(first, "other"), from_source(second, "blog")])
    assert events[1].verdict.outcome == "duplicate"
    assert near_misses(events) == [None, None]


def test_what_is_near_is_not_missed() -> None:
    """Also where it was not flagged, because another consumer settled both at the same time."""
    chance = random.Random("near")
    text = new_text(chance)
    first, second = version_of("first", text, 1), version_of("second", edited(text, chance, 0.05), 2)
    assert are_near(first, second)
    others = ComparisonBatch([StoredVersion(first.record, None, None)])
    references = [first.record.reference]
    assert NearMisses(SETTINGS, 1.0, MARGIN).missed(StoredVersion(second.record, None, None), references, others) == []


def test_what_is_never_flagged_misses_nothing() -> None:
    """No threshold would flag it."""
    never = replace(SETTINGS, sources=MappingProxyType({"wire": SourceRule(flag="never")}))
    assert near_misses(judge(MemoryStore(), never).judge(missed_pair())) == [None, None]


def test_sources_that_are_kept_apart_miss_nothing_of_each_other() -> None:
    """No threshold would flag such a pair; a less similar one that the rules allow is the near miss."""
    first, second = (from_source(version, source) for version, source in zip(missed_pair(), "ab", strict=True))
    apart = replace(SETTINGS, sources=MappingProxyType({"a": SourceRule(never_with=("b",))}))
    assert near_misses(judge(MemoryStore()).judge([first, second]))[1] is not None
    assert near_misses(judge(MemoryStore(), apart).judge([first, second])) == [None, None]
    other = from_source(Version(msgspec.structs.replace(first.record, id="other", reference=b"o" * 32), None), "c")
    alone = replace(apart, sources=MappingProxyType({"a": SourceRule(never_with=("b", "c"))}))
    *_, found = near_misses(judge(MemoryStore(), alone).judge([first, other, second]))
    assert found is not None
    assert found.original == "other"


def test_what_repeats_another_is_no_original() -> None:
    """An article just too unlike one that becomes a duplicate with the same batch misses nothing by that."""
    chance = random.Random("repeats")
    while True:
        text = new_text(chance)
        middle = edited(text, chance, 0.2)
        versions = [version_of(f"{n}", each, n) for n, each in enumerate((text, middle, edited(middle, chance, 0.28)))]
        kept, copy, third = versions
        is_missed = are_near(copy, third, LOWERED) and not are_near(copy, third)
        if are_near(kept, copy) and is_missed and not are_near(kept, third, LOWERED):
            break
    for batches in ([versions], [[kept, copy], [third]]):
        detector = judge(MemoryStore())
        events = [event for batch in batches for event in detector.judge(batch)]
        assert [event.verdict.outcome for event in events] == ["unique", "duplicate", "unique"]
        assert near_misses(events) == [None] * 3


def test_a_replay_brings_the_same_bytes() -> None:
    """Whoever judges a batch again brings its near misses again, though others have come since."""
    first, second = missed_pair()
    store = MemoryStore()
    sent = judge(store).judge([first, second])
    assert sent[1].near_miss is not None
    third = version_of("third", edited(new_text(random.Random(1)), random.Random(2), 0.1), 3)
    judge(store).judge([third])
    again = judge(store)
    assert again.judge([first, second]) == sent
    assert again.tally.near_misses == 1


def test_a_replay_does_not_name_what_came_later() -> None:
    """Of a pair only one is asked about, however often its batch is judged."""
    first, second = missed_pair()
    store = MemoryStore()
    detector = judge(store)
    detector.judge([first])
    detector.judge([second])
    assert near_misses(detector.judge([first])) == [None]


def test_a_released_version_has_none() -> None:
    """It was a flag: when its batch is judged again, nothing is said of what it might have missed before."""
    chance = random.Random("released")
    while True:
        text = new_text(chance)
        bodies = edited(text, chance, 0.33), edited(text, chance, 0.1), text
        missed, original, copy = versions = [version_of(str(n), body, n) for n, body in enumerate(bodies)]
        if are_near(missed, copy, LOWERED) and not are_near(missed, original, LOWERED) and not are_near(missed, copy):
            break
    store = MemoryStore()
    events = judge(store).judge(versions)
    assert [event.verdict.duplicate_of for event in events] == [None, None, "1"]
    release(store, read_flagged(store, copy.record.reference), Attribution(None, None), lambda: TIME_MS)
    again = judge(store).judge(versions)
    assert [event.verdict.outcome for event in again] == ["unique"] * 3
    assert near_misses(again) == [None] * 3


def test_versions_are_drawn_by_share() -> None:
    """About that share, always the same ones, and with a greater share those and more."""
    records = [version_of(f"article {n}", new_text(random.Random(n)), n).record for n in range(2_000)]
    drawn = [
        {record.id for record in records if NearMisses(SETTINGS, share, MARGIN).samples(record)}
        for share in (0.0, 0.05, 0.5, 1.0)
    ]
    assert drawn[0] == set()
    assert 60 < len(drawn[1]) < 140
    assert 900 < len(drawn[2]) < 1_100
    assert drawn[1] < drawn[2] < drawn[3]
    assert len(drawn[3]) == 2_000


def test_plain_simhash_has_none() -> None:
    """It compares no similarities."""
    with pytest.raises(ValueError, match="verify"):
        NearMisses(replace(SETTINGS, verify=False, lane1=False), 0.5, MARGIN)
