"""The settings that decide verdicts: consumers with equal settings judge alike.

A store keeps a description of the settings it was created with. Each time the store is opened, the description is
checked. So all articles in a store are judged by the same rules.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple, Self, get_type_hints

import msgspec
from annotated_types import Ge, Le, MaxLen

from consumer.fingerprint import SLOTS_KEPT, BlockPlan, Scheme
from storage.clock import MS_PER_DAY
from storage.records import Record

FACTS_DIFFERING_MIN = 3
"""Fewer differing facts do not keep a pair apart, because one text may be a correction of the other."""

FACTS_MISSING_MIN: Final = 4
"""A text must lack at least this many of the other's facts to count as a frame (revision 2 of the fact guard)."""

FACTS_SHARED_OF_MORE_MIN: Final = 0.6
"""The text with more facts must have this share of them in common with the other (revision 2 of the fact guard)."""

FACTS_REVISION: Final = 2
"""The latest revision of the fact guard, which new stores get."""

STRETCHES_MAX: Final = 64
"""The default limit on how often a content of an id may come back into force within the window."""

STRETCHES_LIMIT: Final = 1_000
"""The highest value of ``stretches_max``: a delivery may have to read this many records."""

NEVER_WITH_MAX: Final = 100
"""Limit on the sources that one rule may name; every comparison searches them."""

_SHORT_DIGEST_CHARS: Final = 12
_ADDED_LATER: Final = frozenset(
    {"facts", "facts_shared_min", "facts_revision", "extractor", "never_with", "slots", "stretches_max"}
)

_Share = Annotated[float, Ge(0), Le(1)]
Conflicts = Annotated[int, Ge(0), Le(SLOTS_KEPT)]


@dataclass(frozen=True, slots=True)
class SourceRule:
    """The exceptions for articles of one source. None stands for the general setting.

    Articles of this source and of a source in ``never_with`` never repeat each other. It is enough if the rule of one
    of the two sources names the other one. "" stands for articles without a source.

    The section of the configuration is derived from this class. The section checks the limits; this class does not.
    """

    similarity_min: _Share | None = None
    """How similar an article of the source and another article must be; at least judge.similarity_min."""
    max_distance: Annotated[int, Ge(0), Le(128)] | None = None
    """Without judge.verify, how far apart fingerprints may be; at most judge.max_distance."""
    flag: Literal["duplicates", "never"] = "duplicates"
    """Whether duplicates of this source are flagged; with never all of its articles are kept."""
    within_source: bool = True
    """Whether articles of the source can repeat each other."""
    facts_shared_min: _Share | None = None
    """The fact guard for articles of the source; at least judge.facts_shared_min."""
    slot_conflicts_max: Conflicts | None = None
    """The slot guard for articles of the source; at most judge.slot_conflicts_max."""
    never_with: Annotated[tuple[str, ...], MaxLen(NEVER_WITH_MAX)] = ()
    """Sources whose articles never repeat articles of this source, nor the reverse; "" stands for no source."""

    def __post_init__(self) -> None:
        """Sort the names in ``never_with`` and drop duplicates, so that equal rules compare equal."""
        object.__setattr__(self, "never_with", tuple(sorted(set(self.never_with))))


_DEFAULT_RULE = SourceRule()


