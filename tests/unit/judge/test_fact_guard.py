"""The fact guard: near texts with different facts are two stories, and light rewrites are not."""

import random
from dataclasses import replace
from types import MappingProxyType

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from consumer.evaluation.curves import NEVER_SIMILAR, measure
from consumer.evaluation.labelled_pairs import LabelledPair
from consumer.fingerprint import Scheme
from consumer.fingerprint.facts import pack_facts
from consumer.judge.comparison import PairComparison, compare
from consumer.judge.detector import Detector
from consumer.judge.settings import (
    FACTS_DIFFERING_MIN,
    FACTS_MISSING_MIN,
    FACTS_SHARED_OF_MORE_MIN,
    JudgeSettings,
    SourceRule,
)
from storage.memory import MemoryStore
from storage.records import Record, StoredVersion, Version
from tests.builders import TIME_MS, make_record
from tests.chaos.near_articles import SETTINGS, edited, new_text, version_of
from tests.examples import examples

GUARDED = replace(SETTINGS, scheme=Scheme(facts=True), facts_shared_min=0.8)
FIRST = replace(GUARDED, facts_revision=1)
BASE = new_text(random.Random("fact guard"))
NEAR = edited(BASE, random.Random("near"), 0.1)

facts = some.sets(some.integers(0, 12).map(str), max_size=13)


def article(name: str, facts: set[str], sequence: int = 0, source: str = "wire") -> Version:
    """Return an article that is near the others of these tests, with these facts."""
    version = version_of(name, BASE if name == "a" else NEAR, sequence, source=source)
    (packed,) = pack_facts([facts])
    return Version(msgspec.structs.replace(version.record, facts=packed, text_digest=name.encode() * 16), None)


def compared(one: set[str], other: set[str], by: JudgeSettings = GUARDED) -> PairComparison:
    """Return the comparison of two near articles with these facts."""
    a, b = (StoredVersion(article(*given).record, None, None) for given in (("a", one), ("b", other, 1)))
    return compare(a, [b], by)[0]


def numbers(*ranges: range) -> set[str]:
    """Return facts by number."""
    return {str(number) for some_numbers in ranges for number in some_numbers}


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        (numbers(range(10)), numbers(range(20, 30)), False),
        (numbers(range(10)), numbers(range(7), range(20, 23)), False),
        (numbers(range(15)), numbers(range(12), range(20, 23)), True),
        (numbers(range(10)), numbers(range(8), range(20, 22)), True),
        (numbers(range(10)), numbers(range(10)), True),
        (numbers(range(10)), numbers(range(9), range(20, 21)), True),
        (numbers(range(3)), numbers(range(1), range(20, 22)), True),
        (numbers(range(2)), numbers(range(20, 22)), True),
        (numbers(range(3)), numbers(range(20, 23)), False),
        (numbers(range(5)), numbers(range(2), range(20, 50)), False),
        (numbers(range(9)), numbers(range(15)), True),
        (set(), set(), True),
    ],
)
def test_what_is_held_back(one: set[str], other: set[str], *, near: bool) -> None:
    """Most facts have to differ: not just one or two. So it is in every revision of the guard."""
    for by in (GUARDED, FIRST):
        assert compared(one, other, by).near is compared(other, one, by).near is near
    assert compared(one, other, SETTINGS).near


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        (set(), numbers(range(10)), False),
        (set(), numbers(range(4)), False),
        (set(), numbers(range(3)), True),
        (numbers(range(1)), numbers(range(4)), True),
        (numbers(range(20, 21)), numbers(range(4)), False),
        (numbers(range(20, 22)), numbers(range(10)), False),
        (numbers(range(8)), numbers(range(15)), False),
        (numbers(range(5)), numbers(range(30)), False),
        (numbers(range(6), range(20, 22)), numbers(range(6), range(30, 40)), False),
        (set(), numbers(range(5_000)), False),
        (numbers(range(1)), numbers(range(5_000)), False),
    ],
)
def test_a_bare_frame_is_held_back_from_its_stories(one: set[str], other: set[str], *, near: bool) -> None:
    """It has too few facts to differ in any, so those it lacks count; the first revision takes it for a copy."""
    assert compared(one, other).near is compared(other, one).near is near
    assert compared(one, other, FIRST).near


