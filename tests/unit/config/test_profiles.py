"""A profile and ``facts`` stand for the settings that are not set themselves, and a store knows only these."""

from typing import Any

import pytest

from consumer.config.config import Config
from consumer.config.judging import configured_scheme, configured_settings, requested_settings, with_stored_settings
from consumer.config.loading import load_config
from consumer.config.profiles import PROFILES
from consumer.config.sections.judge import JudgeSection
from consumer.judge.settings import JudgeSettings, differences
from consumer.model.errors import ConfigError

KEYS = ("bands", "band_minima", "one_bits_distance_max", "similarity_min")
NEWS = (4, 3, 16, 0.73)
POSTS = (14, 2, 28, 0.34)


def settings_of(config: Config) -> JudgeSettings:
    """Return the settings that a new store is bound to."""
    return configured_settings(config, configured_scheme(config), "")


def figures(config: Config) -> tuple[int, int, int, float]:
    """Return what a profile sets."""
    settings = settings_of(config)
    layout = settings.scheme.sketch
    return layout.bands, layout.band_minima, settings.one_bits_distance_max, settings.similarity_min


@pytest.mark.parametrize(("profile", "expected"), [(None, NEWS), ("news", NEWS), ("posts", POSTS), ("mixed", POSTS)])
def test_a_profile_sets_keys_and_threshold(profile: str | None, expected: tuple[int, int, int, float]) -> None:
    """That of news is the default."""
    assert figures(load_config(None, {"judge": {"profile": profile}})) == expected


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("fingerprint", "bands", 8),
        ("fingerprint", "band_minima", 3),
        ("judge", "one_bits_distance_max", 20),
        ("judge", "similarity_min", 0.5),
    ],
)
def test_a_setting_overrides_its_profile(section: str, name: str, value: float) -> None:
    """All others are as the profile has them."""
    overrides: dict[str, dict[str, Any]] = {"judge": {"profile": "posts"}}
    overrides.setdefault(section, {})[name] = value
    expected = dict(zip(KEYS, POSTS, strict=True)) | {name: value}
    assert figures(load_config(None, overrides)) == tuple(expected.values())


def test_a_store_is_bound_to_the_settings_alone() -> None:
    """Written out they are the same store's."""
    written = {
        "fingerprint": {"bands": 14, "band_minima": 2},
        "judge": {"one_bits_distance_max": 28, "similarity_min": 0.34},
    }
    of_profile = settings_of(load_config(None, {"judge": {"profile": "posts"}}))
    assert of_profile.encode() == settings_of(load_config(None, written)).encode()
    assert b"profile" not in of_profile.encode()


def test_a_store_of_another_profile_is_refused_and_one_without_a_name_is_taken() -> None:
    """Who names news does not get posts, and who names nothing gets what the store has."""
    posts = settings_of(load_config(None, {"judge": {"profile": "posts"}}))
    assert figures(with_stored_settings(load_config(None, {}), posts)) == POSTS
    news = settings_of(with_stored_settings(load_config(None, {"judge": {"profile": "news"}}), posts))
    named = " ".join(differences(posts.encode(), news))
    assert all(name in named for name in KEYS)


def test_a_section_that_was_built_is_read_too() -> None:
    """As tests and programs build one."""
    assert figures(Config(judge=JudgeSection(profile="posts"))) == POSTS


def test_a_rule_raises_the_threshold_of_its_source() -> None:
    """The stricter side of a pair counts."""
    rules = {"agency": {"profile": "news"}, "wire": {"profile": "news", "similarity_min": 0.8}, "blog": {}}
    settings = settings_of(load_config(None, {"judge": {"profile": "mixed"}, "rules": rules}))
    found = [settings.thresholds_for(source, "blog").similarity_min for source in ("agency", "wire", "blog")]
    assert found == [0.73, 0.8, 0.34]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"judge": {"profile": "mail"}}, "judge.profile"),
        ({"rules": {"wire": {"profile": "mail"}}}, "rules.wire.profile is 'mail'; write one of news, posts, mixed"),
        ({"judge": {"profile": ["posts"]}}, "judge.profile"),
        ({"rules": {"wire": {"profile": ["posts"]}}}, "rules.wire.profile is "),
        ({"rules": {"wire": {"profile": "posts"}}}, "rules.wire.similarity_min can only be stricter: at least 0.73"),
        ({"judge": {"profile": "posts"}, "fingerprint": {"scheme": "jieba-tfidf/2"}}, "compares letters"),
        ({"judge": {"profile": "mixed"}, "fingerprint": {"scheme": "md5-64/1"}}, "compares letters"),
        ({"judge": {"profile": "posts", "verify": False, "lane1": False}}, "no effect with verify = false"),
    ],
)
def test_profiles_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    """An unknown one, a rule that would accept more than the judge, and a scheme with other similarities."""
    with pytest.raises(ConfigError, match=message):
        load_config(None, settings)


