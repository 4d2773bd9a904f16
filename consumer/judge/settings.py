"""What decides a verdict, and nothing else: two consumers with equal settings judge alike.

The description of these settings is kept in the store and checked when it is opened, so that nobody judges by other
rules among articles that were judged by these.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

import msgspec
from annotated_types import Ge, Le

from consumer.fingerprint import BlockPlan, Scheme

ONE_BITS_DISTANCE_MAX = 16
"""Lane 1: of 64 one-bit minima this many may differ. Unrelated texts differ in 32 ± 4."""

FACTS_DIFFERING_MIN = 3
"""A pair in which an article lacks fewer of the other's facts than this may be a correction, and is never held back."""

DAY_MS = 86_400_000
_SHORT_DIGEST_CHARS: Final = 12


_Share = Annotated[float, Ge(0), Le(1)]


@dataclass(frozen=True, slots=True)
class SourceRule:
    """What is different for the articles of one source; None means as for all others.

    The configuration's section is derived from this, limits included. They are not checked here.
    """

    similarity_min: _Share | None = None
    max_distance: Annotated[int, Ge(0), Le(128)] | None = None
    flag: Literal["duplicates", "never"] = "duplicates"
    within_source: bool = True
    facts_shared_min: _Share | None = None


_DEFAULT_RULE = SourceRule()


class Thresholds(NamedTuple):
    """What two articles have to keep to be near: by sketches at least, by fingerprints at most, by facts at least."""

    similarity_min: float
    max_distance: int
    facts_shared_min: float


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """The settings of the judge.

    ``max_distance`` (bits) is what retrieval is exact for. With ``verify`` a candidate within ``reach`` bits, or found
    by lane 1 where ``lane1`` is on, is near when its sketch says at least ``similarity_min``. Without, near is a
    distance of at most ``max_distance`` and nothing else: plain SimHash.

    ``facts_shared_min`` is the fact guard: a pair that shares less of its facts is held back, however similar it is. 0
    is no guard; more needs a scheme that has facts made.
    """

    plan: BlockPlan
    scheme_digest: str
    scheme: Scheme = field(default_factory=Scheme)
    max_distance: int = 3
    reach: int = 10
    verify: bool = True
    similarity_min: float = 0.75
    lane1: bool = True
    window_ms: int = 7 * DAY_MS
    verifications_max: int = 1024
    sources: Mapping[str, SourceRule] = field(default_factory=lambda: MappingProxyType({}))
    facts_shared_min: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a distance that the plan cannot hold for; the ValueError says which plan would."""
        self.plan.radius_for(self.max_distance)
        if self.reach > self.plan.bits:
            raise ValueError(f"reach is {self.reach}, and fingerprints have {self.plan.bits} bits only")
        if self.thresholds_for(*self.sources).facts_shared_min and not self.scheme.facts:
            raise ValueError("facts_shared_min is asked for, and the scheme has no facts made")

    @property
    def radius(self) -> int:
        """How many bits of a block may differ for the look-up to find it."""
        return self.plan.radius_for(self.max_distance)

    @property
    def sketched(self) -> bool:
        """Whether anything is decided by sketches."""
        return self.verify or self.lane1

    @property
    def suspect_distance_max(self) -> int:
        """Up to which distance a posting of lane 0 makes a candidate."""
        return self.reach if self.verify else self.max_distance

    def rule(self, source: str) -> SourceRule:
        """The rule for articles of this source."""
        return self.sources.get(source, _DEFAULT_RULE)

    def thresholds_for(self, *sources: str) -> Thresholds:
        """The strictest of these sources, and of all. There is no fact guard, 0, with plain SimHash."""
        similarity_min, max_distance, facts_shared_min = self.similarity_min, self.max_distance, self.facts_shared_min
        for rule in [self.sources[source] for source in sources if source in self.sources]:
            if rule.similarity_min is not None:
                similarity_min = max(similarity_min, rule.similarity_min)
            if rule.max_distance is not None:
                max_distance = min(max_distance, rule.max_distance)
            if rule.facts_shared_min is not None:
                facts_shared_min = max(facts_shared_min, rule.facts_shared_min)
        return Thresholds(similarity_min, max_distance, facts_shared_min if self.verify else 0.0)

    def describe(self) -> dict[str, Any]:
        """Everything that changes verdicts, by name, in plain JSON types.

        What belongs to the fact guard is left out where it is off, so that stores from before there was one agree.
        """
        rules = {name: _without_off(asdict(rule)) for name, rule in sorted(self.sources.items())}
        described = _without_off({item.name: getattr(self, item.name) for item in fields(self)}) | {
            "plan": self.plan.name,
            "scheme": _without_off(asdict(self.scheme)),
            "one_bits_distance_max": ONE_BITS_DISTANCE_MAX,
            "sources": {name: rule for name, rule in rules.items() if rule != _without_off(asdict(_DEFAULT_RULE))},
        }
        return described | ({"facts_differing_min": FACTS_DIFFERING_MIN} if self.scheme.facts else {})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Settings as a store holds them; ValueError where this program cannot judge by them."""
        described: dict[str, Any] = json.loads(data)
        if described.pop("one_bits_distance_max", None) != ONE_BITS_DISTANCE_MAX:
            raise ValueError("one_bits_distance_max is another")
        if described.pop("facts_differing_min", FACTS_DIFFERING_MIN) != FACTS_DIFFERING_MIN:
            raise ValueError("facts_differing_min is another")
        scheme = msgspec.convert(described["scheme"], Scheme)
        described["plan"] = BlockPlan.named(described["plan"], scheme.bits)
        described["scheme"] = scheme
        rules = msgspec.convert(described["sources"], dict[str, SourceRule])
        return cls(**described | {"sources": MappingProxyType(rules)})

    def encode(self) -> bytes:
        """The description as canonical JSON, as it is kept in a store."""
        return json.dumps(self.describe(), sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()

    def digest(self) -> str:
        """Return the SHA-256 of the encoded settings in hex: equal for consumers that judge alike."""
        return hashlib.sha256(self.encode()).hexdigest()

    def short_digest(self) -> str:
        """Return the beginning of the digest, to be compared by eye."""
        return self.digest()[:_SHORT_DIGEST_CHARS]


def differences(stored: bytes, ours: JudgeSettings) -> list[str]:
    """Which settings a store was made with that are not ours, one phrase each; empty where they agree."""
    theirs, mine = dict(_flat("", json.loads(stored))), dict(_flat("", json.loads(ours.encode())))
    return [
        f"{name} is {json.dumps(theirs.get(name), ensure_ascii=False)} in the store"
        f" and {json.dumps(mine.get(name), ensure_ascii=False)} here"
        for name in sorted(theirs.keys() | mine.keys())
        if theirs.get(name) != mine.get(name)
    ]


def _without_off(described: dict[str, Any]) -> dict[str, Any]:
    """Leave out what the fact guard has added, where it is off."""
    return {name: value for name, value in described.items() if value or name not in {"facts", "facts_shared_min"}}


def _flat(prefix: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(f"{prefix}.{name}" if prefix else name, inner)
    else:
        yield prefix, value