def test_the_second_condition_asks_for_no_more_than_the_guard() -> None:
    """Whoever asks for a lower share gets it: of the text with more facts, too."""
    one, other = numbers(range(10)), numbers(range(5), range(20, 25))
    low, lower = (replace(GUARDED, facts_shared_min=share) for share in (0.55, 0.5))
    assert (compared(one, other, low).near, compared(one, other, lower).near) == (False, True)


@examples(300)
@given(facts, facts)
def test_the_rule_is_what_the_facts_say(one: set[str], other: set[str]) -> None:
    """A pair is held back if at least three of the fewer facts differ and less than the configured share is common.

    In the second revision also if at least four of the text with more are missing, and less than 0.6 is common.
    """
    comparison, (fewer, more), shared = compared(one, other), sorted((len(one), len(other))), len(one & other)
    differs = fewer - shared >= FACTS_DIFFERING_MIN and shared < 0.8 * fewer
    lacks = more - shared >= FACTS_MISSING_MIN and shared < FACTS_SHARED_OF_MORE_MIN * more
    assert comparison.facts_agree is not (differs or lacks)
    assert compared(one, other, FIRST).facts_agree is not differs
    assert comparison.facts_shared == (shared / fewer if fewer else None)
    assert comparison.facts_shared_of_more == (shared / more if more else None)


def test_equal_normalised_texts_are_never_held_back() -> None:
    """They have no capitals and so no names, and only the text counts."""
    by = replace(GUARDED, scheme=Scheme("jieba-tfidf/2", facts=True))
    a = article("a", numbers(range(10))).record
    for other in (set(), numbers(range(20, 30))):
        b = msgspec.structs.replace(article("b", other, 1).record, text_digest=a.text_digest)
        assert compare(StoredVersion(a, None, None), [StoredVersion(b, None, None)], by)[0].near


def test_equal_letters_are_held_back_where_facts_differ() -> None:
    """Equality folds the text that facts are taken from, so that equal digests alone are no shortcut there."""
    by = replace(GUARDED, scheme=Scheme("jieba-tfidf/3", facts=True))
    a, b = article("a", numbers(range(10))).record, article("b", numbers(range(20, 30)), 1).record
    b = msgspec.structs.replace(b, text_digest=a.text_digest)
    assert not compare(StoredVersion(a, None, None), [StoredVersion(b, None, None)], by)[0].near
    same = msgspec.structs.replace(b, facts=a.facts)
    assert compare(StoredVersion(a, None, None), [StoredVersion(same, None, None)], by)[0].near


@pytest.mark.parametrize("stricter", ["wire", "blog"])
def test_the_stricter_guard_of_two_sources_decides(stricter: str) -> None:
    """Whichever of the two sources it is, and also where there is no general guard."""
    first, other = article("a", numbers(range(15))), article("b", numbers(range(12), range(20, 23)), 1, "blog")
    for common, asked, near in ((0.0, None, True), (0.0, 0.85, False), (0.8, None, True), (0.8, 0.85, False)):
        rules = MappingProxyType({stricter: SourceRule(facts_shared_min=asked)})
        by = replace(GUARDED, facts_shared_min=common, sources=rules)
        comparison = compare(StoredVersion(first.record, None, None), [StoredVersion(other.record, None, None)], by)[0]
        assert comparison.near is near
        assert comparison.facts_shared_min == max(common, asked or 0.0)


def test_a_source_cannot_ask_for_less_than_all_others() -> None:
    """A rule below the general guard has no effect."""
    by = replace(GUARDED, sources=MappingProxyType({"wire": SourceRule(facts_shared_min=0.1)}))
    assert by.thresholds_for("wire").facts_shared_min == 0.8


def test_plain_simhash_has_no_guard() -> None:
    """Without verification only the distance counts, whatever the facts."""
    plain = replace(GUARDED, verify=False, lane1=False)
    a = article("a", numbers(range(10)))
    b = Version(msgspec.structs.replace(a.record, reference=b"b" * 32, facts=b"", text_digest=b"b" * 16), None)
    other = msgspec.structs.replace(b.record, facts=article("b", numbers(range(20, 30))).record.facts)
    assert compare(StoredVersion(a.record, None, None), [StoredVersion(other, None, None)], plain)[0].near


