"""Compares the versions of a batch with their candidates, all of them in a few calls of numpy."""

from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from consumer.fingerprint import TextKind
from consumer.judge.comparison import SKETCHED, PairComparison, comparisons
from consumer.judge.settings import JudgeSettings
from storage.records import Record, StoredVersion

_ONE_BY_ONE_MAX: Final = 16
"""Up to this many versions are compared one by one, because building arrays costs more."""


class ComparisonResult(NamedTuple):
    """The result of comparing a version with others: their number, the near ones, and all known similarities.

    ``ended`` are earlier versions that would be near had they not ended before the version arrived.
    """

    others: int
    near: list[tuple[StoredVersion, PairComparison]]
    similarities: list[float]
    ended: list[tuple[StoredVersion, PairComparison]]


class _Selection(NamedTuple):
    """The versions that a version must be compared with in full, out of ``among`` versions.

    ``similarities`` has the known similarities of all of these; None if all are compared in full.
    """

    among: int
    others: Sequence[StoredVersion]
    similarities: list[float] | None = None


class ComparisonBatch:
    """Stored versions that others are compared with, often hundreds at a time.

    Ruling out a version by sketch or fingerprint costs a few nanoseconds; only the rest is compared in full.
    """

    def __init__(self, versions: Sequence[StoredVersion]) -> None:
        self._versions = versions
        self._indexes = {version.record.reference: index for index, version in enumerate(versions)}

    def compare(self, version: StoredVersion, references: Sequence[bytes], settings: JudgeSettings) -> ComparisonResult:
        """Return the result of comparing a version with the versions of this batch that have these references."""
        return self.compare_all([(version, references)], settings)[0]

    def compare_all(
        self, requests: Sequence[tuple[StoredVersion, Sequence[bytes]]], settings: JudgeSettings
    ) -> list[ComparisonResult]:
        """Return the result of comparing each version with the versions of this batch that have its references."""
        selections = [self._select(version, references, settings) for version, references in requests]
        versions = [version for version, _ in requests]
        results = []
        compared = comparisons(zip(versions, [selection.others for selection in selections], strict=True), settings)
        for version, (among, others, known), pairs in zip(versions, selections, compared, strict=True):
            similarities = (
                [pair.similarity for pair in pairs if pair.similarity is not None] if known is None else known
            )
            alike = [pair for pair in zip(others, pairs, strict=True) if pair[1].alike]
            near = [pair for pair in alike if pair[1].in_force]
            ended = [pair for pair in alike if not pair[1].in_force and pair[0].record.arrival < version.record.arrival]
            results.append(ComparisonResult(among, near, similarities, ended))
        return results

    def _select(self, version: StoredVersion, references: Sequence[bytes], settings: JudgeSettings) -> _Selection:
        indexes = [self._indexes[reference] for reference in references if reference in self._indexes]
        if len(indexes) <= _ONE_BY_ONE_MAX:
            return _Selection(len(indexes), [self._versions[index] for index in indexes])
        possible, similarities = self._possible_indexes(version.record, np.array(indexes), settings)
        return _Selection(len(indexes), [self._versions[index] for index in possible], similarities)

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
