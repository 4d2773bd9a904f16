"""Whether two stored versions are near each other, and why.

*Near* is one symmetric function of two stored records and the settings. If only one of two articles could see the
other, both would be kept; so nothing here may depend on which of the two is asked first, or on what a look-up
happened to return.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from consumer.fingerprint import (
    LANE_MINHASH,
    FactOverlap,
    TextKind,
    fact_overlap,
    hamming_distance,
    sketch_similarity,
)
from consumer.judge.settings import FACTS_DIFFERING_MIN, ONE_BITS_DISTANCE_MAX, JudgeSettings, Thresholds
from storage.postings import lane_of
from storage.records import Record, Stored

_ONE_BY_ONE_MAX: Final = 16
"""Up to so many are compared one by one: what arrays cost at all is not worth it for fewer."""


class Comparison(msgspec.Struct, frozen=True):
    """Every condition of *near* for one pair, each with what it was decided from.

    ``distance`` is in bits of the fingerprint; ``similarity`` the sketch's estimate of the Jaccard similarity, 1.0 for
    equal short texts, None where a text has no keywords or no sketch was made. ``facts_shared`` is the part of their
    facts that both have, of the one with fewer; None without a fact guard, or where one has no facts.
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
    facts_shared_min: float

    @property
    def found(self) -> bool:
        """Whether a look-up for the one finds the other."""
        return self.found_by_blocks or self.found_by_bands

    @property
    def near(self) -> bool:
        """All conditions at once."""
        return (
            self.other_ids
            and self.same_scheme
            and self.in_window
            and self.in_force
            and self.allowed
            and self.not_released
            and self.found
            and self.verified
            and self.facts_agree
        )


def compare(one: Stored, others: Sequence[Stored], settings: JudgeSettings) -> list[Comparison]:
    """Compare one version with several; the similarities of all are estimated at once."""
    if not others:
        return []
    similarities = _similarities(one.record, [other.record for other in others])
    bands = _bands(one.record)
    return [
        _compare(one, other, bands, similarity, settings)
        for other, similarity in zip(others, similarities, strict=True)
    ]


class Compared(NamedTuple):
    """One version compared with others: how many, which are near, and the similarities of the pairs that have one."""

    others: int
    near: list[tuple[Stored, Comparison]]
    similarities: list[float]


class Lineup:
    """Stored versions side by side, so that one is compared with hundreds of them at once.

    What the sketches or fingerprints rule out costs a few nanoseconds; only what they leave is compared in full.
    """

    def __init__(self, versions: Sequence[Stored]) -> None:
        self._versions = versions
        self._places = {one.record.reference: place for place, one in enumerate(versions)}

    def compare(self, one: Stored, references: Sequence[bytes], settings: JudgeSettings) -> Compared:
        """Compare with those of these that are in the line-up."""
        places = [self._places[reference] for reference in references if reference in self._places]
        if len(places) <= _ONE_BY_ONE_MAX:
            others = [self._versions[place] for place in places]
            comparisons = compare(one, others, settings)
            similarities = [each.similarity for each in comparisons if each.similarity is not None]
            return Compared(len(others), _near(others, comparisons), similarities)
        possible, known = self._possible(one.record, np.array(places), settings)
        others = [self._versions[place] for place in possible]
        return Compared(len(places), _near(others, compare(one, others, settings)), known)

    def _possible(
        self, one: Record, places: NDArray[np.intp], settings: JudgeSettings
    ) -> tuple[list[int], list[float]]:
        """Which of these may be verified (see ``_verified``), and the similarities of all that have one."""
        arrays = self._arrays
        same_text = (arrays.text_digests[places] == _words(one.text_digest)).all(axis=1)
        kinds = arrays.kinds[places]
        similarities: NDArray[np.float64] | None = None
        if one.sketch:
            similarities = sketch_similarity(np.frombuffer(one.sketch, np.uint8), arrays.sketches[places])
        if one.kind == TextKind.SHORT:
            passes = same_text
        elif not settings.verify:
            differing = np.bitwise_count(arrays.fingerprints[places] ^ _words(one.fingerprint))
            passes = differing.sum(axis=1) <= settings.max_distance
        elif similarities is None:
            passes = np.zeros(len(places), np.bool_)
        else:
            # Rules of sources only ever make the threshold higher.
            passes = similarities >= settings.similarity_min
        possible = passes & (kinds == one.kind) & (one.kind != TextKind.EMPTY)
        return places[possible].tolist(), _known_similarities(one, kinds, similarities, same_text)

    @cached_property
    def _arrays(self) -> "_Arrays":
        records = [one.record for one in self._versions]
        return _Arrays(
            kinds=np.array([one.kind for one in records], np.uint8),
            sketches=np.frombuffer(b"".join(one.sketch for one in records), np.uint8).reshape(len(records), -1),
            text_digests=_words(*(one.text_digest for one in records)),
            fingerprints=_words(*(one.fingerprint for one in records)),
        )


