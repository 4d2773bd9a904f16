"""What packing does to a row, worked out from its cells: which sets it gets, and which cells they stand for. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from secrets import token_bytes
from typing import Final, NamedTuple

from storage.hbase import sets
from storage.hbase.connection import Change, Columns
from storage.hbase.failures import damaged
from storage.hbase.sets import DamagedSetError, SetName
from storage.postings import PostingLayout

FRESH: Final = b"p:"
PACKED: Final = b"s:"
_RANDOM_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class PackRules:
    """Which postings are packed together, by the servers' clock.

    Those written before ``cut_ms``, one set or several a bucket, where a bucket has at least ``row_postings_min`` of
    them in the row, or has a set already. Sets of buckets that ended before ``expired_ms`` are deleted. ``now_ms`` is
    when the sets are packed.
    """

    bucket_ms: int
    cut_ms: int
    expired_ms: int
    now_ms: int
    row_postings_min: int = 1

    def bucket_of(self, written_ms: int) -> int:
        """When the bucket began that this time belongs to."""
        return written_ms - written_ms % self.bucket_ms


class PackTally(NamedTuple):
    """What was done: rows looked at, fresh postings packed, sets written, merged away and expired.

    Bytes are those of keys, columns and values, of what was replaced and of what replaced it, without HBase's own
    compression.
    """

    rows: int = 0
    postings: int = 0
    written: int = 0
    merged: int = 0
    expired: int = 0
    bytes_before: int = 0
    bytes_after: int = 0

    def plus(self, other: "PackTally") -> "PackTally":
        """Both together."""
        return PackTally(*map(sum, zip(self, other, strict=True)))


class RowPlan(NamedTuple):
    """What is written to a row, and what is deleted once that is acknowledged.

    ``fresh`` are the cells that went into sets, the newest of them written at ``newest_ms``; ``gone`` are sets that
    were merged or have expired.
    """

    puts: list[Change]
    fresh: list[Change]
    newest_ms: int
    gone: list[Change]
    tally: PackTally


class _Fresh(NamedTuple):
    column: bytes
    posting: bytes
    written_ms: int


class _Set(NamedTuple):
    column: bytes
    name: SetName
    postings: bytes
    size_bytes: int


def plan_row(key: bytes, columns: Columns, layout: PostingLayout, rules: PackRules) -> RowPlan:
    """Plan the packing of a row, or of a part of one.

    Raises ``StoreDamaged`` with row and qualifier where a cell is damaged: nothing of the row is touched then.
    """
    fresh = _fresh_by_bucket(key, columns, layout, rules)
    packed = _sets_by_bucket(key, columns, layout)
    plan = RowPlan([], [], 0, [], PackTally())
    for bucket_ms in sorted(fresh.keys() | packed.keys()):
        if bucket_ms + rules.bucket_ms < rules.expired_ms:
            # Its fresh cells HBase expires itself.
            plan = _without(plan, key, packed.get(bucket_ms, []))
        else:
            plan = _packed(plan, key, fresh.get(bucket_ms, []), packed.get(bucket_ms, []), (layout, rules))
    return plan


def fresh_cell(key: bytes, posting: bytes) -> Change:
    """A posting as a cell of its own, as ``add`` writes it."""
    return Change(key, FRESH + posting, b"")


def set_postings(key: bytes, column: bytes, value: bytes, layout: PostingLayout) -> bytes:
    """The postings of a set. Raises ``StoreDamaged`` where it is damaged."""
    return _read_set(key, column, value, layout).postings


def split_evenly(postings: bytes, layout: PostingLayout) -> list[bytes]:
    """Postings in any order as sets, as few as may be and each about as big as the others."""
    ordered = sets.distinct(postings, layout)
    width = layout.posting_bytes
    count = len(ordered) // width
    pieces = -(-count // sets.SET_POSTINGS_MAX)
    while True:
        bounds = [count * number // pieces * width for number in range(pieces + 1)]
        cut = [sets.encode_set(ordered[start:end], layout) for start, end in pairwise(bounds)]
        if pieces == count or max(map(len, cut)) <= sets.SET_BYTES_MAX:
            return cut
        pieces += 1


def _fresh_by_bucket(
    key: bytes, columns: Columns, layout: PostingLayout, rules: PackRules
) -> Mapping[int, list[_Fresh]]:
    buckets: defaultdict[int, list[_Fresh]] = defaultdict(list)
    for column, cell in columns.items():
        if column.startswith(FRESH) and cell.timestamp < rules.cut_ms:
            posting = column[len(FRESH) :] + cell.value
            if len(posting) != layout.posting_bytes:
                raise damaged(
                    f"The fresh posting {column[len(FRESH) :].hex()} in the row {key.hex()} of postings",
                    f"it has {len(posting)} bytes, not {layout.posting_bytes}",
                )
            buckets[rules.bucket_of(cell.timestamp)].append(_Fresh(column, posting, cell.timestamp))
    return buckets


def _sets_by_bucket(key: bytes, columns: Columns, layout: PostingLayout) -> Mapping[int, list[_Set]]:
    buckets: defaultdict[int, list[_Set]] = defaultdict(list)
    for column, cell in columns.items():
        if column.startswith(PACKED):
            one = _read_set(key, column, cell.value, layout)
            buckets[one.name.bucket_ms].append(one)
    return buckets


def _read_set(key: bytes, column: bytes, value: bytes, layout: PostingLayout) -> _Set:
    qualifier = column[len(PACKED) :]
    try:
        name = sets.set_name(qualifier)
        postings = _decoded(value, layout)
    except DamagedSetError as error:
        raise damaged(f"The posting set {qualifier.hex()} in the row {key.hex()} of postings", error) from error
    return _Set(column, name, postings, len(key) + len(column) + len(value))


def _decoded(value: bytes, layout: PostingLayout) -> bytes:
    postings, theirs = sets.decode_set(value)
    if theirs != layout:
        raise DamagedSetError(f"its codes have {theirs.code_bytes} bytes, those of the store {layout.code_bytes}")
    return postings


def _without(plan: RowPlan, key: bytes, expired: Sequence[_Set]) -> RowPlan:
    gone = [Change(key, one.column, None) for one in expired]
    tally = PackTally(expired=len(expired), bytes_before=sum(one.size_bytes for one in expired))
    return plan._replace(gone=plan.gone + gone, tally=plan.tally.plus(tally))


def _packed(
    plan: RowPlan,
    key: bytes,
    fresh: Sequence[_Fresh],
    packed: Sequence[_Set],
    how: tuple[PostingLayout, PackRules],
) -> RowPlan:
    """Add to a plan what becomes of one bucket."""
    layout, rules = how
    if not packed and len(fresh) < rules.row_postings_min:
        return plan
    if len(packed) <= 1 and not fresh:
        return plan
    together = b"".join([one.posting for one in fresh] + [one.postings for one in packed])
    values = split_evenly(together, layout)
    if not fresh and len(values) >= len(packed):
        return plan
    puts = [*_named(key, values, fresh, packed, rules)]
    tally = PackTally(
        postings=len(fresh),
        written=len(puts),
        merged=len(packed),
        bytes_before=sum(len(key) + len(FRESH) + len(one.posting) for one in fresh)
        + sum(one.size_bytes for one in packed),
        bytes_after=sum(len(put.row) + len(put.column) + len(put.value or b"") for put in puts),
    )
    return RowPlan(
        plan.puts + puts,
        plan.fresh + [Change(key, one.column, None) for one in fresh],
        max([plan.newest_ms] + [one.written_ms for one in fresh]),
        plan.gone + [Change(key, one.column, None) for one in packed],
        plan.tally.plus(tally),
    )


def _named(
    key: bytes, values: Sequence[bytes], fresh: Sequence[_Fresh], packed: Sequence[_Set], rules: PackRules
) -> Iterator[Change]:
    """Give each set a name that no other has ever had.

    It sorts behind those that it replaces: whoever reads the row in pieces, in order, meets the old ones or the new.
    """
    bucket_ms = packed[0].name.bucket_ms if packed else rules.bucket_of(fresh[0].written_ms)
    packed_ms = max([rules.now_ms] + [one.name.packed_ms + 1 for one in packed])
    for value in values:
        name = SetName(bucket_ms, packed_ms, token_bytes(_RANDOM_BYTES))
        yield Change(key, PACKED + name.qualifier(), value)