def test_the_judge_keeps_what_the_guard_holds_back() -> None:
    """Another story in the same words is kept; a correction of it is flagged against it."""
    batch = [
        article("a", numbers(range(10))),
        article("b", numbers(range(20, 30)), 1),
        article("c", numbers(range(20, 29), range(50, 51)), 2),
    ]
    for by, expected in ((GUARDED, [None, None, "b"]), (SETTINGS, [None, "a", "a"])):
        for batches in ([batch], [[version] for version in batch]):
            detector = Detector(MemoryStore(), by, lambda: TIME_MS)
            verdicts = [event.verdict for part in batches for event in detector.judge(part)]
            assert [verdict.duplicate_of for verdict in verdicts] == expected


def test_evaluation_never_flags_what_the_guard_holds_back() -> None:
    """They are similar at no threshold, so that the curve is that of the judge as it is configured."""
    articles = {
        "a": StoredVersion(article("a", numbers(range(10))).record, None, None),
        "b": StoredVersion(article("b", numbers(range(20, 30)), 1).record, None, None),
    }
    pairs = [LabelledPair("a", "b", duplicate=False, line=1)]
    assert measure(pairs, articles, GUARDED).similarity.tolist() == [NEVER_SIMILAR]
    assert measure(pairs, articles, SETTINGS).similarity[0] > 0.8


def test_evaluation_never_flags_what_rules_keep_apart() -> None:
    """At no threshold, as the judge never does."""
    a, b = article("a", numbers(range(10))).record, article("b", numbers(range(10)), 1).record
    articles = {
        "a": StoredVersion(a, None, None),
        "b": StoredVersion(msgspec.structs.replace(b, source="blog"), None, None),
    }
    pairs = [LabelledPair("a", "b", duplicate=True, line=1)]
    apart = replace(SETTINGS, sources=MappingProxyType({"blog": SourceRule(never_with=(a.source,))}))
    assert measure(pairs, articles, apart).similarity.tolist() == [NEVER_SIMILAR]
    assert measure(pairs, articles, apart).flagged.tolist() == [False]
    assert measure(pairs, articles, SETTINGS).similarity[0] > 0.8


def test_a_guard_needs_a_scheme_that_has_facts_made() -> None:
    """Without facts the guard would silently do nothing."""
    rules = MappingProxyType({"wire": SourceRule(facts_shared_min=0.8)})
    for asked in ({"facts_shared_min": 0.8}, {"sources": rules}):
        with pytest.raises(ValueError, match="does not extract facts"):
            replace(SETTINGS, **asked)


def test_settings_without_a_guard_are_described_as_before_there_was_one() -> None:
    """Without a guard the settings equal those of older stores; with one they are complete and can be read back."""
    words = SETTINGS.encode() + replace(SETTINGS, sources=MappingProxyType({"a": SourceRule(flag="never")})).encode()
    assert b"facts" not in words
    by = replace(GUARDED, sources=MappingProxyType({"wire": SourceRule(facts_shared_min=0.9)}))
    added = {"facts_shared_min", "facts_differing_min", "facts_revision"}
    assert by.describe().keys() - SETTINGS.describe().keys() == added
    assert JudgeSettings.decode(by.encode()) == by
    with pytest.raises(ValueError, match="facts_differing_min"):
        JudgeSettings.decode(by.encode().replace(b'"facts_differing_min":3', b'"facts_differing_min":2'))


def test_records_from_before_there_were_facts_are_read() -> None:
    """They have no facts."""
    record = make_record("a")
    before = msgspec.msgpack.encode(msgspec.to_builtins(record, builtin_types=(bytes,))[:-1])
    assert msgspec.msgpack.decode(before, type=Record) == record
    assert record.facts == b""


def test_an_earlier_frame_hides_no_story() -> None:
    """Ten stories in one frame are kept after a post of the frame alone; in the first revision it hides all of them."""
    stories = [article(f"{n}", numbers(range(6), range(100 * n, 100 * n + 9)), n) for n in range(1, 11)]
    for own in (numbers(), numbers(range(6)), numbers(range(6), range(50, 52))):
        for by, flagged in ((GUARDED, 0), (FIRST, 10)):
            detector = Detector(MemoryStore(), by, lambda: TIME_MS)
            events = [event for batch in ([article("hub", own)], stories) for event in detector.judge(batch)]
            assert sum(event.verdict.duplicate_of is not None for event in events) == flagged
