"""Decides whether two stored versions are near each other, and explains why.

*Near* is a symmetric function of two stored records and the settings. If only one of two articles saw the other, both
would be kept. So nothing here may depend on the order of the two, or on the result of a look-up.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from consumer.fingerprint import (
    LANE_MINHASH,
    LANE_SIMHASH,
    TextKind,
    hamming_distance,
)
from consumer.judge.guards import compare_facts, facts_agree, guard_skips, slots_agree
from consumer.judge.settings import JudgeSettings, Thresholds
from storage.postings import lane_of
from storage.records import Record, StoredVersion

SKETCHED: Final = (TextKind.LONG, TextKind.SHINGLED)
"""The kinds of text that are matched with each other by sketch."""
_ONE_BY_ONE_MAX: Final = 16
"""Up to this many versions are compared one by one, because building arrays costs more."""


class PairComparison(msgspec.Struct, frozen=True):
    """The result of every condition of *near* for one pair, with the values that decided it.

    ``distance`` is in bits of the fingerprint. ``similarity`` is the sketch's estimate of the Jaccard similarity: 1.0
    for equal short texts (for all equal texts if letters are compared), or None if a text is empty or has no sketch.
    ``facts_shared`` is the number of shared facts as a share of the text with fewer facts; None without a fact guard,
    or if a text has no facts. ``facts_shared_of_more`` is their share of the text with more; None without a guard, or
    if neither text has facts. The minimum of that share is 0 in revision 1 of the guard. ``slot_conflicts`` is the
    number of slots with different values; it and its maximum are None if slots are not compared.
    """

    other_ids: bool
    same_scheme: bool
    in_window: bool
    in_force: bool
    allowed: bool
    not_released: bool
    found_by_blocks: bool
    found_by_bands: bool
    verified: bool
    facts_agree: bool
    distance: int
    one_bits_distance: int
    shared_bands: int
    similarity: float | None
    similarity_min: float
    distance_max: int
    facts_shared: float | None
    facts_shared_of_more: float | None
    facts_shared_min: float
    facts_shared_of_more_min: float
    slot_conflicts: int | None = None
    slot_conflicts_max: int | None = None

    @property
    def found(self) -> bool:
        """Whether a look-up for one finds the other."""
        return self.found_by_blocks or self.found_by_bands

    @property
    def near(self) -> bool:
        """Whether all conditions hold."""
        return self.alike and self.in_force

    @property
    def alike(self) -> bool:
        """Whether all conditions hold, except that the earlier version may have ended before the later one arrived."""
        return (
            self.other_ids
            and self.same_scheme
            and self.in_window
            and self.allowed
            and self.not_released
            and self.found
            and self.verified
            and self.facts_agree
        )


def compare(version: StoredVersion, others: Sequence[StoredVersion], settings: JudgeSettings) -> list[PairComparison]:
    """Return the comparison of one version with each of several; all similarities are estimated in one call."""
    if not others:
        return []
    similarities = _similarities(version.record, [other.record for other in others], settings)
    bands = _bands(version.record)
    return [
        _compare(version, other, bands, similarity, settings)
        for other, similarity in zip(others, similarities, strict=True)
    ]


class ComparisonResult(NamedTuple):
    """The result of comparing a version with others: their number, the near ones, and all known similarities.

    ``ended`` are earlier versions that would be near had they not ended before the version arrived.
    """

    others: int
    near: list[tuple[StoredVersion, PairComparison]]
    similarities: list[float]
    ended: list[tuple[StoredVersion, PairComparison]]


class ComparisonBatch:
    """Stored versions as arrays, so that one version can be compared with hundreds of them.

    Ruling out a version by sketch or fingerprint costs a few nanoseconds; only the rest is compared in full.
    """

    def __init__(self, versions: Sequence[StoredVersion]) -> None:
        self._versions = versions
        self._indexes = {version.record.reference: index for index, version in enumerate(versions)}

    def compare(self, version: StoredVersion, references: Sequence[bytes], settings: JudgeSettings) -> ComparisonResult:
        """Return the result of comparing a version with the versions of this batch that have these references."""
        indexes = [self._indexes[reference] for reference in references if reference in self._indexes]
        if len(indexes) <= _ONE_BY_ONE_MAX:
            others = [self._versions[index] for index in indexes]
            comparisons = compare(version, others, settings)
            similarities = [pair.similarity for pair in comparisons if pair.similarity is not None]
        else:
            possible, similarities = self._possible_indexes(version.record, np.array(indexes), settings)
            others = [self._versions[index] for index in possible]
            comparisons = compare(version, others, settings)
        alike = [pair for pair in zip(others, comparisons, strict=True) if pair[1].alike]
        return ComparisonResult(
            others=len(indexes),
            near=[pair for pair in alike if pair[1].in_force],
            similarities=similarities,
            ended=[pair for pair in alike if not pair[1].in_force and pair[0].record.arrival < version.record.arrival],
        )

    def _possible_indexes(
        self, record: Record, indexes: NDArray[np.intp], settings: JudgeSettings
    ) -> tuple[list[int], list[float]]:
        """Return the indexes of versions that ``_equal`` or ``_verified`` may accept, and all known similarities."""
        arrays = self._arrays
        same_text = (arrays.text_digests[indexes] == _words(record.text_digest)).all(axis=1)
        kinds = arrays.kinds[indexes]
        similarities: NDArray[np.float64] | None = None
        if record.sketch:
            estimate = settings.scheme.definition.sketch_similarity
            similarities = estimate(np.frombuffer(record.sketch, np.uint8), arrays.sketches[indexes])
        alike = kinds == record.kind
        if record.kind == TextKind.SHORT:
            passes = same_text
        elif not settings.verify:
            differing = np.bitwise_count(arrays.fingerprints[indexes] ^ _words(record.fingerprint))
            passes = same_text if record.kind == TextKind.SHINGLED else differing.sum(axis=1) <= settings.max_distance
        elif similarities is None:
            passes = np.zeros(len(indexes), np.bool_)
        else:
            # Rules of sources can only raise the threshold.
            passes = similarities >= settings.similarity_min
            alike = np.isin(kinds, SKETCHED)
        possible = passes & alike
        if settings.scheme.definition.compares_letters:
            possible |= same_text & (kinds != TextKind.EMPTY)
        possible &= record.kind != TextKind.EMPTY
        return indexes[possible].tolist(), _known_similarities(record, kinds, similarities, same_text, settings)

    @cached_property
    def _arrays(self) -> "_Arrays":
        records = [version.record for version in self._versions]
        return _Arrays(
            kinds=np.array([record.kind for record in records], np.uint8),
            sketches=np.frombuffer(b"".join(record.sketch for record in records), np.uint8).reshape(len(records), -1),
            text_digests=_words(*(record.text_digest for record in records)),
            fingerprints=_words(*(record.fingerprint for record in records)),
        )


class _Arrays(NamedTuple):
    """Fields of n records, each as an array of n rows."""

    kinds: NDArray[np.uint8]
    sketches: NDArray[np.uint8]
    text_digests: NDArray[np.uint64]
    fingerprints: NDArray[np.uint64]


def _words(*values: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(b"".join(values), np.uint64).reshape(len(values), -1)


def _known_similarities(
    record: Record,
    kinds: NDArray[np.uint8],
    estimates: NDArray[np.float64] | None,
    same_text: NDArray[np.bool_],
    settings: JudgeSettings,
) -> list[float]:
    """Return the ``_similarity`` of each pair that has one."""
    if record.kind == TextKind.EMPTY:
        return []
    if settings.scheme.definition.compares_letters:
        by_text = kinds != TextKind.EMPTY
    else:
        by_text = (kinds == TextKind.SHORT) | ((record.kind == TextKind.SHORT) & (kinds != TextKind.EMPTY))
    equal = by_text & same_text
    if estimates is None:
        return [1.0] * int(np.count_nonzero(equal))
    known: list[float] = np.where(equal, 1.0, estimates)[kinds != TextKind.EMPTY].tolist()
    return known


def not_released(a: StoredVersion, b: StoredVersion) -> bool:
    """Return whether no person has released this pair, that is, decided that one does not repeat the other."""
    return a.released_from != b.record.reference and b.released_from != a.record.reference


def _similarities(record: Record, others: Sequence[Record], settings: JudgeSettings) -> Sequence[float | None]:
    width = len(record.sketch)
    if not width:
        return [None] * len(others)
    sketches = np.frombuffer(b"".join(other.sketch for other in others), np.uint8).reshape(-1, width)
    estimate = settings.scheme.definition.sketch_similarity
    estimates: list[float] = estimate(np.frombuffer(record.sketch, np.uint8), sketches).tolist()
    return estimates


def _compare(
    a: StoredVersion, b: StoredVersion, bands: set[bytes], estimate: float | None, settings: JudgeSettings
) -> PairComparison:
    x, y = a.record, b.record
    distance = hamming_distance(int.from_bytes(x.fingerprint), int.from_bytes(y.fingerprint))
    one_bits_distance = hamming_distance(int.from_bytes(x.one_bits), int.from_bytes(y.one_bits))
    shared_bands = len(bands.intersection(y.keys))
    equal = _equal(x, y, settings)
    similarity = _similarity(x, y, estimate, equal=equal)
    thresholds = settings.thresholds_for(x.source, y.source)
    overlap, conflicts = compare_facts(x.facts, y.facts, thresholds)
    return PairComparison(
        other_ids=x.id_hash != y.id_hash,
        same_scheme=x.scheme == y.scheme,
        in_window=abs(x.time_ms - y.time_ms) <= settings.window_ms,
        in_force=_in_force_together(a, b),
        allowed=settings.compares(x.source, y.source),
        not_released=not_released(a, b),
        found_by_blocks=_has_blocks(x)
        and _has_blocks(y)
        and distance <= settings.suspect_distance_max
        and settings.plan.finds_pair(int.from_bytes(x.fingerprint), int.from_bytes(y.fingerprint), settings.radius),
        found_by_bands=shared_bands > 0 and one_bits_distance <= settings.one_bits_distance_max,
        verified=equal or _verified(x, y, similarity, distance, thresholds, by_sketch=settings.verify),
        facts_agree=(overlap is None or guard_skips(x, y, settings) or facts_agree(overlap, thresholds))
        and (conflicts is None or slots_agree(conflicts, thresholds)),
        distance=distance,
        one_bits_distance=one_bits_distance,
        shared_bands=shared_bands,
        similarity=similarity,
        similarity_min=thresholds.similarity_min,
        distance_max=thresholds.max_distance,
        facts_shared=None if overlap is None else overlap.share_of_fewer,
        facts_shared_of_more=None if overlap is None else overlap.share_of_more,
        facts_shared_min=thresholds.facts_shared_min,
        facts_shared_of_more_min=thresholds.facts_shared_of_more_min,
        slot_conflicts=conflicts,
        slot_conflicts_max=thresholds.slot_conflicts_max,
    )


def _has_blocks(record: Record) -> bool:
    """Return whether a record has keys of lane 0, which come first."""
    return bool(record.keys) and lane_of(record.keys[0]) == LANE_SIMHASH


def _bands(record: Record) -> set[bytes]:
    return {key for key in record.keys if lane_of(key) == LANE_MINHASH}


def _equal(x: Record, y: Record, settings: JudgeSettings) -> bool:
    """Return whether two texts are near because they are equal.

    Where letters are compared, this holds for texts of all kinds, even if the two kinds differ: a text with a space
    after each letter has no words. Otherwise it holds for short texts only.
    """
    if x.text_digest != y.text_digest or TextKind.EMPTY in (x.kind, y.kind):
        return False
    return settings.scheme.definition.compares_letters or (x.kind == y.kind == TextKind.SHORT)


def _similarity(x: Record, y: Record, estimate: float | None, *, equal: bool) -> float | None:
    if TextKind.EMPTY in (x.kind, y.kind):
        return None
    if equal or (TextKind.SHORT in (x.kind, y.kind) and x.text_digest == y.text_digest):
        return 1.0
    return estimate


def _verified(
    x: Record, y: Record, similarity: float | None, distance: int, thresholds: Thresholds, *, by_sketch: bool
) -> bool:
    """Return whether two texts that ``_equal`` does not accept are near by the measure of their kinds."""
    if TextKind.EMPTY in (x.kind, y.kind) or TextKind.SHORT in (x.kind, y.kind):
        return False
    if by_sketch:
        return similarity is not None and similarity >= thresholds.similarity_min
    if TextKind.SHINGLED in (x.kind, y.kind):
        return x.kind == y.kind and x.text_digest == y.text_digest
    return distance <= thresholds.max_distance


def _in_force_together(a: StoredVersion, b: StoredVersion) -> bool:
    """Return whether the later version arrived while the earlier one was in force."""
    earlier, later = (a, b) if a.record.arrival < b.record.arrival else (b, a)
    return earlier.ends_at is None or earlier.ends_at > later.record.arrival
