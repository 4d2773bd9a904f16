"""Finds near misses: the versions that sampled kept versions would repeat if thresholds were lower.

Flags show what repeats what, but not what was missed. A near miss is the flag that similarity thresholds lowered by a
margin would give: the same candidates, other conditions, and choice among several. It decides nothing, and is not
stored.

The sample is of versions, not pairs: only sampled versions are compared again, and the best pair of each has the same
chance of being in the sample. Sampling depends on the version alone, so every consumer and every replay samples the
same versions.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import floor
from types import MappingProxyType
from typing import Final

import msgspec

from consumer.judge.comparison_batch import ComparisonBatch
from consumer.judge.decision import Neighbour, Neighbourhood, VersionState, preference
from consumer.judge.events import version_name
from consumer.judge.settings import JudgeSettings
from consumer.model.near_miss import NearMiss, encode
from consumer.model.verdict import Verdict, VerdictEvent
from storage.records import Record, StoredVersion

_DRAW_BYTES: Final = 8
_DRAW_NAME: Final = b"near-miss"
_SIMILARITY_STEPS: Final = 10_000
"""Similarities have four digits; that of a near miss is cut, not rounded, to stay below the threshold."""


@dataclass(frozen=True, slots=True)
class NearMisses:
    """The sample of kept versions, and the search for their near misses.

    ``share``, above 0 and at most 1, is the share of kept versions in the sample. A near miss is at most ``margin``
    less similar than the pair's threshold.
    """

    settings: JudgeSettings
    share: float
    margin: float
    _lowered_settings: JudgeSettings = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Lower every similarity threshold. Raises ValueError for plain SimHash, which has no similarity."""
        if not self.settings.verify:
            raise ValueError("near misses need verify = true: plain SimHash compares no similarities")
        object.__setattr__(self, "_lowered_settings", _lowered_settings(self.settings, self.margin))

    @property
    def sampled_in(self) -> float:
        """The number of kept versions per sampled one."""
        return 1 / self.share

    @property
    def similarity_min(self) -> float:
        """The lowest similarity of a near miss."""
        return self._lowered_settings.similarity_min

    def samples(self, record: Record) -> bool:
        """Return whether this version is in the sample; versions that are never flagged are not."""
        if self.settings.never_flags(record):
            return False
        sample_hash = hashlib.blake2b(record.reference, digest_size=_DRAW_BYTES, person=_DRAW_NAME).digest()
        return int.from_bytes(sample_hash) < self.share * (1 << 8 * _DRAW_BYTES)

    def missed(
        self, version: StoredVersion, candidates: Sequence[bytes], matchable: ComparisonBatch
    ) -> list[Neighbour]:
        """Return the near misses of this version among the candidates, which are references."""
        if not candidates or not self.samples(version.record):
            return []
        return [
            Neighbour(other.record, comparison.distance, comparison.similarity)
            for other, comparison in matchable.compare(version, candidates, self._lowered_settings).near
            if comparison.similarity is not None
            and comparison.similarity < self.threshold(version.record, other.record)
        ]

    def threshold(self, a: Record, b: Record) -> float:
        """Return the lowest similarity at which two versions would be near."""
        return self.settings.thresholds_for(a.source, b.source).similarity_min

    def event(self, record: Record, verdict: Verdict, near_miss: Neighbour) -> bytes:
        """Return the near-miss event of a kept version, with the times of its verdict, so that replays are equal."""
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


def _lowered_settings(settings: JudgeSettings, margin: float) -> JudgeSettings:
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
    """Return the verdicts of a settled batch that have a near miss, with the near miss attached, by reference.

    ``kept`` are the records of the batch that repeat nothing. ``near`` has the near misses of versions that were
    pending, ``before`` those of versions that were already settled.
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
    """Return the version that ``decide`` would have named: a kept one, or an earlier pending one."""
    return _preferred(
        other for other in missed if near.state(other) is VersionState.KEPT or other.record.arrival < record.arrival
    )


def _best_earlier(record: Record, missed: Iterable[Neighbour]) -> Neighbour | None:
    """Return the version that the verdict would have named: an earlier one, since later ones may be new."""
    return _preferred(other for other in missed if other.record.arrival < record.arrival)


def _preferred(missed: Iterable[Neighbour]) -> Neighbour | None:
    return min(missed, key=preference, default=None)
