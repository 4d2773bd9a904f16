"""Plans the packing of a row from its cells: which sets to write, and which cells they replace. Pure functions."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from secrets import token_bytes
from typing import Final, NamedTuple

from storage.hbase import posting_cells
from storage.hbase.connection import CellChange, Columns
from storage.hbase.failures import damage_error
from storage.hbase.posting_cells import FRESH, PACKED, DamagedSetError, SetName, damaged_set_error, set_postings
from storage.postings import PostingLayout

_RANDOM_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class PackRules:
    """The rules for packing postings; all times are by the servers' clock.

    Postings written before ``pack_before_ms`` are packed into one or more sets per bucket, if the row has at least
    ``row_postings_min`` of them in that bucket or already has a set of that bucket. Sets of buckets that ended
    before ``expired_ms`` are deleted. ``now_ms`` is the time of packing.
    """

    bucket_ms: int
    pack_before_ms: int
    expired_ms: int
    now_ms: int
    row_postings_min: int = 1

    def bucket_of(self, written_ms: int) -> int:
        """Return the start of the bucket that contains this time."""
        return written_ms - written_ms % self.bucket_ms


class PackTally(NamedTuple):
    """Counts of packing: rows read, fresh postings packed, and sets written, merged and expired.

    ``bytes_before`` and ``bytes_after`` are the sizes of the replaced and of the new cells: keys, columns and values,
    without HBase's compression.
    """

    rows: int = 0
    postings: int = 0
    written: int = 0
    merged: int = 0
    expired: int = 0
    bytes_before: int = 0
    bytes_after: int = 0

    def plus(self, other: "PackTally") -> "PackTally":
        """Return the sum of this tally and another."""
        return PackTally(*map(sum, zip(self, other, strict=True)))


class RowPlan(NamedTuple):
    """The cells to write to a row, and those to delete once the writes are acknowledged.

    ``fresh_deletes`` delete the fresh postings that the new sets contain; the newest of these was written at
    ``newest_ms``, which is 0 without any. ``set_deletes`` delete sets that were merged or have expired.
    """

    puts: list[CellChange]
    fresh_deletes: list[CellChange]
    newest_ms: int
    set_deletes: list[CellChange]
    tally: PackTally


class _FreshPosting(NamedTuple):
    column: bytes
    posting: bytes
    written_ms: int


class _PostingSet(NamedTuple):
    column: bytes
    name: SetName
    postings: bytes
    size_bytes: int


def plan_row(key: bytes, columns: Columns, layout: PostingLayout, rules: PackRules) -> RowPlan:
    """Return the plan for packing a row, or a part of one.

    Raises ``StoreDamaged`` with row and qualifier if a cell is damaged, so that none of these cells is changed.
    """
    fresh = _fresh_by_bucket(key, columns, layout, rules)
    packed = _sets_by_bucket(key, columns, layout)
    plan = RowPlan([], [], 0, [], PackTally())
    for bucket_ms in sorted(fresh.keys() | packed.keys()):
        if bucket_ms + rules.bucket_ms < rules.expired_ms:
            # HBase expires the fresh cells itself.
            plan = _plan_expiry(plan, key, packed.get(bucket_ms, []))
        else:
            plan = _plan_bucket(plan, key, fresh.get(bucket_ms, []), packed.get(bucket_ms, []), layout, rules)
    return plan


def split_evenly(postings: bytes, layout: PostingLayout) -> list[bytes]:
    """Encode postings, given in any order, as the smallest possible number of sets of about equal size."""
    ordered = posting_cells.deduplicate(postings, layout)
    width = layout.posting_bytes
    count = len(ordered) // width
    pieces = -(-count // posting_cells.SET_POSTINGS_MAX)
    while True:
        bounds = [count * number // pieces * width for number in range(pieces + 1)]
        sets = [posting_cells.encode_set(ordered[start:end], layout) for start, end in pairwise(bounds)]
        if pieces == count or max(map(len, sets)) <= posting_cells.SET_BYTES_MAX:
            return sets
        pieces += 1


def _fresh_by_bucket(
    key: bytes, columns: Columns, layout: PostingLayout, rules: PackRules
) -> Mapping[int, list[_FreshPosting]]:
    buckets: defaultdict[int, list[_FreshPosting]] = defaultdict(list)
    for column, cell in columns.items():
        if column.startswith(FRESH) and cell.timestamp < rules.pack_before_ms:
            posting = column[len(FRESH) :] + cell.value
            if len(posting) != layout.posting_bytes:
                raise damage_error(
                    f"The fresh posting {column[len(FRESH) :].hex()} in the row {key.hex()} of postings",
                    f"it has {len(posting)} bytes, not {layout.posting_bytes}",
                )
            buckets[rules.bucket_of(cell.timestamp)].append(_FreshPosting(column, posting, cell.timestamp))
    return buckets


def _sets_by_bucket(key: bytes, columns: Columns, layout: PostingLayout) -> Mapping[int, list[_PostingSet]]:
    buckets: defaultdict[int, list[_PostingSet]] = defaultdict(list)
    for column, cell in columns.items():
        if column.startswith(PACKED):
            packed = _decode_set(key, column, cell.value, layout)
            buckets[packed.name.bucket_ms].append(packed)
    return buckets


def _decode_set(key: bytes, column: bytes, value: bytes, layout: PostingLayout) -> _PostingSet:
    try:
        name = posting_cells.set_name(column[len(PACKED) :])
    except DamagedSetError as error:
        raise damaged_set_error(key, column, error) from error
    return _PostingSet(column, name, set_postings(key, column, value, layout), len(key) + len(column) + len(value))


def _plan_expiry(plan: RowPlan, key: bytes, expired: Sequence[_PostingSet]) -> RowPlan:
    """Add the deletion of expired sets to a plan."""
    deletes = [CellChange(key, old.column, None) for old in expired]
    tally = PackTally(expired=len(expired), bytes_before=sum(old.size_bytes for old in expired))
    return plan._replace(set_deletes=plan.set_deletes + deletes, tally=plan.tally.plus(tally))


def _plan_bucket(
    plan: RowPlan,
    key: bytes,
    fresh: Sequence[_FreshPosting],
    packed: Sequence[_PostingSet],
    layout: PostingLayout,
    rules: PackRules,
) -> RowPlan:
    """Add the packing of one bucket to a plan."""
    if not packed and len(fresh) < rules.row_postings_min:
        return plan
    if len(packed) <= 1 and not fresh:
        return plan
    postings = b"".join([cell.posting for cell in fresh] + [old.postings for old in packed])
    values = split_evenly(postings, layout)
    if not fresh and len(values) >= len(packed):
        return plan
    puts = [*_named_sets(key, values, fresh, packed, rules)]
    tally = PackTally(
        postings=len(fresh),
        written=len(puts),
        merged=len(packed),
        bytes_before=sum(len(key) + len(FRESH) + len(cell.posting) for cell in fresh)
        + sum(old.size_bytes for old in packed),
        bytes_after=sum(len(put.row) + len(put.column) + len(put.value or b"") for put in puts),
    )
    return RowPlan(
        plan.puts + puts,
        plan.fresh_deletes + [CellChange(key, cell.column, None) for cell in fresh],
        max([plan.newest_ms] + [cell.written_ms for cell in fresh]),
        plan.set_deletes + [CellChange(key, old.column, None) for old in packed],
        plan.tally.plus(tally),
    )


def _named_sets(
    key: bytes, values: Sequence[bytes], fresh: Sequence[_FreshPosting], packed: Sequence[_PostingSet], rules: PackRules
) -> Iterator[CellChange]:
    """Yield the cells of these sets, each under a name that no set has ever had.

    The names sort after those of the replaced sets. So a reader that fetches the row in pieces, in order, finds the old
    sets or the new ones.
    """
    bucket_ms = packed[0].name.bucket_ms if packed else rules.bucket_of(fresh[0].written_ms)
    packed_ms = max([rules.now_ms] + [old.name.packed_ms + 1 for old in packed])
    for value in values:
        name = SetName(bucket_ms, packed_ms, token_bytes(_RANDOM_BYTES))
        yield CellChange(key, PACKED + name.qualifier(), value)
