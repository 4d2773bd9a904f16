"""Names for groups of settings: profiles, one for each kind of feed, and kinds of facts.

They are shorthand: a store is bound to the settings behind them, and does not record the names.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from pydantic import BaseModel

from consumer.fingerprint import SCHEME_NAMES, Scheme
from consumer.judge.settings import JudgeSettings

ProfileName = Literal["news", "posts", "mixed"]
FactsName = Literal["slots"]
_SLOTS: Final[Mapping[str, Any]] = {"slot_conflicts_max": 0}
"""The settings for ``facts = "slots"``."""

_NEWS: Final[Mapping[str, Mapping[str, Any]]] = {
    "fingerprint": {"bands": Scheme().sketch.bands, "band_minima": Scheme().sketch.band_minima},
    "judge": {"one_bits_distance_max": 16, "similarity_min": None},
}
_POSTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "fingerprint": {"bands": 14, "band_minima": 2},
    "judge": {"one_bits_distance_max": 28, "similarity_min": 0.34},
}
PROFILES: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = MappingProxyType(
    # A mixed feed has the keys and the threshold of posts; rules raise the threshold of its news.
    {"news": _NEWS, "posts": _POSTS, "mixed": _POSTS}
)


def settings_by_profile(settings: JudgeSettings) -> dict[str, JudgeSettings]:
    """Return the settings with the values of the profiles *news* and *posts*, by profile. *mixed* has those of *posts*.

    The result is empty for plain SimHash, and for schemes that do not compare letters.
    """
    if not settings.scheme.definition.compares_letters or not settings.verify:
        return {}
    return {name: _in_profile(settings, PROFILES[name]) for name in ("news", "posts")}


def _in_profile(settings: JudgeSettings, profile: Mapping[str, Mapping[str, Any]]) -> JudgeSettings:
    scheme, judge = settings.scheme, dict(profile["judge"])
    if judge["similarity_min"] is None:
        judge["similarity_min"] = scheme.definition.similarity_min
    return replace(settings, scheme=replace(scheme, sketch=replace(scheme.sketch, **profile["fingerprint"])), **judge)


def expand_profiles(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings by section, with the values of profiles and facts for missing settings.

    Raises ``ValueError`` for an unknown profile or kind of facts in a rule. In ``[judge]``, validation refuses them.
    """
    sections: dict[str, Any] = {
        name: value.model_dump(exclude_unset=True) if isinstance(value, BaseModel) else value
        for name, value in settings.items()
    }
    judge, fingerprint, rules = (sections.get(name, {}) for name in ("judge", "fingerprint", "rules"))
    if not all(isinstance(section, Mapping) for section in (judge, fingerprint, rules)):
        return sections
    for name, values in PROFILES.get(str(judge.get("profile")), {}).items():
        sections[name] = {**values, **sections.get(name, {})}
    if judge.get("facts") in get_args(FactsName):
        sections["judge"] = {**_SLOTS, **sections["judge"]}
    if rules:
        scheme = fingerprint.get("scheme", Scheme().name)
        sections["rules"] = {source: _rule(source, rule, scheme) for source, rule in rules.items()}
    return sections


def _rule(source: str, rule: Any, scheme: str) -> Any:  # noqa: ANN401  # as read
    if not isinstance(rule, Mapping):
        return rule
    if "facts" in rule:
        if rule["facts"] not in get_args(FactsName):
            raise ValueError(f'rules.{source}.facts is {rule["facts"]!r}; write "slots", or leave it out')
        rule = {**_SLOTS, **{name: value for name, value in rule.items() if name != "facts"}}
    if "profile" not in rule:
        return rule
    profile = rule["profile"]
    if str(profile) not in PROFILES:
        raise ValueError(f"rules.{source}.profile is {profile!r}; write one of {', '.join(get_args(ProfileName))}")
    similarity_min = PROFILES[profile]["judge"]["similarity_min"]
    if similarity_min is None and scheme in SCHEME_NAMES:
        similarity_min = Scheme(scheme).definition.similarity_min
    return {"similarity_min": similarity_min, **{name: value for name, value in rule.items() if name != "profile"}}
