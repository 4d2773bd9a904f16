"""The slot guard: two fillings of one frame are two stories, however similar they are."""

import random
from dataclasses import replace
from types import MappingProxyType

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from consumer.fingerprint import Scheme, Slot
from consumer.fingerprint.slots import pack_slots
from consumer.judge.comparison import PairComparison, compare
from consumer.judge.detector import Detector
from consumer.judge.settings import JudgeSettings, SourceRule
from storage.memory import MemoryStore
from storage.records import StoredVersion, Version
from tests.builders import TIME_MS
from tests.chaos.near_articles import SETTINGS, edited, new_text, version_of

UNGUARDED = replace(SETTINGS, scheme=Scheme(slots=True))
GUARDED = replace(UNGUARDED, slot_conflicts_max=0)
BASE = new_text(random.Random("slot guard"))
NEAR = edited(BASE, random.Random("near"), 0.1)

values = some.lists(some.sampled_from("12"), max_size=4).map("".join)


def article(name: str, filling: str, sequence: int = 0, source: str = "wire") -> Version:
    """Return an article that is near the others of these tests; its first slot holds the first letter, and so on."""
    version = version_of(name, BASE if name == "a" else NEAR, sequence, source=source)
    (packed,) = pack_slots([[Slot(str(place), value, "") for place, value in enumerate(filling)]])
    return Version(msgspec.structs.replace(version.record, facts=packed, text_digest=name.encode() * 16), None)


def compared(one: str, other: str, by: JudgeSettings = GUARDED, source: str = "wire") -> PairComparison:
    """Return the comparison of two near articles with these values, the second one of this source."""
    a, b = article("a", one).record, article("b", other, 1, source).record
    return compare(StoredVersion(a, None, None), [StoredVersion(b, None, None)], by)[0]


@given(values, values)
def test_a_pair_with_more_conflicts_than_allowed_is_held_back(one: str, other: str) -> None:
    """Whichever of the two came first, and only where the guard is on."""
    conflicts = sum(a != b for a, b in zip(one, other, strict=False))
    for most in range(3):
        by = replace(GUARDED, slot_conflicts_max=most)
        assert compared(one, other, by).near is compared(other, one, by).near is (conflicts <= most)
        assert compared(one, other, by).slot_conflicts == conflicts
    assert compared(one, other, UNGUARDED).near
    assert compared(one, other, UNGUARDED).slot_conflicts is None


@pytest.mark.parametrize(
    ("general", "rule", "near"), [(None, None, True), (None, 0, False), (None, 1, True), (1, 0, False), (1, None, True)]
)
@pytest.mark.parametrize("ruled", ["wire", "blog"])
def test_the_stricter_of_two_sources_decides(general: int | None, rule: int | None, ruled: str, *, near: bool) -> None:
    """Whichever of the two it is; 0 is a number, and not the absence of one."""
    by = replace(
        UNGUARDED,
        slot_conflicts_max=general,
        sources=MappingProxyType({ruled: SourceRule(slot_conflicts_max=rule)}),
    )
    assert compared("11", "12", by, "blog").near is near
    assert JudgeSettings.decode(by.encode()).thresholds_for("wire", "blog") == by.thresholds_for("wire", "blog")


def test_plain_simhash_has_no_guard() -> None:
    """Without verification only the distance counts."""
    assert replace(GUARDED, verify=False, lane1=False).thresholds_for("wire").slot_conflicts_max is None


def test_the_judge_keeps_what_the_guard_holds_back() -> None:
    """Another filling is kept, and a copy of it is flagged against it."""
    batch = [article("a", "11"), article("b", "12", 1), article("c", "12", 2)]
    for by, expected in ((GUARDED, [None, None, "b"]), (UNGUARDED, [None, "a", "a"])):
        for batches in ([batch], [[version] for version in batch]):
            detector = Detector(MemoryStore(), by, lambda: TIME_MS)
            verdicts = [event.verdict for part in batches for event in detector.judge(part)]
            assert [verdict.duplicate_of for verdict in verdicts] == expected


def test_settings_without_slots_are_described_as_before_there_were_any() -> None:
    """A store of before has the same bytes; one with slots names both that they are kept and how many may differ."""
    assert b"slot" not in replace(SETTINGS, scheme=Scheme("jieba-tfidf/3")).encode()
    assert b'"slots":true' in UNGUARDED.encode()
    assert b'"slot_conflicts_max":0' in GUARDED.encode()
    assert b"facts" not in GUARDED.encode()


def test_slots_need_a_scheme_that_has_them() -> None:
    """Without them the guard would silently do nothing."""
    rules = MappingProxyType({"wire": SourceRule(slot_conflicts_max=0)})
    for asked in ({"slot_conflicts_max": 0}, {"sources": rules}):
        with pytest.raises(ValueError, match="does not extract slots"):
            replace(SETTINGS, **asked)
    with pytest.raises(ValueError, match="slots need a scheme that compares letters, such as jieba-tfidf/3"):
        Scheme("jieba-tfidf/2", slots=True)
    with pytest.raises(ValueError, match="facts or slots"):
        Scheme(slots=True, facts=True)
