"""Settings as a store keeps them: nothing is lost, and differences are named."""

import json
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given

from consumer.fingerprint import Scheme, SketchLayout
from consumer.judge.settings import JudgeSettings, SourceRule, differences
from tests.chaos.near_articles import SETTINGS
from tests.unit.judge.strategies import judge_settings

OTHERS: dict[str, Any] = {
    "stretches_max": 7,
    "scheme_digest": "another",
    "max_distance": 5,
    "reach": 11,
    "one_bits_distance_max": 20,
    "verify": False,
    "similarity_min": 0.8,
    "lane1": False,
    "window_ms": 1_000,
    "verifications_max": 7,
}


@given(settings=judge_settings)
def test_settings_survive_a_store(settings: JudgeSettings) -> None:
    """Decoded settings judge and encode as before; a rule without effect is left out."""
    again = JudgeSettings.decode(settings.encode())
    assert again.encode() == settings.encode()
    named = {name: rule for name, rule in settings.sources.items() if rule != SourceRule()}
    assert again == replace(settings, sources=MappingProxyType(named))
    assert differences(settings.encode(), again) == []


@pytest.mark.parametrize("decorations", [True, False])
def test_only_a_scheme_of_letters_says_whether_decorations_count(*, decorations: bool) -> None:
    """Settings of other schemes keep their bytes; one that a store was bound to without is refused here."""
    letters = replace(SETTINGS, scheme=Scheme("jieba-tfidf/3", decorations=decorations))
    assert letters.describe()["scheme"]["decorations"] is decorations
    assert JudgeSettings.decode(letters.encode()) == letters
    assert "decorations" not in replace(SETTINGS, scheme=Scheme("jieba-tfidf/2")).describe()["scheme"]
    other = replace(SETTINGS, scheme=Scheme("jieba-tfidf/3", decorations=not decorations))
    assert [each.partition(" ")[0] for each in differences(letters.encode(), other)] == ["scheme.decorations"]


@pytest.mark.parametrize("name", OTHERS)
def test_what_differs_is_named_and_nothing_else(name: str) -> None:
    """The difference has the setting and both values."""
    ours = replace(SETTINGS, **{name: OTHERS[name]})
    there, here = json.dumps(getattr(SETTINGS, name)), json.dumps(OTHERS[name])
    assert differences(SETTINGS.encode(), ours) == [f"{name} is {there} in the store and {here} here"]


def test_every_setting_is_compared() -> None:
    """A new field of the settings must be added to the test above."""
    names = {item.name for item in fields(JudgeSettings)}
    guards = {"facts_shared_min", "facts_revision", "slot_conflicts_max"}
    others = {"plan", "scheme", "sources", "extractor"} | guards
    assert names - OTHERS.keys() == others
    every = replace(SETTINGS, scheme=Scheme(facts=True), facts_shared_min=0.8, extractor="fast/1")
    with_slots = replace(SETTINGS, scheme=Scheme(slots=True), slot_conflicts_max=0)
    assert every.describe().keys() | with_slots.describe().keys() >= names


def test_another_revision_of_an_extractor_is_named() -> None:
    """A store of pages is not opened for texts that another revision finds, nor for bodies that are no pages."""
    stored = replace(SETTINGS, extractor="fast/1").encode()
    assert JudgeSettings.decode(stored).extractor == "fast/1"
    later = replace(SETTINGS, extractor="fast/2")
    assert differences(stored, later) == ['extractor is "fast/1" in the store and "fast/2" here']
    assert differences(stored, SETTINGS) == ['extractor is "fast/1" in the store and null here']


def test_a_fact_guard_that_only_one_side_has_is_named() -> None:
    """With the facts that it needs; a guard that is off is not described."""
    ours = replace(SETTINGS, scheme=Scheme(facts=True), facts_shared_min=0.8)
    assert differences(SETTINGS.encode(), ours) == [
        "facts_differing_min is null in the store and 3 here",
        "facts_revision is null in the store and 2 here",
        "facts_shared_min is null in the store and 0.8 here",
        "scheme.facts is null in the store and true here",
    ]


