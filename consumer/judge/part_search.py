"""Finds earlier articles that share a long passage with an article without being near it.

Anchors find them, and samples measure how much is shared (``consumer.fingerprint.parts``). Parts inform readers and
never decide. They are found once, before the verdict is settled, so that all judges of a version return the same bytes.
Passages that are common when an article is judged are not posted, not looked up, and not counted as shared.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, starmap
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from consumer.fingerprint import ANCHORS_LOOKED_UP, SAMPLED_ONE_IN, Shares, shares_of_many, unpacked_sample
from consumer.judge.common_hashes import CommonHashes, anchor_hashes, sample_hashes
from consumer.judge.decision import Neighbourhood, VersionState, state_of
from consumer.judge.tally import Tally
from consumer.judge.verdict_cells import VerdictCells
from consumer.model.verdict import PARTS_MAX, Part
from storage.interface import Store
from storage.postings import PostingRow, part_keys
from storage.records import ANCHOR_BYTES, ID_HASH_BYTES, Record, StoredVersion, Version

ROW_POSTINGS_MAX: Final = 4
"""Rows with more postings of earlier articles are ignored, because they do not distinguish articles."""
ROW_WIDTH_MAX: Final = 1_024
"""Rows with more postings are ignored at once. Narrower rows may also have postings of later articles of the batch."""
CANDIDATES_MAX: Final = 16
"""Limit on articles that an article is compared with, those that share the most anchors first."""
SHARE_MIN: Final = 0.3
"""The smallest share, of either article, that a verdict names."""
SHARED_CHARS_MIN: Final = 50
"""The smallest estimated number of shared characters that a verdict names."""
LOOK_UP_BYTES_MAX: Final = 4 << 20
"""Limit on the bytes of postings of one look-up."""
_SHARE_DIGITS: Final = 2


class PartCandidate(NamedTuple):
    """A version that has a posting under an anchor of a record."""

    reference: bytes
    time_ms: int
    sequence: int


@dataclass(frozen=True, slots=True)
class PartSearch:
    """The search for parts that articles share with earlier ones. Every method raises the store's errors.

    ``common`` is None if the search is off.
    """

    store: Store
    cells: VerdictCells
    window_ms: int
    common: CommonHashes | None
    tally: Tally

    def without_common_anchors(self, versions: Sequence[Version], *, are_posted: bool = True) -> list[Version]:
        """Return the versions without their common anchors, which get no postings and are not looked up.

        ``are_posted`` says whether the remaining anchors get postings; if so, the removed ones are counted.
        """
        if self.common is None or not versions:
            return list(versions)
        records = [version.record for version in versions]
        is_common = self.common.are_common(anchor_hashes(records))
        if not is_common.any():
            return list(versions)
        counts = [len(record.anchors or b"") // ANCHOR_BYTES for record in records]
        ends = np.cumsum(counts)
        if are_posted:
            self.tally.common_anchors += int(np.count_nonzero(is_common))
        return [
            version._replace(record=_without_anchors(version.record, is_common[end - count : end]))
            for version, count, end in zip(versions, counts, ends, strict=True)
        ]

    def find(
        self, records: Sequence[Record], near: Neighbourhood, *, are_posted: bool = True
    ) -> dict[bytes, tuple[Part, ...]]:
        """Return the parts that each record shares with earlier articles, by reference, the greatest share first.

        ``are_posted`` says whether the postings of the records are written. Versions that are ``near`` a record
        are left out.
        """
        if self.common is None:
            return {}
        candidates = self._candidates(
            [record for record in records if record.anchors], near.references(), int(are_posted)
        )
        references = {reference for chosen in candidates.values() for reference in chosen}
        if not references:
            return {}
        read = self.cells.read(sorted(references))
        parts_by_reference = {}
        for record in records:
            others = [read[reference] for reference in candidates.get(record.reference, ()) if reference in read]
            parts = _parts(record, [other for other in others if _may_be_named(record, other)], self.common)
            if parts:
                parts_by_reference[record.reference] = parts
        return parts_by_reference

    def _candidates(
        self, records: Sequence[Record], near: Mapping[bytes, Collection[bytes]], own_postings: int
    ) -> Mapping[bytes, Sequence[bytes]]:
        """Return the references of earlier versions that share anchors with each record, by its reference.

        ``own_postings`` is the number of postings that a record itself has in each of its rows: 0 or 1.
        """
        keys_of = {record.reference: part_keys(record)[:ANCHORS_LOOKED_UP] for record in records}
        distinct_keys = sorted({key for keys in keys_of.values() for key in keys})
        rows = _candidates_in(dict(self._rows(distinct_keys, own_postings)))
        self.tally.part_row_reads += sum(map(len, keys_of.values()))
        chosen = {}
        for record in records:
            excluded = near.get(record.reference, ())
            shared: Counter[PartCandidate] = Counter()
            for key in keys_of[record.reference]:
                # Rows already have the postings of later articles of the batch.
                earlier = [other for other in rows.get(key, ()) if self._is_earlier(other, record)]
                if len(earlier) <= ROW_POSTINGS_MAX:
                    shared.update(other for other in earlier if other.reference not in excluded)
            if shared:
                best = sorted(
                    shared, key=lambda other: (-shared[other], other.time_ms, other.sequence, other.reference)
                )
                chosen[record.reference] = [other.reference for other in best[:CANDIDATES_MAX]]
        return chosen

    def _rows(self, keys: Sequence[bytes], own_postings: int) -> Iterator[tuple[bytes, PostingRow]]:
        """Yield the rows of these keys that have postings of other articles, and are not too wide."""
        start = 0
        while start < len(keys):
            rows = self.store.look_up(keys[start:], LOOK_UP_BYTES_MAX)
            posting_bytes = rows[0].layout.posting_bytes
            self.tally.part_postings_read += sum(len(row.packed) for row in rows) // posting_bytes
            bytes_min, bytes_max = own_postings * posting_bytes, ROW_WIDTH_MAX * posting_bytes
            for key, row in zip(keys[start:], rows, strict=False):
                if bytes_min < len(row.packed) <= bytes_max and not row.truncated:
                    yield key, row
            start += len(rows)

    def _is_earlier(self, other: PartCandidate, record: Record) -> bool:
        arrival = other.time_ms, other.sequence, other.reference
        return (
            other.reference[:ID_HASH_BYTES] != record.id_hash
            and arrival < record.arrival
            and other.time_ms >= record.time_ms - self.window_ms
        )


def _candidates_in(rows: Mapping[bytes, PostingRow]) -> dict[bytes, Sequence[PartCandidate]]:
    """Return the candidates in each row; one call unpacks all rows, because nearly all are short."""
    if not rows:
        return {}
    layout = next(iter(rows.values())).layout
    postings = np.frombuffer(b"".join(row.packed for row in rows.values()), layout.dtype)
    values = zip(
        map(bytes, postings["reference"]), postings["time_ms"].tolist(), postings["sequence"].tolist(), strict=True
    )
    candidates = starmap(PartCandidate, values)
    return {key: list(islice(candidates, len(row.packed) // layout.posting_bytes)) for key, row in rows.items()}


def _may_be_named(record: Record, other: StoredVersion) -> bool:
    """Return whether a version has a sample, is not a duplicate, and was in force when the record arrived."""
    in_force = other.ends_at is None or other.ends_at > record.arrival
    return in_force and other.record.sample is not None and state_of(other) is not VersionState.DUPLICATE


def _parts(record: Record, others: Sequence[StoredVersion], common: CommonHashes) -> tuple[Part, ...]:
    if not others:
        return ()
    samples = [unpacked_sample(other.record.sample or b"") for other in others]
    own = sample_hashes([record])
    hashes = np.unique(np.concatenate([own, *(sample.astype(np.uint64) for sample in samples)]))
    common_hashes = hashes[common.are_common(hashes)].astype(np.uint32)
    shares = shares_of_many(own.astype(np.uint32), samples, common_hashes)
    return tuple(_ranked_parts(others, shares)[:PARTS_MAX])


def _ranked_parts(others: Sequence[StoredVersion], shares: Shares) -> list[Part]:
    greatest = np.maximum(shares.of_this, shares.of_that)
    may_be_named = (greatest >= SHARE_MIN) & (shares.shared * SAMPLED_ONE_IN >= SHARED_CHARS_MIN)
    order = sorted(
        np.flatnonzero(may_be_named).tolist(), key=lambda place: (-greatest[place], others[place].record.arrival)
    )
    return [
        Part(
            id=others[place].record.id,
            version=others[place].record.reference[ID_HASH_BYTES:].hex(),
            share_of_this=round(float(shares.of_this[place]), _SHARE_DIGITS),
            share_of_that=round(float(shares.of_that[place]), _SHARE_DIGITS),
        )
        for place in order
    ]


def _without_anchors(record: Record, is_common: npt.NDArray[np.bool_]) -> Record:
    """Return a record without its common anchors."""
    if not is_common.any():
        return record
    anchors = np.frombuffer(record.anchors or b"", f"V{ANCHOR_BYTES}")
    return msgspec.structs.replace(record, anchors=anchors[~is_common].tobytes())
