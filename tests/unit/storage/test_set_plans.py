"""What packing plans for a row, without a server."""

import random
from collections.abc import Mapping
from typing import NamedTuple

import pytest

from storage.errors import StoreDamaged
from storage.hbase import posting_cells
from storage.hbase.packing import pack_before_ms
from storage.hbase.posting_cells import FRESH, PACKED, SetName, fresh_cell, set_postings
from storage.hbase.set_plans import PackRules, RowPlan, plan_row, split_evenly
from storage.postings import POSTING_LAYOUTS, PostingLayout

KEY = bytes([0, 1, 2])
BUCKET_MS = 1_000
DAY_MS = 86_400_000
LAYOUT = POSTING_LAYOUTS[8]
RULES = PackRules(BUCKET_MS, pack_before_ms=50_000, expired_ms=10_000, now_ms=60_000, row_postings_min=3)


class Cell(NamedTuple):
    """A cell as Thrift hands it over."""

    value: bytes
    timestamp: int


def postings(count: int, seed: int = 1, layout: PostingLayout = LAYOUT) -> list[bytes]:
    """Postings that are all different."""
    chance = random.Random(seed)
    return [chance.randbytes(layout.posting_bytes) for _ in range(count)]


def fresh(some: list[bytes], written_ms: int) -> dict[bytes, Cell]:
    """Postings as cells of their own."""
    return {FRESH + posting: Cell(b"", written_ms) for posting in some}


def packed(some: list[bytes], bucket_ms: int, packed_ms: int = 0, layout: PostingLayout = LAYOUT) -> dict[bytes, Cell]:
    """Postings as a set."""
    column = PACKED + SetName(bucket_ms, packed_ms, bytes(8)).qualifier()
    return {column: Cell(posting_cells.encode_set(b"".join(some), layout), 1)}


def plan(*cells: Mapping[bytes, Cell], rules: PackRules = RULES) -> RowPlan:
    """The plan for a row of these cells."""
    return plan_row(KEY, {column: cell for some in cells for column, cell in some.items()}, LAYOUT, rules)


def written(planned: RowPlan) -> dict[int, set[bytes]]:
    """What a plan writes, by bucket."""
    found: dict[int, set[bytes]] = {}
    for key, column, value in planned.puts:
        assert value is not None
        joined = set_postings(key, column, value, LAYOUT)
        bucket_ms = posting_cells.set_name(column.removeprefix(PACKED)).bucket_ms
        found.setdefault(bucket_ms, set()).update(
            joined[place : place + LAYOUT.posting_bytes] for place in range(0, len(joined), LAYOUT.posting_bytes)
        )
    return found


def test_fresh_postings_are_packed_by_bucket() -> None:
    """Old postings go into one set a bucket, and just their cells go; what is as young as the cut stays."""
    some = postings(9)
    cells = fresh(some[:3], 20_000), fresh(some[3:6], 20_999), fresh(some[6:8], 49_999), fresh(some[8:], 50_000)
    planned = plan(*cells, fresh(postings(3, seed=2), 21_000))
    assert written(planned) == {20_000: set(some[:6]), 21_000: set(postings(3, seed=2))}
    assert {change.column for change in planned.fresh_deletes} == {
        FRESH + posting for posting in some[:6] + postings(3, seed=2)
    }
    assert all(change.value is None for change in planned.fresh_deletes)
    assert planned.newest_ms == 21_000
    assert planned.set_deletes == []
    assert planned.tally[1:5] == (9, 2, 0, 0)


@pytest.mark.parametrize(("count", "sets_written"), [(2, 0), (3, 1)])
def test_few_stay_fresh(count: int, sets_written: int) -> None:
    """Fewer postings of a bucket than are worth a set are left alone."""
    assert len(plan(fresh(postings(count), 20_000)).puts) == sets_written


def test_sets_of_one_bucket_are_merged() -> None:
    """Sets and fresh postings of one bucket become one set, each posting once; a single set of another is left."""
    some = postings(6)
    old, late = packed(some[:3], 20_000, 7), packed(some[2:5], 20_000, 99_000)
    planned = plan(old, late, fresh(some[4:], 20_100), packed(some[:2], 30_000))
    assert written(planned) == {20_000: set(some)}
    assert {change.column for change in planned.set_deletes} == {*old, *late}
    assert planned.puts[0].column > max([*old, *late])
    assert planned.tally.merged == 2