class _Arrays(NamedTuple):
    """Fields of many records, a row each."""

    kinds: NDArray[np.uint8]
    sketches: NDArray[np.uint8]
    text_digests: NDArray[np.uint64]
    fingerprints: NDArray[np.uint64]


def _words(*values: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(b"".join(values), np.uint64).reshape(len(values), -1)


def _near(others: Sequence[Stored], comparisons: Sequence[Comparison]) -> list[tuple[Stored, Comparison]]:
    return [(other, each) for other, each in zip(others, comparisons, strict=True) if each.near]


def _known_similarities(
    one: Record, kinds: NDArray[np.uint8], estimates: NDArray[np.float64] | None, same_text: NDArray[np.bool_]
) -> list[float]:
    """What ``_similarity`` says of each of many pairs, where it says anything."""
    if one.kind == TextKind.EMPTY:
        return []
    is_short = (kinds == TextKind.SHORT) | (one.kind == TextKind.SHORT)
    equal = is_short & same_text & (kinds != TextKind.EMPTY)
    if estimates is None:
        return [1.0] * int(np.count_nonzero(equal))
    known: list[float] = np.where(equal, 1.0, estimates)[kinds != TextKind.EMPTY].tolist()
    return known


def not_released(a: Stored, b: Stored) -> bool:
    """Whether no person has said of these two that the one does not repeat the other."""
    return a.released_from != b.record.reference and b.released_from != a.record.reference


def _similarities(one: Record, others: Sequence[Record]) -> Sequence[float | None]:
    width = len(one.sketch)
    if not width:
        return [None] * len(others)
    sketches = np.frombuffer(b"".join(other.sketch for other in others), np.uint8).reshape(-1, width)
    estimates: list[float] = sketch_similarity(np.frombuffer(one.sketch, np.uint8), sketches).tolist()
    return estimates


def _compare(a: Stored, b: Stored, bands: set[bytes], estimate: float | None, settings: JudgeSettings) -> Comparison:
    x, y = a.record, b.record
    distance = hamming_distance(int.from_bytes(x.fingerprint), int.from_bytes(y.fingerprint))
    one_bits_distance = hamming_distance(int.from_bytes(x.one_bits), int.from_bytes(y.one_bits))
    shared_bands = len(bands.intersection(y.keys))
    similarity = _similarity(x, y, estimate)
    thresholds = settings.thresholds_for(x.source, y.source)
    overlap = fact_overlap(x.facts, y.facts) if thresholds.facts_shared_min else None
    return Comparison(
        other_ids=x.id_hash != y.id_hash,
        same_scheme=x.scheme == y.scheme,
        in_window=abs(x.time_ms - y.time_ms) <= settings.window_ms,
        in_force=_in_force_together(a, b),
        allowed=x.source != y.source or settings.rule(x.source).within_source,
        not_released=not_released(a, b),
        found_by_blocks=bool(x.keys and y.keys)
        and distance <= settings.suspect_distance_max
        and settings.plan.agree(int.from_bytes(x.fingerprint), int.from_bytes(y.fingerprint), settings.radius),
        found_by_bands=shared_bands > 0 and one_bits_distance <= ONE_BITS_DISTANCE_MAX,
        verified=_verified(x, y, similarity, distance, thresholds, by_sketch=settings.verify),
        facts_agree=x.text_digest == y.text_digest or _facts_agree(overlap, thresholds.facts_shared_min),
        distance=distance,
        one_bits_distance=one_bits_distance,
        shared_bands=shared_bands,
        similarity=similarity,
        similarity_min=thresholds.similarity_min,
        distance_max=thresholds.max_distance,
        facts_shared=None if overlap is None else overlap.share,
        facts_shared_min=thresholds.facts_shared_min,
    )


def _bands(record: Record) -> set[bytes]:
    return {key for key in record.keys if lane_of(key) == LANE_MINHASH}


def _similarity(x: Record, y: Record, estimate: float | None) -> float | None:
    if TextKind.EMPTY in (x.kind, y.kind):
        return None
    if TextKind.SHORT in (x.kind, y.kind):
        return 1.0 if x.text_digest == y.text_digest else estimate
    return estimate


def _verified(
    x: Record, y: Record, similarity: float | None, distance: int, thresholds: Thresholds, *, by_sketch: bool
) -> bool:
    if TextKind.EMPTY in (x.kind, y.kind):
        return False
    if TextKind.SHORT in (x.kind, y.kind):
        return x.kind == y.kind and x.text_digest == y.text_digest
    if by_sketch:
        return similarity is not None and similarity >= thresholds.similarity_min
    return distance <= thresholds.max_distance


def _facts_agree(overlap: FactOverlap | None, facts_shared_min: float) -> bool:
    """Whether nothing speaks for two stories in the same words: a correction changes a fact, another story most."""
    return overlap is None or overlap.differing < FACTS_DIFFERING_MIN or overlap.share >= facts_shared_min


def _in_force_together(a: Stored, b: Stored) -> bool:
    """The later one arrived while the earlier one was in force."""
    earlier, later = (a, b) if a.record.arrival < b.record.arrival else (b, a)
    return earlier.ends_at is None or earlier.ends_at > later.record.arrival
