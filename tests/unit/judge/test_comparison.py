"""Near is a symmetric function of two records and the settings."""

import random
from dataclasses import replace
from types import MappingProxyType
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as some

from consumer.fingerprint import Scheme, TextKind
from consumer.judge import comparison_batch
from consumer.judge.comparison import PairComparison, compare
from consumer.judge.comparison_batch import ComparisonBatch, ComparisonResult
from consumer.judge.settings import JudgeSettings, SourceRule
from storage.records import Arrival, Record, StoredVersion
from tests.builders import TIME_MS
from tests.chaos.near_articles import SETTINGS, Text, edited, flips, new_text, version_of
from tests.examples import examples
from tests.unit.judge.strategies import judge_settings, stored_versions

BASE = new_text(random.Random("comparison"))
NEAR = edited(BASE, random.Random("near"), 0.1)
PLAIN = replace(SETTINGS, verify=False, lane1=False)
LETTERS = replace(SETTINGS, scheme=Scheme("jieba-tfidf/3"))
WORDS = replace(SETTINGS, scheme=Scheme("jieba-tfidf/2"))
ANOTHER = b"another text...."
"""The digest of a text that is not equal, however similar it is."""


def record(name: str = "a", text: Text = BASE, sequence: int = 0, **fields: object) -> Record:
    """Return the record of an article with this name and text."""
    return msgspec.structs.replace(version_of(name, text, sequence).record, **fields)


def compared(
    record: Record, other: Record, by: JudgeSettings = SETTINGS, ends_at: Arrival | None = None
) -> PairComparison:
    """Return the comparison of two records, the first of which may have ended."""
    return compare(StoredVersion(record, None, ends_at), [StoredVersion(other, None, None)], by)[0]


@examples(400)
@given(a=stored_versions, b=stored_versions, by=judge_settings)
def test_comparison_is_symmetric_in_everything(a: StoredVersion, b: StoredVersion, by: JudgeSettings) -> None:
    """Every condition, distance, similarity and limit is the same in both directions, and so is near."""
    assume(a.record.reference != b.record.reference)
    forth, back = compare(a, [b], by)[0], compare(b, [a], by)[0]
    assert forth == back
    assert forth.near == back.near


@examples(100)
@given(version=stored_versions, others=some.lists(stored_versions, max_size=6), by=judge_settings)
def test_comparing_with_several_is_comparing_with_each(
    version: StoredVersion, others: list[StoredVersion], by: JudgeSettings
) -> None:
    """Other versions that are compared at the same time change nothing."""
    assert compare(version, others, by) == [compare(version, [other], by)[0] for other in others]


@examples(200)
@given(
    version=stored_versions,
    others=some.lists(stored_versions, max_size=12),
    by=judge_settings,
    sketched=some.booleans(),
)
def test_a_batch_rules_out_only_what_is_not_near(
    version: StoredVersion, others: list[StoredVersion], by: JudgeSettings, *, sketched: bool
) -> None:
    """Many are compared as arrays first; the near ones and all similarities are those of comparing each.

    So too for the published schemes, which have no sketch.
    """
    if not sketched:
        version, *others = [
            each._replace(record=msgspec.structs.replace(each.record, sketch=b"")) for each in (version, *others)
        ]
    others = list({other.record.reference: other for other in others}.values())
    asked = [other.record.reference for other in others] + [b"of nobody"]
    by_each = compare(version, others, by)
    near = [(other, each) for other, each in zip(others, by_each, strict=True) if each.near]
    ended = [
        (other, each)
        for other, each in zip(others, by_each, strict=True)
        if compare(version._replace(ends_at=None), [other._replace(ends_at=None)], by)[0].near
        and other.ends_at is not None
        and other.ends_at <= version.record.arrival
    ]
    similarities = [each.similarity for each in by_each if each.similarity is not None]
    for one_by_one_max in (0, 100):
        with patch.object(comparison_batch, "_ONE_BY_ONE_MAX", one_by_one_max):
            assert ComparisonBatch(others).compare(version, asked, by) == ComparisonResult(
                len(others), near, similarities, ended
            )


@examples(200)
@given(a=stored_versions, b=stored_versions, released=some.sampled_from(["a", "b", "both"]), by=judge_settings)
def test_a_released_pair_is_not_near_whichever_of_the_two_was_released(
    a: StoredVersion, b: StoredVersion, released: str, by: JudgeSettings
) -> None:
    """Nothing else changes, and both directions agree."""
    assume(a.record.reference != b.record.reference)
    x = a if released == "b" else a._replace(released_from=b.record.reference)
    y = b if released == "a" else b._replace(released_from=a.record.reference)
    forth, back = compare(x, [y], by)[0], compare(y, [x], by)[0]
    assert forth == back == msgspec.structs.replace(compare(a, [b], by)[0], not_released=False)
    assert not forth.near


