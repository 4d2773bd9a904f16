"""The settings that decide verdicts, and no others: two consumers with equal settings judge alike.

A store keeps the description of the settings that it was made with. It is checked whenever the store is opened, so
that all articles in a store are judged by the same rules.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

import msgspec
from annotated_types import Ge, Le, MaxLen

from consumer.fingerprint import SLOTS_KEPT, BlockPlan, Scheme
from storage.clock import MS_PER_DAY
from storage.records import Record

FACTS_DIFFERING_MIN = 3
"""A pair that differs in fewer facts than this may be a correction, and the fact guard lets it pass."""

FACTS_MISSING_MIN: Final = 4
"""A text that lacks fewer of the other's facts than this is no frame without facts (revision 2 of the fact guard)."""

FACTS_SHARED_OF_MORE_MIN: Final = 0.6
"""What share of its facts the text with more has to share (revision 2 of the fact guard)."""

FACTS_REVISION: Final = 2
"""The latest revision of the fact guard, that of new stores."""

STRETCHES_MAX: Final = 64
"""How often one content of an id may come back into force within the window, by default."""

STRETCHES_LIMIT: Final = 1_000
"""The highest ``stretches_max``: as many records may be read for one delivery."""

NEVER_WITH_MAX: Final = 100
"""Sources that one rule may name; every comparison looks through them."""

_SHORT_DIGEST_CHARS: Final = 12
_ADDED: Final = frozenset(
    {"facts", "facts_shared_min", "facts_revision", "extractor", "never_with", "slots", "stretches_max"}
)

_Share = Annotated[float, Ge(0), Le(1)]
Conflicts = Annotated[int, Ge(0), Le(SLOTS_KEPT)]


@dataclass(frozen=True, slots=True)
class SourceRule:
    """Exceptions for the articles of one source; None means as for all others.

    ``never_with`` names sources whose articles never repeat those of this one, and are never repeated by them: one
    rule of the two is enough. "" names articles without a source.

    The configuration's section is derived from this, limits included. They are not checked here.
    """

    similarity_min: _Share | None = None
    """How similar an article of the source must be to another one; at least judge.similarity_min."""
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
    """Sources whose articles and those of this one never repeat each other; "" stands for articles without a source."""

    def __post_init__(self) -> None:
        """Sort the names, so that settings that differ in their order alone are equal."""
        object.__setattr__(self, "never_with", tuple(sorted(set(self.never_with))))


_DEFAULT_RULE = SourceRule()


