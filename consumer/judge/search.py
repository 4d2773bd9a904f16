"""Finds the stored versions near a batch of records, in two steps of the protocol.

look up    read the rows of all keys, and choose candidates from them
read       read the records and verdicts of the candidates, and keep the near ones
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from consumer.judge.candidates import (
    CROWDED_VERIFICATIONS_MAX,
    SOUGHT_POSTINGS_MAX,
    Candidates,
    Probe,
    codes_to_seek,
    find_candidates,
    probe_keys,
)
from consumer.judge.comparison import PairComparison
from consumer.judge.comparison_batch import ComparisonBatch, ComparisonResult
from consumer.judge.decision import EndedNeighbour, Neighbour, Neighbourhood, VersionState, state_of
from consumer.judge.near_misses import NearMisses
from consumer.judge.settings import JudgeSettings
from consumer.judge.sketch_filter import without_dissimilar
from consumer.judge.tally import Tally
from consumer.judge.verdict_cells import VerdictCells
from storage.errors import StoreError
from storage.interface import Store
from storage.postings import KeyedCode, PostingRow, layout_of
from storage.records import Record, StoredVersion

LOOK_UP_BYTES_MAX: Final = 32 << 20
"""Limit on the bytes of postings that one look-up holds in memory. A single article may need more."""


class LookUpSize:
    """The number of articles to look up at once: halved when their rows are too big, and raised again afterwards."""

    def __init__(self) -> None:
        self._articles_max = 1 << 20

    def next(self, count: int) -> int:
        """Return how many of ``count`` articles to look up next."""
        return min(count, self._articles_max)

    def note_fit(self, count: int) -> None:
        """Note that the rows of this many articles fit."""
        self._articles_max = max(self._articles_max, 2 * count)

    def note_overflow(self, count: int) -> None:
        """Note that the rows of this many articles were too big."""
        self._articles_max = max(count // 2, 1)


def swept_error(record: Record) -> StoreError:
    """Return the error for a record that was deleted while it was judged."""
    return StoreError(f"{record.id!r} expired while it was judged, because the window is shorter than the lag")


@dataclass(frozen=True, slots=True)
class Search:
    """The search for near versions in a store. It adds its cost to the tally, and writes nothing.

    At most ``look_up_bytes_max`` bytes of postings are looked up at once. ``near_misses`` turns on near misses.
    Every method raises the store's errors.
    """

    store: Store
    settings: JudgeSettings
    tally: Tally
    cells: VerdictCells
    look_up_bytes_max: int = LOOK_UP_BYTES_MAX
    size: LookUpSize = field(default_factory=LookUpSize)
    near_misses: NearMisses | None = None

    def look_up(self, records: Sequence[Record], *, created: Mapping[bytes, StoredVersion]) -> Neighbourhood:
        """Return the versions near each record.

        A record with candidates is read again, because a later version or a retraction may have ended it. Others come
        from ``created``, as they were stored, unless they are missing there or are candidates of another record. Raises
        ``StoreError`` if a record is no longer stored.
        """
        candidates = self.similar_by_sketch(records, self._all_candidates(records))
        references = {reference for choice in candidates for reference in choice.read}
        without_candidates = {
            record.reference for record, choice in zip(records, candidates, strict=True) if not choice.read
        }
        unread = {reference: created[reference] for reference in without_candidates & created.keys() - references}
        references |= {record.reference for record in records} - unread.keys()
        stored = self.cells.read(sorted(references)) | unread
        return self._neighbourhood(records, candidates, stored, own=stored)

    def look_up_unstored(self, records: Sequence[Record]) -> Neighbourhood:
        """Return the versions near each record as if it were not stored, even if it is."""
        candidates = self.similar_by_sketch(records, self._all_candidates(records))
        references = {reference for choice in candidates for reference in choice.read}
        own = {record.reference: StoredVersion(record, None, None) for record in records}
        return self._neighbourhood(records, candidates, self.cells.read(sorted(references)), own)

    def near(
        self, requests: Sequence[tuple[StoredVersion, Sequence[bytes]]], others: Sequence[StoredVersion]
    ) -> list[list[Neighbour]]:
        """Return, for each version and the references with it, the near ones among ``others`` with these references."""
        results = ComparisonBatch(others).compare_all(requests, self.settings)
        self._count(results, len(results))
        return [self._neighbours(result.near) for result in results]

    def similar_by_sketch(self, records: Sequence[Record], candidates: Sequence[Candidates]) -> Sequence[Candidates]:
        """Return the candidates without those that their sketches rule out."""
        if not self.settings.verify:
            return candidates
        # Rules of sources can only raise the threshold.
        similarity_min = self.settings.similarity_min if self.near_misses is None else self.near_misses.similarity_min
        filtered = without_dissimilar(
            self.store, records, candidates, similarity_min, self.settings.scheme.definition.sketch_similarity
        )
        self.tally.sketch_reads += filtered.sketches_read
        self.tally.similarities.add(filtered.similarities)
        return filtered.candidates

    def _all_candidates(self, records: Sequence[Record]) -> list[Candidates]:
        """Return the candidates of each record, looking up as many records at once as ``look_up_bytes_max`` allows."""
        candidates: list[Candidates] = []
        while len(candidates) < len(records):
            count = self.size.next(len(records) - len(candidates))
            chosen = self._candidates(records[len(candidates) : len(candidates) + count])
            if chosen is None:
                self.size.note_overflow(count)
            else:
                self.size.note_fit(count)
                candidates += chosen
        return candidates

    def _candidates(self, records: Sequence[Record]) -> list[Candidates] | None:
        """Return the candidates of each record, or None if there are several records and their rows are too big."""
        probes = [Probe(record, probe_keys(record, self.settings)) for record in records]
        keys = sorted(set(chain.from_iterable(probe.keys for probe in probes)))
        read = self.store.look_up(keys, self.look_up_bytes_max if len(records) > 1 else None)
        if len(read) < len(keys):
            return None
        rows = dict(zip(keys, read, strict=True))
        truncated_keys = {key for key, row in rows.items() if row.truncated}
        sought = self._seek(records, rows) if truncated_keys else {}
        candidates = find_candidates(probes, rows, self.settings, sought)
        self._count_look_up(probes, rows, truncated_keys, candidates)
        return candidates

    def _count_look_up(
        self,
        probes: Sequence[Probe],
        rows: Mapping[bytes, PostingRow],
        truncated_keys: Collection[bytes],
        candidates: Sequence[Candidates],
    ) -> None:
        """Add these articles' candidates to the tally, and the rows read, each as often as articles have its key."""
        tally = self.tally
        keys = list(chain.from_iterable(probe.keys for probe in probes))
        row_bytes = {key: len(row.packed) for key, row in rows.items()}
        tally.row_reads += len(keys)
        posting_bytes = layout_of(probes[0].record).posting_bytes
        tally.postings_read += sum(map(row_bytes.__getitem__, keys)) // posting_bytes
        if truncated_keys:
            tally.crowded_rows += sum(key in truncated_keys for key in keys)
        tally.crowded_articles += sum(
            choice.truncated and choice.found > CROWDED_VERIFICATIONS_MAX for choice in candidates
        )
        tally.candidates.add([choice.found for choice in candidates])
        tally.suspects.add([choice.suspects for choice in candidates])

    def _seek(self, records: Sequence[Record], rows: Mapping[bytes, PostingRow]) -> dict[KeyedCode, PostingRow]:
        """Return postings with the codes of these records, which truncated rows may hide."""
        codes = sorted({code for record in records for code in codes_to_seek(record, rows, self.settings)})
        return dict(zip(codes, self.store.seek(codes, SOUGHT_POSTINGS_MAX), strict=True)) if codes else {}

    def _neighbourhood(
        self,
        records: Sequence[Record],
        candidates: Sequence[Candidates],
        stored: Mapping[bytes, StoredVersion],
        own: Mapping[bytes, StoredVersion],
    ) -> Neighbourhood:
        """Return the near versions of each record, comparing it, as in ``own``, with its candidates in ``stored``.

        Raises ``StoreError`` for a record that is not in ``own``.
        """
        for record in records:
            if record.reference not in own:
                raise swept_error(record)
        # A version may be a candidate of every article of the batch, so its state is determined once.
        matchable = ComparisonBatch(
            [version for version in stored.values() if state_of(version) is not VersionState.DUPLICATE]
        )
        compared = [(record, choice) for record, choice in zip(records, candidates, strict=True) if choice.read]
        requests = [(own[record.reference], choice.read) for record, choice in compared]
        results = matchable.compare_all(requests, self.settings)
        self._count(results, len(records))
        neighbours: dict[bytes, list[Neighbour]] = {record.reference: [] for record in records}
        missed: dict[bytes, list[Neighbour]] = {}
        ended: dict[bytes, list[EndedNeighbour]] = {}
        for (record, choice), result in zip(compared, results, strict=True):
            neighbours[record.reference] = self._neighbours(result.near)
            if result.ended and not self.settings.never_flags(record):
                ended[record.reference] = self._ended(result.ended)
            if self.near_misses is not None:
                near_misses = self.near_misses.missed(own[record.reference], choice.references, matchable)
                if near_misses:
                    missed[record.reference] = near_misses
        truncated = frozenset(
            record.reference for record, choice in zip(records, candidates, strict=True) if choice.truncated
        )
        self.tally.truncated += len(truncated)
        return Neighbourhood(stored, neighbours, truncated, missed, ended)

    def _count(self, results: Sequence[ComparisonResult], articles: int) -> None:
        """Add the comparisons to the tally. Articles without a result had no candidates."""
        self.tally.verifications.add([result.others for result in results])
        self.tally.verifications.add([0] * (articles - len(results)))
        self.tally.similarities.add(chain.from_iterable(result.similarities for result in results))

    def _neighbours(self, pairs: Sequence[tuple[StoredVersion, PairComparison]]) -> list[Neighbour]:
        return [
            Neighbour(other.record, comparison.distance, comparison.similarity if self.settings.verify else None)
            for other, comparison in pairs
        ]

    def _ended(self, pairs: Sequence[tuple[StoredVersion, PairComparison]]) -> list[EndedNeighbour]:
        neighbours = self._neighbours(pairs)
        return [
            EndedNeighbour(neighbour, other.ends_at)
            for neighbour, (other, _) in zip(neighbours, pairs, strict=True)
            if other.ends_at is not None
        ]