def test_every_profile_sets_the_same_settings() -> None:
    """So that none keeps what another one set."""
    places = {
        name: [(section, setting) for section, values in of.items() for setting in values]
        for name, of in PROFILES.items()
    }
    assert len({tuple(of) for of in places.values()}) == 1


@pytest.mark.parametrize(
    ("judge", "rule", "expected"),
    [
        ({}, {}, (None, None)),
        ({"facts": "slots"}, {}, (0, 0)),
        ({"facts": "slots", "slot_conflicts_max": 2}, {}, (2, 2)),
        ({"slot_conflicts_max": 2}, {"facts": "slots"}, (0, 2)),
        ({}, {"facts": "slots"}, (0, None)),
        ({}, {"facts": "slots", "slot_conflicts_max": 1}, (1, None)),
        ({"profile": "mixed"}, {"profile": "news", "facts": "slots"}, (0, None)),
    ],
)
def test_slots_are_compared_where_they_are_asked_for(
    judge: dict[str, Any], rule: dict[str, Any], expected: tuple[int | None, int | None]
) -> None:
    """By the store, or by one source's rule; then all records have them, since a pair obeys both its rules."""
    settings = settings_of(load_config(None, {"judge": judge, "rules": {"agency": rule}}))
    found = tuple(settings.thresholds_for(source, "blog").slot_conflicts_max for source in ("agency", "wire"))
    assert found == expected
    assert settings.scheme.slots is (expected != (None, None))
    assert b'"facts"' not in settings.encode()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"judge": {"facts": "names"}}, "judge.facts"),
        ({"rules": {"wire": {"facts": "names"}}}, "rules.wire.facts is 'names'; write \"slots\", or leave it out"),
        ({"judge": {"facts": "slots", "facts_shared_min": 0.8}}, "judge.slot_conflicts_max and judge.facts_shared_min"),
        (
            {"judge": {"facts": "slots"}, "rules": {"wire": {"facts_shared_min": 0.8}}},
            "judge.slot_conflicts_max and rules.wire.facts_shared_min cannot be used together",
        ),
        ({"judge": {"facts": "slots"}, "fingerprint": {"scheme": "jieba-tfidf/2"}}, "compares letters"),
        ({"rules": {"wire": {"facts": "slots"}}, "fingerprint": {"scheme": "md5-64/1"}}, "compares letters"),
        ({"judge": {"facts": "slots", "verify": False, "lane1": False}}, "no effect with verify = false"),
        (
            {"judge": {"verify": False, "lane1": False}, "rules": {"wire": {"facts": "slots"}}},
            "no effect with verify = false",
        ),
        (
            {"judge": {"facts": "slots"}, "rules": {"wire": {"slot_conflicts_max": 1}}},
            "rules.wire.slot_conflicts_max can only be stricter: at most 0",
        ),
        ({"judge": {"slot_conflicts_max": 65}}, "slot_conflicts_max"),
        ({"judge": {"slot_conflicts_max": -1}}, "slot_conflicts_max"),
    ],
)
def test_slots_that_cannot_be_compared_are_refused(settings: dict[str, Any], message: str) -> None:
    """Beside facts, without letters or sketches, and by a rule that would accept more than the judge."""
    with pytest.raises(ConfigError, match=message):
        load_config(None, settings)


def test_a_store_keeps_slots_or_facts() -> None:
    """A migration to one of them ends the other."""
    slots = settings_of(load_config(None, {"judge": {"facts": "slots"}}))
    facts = settings_of(load_config(None, {"judge": {"facts_shared_min": 0.8}}))
    to_facts = requested_settings(
        load_config(None, {"judge": {"facts_shared_min": 0.8, "slot_conflicts_max": None}}), slots
    )
    to_slots = requested_settings(load_config(None, {"judge": {"facts": "slots", "facts_shared_min": 0}}), facts)
    assert (to_facts, to_slots) == (facts, slots)
    named = " ".join(differences(facts.encode(), slots))
    assert all(name in named for name in ("scheme.slots", "scheme.facts", "slot_conflicts_max", "facts_shared_min"))