def test_single_set_is_left() -> None:
    """A row with one set a bucket and nothing fresh is done."""
    assert plan(packed(postings(3), 20_000), packed(postings(3), 21_000))[:4] == ([], [], 0, [])


def test_names_differ() -> None:
    """The same plan made twice writes under different names: no set is ever written over another."""
    cells = fresh(postings(5), 20_000)
    assert plan(cells).puts[0].column != plan(cells).puts[0].column


def test_expired_buckets() -> None:
    """Sets go when their bucket ended before the bound, and not in the moment before."""
    gone, stays = packed(postings(3), 8_999), packed(postings(3), 9_000)
    planned = plan(gone, stays)
    assert [change.column for change in planned.set_deletes] == list(gone)
    assert planned.puts == []
    assert planned.tally.expired == 1


def test_split_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    """More postings than a set holds become several of about one size; so do those of more bytes than a set holds."""
    monkeypatch.setattr(posting_cells, "SET_POSTINGS_MAX", 100)
    some = postings(250)
    counts = [posting_cells.set_count(value) for value in split_evenly(b"".join(some), LAYOUT)]
    assert sorted(counts) == [83, 83, 84]
    monkeypatch.setattr(posting_cells, "SET_BYTES_MAX", 1_000)
    values = split_evenly(b"".join(some), LAYOUT)
    assert max(map(len, values)) <= 1_000
    assert len(values) < 25
    joined = b"".join(set_postings(KEY, PACKED + bytes(24), value, LAYOUT) for value in values)
    assert joined == b"".join(sorted(some))


def test_full_sets_are_not_merged_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets of a bucket that would not become fewer are left as they are."""
    monkeypatch.setattr(posting_cells, "SET_POSTINGS_MAX", 4)
    some = postings(7)
    assert plan(packed(some[:4], 20_000, 1), packed(some[4:], 20_000, 2)).puts == []


@pytest.mark.parametrize("layout", POSTING_LAYOUTS.values())
def test_wide_codes(layout: PostingLayout) -> None:
    """Postings of either width are packed and come back as the cells that they were."""
    some = postings(5, layout=layout)
    planned = plan_row(KEY, fresh(some, 20_000), layout, RULES)
    put = planned.puts[0]
    assert put.value is not None
    joined = set_postings(put.row, put.column, put.value, layout)
    width = layout.posting_bytes
    back = [fresh_cell(KEY, joined[place : place + width]) for place in range(0, len(joined), width)]
    assert {change.column for change in back} == {change.column for change in planned.fresh_deletes}


@pytest.mark.parametrize(
    "cells",
    [
        packed(postings(3), 20_000) | {PACKED + b"short": Cell(b"", 1)},
        {column: Cell(cell.value[:-1], 1) for column, cell in packed(postings(3), 20_000).items()},
        {column: Cell(cell.value[:-1], 1) for column, cell in packed(postings(3), 0).items()},
        packed(postings(3, layout=POSTING_LAYOUTS[16]), 20_000, layout=POSTING_LAYOUTS[16]),
        {FRESH + b"short": Cell(b"", 20_000)},
    ],
    ids=["name", "value", "expired", "width", "fresh"],
)
def test_damage_is_named(cells: dict[bytes, Cell]) -> None:
    """A damaged cell ends it with a sentence that has the row and the qualifier, whatever else is to be done."""
    qualifier = list(cells)[-1][2:].hex()
    with pytest.raises(StoreDamaged, match=rf"{qualifier} in the row {KEY.hex()} of postings is damaged: .*\."):
        plan(fresh(postings(5, seed=9), 20_000), cells)


@pytest.mark.parametrize(
    ("before_ms", "bucket_ms", "expected_ms"),
    [
        (5_000, 1_000, 4_000),
        (5_999, 1_000, 4_000),
        (6_000, 1_000, 5_000),
        (10 * DAY_MS + 59_999, DAY_MS, 9 * DAY_MS),
        (10 * DAY_MS + 60_000, DAY_MS, 10 * DAY_MS),
    ],
)
def test_only_buckets_that_ended_are_packed(before_ms: int, bucket_ms: int, expected_ms: int) -> None:
    """Buckets that are over for a minute are packed, shorter ones after another of their own length."""
    assert pack_before_ms(before_ms, bucket_ms) == expected_ms