def test_a_version_that_was_released_from_one_is_near_the_others() -> None:
    """A released pair is of two versions: it affects no other article and no other version."""
    pair = record("b", NEAR, 1)
    for other in (record("c", sequence=2), record("a", edited(BASE, random.Random("more"), 0.02), 2)):
        released = StoredVersion(pair, b"", None, record("a").reference)
        assert not compare(released, [StoredVersion(record("a"), None, None)], SETTINGS)[0].near
        assert compare(released, [StoredVersion(other, None, None)], SETTINGS)[0].near


def test_a_near_pair_is_near() -> None:
    """Two articles that differ in a tenth meet every condition; each of the tests below removes one."""
    comparison = compared(record("a"), record("b", NEAR, 1))
    assert comparison.near
    assert comparison.found_by_blocks or comparison.found_by_bands
    assert 0.8 < (comparison.similarity or 0) < 1


def test_an_article_is_not_near_another_version_of_itself() -> None:
    """Versions of the same id never match."""
    comparison = compared(record("a"), record("a", NEAR, 1))
    assert (comparison.other_ids, comparison.near) == (False, False)


def test_fingerprints_of_two_schemes_are_not_compared() -> None:
    """Records of different schemes are never near, even with equal numbers."""
    comparison = compared(record("a"), record("b", scheme="test/2"))
    assert (comparison.same_scheme, comparison.near) == (False, False)


@pytest.mark.parametrize(("gap_ms", "near"), [(SETTINGS.window_ms, True), (SETTINGS.window_ms + 1, False)])
def test_the_window_includes_its_last_millisecond(gap_ms: int, near: bool) -> None:  # noqa: FBT001
    """Arrivals exactly one window apart are within it."""
    comparison = compared(record("a"), record("b", time_ms=TIME_MS + gap_ms))
    assert comparison.in_window == comparison.near == near


@pytest.mark.parametrize(("end", "near"), [(1, False), (2, False), (3, True)])
def test_a_version_matches_what_came_before_it_ended(end: int, near: bool) -> None:  # noqa: FBT001
    """The later one must arrive while the earlier one is in force; the reference decides ties."""
    lowest = b"\0" * 32
    comparison = compared(record("a"), record("b", NEAR, 2), ends_at=Arrival(TIME_MS, end, lowest))
    assert comparison.in_force == comparison.near == near


def test_the_end_of_the_later_one_does_not_matter() -> None:
    """Only the earlier one must be in force."""
    assert compared(record("a", sequence=5), record("b", NEAR, 1), ends_at=Arrival(TIME_MS, 6, b"")).near


@pytest.mark.parametrize(
    ("rule", "other_source", "near"),
    [
        (SourceRule(within_source=False), "wire", False),
        (SourceRule(within_source=False), "blog", True),
        (SourceRule(within_source=True), "wire", True),
    ],
)
def test_within_source_forbids_matches_of_one_source(rule: SourceRule, other_source: str, near: bool) -> None:  # noqa: FBT001
    """A source can be configured not to match itself; it still matches others."""
    by = replace(SETTINGS, sources=MappingProxyType({"wire": rule}))
    comparison = compared(record("a"), record("b", NEAR, 1, source=other_source), by)
    assert comparison.allowed == comparison.near == near


@pytest.mark.parametrize("ruled", ["wire", "blog"])
def test_two_sources_are_kept_apart_by_the_rule_of_either(ruled: str) -> None:
    """Both ways, whichever comes first; each still matches itself and others."""
    other = {"wire": "blog", "blog": "wire"}[ruled]
    by = replace(SETTINGS, sources=MappingProxyType({ruled: SourceRule(never_with=(other,))}))
    for first, second, near in [
        ("wire", "blog", False),
        ("blog", "wire", False),
        ("wire", "wire", True),
        ("blog", "blog", True),
        ("wire", "paper", True),
        ("", "blog", True),
    ]:
        comparison = compared(record("a", source=first), record("b", NEAR, 1, source=second), by)
        assert comparison.allowed == comparison.near == near, (first, second)


def test_a_source_is_kept_apart_from_articles_without_a_source() -> None:
    """By the empty name."""
    by = replace(SETTINGS, sources=MappingProxyType({"wire": SourceRule(never_with=("",))}))
    assert not compared(record("a", source=""), record("b", NEAR, 1, source="wire"), by).near
    assert compared(record("a", source="blog"), record("b", NEAR, 1, source="wire"), by).near


