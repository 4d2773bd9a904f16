"""Finds near misses: for a sample of the kept versions, the one that they would repeat if thresholds were lower.

A flag says what repeats what, and nothing says what was missed. So a near miss is what a flag would be with the
thresholds lowered by a margin: the same candidates, the same conditions, the same choice among several. It decides
nothing, and is stored nowhere.

Versions are drawn, and not pairs: only for a drawn version anything is compared again, and the best pair of each has
the same chance. The draw depends on the version alone, so that every consumer and every replay draws the same.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import floor
from types import MappingProxyType
from typing import Final

import msgspec

from consumer.judge.comparison import ComparisonBatch
from consumer.judge.decision import Neighbour, Neighbourhood, VersionState, preference
from consumer.judge.events import version_name
from consumer.judge.settings import JudgeSettings
from consumer.model.near_miss import NearMiss, encode
from consumer.model.verdict import Verdict, VerdictEvent
from storage.records import Record, StoredVersion

_DRAW_BYTES: Final = 8
_DRAW_NAME: Final = b"near-miss"
_SIMILARITY_STEPS: Final = 10_000
"""Similarities have four digits, and a near miss stays under its threshold: it is cut, and not rounded."""


@dataclass(frozen=True, slots=True)
class NearMisses:
    """Which versions are drawn, and what is near enough to them to be missed.

    ``share`` of the kept versions are drawn, 0 to 1; what is at most ``margin`` less similar than the pair's threshold
    is a near miss.
    """

    settings: JudgeSettings
    share: float
    margin: float
    _lowered: JudgeSettings = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Lower every threshold. Raises ValueError for plain SimHash, which has no similarity."""
        if not self.settings.verify:
            raise ValueError("near misses need verify = true: plain SimHash compares no similarities")
        object.__setattr__(self, "_lowered", _lowered(self.settings, self.margin))

    @property
    def sampled_in(self) -> float:
        """One in so many is drawn."""
        return 1 / self.share

    @property
    def similarity_min(self) -> float:
        """Nothing less similar is a near miss, nor near."""
        return self._lowered.similarity_min

    def draws(self, record: Record) -> bool:
        """Return whether this version is drawn; those of sources that are never flagged are not."""
        if self.settings.never_flags(record):
            return False
        drawn = hashlib.blake2b(record.reference, digest_size=_DRAW_BYTES, person=_DRAW_NAME).digest()
        return int.from_bytes(drawn) < self.share * (1 << 8 * _DRAW_BYTES)

    def missed(
        self, version: StoredVersion, candidates: Sequence[bytes], matchable: ComparisonBatch
    ) -> list[Neighbour]:
        """Return those among the candidates, by reference, that are just too unlike this version."""
        if not candidates or not self.draws(version.record):
            return []
        return [
            Neighbour(other.record, comparison.distance, comparison.similarity)
            for other, comparison in matchable.compare(version, candidates, self._lowered).near
            if comparison.similarity is not None
            and comparison.similarity < self.threshold(version.record, other.record)
        ]

    def threshold(self, a: Record, b: Record) -> float:
        """Return the least similarity at which these two would be near."""
        return self.settings.thresholds_for(a.source, b.source).similarity_min

    def event(self, record: Record, verdict: Verdict, near_miss: Neighbour) -> bytes:
        """Return the event of a kept version; it has the times of the verdict, so that a replay has the same bytes."""
        other = near_miss.record
        return encode(
            NearMiss(
                id=record.id,
                version=version_name(record.reference),
                original=other.id,
                original_version=version_name(other.reference),
                source=record.source,
                original_source=other.source,
                similarity=floor((near_miss.similarity or 0.0) * _SIMILARITY_STEPS) / _SIMILARITY_STEPS,
                threshold=self.threshold(record, other),
                distance=near_miss.distance,
                sampled_in=self.sampled_in,
                truncated=verdict.truncated,
                arrived_at=verdict.arrived_at,
                decided_at=verdict.decided_at,
            )
        )


def _lowered(settings: JudgeSettings, margin: float) -> JudgeSettings:
    sources = {
        name: rule
        if rule.similarity_min is None
        else replace(rule, similarity_min=max(rule.similarity_min - margin, 0))
        for name, rule in settings.sources.items()
    }
    return replace(settings, similarity_min=max(settings.similarity_min - margin, 0), sources=MappingProxyType(sources))


def near_miss_events(
    near_misses: NearMisses,
    verdicts: Mapping[bytes, VerdictEvent],
    kept: Mapping[bytes, Record],
    near: Neighbourhood,
    before: Mapping[bytes, Sequence[Neighbour]],
) -> dict[bytes, VerdictEvent]:
    """Return the verdicts of a settled batch that have a near miss, with it, by reference.

    ``kept`` are the records of the batch that repeat nothing. ``near`` has what was found for those that were pending,
    ``before`` what those that were settled before would miss.
    """
    if not before and not near.missed:
        return {}
    repeats = verdicts.keys() - kept.keys()
    best = {
        reference: _best_earlier(kept[reference], missed) for reference, missed in before.items() if reference in kept
    } | {
        reference: _best(kept[reference], (other for other in missed if other.record.reference not in repeats), near)
        for reference, missed in near.missed.items()
        if reference in kept
    }
    return {
        reference: msgspec.structs.replace(
            verdicts[reference], near_miss=near_misses.event(kept[reference], verdicts[reference].verdict, other)
        )
        for reference, other in best.items()
        if other is not None
    }


def _best(record: Record, missed: Iterable[Neighbour], near: Neighbourhood) -> Neighbour | None:
    """Return what would have been named, as in ``decide``: a kept version, or an earlier one that was pending."""
    return _preferred(
        other for other in missed if near.state(other) is VersionState.KEPT or other.record.arrival < record.arrival
    )


def _best_earlier(record: Record, missed: Iterable[Neighbour]) -> Neighbour | None:
    """Return what would have been named, as far as that can still be known: a later version may have come since."""
    return _preferred(other for other in missed if other.record.arrival < record.arrival)


def _preferred(missed: Iterable[Neighbour]) -> Neighbour | None:
    return min(missed, key=preference, default=None)