class Thresholds(NamedTuple):
    """What makes two articles near: the least similarity, the greatest distance in bits, what their facts must share.

    The shares are of the text with fewer facts and of the one with more; 0 where the fact guard does not ask for one.
    ``slot_conflicts_max`` is None where slots are not compared.
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

    Lane 1 finds what shares a band and differs in at most ``one_bits_distance_max`` of the 64 one-bit minima, of which
    unrelated texts differ in 32 ± 4.

    ``facts_shared_min`` is the fact guard: a pair that shares fewer of its facts is never near, however similar it is.
    0 turns the guard off; other values need a scheme that extracts facts. ``facts_revision`` is the guard's rule: 1 or
    2, of which 2 also holds back a frame without facts from its stories.

    ``slot_conflicts_max`` is the slot guard: a pair with more slots that hold different values is never near. None
    turns it off; a number needs a scheme that has slots.

    ``stretches_max`` is how often one content of an id may come back into force within the window. With 0 it never
    does: that is the rule of stores from before there was this setting.

    ``extractor`` is how bodies are read: the extractor that finds the articles of web pages, or "html", with its
    revision; "" where bodies are text, or HTML that is read by revision 1.
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
            raise ValueError(f"facts_revision is {self.facts_revision}, but the fact guard has 1 to {FACTS_REVISION}")

    @property
    def radius(self) -> int:
        """The number of bits of a block that may differ for the look-up to find it."""
        return self.plan.radius_for(self.max_distance)

    @property
    def sketched(self) -> bool:
        """Whether sketches decide anything, and records need one."""
        return self.verify or self.lane1

    @property
    def suspect_distance_max(self) -> int:
        """The greatest distance at which a posting of lane 0 becomes a candidate."""
        return self.reach if self.verify else self.max_distance

    def rule(self, source: str) -> SourceRule:
        """Return the rule for articles of this source."""
        return self.sources.get(source, _DEFAULT_RULE)

    def never_flags(self, record: Record) -> bool:
        """Return whether an article is kept whatever it repeats: by the rule of its source, or by a bank."""
        return record.is_allowed or self.rule(record.source).flag == "never"

    def compares(self, a: str, b: str) -> bool:
        """Return whether articles of these two sources, or of this one, can be near each other by the rules."""
        if a == b:
            return self.rule(a).within_source
        return b not in self.rule(a).never_with and a not in self.rule(b).never_with

    def never_compared(self, source: str) -> frozenset[str]:
        """Return the sources that this one is never compared with, whichever of the two rules says so."""
        naming = {name for name, rule in self.sources.items() if source in rule.never_with}
        return frozenset(naming.union(self.rule(source).never_with))

    def thresholds_for(self, *sources: str) -> Thresholds:
        """Return the strictest thresholds of these sources and the general ones; no fact guard with plain SimHash."""
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
        # Never stricter than the share of the text with fewer facts.
        of_more = min(FACTS_SHARED_OF_MORE_MIN, facts_shared_min) if self.facts_revision > 1 else 0.0
        limits = [limit for limit in conflicts if limit is not None]
        slot_conflicts_max = min(limits, default=None) if self.verify else None
        return Thresholds(similarity_min, max_distance, facts_shared_min, of_more, slot_conflicts_max)

    def describe(self) -> dict[str, Any]:
        """Return everything that changes verdicts, by name, in JSON types.

        Settings that were added later are left out where they are off, so that settings equal those of older stores.
        """
        rules = {name: _without_off(asdict(rule)) for name, rule in sorted(self.sources.items())}
        described = {setting.name: getattr(self, setting.name) for setting in fields(self)} | {
            "plan": self.plan.name,
            "scheme": _without_off(self.scheme.parameters()),
            "sources": {name: rule for name, rule in rules.items() if rule != _without_off(asdict(_DEFAULT_RULE))},
            # Stores from before there were revisions have the first, and do not name it.
            "facts_revision": self.facts_revision if self.scheme.facts and self.facts_revision > 1 else None,
        }
        return _without_off(described) | ({"facts_differing_min": FACTS_DIFFERING_MIN} if self.scheme.facts else {})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return the settings of a store. Raises ValueError where this version of dupwatch cannot judge by them."""
        described: dict[str, Any] = json.loads(data)
        scheme = msgspec.convert(described["scheme"], Scheme)
        rules = msgspec.convert(described["sources"], dict[str, SourceRule])
        known = {setting.name: described[setting.name] for setting in fields(cls) if setting.name in described}
        known = _left_out(has_facts=scheme.facts) | known
        plan = BlockPlan.named(described["plan"], scheme.bits)
        settings = cls(**known | {"plan": plan, "scheme": scheme, "sources": MappingProxyType(rules)})
        # A setting that this version does not know, even one inside a rule, would decide verdicts here and be ignored.
        differing = differences(data, settings)
        if differing:
            raise ValueError("; ".join(differing))
        return settings

    def encode(self) -> bytes:
        """Return the description as canonical JSON, as a store keeps it."""
        return json.dumps(self.describe(), sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()

    def digest(self) -> str:
        """Return the SHA-256 of the encoded settings in hex: equal for consumers that judge alike."""
        return hashlib.sha256(self.encode()).hexdigest()

    def short_digest(self) -> str:
        """Return the beginning of the digest, to be compared by eye."""
        return self.digest()[:_SHORT_DIGEST_CHARS]


def differences(stored: bytes, ours: JudgeSettings) -> list[str]:
    """Return a phrase for each setting that differs between a store and ``ours``; an empty list where none does."""
    theirs, mine = _named(stored), _named(ours.encode())
    return [
        f"{name} is {json.dumps(theirs.get(name), ensure_ascii=False)} in the store"
        f" and {json.dumps(mine.get(name), ensure_ascii=False)} here"
        for name in sorted(theirs.keys() | mine.keys())
        if theirs.get(name) != mine.get(name)
    ]


def _named(encoded: bytes) -> dict[str, object]:
    """Return the encoded settings by their place, with what older stores leave out."""
    named = dict(_flat("", json.loads(encoded)))
    return _left_out(has_facts=bool(named.get("scheme.facts"))) | named


def _left_out(*, has_facts: bool) -> dict[str, int]:
    """Return the settings that older stores leave out, as they are there."""
    return {"stretches_max": 0} | ({"facts_revision": 1} if has_facts else {})


def _without_off(described: dict[str, Any]) -> dict[str, Any]:
    """Leave out settings that were added later, where they are off."""
    return {name: value for name, value in described.items() if not _is_off(name, value)}


def _is_off(name: str, value: object) -> bool:
    # Where slots are compared, 0 is the usual maximum.
    return value is None if name == "slot_conflicts_max" else not value and name in _ADDED


def _flat(prefix: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(f"{prefix}.{name}" if prefix else name, inner)
    else:
        yield prefix, value