@pytest.mark.parametrize("stricter", ["wire", "blog"])
def test_the_stricter_threshold_of_two_sources_decides(stricter: str) -> None:
    """The stricter one decides, whichever of the two it is, by similarity and by distance."""
    first, other = record("a"), record("b", NEAR, 1, source="blog")
    similarity = compared(first, other).similarity or 0
    for limit, near in ((similarity, True), (similarity + 0.001, False)):
        by = replace(SETTINGS, sources=MappingProxyType({stricter: SourceRule(similarity_min=limit)}))
        assert (compared(first, other, by).similarity_min, compared(first, other, by).near) == (limit, near)
    plain = replace(BASE, fingerprint=BASE.fingerprint ^ 0b11)
    for bits, near in ((2, True), (1, False)):
        by = replace(PLAIN, sources=MappingProxyType({stricter: SourceRule(max_distance=bits)}))
        comparison = compared(first, record("b", plain, 1, source="blog", text_digest=ANOTHER), by)
        assert (comparison.distance_max, comparison.near) == (bits, near)


def test_a_source_cannot_be_laxer_than_all_others() -> None:
    """A rule below the general threshold has no effect."""
    by = replace(SETTINGS, sources=MappingProxyType({"wire": SourceRule(similarity_min=0.1, max_distance=60)}))
    assert by.thresholds_for("wire") == (SETTINGS.similarity_min, 3, SETTINGS.facts_shared_min, 0.0, None)


def test_short_texts_match_by_equal_text_alone() -> None:
    """Equal short texts are near at 1.0; a short text is near no long one, and no other short one, however similar."""
    short = replace(BASE, kind=TextKind.SHORT)
    equal = compared(record("a", short), record("b", short, 1))
    assert (equal.near, equal.similarity) == (True, 1.0)
    other = record("b", short, 1, text_digest=ANOTHER)
    assert compared(record("a", short), other).verified is False
    for by, near in ((WORDS, False), (LETTERS, True)):
        assert compared(record("a", short), record("b", BASE, 1), by).verified is near
        assert compared(record("a", short), record("b", BASE, 1, text_digest=ANOTHER), by).verified is False
    assert compared(record("a", short), other, PLAIN).verified is False


def test_a_text_without_keywords_is_near_nothing() -> None:
    """Two empty texts are equal in everything, but not near."""
    empty = replace(BASE, kind=TextKind.EMPTY)
    comparison = compared(record("a", empty), record("b", empty, 1))
    assert (comparison.near, comparison.found, comparison.similarity) == (False, False, None)


def test_a_text_of_shingles_matches_every_long_one_by_its_sketch() -> None:
    """It has no keys of lane 0, so only a shared band finds it, however close the fingerprints are."""
    shingled, near = (replace(text, kind=TextKind.SHINGLED) for text in (BASE, NEAR))
    for other in (near, NEAR):
        comparison = compared(record("a", shingled), record("b", other, 1))
        assert (comparison.near, comparison.found_by_blocks, comparison.found_by_bands) == (True, False, True)
    elsewhere = replace(near, bands=tuple(band ^ 1 for band in BASE.bands))
    assert not compared(record("a", shingled), record("b", elsewhere, 1)).found
    short = replace(BASE, kind=TextKind.SHORT)
    assert not compared(record("a", shingled), record("b", short, 1, text_digest=ANOTHER)).verified


def test_a_text_of_shingles_matches_by_equal_text_without_verification() -> None:
    """Its fingerprint says nothing, since it is of a few keywords, or of none."""
    keys = BASE.keys()[:4]
    shingled = record("a", replace(BASE, kind=TextKind.SHINGLED), keys=keys)
    for kind, digest, near in [
        (TextKind.SHINGLED, shingled.text_digest, True),
        (TextKind.SHINGLED, ANOTHER, False),
        (TextKind.LONG, ANOTHER, False),
    ]:
        other = record("b", replace(BASE, kind=kind), 1, keys=keys, text_digest=digest)
        assert compared(shingled, other, PLAIN).near is near
    long = record("b", BASE, 1, keys=keys)
    for by, near in ((WORDS, False), (LETTERS, True)):
        assert compared(shingled, long, replace(by, verify=False, lane1=False)).near is near


@pytest.mark.parametrize("by", [SETTINGS, PLAIN])
def test_short_texts_are_near_by_their_digest_alone_among_many_too(by: JudgeSettings) -> None:
    """Whatever their sketches, which depend on the language, and their fingerprints, which begin as the digest does."""
    short = replace(BASE, kind=TextKind.SHORT)
    chance = random.Random("many")
    equal = [
        record(f"equal {n}", replace(short, sketch=chance.randbytes(256)), n, text_digest=b"=" * 16) for n in range(20)
    ]
    others = [record(f"other {n}", short, n, text_digest=b"=" * 15 + bytes([n])) for n in range(20)]
    stored = [StoredVersion(each, None, None) for each in (*equal, *others)]
    version = StoredVersion(record("a", short, 99, text_digest=b"=" * 16), None, None)
    found = ComparisonBatch(stored).compare(version, [each.record.reference for each in stored], by)
    assert [near.record.id for near, _ in found.near] == [each.id for each in equal]
    assert [near.record.id for near, _ in _near_one_by_one(version, stored, by)] == [each.id for each in equal]


