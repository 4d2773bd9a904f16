"""Rows of any width: whole up to the cap, in pieces where they are wide, posting sets beside fresh postings."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest

from storage.errors import StoreDamaged
from storage.hbase import HbaseOptions, parse_place, posting_cells, posting_rows, row_widths
from storage.hbase.calls import Calls, Gateways
from storage.hbase.connection import CellChange, Columns, GatewayConnection, ScanSelection
from storage.hbase.failures import RequestDenied
from storage.hbase.meta import PackMeta
from storage.hbase.posting_rows import PostingRows
from storage.hbase.store import HbaseStore
from storage.postings import POSTING_LAYOUTS, KeyedCode, postings_of
from storage.records import Record
from tests.builders import make_key, make_record

pytestmark = pytest.mark.servers

KEY, OTHER = make_key(7), make_key(8)
LAYOUT = POSTING_LAYOUTS[8]
RECORDS = [make_record(f"a{number}", b"%d" % number, keys=(KEY,)) for number in range(300)]
POSTINGS = sorted(postings_of(record)[0][1] for record in RECORDS)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of more than 100 cells is wide, and read 64 at a time."""
    monkeypatch.setattr(row_widths, "WIDE_CELLS", 100)
    monkeypatch.setattr(posting_rows, "_CELLS_AT_ONCE", 64)


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The rows that were read in pieces."""
    begun: list[bytes] = []
    scan = GatewayConnection.scan

    def noted(self: GatewayConnection, selection: ScanSelection) -> object:
        begun.append(selection.start)
        return scan(self, selection)

    monkeypatch.setattr(GatewayConnection, "scan", noted)
    return begun


def opened(address: str, namespace: str, row_postings_max: int = 100_000) -> HbaseStore:
    """The store under test."""
    return HbaseStore.open(
        parse_place(f"hbase://{address}/{namespace}"), HbaseOptions(row_postings_max=row_postings_max)
    )


def put_fresh(address: str, namespace: str, records: Sequence[Record]) -> None:
    """Store fresh postings as another program does: no store of this process has counted them."""
    gateways = Gateways(parse_place(f"hbase://{address}/{namespace}"), HbaseOptions())
    changes = [CellChange(key, b"p:" + posting, b"") for record in records for key, posting in postings_of(record)]
    gateways.calls().change(f"{namespace}:postings".encode(), changes)
    gateways.close()


def put_set(address: str, namespace: str, key: bytes, value: bytes, number: int = 0) -> None:
    """Store a posting set as a packer does, which binds the width of its buckets first."""
    gateways = Gateways(parse_place(f"hbase://{address}/{namespace}"), HbaseOptions())
    PackMeta(f"{namespace}:meta".encode()).bind_bucket(gateways.calls(), 1_000)
    column = b"s:" + posting_cells.SetName(0, number, bytes(8)).qualifier()
    gateways.calls().change(f"{namespace}:postings".encode(), [CellChange(key, column, value)])
    gateways.close()


def test_a_row_seen_wide_is_read_in_pieces_from_then_on(
    hbase_address: str, hbase_namespace: str, scans: list[bytes]
) -> None:
    """Both ways give the same row; one that is narrow is read with all others."""
    store = opened(hbase_address, hbase_namespace)
    store.add([make_record("other", keys=(OTHER,))])
    put_fresh(hbase_address, hbase_namespace, RECORDS)
    seen = []
    for _ in range(3):
        row, other = store.look_up([KEY, OTHER])
        seen.append(len(scans))
        assert sorted(posting.tobytes() for posting in row.postings) == POSTINGS
        assert (row.truncated, len(other.postings)) == (False, 1)
    assert seen == [0, 1, 2]
    assert set(scans) == {KEY}
    store.close()


def test_a_row_that_somebody_saw_wide_or_filled_is_read_in_pieces_by_all(
    hbase_address: str, hbase_namespace: str, scans: list[bytes]
) -> None:
    """A mark in ``meta`` is for later processes; a reader leaves none."""
    put_fresh(hbase_address, hbase_namespace, RECORDS)
    place = parse_place(f"hbase://{hbase_address}/{hbase_namespace}")
    looking = HbaseStore.open(place, HbaseOptions(readonly=True))
    looking.look_up([KEY])
    looking.close()
    for expected in ([], [KEY]):
        scans.clear()
        store = opened(hbase_address, hbase_namespace)
        (row,) = store.look_up([KEY])
        assert sorted(posting.tobytes() for posting in row.postings) == POSTINGS
        assert scans == expected
        store.close()
    filling = opened(hbase_address, hbase_namespace)
    for record in RECORDS[:101]:
        filling.add([msgspec.structs.replace(record, keys=(OTHER,))])
    filling.close()
    scans.clear()
    store = opened(hbase_address, hbase_namespace)
    store.look_up([OTHER])
    assert scans == [OTHER]
    store.close()


@pytest.mark.parametrize("rows_at_once", [1, 128])
def test_an_answer_that_grows_too_big_is_given_up(
    hbase_address: str, hbase_namespace: str, scans: list[bytes], monkeypatch: pytest.MonkeyPatch, rows_at_once: int
) -> None:
    """Nobody knew that the row is wide: the rows of that answer are read in pieces this once, others are not."""
    monkeypatch.setattr(posting_rows, "ANSWER_BYTES_MAX", 10_000)
    store = opened(hbase_address, hbase_namespace, 128)
    store.add([make_record("other", keys=(OTHER,))])
    store._postings._rows_at_once = rows_at_once
    put_fresh(hbase_address, hbase_namespace, RECORDS)
    for expected in ([KEY, OTHER] if rows_at_once > 1 else [KEY], [KEY]):
        scans.clear()
        row, other = store.look_up([KEY, OTHER])
        assert (row.truncated, len(row.postings), len(other.postings)) == (True, 128, 1)
        assert sorted(scans) == expected
    assert store._postings._rows_at_once == max(rows_at_once // 2, 1)
    store.close()


def test_a_set_that_is_packed_anew_while_a_row_is_read_is_looked_for_again(
    hbase_address: str, hbase_namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name was read, and then it was merged into another or unpacked: the row of one moment is returned."""
    store = opened(hbase_address, hbase_namespace)
    put_set(hbase_address, hbase_namespace, KEY, posting_cells.encode_set(b"".join(POSTINGS), LAYOUT), 1)
    store._postings._wide.remember_here([KEY])
    read_value = PostingRows._set_value
    gone: list[bytes] = []

    def merge_first(self: PostingRows, calls: Calls, key: bytes, name: bytes) -> bytes | None:
        if not gone:
            gone.append(name)
            put_set(hbase_address, hbase_namespace, KEY, posting_cells.encode_set(b"".join(POSTINGS), LAYOUT), 2)
            calls.change(f"{hbase_namespace}:postings".encode(), [CellChange(key, name, None)])
        return read_value(self, calls, key, name)

    monkeypatch.setattr(PostingRows, "_set_value", merge_first)
    (row,) = store.look_up([KEY])
    assert [posting.tobytes() for posting in row.postings] == POSTINGS
    assert gone
    store.close()