def test_a_store_from_before_there_were_revisions_has_the_first() -> None:
    """It does not name it, and is refused where another one is configured; so is a revision that is still to come."""
    first = replace(SETTINGS, scheme=Scheme(facts=True), facts_shared_min=0.8, facts_revision=1)
    second = replace(first, facts_revision=2)
    assert b"facts_revision" not in first.encode()
    assert JudgeSettings.decode(first.encode()) == first
    assert JudgeSettings.decode(second.encode()) == second
    assert differences(first.encode(), second) == ["facts_revision is 1 in the store and 2 here"]
    assert differences(second.encode(), first) == ["facts_revision is 2 in the store and 1 here"]
    with pytest.raises(ValueError, match="facts_revision is 3, but the fact guard has revisions 1 to 2"):
        JudgeSettings.decode(second.encode().replace(b'"facts_revision":2', b'"facts_revision":3'))


def test_differences_within_the_scheme_and_the_rules_are_named_by_their_place() -> None:
    """The name includes the field of a rule."""
    theirs = replace(SETTINGS, sources=MappingProxyType({"wire": SourceRule(flag="never")}))
    ours = replace(
        SETTINGS,
        scheme=Scheme(keywords_max=50, sketch=SketchLayout(bands=8)),
        sources=MappingProxyType({"wire": SourceRule(within_source=False)}),
    )
    assert differences(theirs.encode(), ours) == [
        "scheme.keywords_max is null in the store and 50 here",
        "scheme.sketch.bands is 4 in the store and 8 here",
        'sources.wire.flag is "never" in the store and "duplicates" here',
        "sources.wire.within_source is true in the store and false here",
    ]


def test_a_rule_of_a_source_that_only_one_side_has_is_named() -> None:
    """A missing rule is null."""
    ours = replace(SETTINGS, sources=MappingProxyType({"新华": SourceRule(flag="never")}))
    assert 'sources.新华.flag is null in the store and "never" here' in differences(SETTINGS.encode(), ours)


def test_equal_settings_encode_alike_whatever_their_order() -> None:
    """The digest of the settings does not depend on the order of the rules."""
    rules = {"a": SourceRule(flag="never"), "b": SourceRule(within_source=False)}
    forth = replace(SETTINGS, sources=MappingProxyType(rules))
    back = replace(SETTINGS, sources=MappingProxyType(dict(reversed(rules.items()))))
    assert forth.encode() == back.encode()


def test_sources_that_a_rule_names_are_a_set() -> None:
    """Neither their order nor a name given twice makes other settings; a rule without names is as in older stores."""
    forth, back = (
        replace(SETTINGS, sources=MappingProxyType({"wire": SourceRule(never_with=names)}))
        for names in (("blog", "mirror"), ("mirror", "blog", "mirror"))
    )
    assert forth.encode() == back.encode()
    named = 'sources.wire.never_with is null in the store and ["blog", "mirror"] here'
    assert named in differences(SETTINGS.encode(), forth)
    assert b"never_with" not in replace(SETTINGS, sources=MappingProxyType({"wire": SourceRule(flag="never")})).encode()


@pytest.mark.parametrize(
    ("name", "value"), [("contained_min", 0.5), ("plan", "8x8"), ("sources", {"a": {"flag": "perhaps"}})]
)
def test_settings_of_another_program_are_refused(name: str, value: object) -> None:
    """A store whose rules this version does not have cannot be judged by it."""
    described = SETTINGS.describe() | {name: value}
    with pytest.raises(ValueError, match=r"contained_min|8x8|perhaps"):
        JudgeSettings.decode(json.dumps(described).encode())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mood": "good"}, 'mood is "good" in the store and null here'),
        ({"scheme": SETTINGS.describe()["scheme"] | {"mood": 1}}, "scheme.mood is 1 in the store"),
        ({"sources": {"a": {"flag": "never", "mood": True}}}, "sources.a.mood is true in the store"),
    ],
)
def test_an_unknown_setting_is_refused(change: dict[str, object], message: str) -> None:
    """It decided verdicts, so nobody can judge without it: not at the top, in the scheme, or in a rule."""
    with pytest.raises(ValueError, match=message):
        JudgeSettings.decode(json.dumps(SETTINGS.describe() | change).encode())


@pytest.mark.parametrize(("max_distance", "radius"), [(0, 0), (3, 0), (4, 1), (7, 1)])
def test_the_radius_follows_from_the_distance(max_distance: int, radius: int) -> None:
    """Up to three bits no radius is needed."""
    assert replace(SETTINGS, max_distance=max_distance).radius == radius