def _near_one_by_one(
    version: StoredVersion, others: list[StoredVersion], by: JudgeSettings
) -> list[tuple[StoredVersion, PairComparison]]:
    return [(other, found) for other in others for found in compare(version, [other], by) if found.near]


def test_what_no_look_up_finds_is_not_near() -> None:
    """Equal sketches are not enough: versions without a common key could not have found each other."""
    hidden = replace(BASE, fingerprint=BASE.fingerprint ^ 0x1_0001_0001_0001, bands=tuple(b ^ 1 for b in BASE.bands))
    comparison = compared(record("a"), record("b", hidden, 1))
    assert (comparison.verified, comparison.found, comparison.near) == (True, False, False)


@pytest.mark.parametrize(("bits", "found"), [(16, True), (17, False)])
def test_a_shared_band_counts_within_16_one_bit_minima(bits: int, found: bool) -> None:  # noqa: FBT001
    """Beyond 16 bits a shared band is a coincidence."""
    far = BASE.fingerprint ^ flips(random.Random("far"), 40)
    other = replace(BASE, fingerprint=far, one_bits=BASE.one_bits ^ (1 << bits) - 1)
    comparison = compared(record("a"), record("b", other, 1))
    assert (comparison.found_by_blocks, comparison.found_by_bands, comparison.shared_bands) == (False, found, 4)


@pytest.mark.parametrize(("by", "bits"), [(SETTINGS, SETTINGS.reach), (PLAIN, PLAIN.max_distance)])
def test_lane_0_reaches_as_far_as_a_candidate_may_be(by: JudgeSettings, bits: int) -> None:
    """Up to the reach with verification and up to the distance without; beyond, a shared block is not enough."""
    for distance, found in ((bits, True), (bits + 1, False)):
        other = replace(BASE, fingerprint=BASE.fingerprint ^ (1 << distance) - 1)
        assert compared(record("a"), record("b", other, 1), by).found_by_blocks is found


def test_without_verification_near_is_a_distance() -> None:
    """Plain SimHash ignores sketches."""
    unlike = replace(BASE, sketch=bytes(256))
    assert compared(record("a"), record("b", unlike, 1), PLAIN).near
    assert not compared(record("a"), record("b", unlike, 1)).near


def test_comparing_with_no_others_gives_nothing() -> None:
    """Without others there are no comparisons."""
    assert compare(StoredVersion(record(), None, None), [], SETTINGS) == []


KINDS = (TextKind.LONG, TextKind.SHORT, TextKind.SHINGLED)


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("of_this", KINDS)
@pytest.mark.parametrize("of_that", KINDS)
def test_equal_letters_are_near_whatever_the_kinds(of_this: TextKind, of_that: TextKind, *, verify: bool) -> None:
    """One with a space after each letter has no words; where all of a text is compared, only equal kinds are."""
    other = msgspec.structs.replace(record("b", NEAR, 1, kind=int(of_that)), sketch=bytes(256))
    this = record("a", kind=int(of_this), text_digest=other.text_digest)
    for by, near in ((LETTERS, True), (WORDS, of_this == of_that == TextKind.SHORT)):
        found = compared(this, other, replace(by, verify=verify, max_distance=0, reach=10))
        assert found.verified is (near or (not verify and of_this == of_that == TextKind.SHINGLED))
        assert (found.similarity == 1.0) is (near or TextKind.SHORT in (of_this, of_that))


@pytest.mark.parametrize("kind", [TextKind.SHORT, TextKind.EMPTY])
def test_short_texts_with_equal_letters_but_other_signs_are_not_near(kind: TextKind) -> None:
    """3.5 and 35 have the same letters and the same sketch, and another digest; and nothing is near an empty text."""
    digest = b"another digest.." if kind is TextKind.SHORT else record("a").text_digest
    found = compared(record("a"), record("b", sequence=1, kind=int(kind), text_digest=digest), LETTERS)
    assert (found.verified, found.near) == (False, False)
    assert found.similarity == (1.0 if kind is TextKind.SHORT else None)


def test_the_sketch_of_letters_is_compared_by_its_marks() -> None:
    """Bins that neither text fills say nothing where sketches are marked, and agree where they are not."""
    half = BASE.sketch[:64] + bytes(192)
    other = bytes(byte % 255 + 1 for byte in half[:64]) + bytes(192)
    this, that = record("a", sketch=half, text_digest=b"a" * 16), record("b", sequence=1, sketch=other)
    assert compared(this, that, LETTERS).similarity == 0.0
    assert (compared(this, that, WORDS).similarity or 0.0) > 0.7
