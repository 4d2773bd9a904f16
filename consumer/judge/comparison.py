"""Decides whether two stored versions are near each other, and explains why.

*Near* is a symmetric function of two stored records and the settings. If only one of two articles saw the other, both
would be kept. So nothing here may depend on the order of the two, or on the result of a look-up.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, repeat
from typing import Final

import msgspec
import numpy as np

from consumer.fingerprint import (
    LANE_MINHASH,
    LANE_SIMHASH,
    SketchSimilarity,
    TextKind,
    hamming_distance,
)
from consumer.judge.guards import compare_facts, facts_agree, guard_skips, slots_agree
from consumer.judge.settings import JudgeSettings, Thresholds
from storage.postings import lane_of
from storage.records import Record, StoredVersion

SKETCHED: Final = (TextKind.LONG, TextKind.SHINGLED)
"""The kinds of text that are matched with each other by sketch."""
_PAIRS_AT_ONCE: Final = 4_096
"""Limit on the pairs of sketches compared in one pass, which takes a few MiB."""


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
    """Return the comparison of one version with each of several."""
    return next(comparisons([(version, others)], settings))


def estimated_similarities(pairs: Iterable[tuple[bytes, bytes]], estimate: SketchSimilarity) -> Iterator[float]:
    """Yield the similarity of each pair of sketches, all of which have one width.

    A pass takes pairs of many articles, because it costs much more than a pair, and most articles have few.
    """
    pairs = iter(pairs)
    while chunk := list(islice(pairs, _PAIRS_AT_ONCE)):
        ours, theirs = (
            np.frombuffer(b"".join(sketches), np.uint8).reshape(len(chunk), -1) for sketches in zip(*chunk, strict=True)
        )
        yield from estimate(ours, theirs).tolist()


def not_released(a: StoredVersion, b: StoredVersion) -> bool:
    """Return whether no person has released this pair, that is, decided that one does not repeat the other."""
    return a.released_from != b.record.reference and b.released_from != a.record.reference


def comparisons(
    requests: Iterable[tuple[StoredVersion, Sequence[StoredVersion]]], settings: JudgeSettings
) -> Iterator[list[PairComparison]]:
    """Yield the comparisons of each version with its others. All sketches must have one width."""
    requests = list(requests)
    sketches = (
        (version.record.sketch, other.record.sketch)
        for version, others in requests
        if version.record.sketch
        for other in others
    )
    similarities = estimated_similarities(sketches, settings.scheme.definition.sketch_similarity)
    for version, others in requests:
        if not others:
            yield []
            continue
        bands = _bands(version.record)
        estimates = islice(similarities, len(others)) if version.record.sketch else repeat(None, len(others))
        yield [
            _compare(version, other, bands, estimate, settings)
            for other, estimate in zip(others, estimates, strict=True)
        ]


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