class Thresholds(NamedTuple):
    """The thresholds for *near*: the lowest similarity, the greatest distance in bits, the shares of common facts.

    ``facts_shared_min`` is for the text with fewer facts, ``facts_shared_of_more_min`` for the text with more. 0 turns
    the check off. ``slot_conflicts_max`` is None if slots are not compared.
    """

    similarity_min: float
    max_distance: int
    facts_shared_min: float
    facts_shared_of_more_min: float
    slot_conflicts_max: int | None


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """The settings of the judge.

    Retrieval is exact up to ``max_distance`` bits. With ``verify`` a candidate within ``reach`` bits, or found by lane
    1 where ``lane1`` is on, is near if the similarity of the sketches is at least ``similarity_min``. Without
    ``verify`` only a distance of at most ``max_distance`` is near: plain SimHash.

    Lane 1 finds texts that share a band and differ in at most ``one_bits_distance_max`` of the 64 one-bit minima.
    Unrelated texts differ in 32 ± 4 of them.

    ``facts_shared_min`` is the fact guard: a pair with a smaller share of common facts is never near, however similar,
    unless it differs in fewer than ``FACTS_DIFFERING_MIN`` facts. 0 turns the guard off; other values need a scheme
    that extracts facts. ``facts_revision`` is the revision of the guard, 1 or 2; revision 2 also keeps a frame with few
    facts apart from its stories.

    ``slot_conflicts_max`` is the slot guard: a pair with more conflicting slots is never near. None turns it off; a
    number needs a scheme with slots.

    ``stretches_max`` limits how often a content of an id may come back into force within the window. 0 means never,
    which is the rule of stores older than this setting.

    ``extractor`` names the reader of bodies with its revision: the extractor of articles from web pages, or "html". It
    is "" if bodies are text, or HTML read by revision 1.
    """

    plan: BlockPlan
    scheme_digest: str
    scheme: Scheme = field(default_factory=Scheme)
    max_distance: int = 3
    reach: int = 10
    one_bits_distance_max: int = 16
    verify: bool = True
    similarity_min: float = Scheme().definition.similarity_min
    lane1: bool = True
    window_ms: int = 7 * MS_PER_DAY
    verifications_max: int = 1024
    sources: Mapping[str, SourceRule] = field(default_factory=lambda: MappingProxyType({}))
    facts_shared_min: float = 0.0
    extractor: str = ""
    facts_revision: int = FACTS_REVISION
    slot_conflicts_max: int | None = None
    stretches_max: int = STRETCHES_MAX

    def __post_init__(self) -> None:
        """Raise ValueError for settings that contradict each other, such as a distance that the plan cannot find."""
        self.plan.radius_for(self.max_distance)
        if self.reach > self.plan.bits:
            raise ValueError(f"reach is {self.reach}, but fingerprints have only {self.plan.bits} bits")
        if self.thresholds_for(*self.sources).facts_shared_min and not self.scheme.facts:
            raise ValueError("facts_shared_min is set, but the scheme does not extract facts")
        if self.thresholds_for(*self.sources).slot_conflicts_max is not None and not self.scheme.slots:
            raise ValueError("slot_conflicts_max is set, but the scheme does not extract slots")
        if not 1 <= self.facts_revision <= FACTS_REVISION:
            raise ValueError(
                f"facts_revision is {self.facts_revision}, but the fact guard has revisions 1 to {FACTS_REVISION}"
            )

    @property
    def radius(self) -> int:
        """The number of bits by which a block may differ and still be looked up."""
        return self.plan.radius_for(self.max_distance)

    @property
    def sketched(self) -> bool:
        """Whether records need sketches."""
        return self.verify or self.lane1

    @property
    def suspect_distance_max(self) -> int:
        """The greatest distance at which a posting of lane 0 becomes a candidate."""
        return self.reach if self.verify else self.max_distance

    def rule(self, source: str) -> SourceRule:
        """Return the rule for articles of this source."""
        return self.sources.get(source, _DEFAULT_RULE)

    def never_flags(self, record: Record) -> bool:
        """Return whether an article is always kept, by the rule of its source or by a bank."""
        return record.is_allowed or self.rule(record.source).flag == "never"

    def compares(self, a: str, b: str) -> bool:
        """Return whether the rules allow articles of these two sources, which may be the same, to be near."""
        if a == b:
            return self.rule(a).within_source
        return b not in self.rule(a).never_with and a not in self.rule(b).never_with

    def never_compared(self, source: str) -> frozenset[str]:
        """Return the other sources that this one is never compared with, because its own rule or theirs says so."""
        naming = {name for name, rule in self.sources.items() if source in rule.never_with}
        return frozenset(naming.union(self.rule(source).never_with))

    def thresholds_for(self, *sources: str) -> Thresholds:
        """Return the strictest of the general thresholds and the sources' own. Plain SimHash has no guards."""
        similarity_min, max_distance, facts_shared_min = self.similarity_min, self.max_distance, self.facts_shared_min
        conflicts = [self.slot_conflicts_max]
        for rule in [self.sources[source] for source in sources if source in self.sources]:
            if rule.similarity_min is not None:
                similarity_min = max(similarity_min, rule.similarity_min)
            if rule.max_distance is not None:
                max_distance = min(max_distance, rule.max_distance)
            if rule.facts_shared_min is not None:
                facts_shared_min = max(facts_shared_min, rule.facts_shared_min)
            conflicts.append(rule.slot_conflicts_max)
        facts_shared_min = facts_shared_min if self.verify else 0.0
        # Never stricter than the share for the text with fewer facts.
        of_more = min(FACTS_SHARED_OF_MORE_MIN, facts_shared_min) if self.facts_revision > 1 else 0.0
        limits = [limit for limit in conflicts if limit is not None]
        slot_conflicts_max = min(limits, default=None) if self.verify else None
        return Thresholds(similarity_min, max_distance, facts_shared_min, of_more, slot_conflicts_max)

    def describe(self) -> dict[str, Any]:
        """Return all settings that change verdicts, by name, in JSON types.

        Settings added later are left out while they are off, so that the description equals that of older stores.
        """
        rules = {name: _without_unused(asdict(rule)) for name, rule in sorted(self.sources.items())}
        described = {setting.name: getattr(self, setting.name) for setting in fields(self)} | {
            "plan": self.plan.name,
            "scheme": _without_unused(self.scheme.parameters()),
            "sources": {name: rule for name, rule in rules.items() if rule != _without_unused(asdict(_DEFAULT_RULE))},
            # Stores older than revisions have the first one, and do not name it.
            "facts_revision": self.facts_revision if self.scheme.facts and self.facts_revision > 1 else None,
        }
        return _without_unused(described) | ({"facts_differing_min": FACTS_DIFFERING_MIN} if self.scheme.facts else {})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return the settings of a store. Raises ValueError if this version of dupwatch cannot judge by them."""
        described = msgspec.convert(json.loads(data), dict[str, Any])
        if missing := sorted({"plan", "scheme", "scheme_digest", "sources"} - described.keys()):
            raise ValueError(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
        known = {
            name: _member(name, described[name], kind) for name, kind in _stored_types().items() if name in described
        }
        known = _older_defaults(has_facts=known["scheme"].facts) | known
        plan, sources = BlockPlan.named(known["plan"], known["scheme"].bits), MappingProxyType(known["sources"])
        settings = cls(**known | {"plan": plan, "sources": sources})
        # Refuse settings that this version does not know, even inside a rule: ignoring them would change verdicts.
        differing = differences(data, settings)
        if differing:
            raise ValueError("; ".join(differing))
        return settings

    def encode(self) -> bytes:
        """Return the description as canonical JSON, the form in stores."""
        return json.dumps(self.describe(), sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()

    def digest(self) -> str:
        """Return the SHA-256 of the encoded settings in hex: equal for consumers that judge alike."""
        return hashlib.sha256(self.encode()).hexdigest()

    def short_digest(self) -> str:
        """Return the beginning of the digest, for people to compare."""
        return self.digest()[:_SHORT_DIGEST_CHARS]


@cache
def _stored_types() -> dict[str, Any]:
    """Return the types of the settings, by name, as they are stored."""
    return get_type_hints(JudgeSettings) | {"plan": str, "sources": dict[str, SourceRule]}


def _member(name: str, value: object, kind: Any) -> Any:  # noqa: ANN401  # any type of a setting
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"{name}: {error}") from error


def differences(stored: bytes, ours: JudgeSettings) -> list[str]:
    """Return a phrase for each setting that differs between a store and ``ours``."""
    theirs, mine = _by_path(stored), _by_path(ours.encode())
    return [
        f"{name} is {json.dumps(theirs.get(name), ensure_ascii=False)} in the store"
        f" and {json.dumps(mine.get(name), ensure_ascii=False)} here"
        for name in sorted(theirs.keys() | mine.keys())
        if theirs.get(name) != mine.get(name)
    ]


def _by_path(encoded: bytes) -> dict[str, object]:
    """Return encoded settings by their path, with the settings that older stores leave out."""
    named = dict(_flatten("", json.loads(encoded)))
    return _older_defaults(has_facts=bool(named.get("scheme.facts"))) | named


def _older_defaults(*, has_facts: bool) -> dict[str, int]:
    """Return the settings that older stores leave out, with the values that apply to them."""
    return {"stretches_max": 0} | ({"facts_revision": 1} if has_facts else {})


def _without_unused(described: dict[str, Any]) -> dict[str, Any]:
    """Leave out settings added later while they are off."""
    return {name: value for name, value in described.items() if not _is_unused(name, value)}


def _is_unused(name: str, value: object) -> bool:
    # For slot_conflicts_max only None means off: 0 is the usual maximum.
    return value is None if name == "slot_conflicts_max" else not value and name in _ADDED_LATER


def _flatten(prefix: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flatten(f"{prefix}.{name}" if prefix else name, inner)
    else:
        yield prefix, value