def test_of_a_row_over_the_cap_no_more_is_asked_for_than_shows_it(
    hbase_address: str, hbase_namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cost on HBase's side: the cells that come are counted, and sets behind the one over the cap stay there."""
    store = opened(hbase_address, hbase_namespace, 64)
    store.add(RECORDS)
    received: list[int] = []
    scan = GatewayConnection.scan

    def counted(self: GatewayConnection, selection: ScanSelection) -> Iterator[tuple[bytes, Columns]]:
        for key, columns in scan(self, selection):
            received.append(len(columns))
            yield key, columns

    monkeypatch.setattr(GatewayConnection, "scan", counted)
    monkeypatch.setattr(posting_rows, "_CELLS_AT_ONCE", 4_096)
    (row,) = store.look_up([KEY])
    assert (row.truncated, received) == (True, [65])
    store.remove(RECORDS)
    for number in range(3):
        put_set(hbase_address, hbase_namespace, KEY, posting_cells.encode_set(b"".join(POSTINGS[:100]), LAYOUT), number)
    # From here on the store knows that there may be sets.
    store.look_up([OTHER])
    received.clear()
    values: list[bytes] = []
    read_value = PostingRows._set_value

    def counted_value(self: PostingRows, calls: Calls, key: bytes, name: bytes) -> bytes | None:
        values.append(name)
        return read_value(self, calls, key, name)

    monkeypatch.setattr(PostingRows, "_set_value", counted_value)
    (row,) = store.look_up([KEY])
    assert (row.truncated, received, len(values)) == (True, [3], 1)
    assert [posting.tobytes() for posting in row.postings] == POSTINGS[:64]
    store.close()


def test_repeats_do_not_fill_a_row(hbase_address: str, hbase_namespace: str) -> None:
    """While a packer works postings stand in several places: a row is over the cap only by different ones."""
    store = opened(hbase_address, hbase_namespace, 200)
    store.add(RECORDS[:150])
    fresh = b"".join(sorted(postings_of(record)[0][1] for record in RECORDS[:150]))
    others = b"".join(postings_of(record)[0][1] for record in RECORDS[150:200])
    for number, postings in enumerate((fresh, others)):
        put_set(hbase_address, hbase_namespace, KEY, posting_cells.encode_set(postings, LAYOUT), number)
    store._postings._wide.remember_here([KEY])
    (row,) = store.look_up([KEY])
    assert (row.truncated, len(row.postings)) == (False, 200)
    store.close()


def test_sets_are_read_once_for_all_codes_that_are_sought(
    hbase_address: str, hbase_namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a crowd a whole batch seeks its codes in the same rows, whose sets have megabytes."""
    store = opened(hbase_address, hbase_namespace)
    store.add(RECORDS[:2])
    put_set(hbase_address, hbase_namespace, KEY, posting_cells.encode_set(b"".join(POSTINGS), LAYOUT))
    values: list[bytes] = []
    read_value = PostingRows._set_value

    def counted_value(self: PostingRows, calls: Calls, key: bytes, name: bytes) -> bytes | None:
        values.append(key)
        return read_value(self, calls, key, name)

    monkeypatch.setattr(PostingRows, "_set_value", counted_value)
    codes = [KeyedCode(KEY, record.fingerprint) for record in RECORDS[:9]]
    rows = store.seek([*codes, KeyedCode(OTHER, bytes(8))], 9)
    assert [row.packed for row in rows] == [*(postings_of(record)[0][1] for record in RECORDS[:9]), b""]
    assert values == [KEY]
    store.close()


@pytest.mark.parametrize("row_postings_max", [99, 128, 299, 300])
def test_at_the_cap_a_row_is_cut_at_the_same_place_either_way(
    hbase_address: str, hbase_namespace: str, row_postings_max: int
) -> None:
    """The lowest codes are what is read, as in every store."""
    store = opened(hbase_address, hbase_namespace, row_postings_max)
    store.add(RECORDS)
    for _ in range(2):
        (row,) = store.look_up([KEY])
        assert sorted(posting.tobytes() for posting in row.postings) == POSTINGS[:row_postings_max]
        assert row.truncated == (row_postings_max < 300)
    store.close()


def test_a_row_that_hbase_refuses_for_its_size_is_read_in_pieces(
    hbase_address: str, hbase_namespace: str, scans: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that was never seen before."""
    store = opened(hbase_address, hbase_namespace)
    put_fresh(hbase_address, hbase_namespace, RECORDS)
    row_cells = GatewayConnection.row_cells

    def refuse(self: GatewayConnection, table: bytes, keys: list[bytes], *more: Any) -> object:  # noqa: ANN401  # what it is given
        if KEY in keys:
            raise RequestDenied(
                "org.apache.hadoop.hbase.regionserver.RowTooBigException: Max row size allowed: 1048576"
            )
        return row_cells(self, table, keys, *more)

    monkeypatch.setattr(GatewayConnection, "row_cells", refuse)
    for _ in range(2):
        row, other = store.look_up([KEY, OTHER])
        assert sorted(posting.tobytes() for posting in row.postings) == POSTINGS
        assert len(other.postings) == 0
    assert scans == [KEY, OTHER, KEY]
    store.close()


@pytest.mark.parametrize("count", [50, 300])
def test_sets_and_fresh_postings_are_one_row(hbase_address: str, hbase_namespace: str, count: int) -> None:
    """A posting that stands in several places is returned once, narrow or wide; counting counts what is stored."""
    store = opened(hbase_address, hbase_namespace)
    store.add(RECORDS[:count])
    some, more = b"".join(POSTINGS[:150]), b"".join(POSTINGS[100:])
    for number, postings in enumerate((some, more)):
        put_set(hbase_address, hbase_namespace, KEY, posting_cells.encode_set(postings, LAYOUT), number)
    for _ in range(2):
        (row,) = store.look_up([KEY])
        assert [posting.tobytes() for posting in row.postings] == POSTINGS
    assert store.stats()[3:5] == (count + 150 + 200, 1)
    # What was packed stays when it is removed: without a kept record it counts for nothing.
    store.remove(RECORDS)
    (row,) = store.look_up([KEY])
    assert [posting.tobytes() for posting in row.postings] == POSTINGS
    store.close()


def test_a_damaged_set_is_named(hbase_address: str, hbase_namespace: str) -> None:
    """It is never passed over in silence: the sentence says which row and which set."""
    store = opened(hbase_address, hbase_namespace)
    store.add(RECORDS[:1])
    value = bytearray(posting_cells.encode_set(POSTINGS[0], LAYOUT))
    value[-1] ^= 1
    put_set(hbase_address, hbase_namespace, KEY, bytes(value), 3)
    name = posting_cells.SetName(0, 3, bytes(8)).qualifier().hex()
    with pytest.raises(StoreDamaged, match=f"posting set {name} in the row {KEY.hex()} of postings is damaged"):
        store.look_up([KEY])
    store.close()
