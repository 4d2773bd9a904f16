"""Cells of articles: what goes in comes out, and what is damaged is named."""

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from storage.bodies import pack_body, unpack_body
from storage.errors import StoreDamaged
from storage.hbase import cells
from storage.hbase.cells import CellCache
from storage.records import ID_HASH_BYTES, StoredVersion
from tests.builders import make_record, make_tombstone


class Cell:
    """As Thrift gives it."""

    def __init__(self, value: bytes) -> None:
        self.value = value


RECORD = make_record()
PENDING = cells.pending_cell(RECORD)
ORIGINAL = make_record("original").reference
ID_HASH = RECORD.reference[:ID_HASH_BYTES]


@given(verdict=some.binary(max_size=50))
def test_a_verdict_of_any_bytes_comes_back_and_none_is_not_an_empty_one(verdict: bytes) -> None:
    """A cell that is pending has no verdict, one that is settled has just the bytes it was settled with."""
    assert cells.verdict_in(PENDING, RECORD.reference) is None
    settled = cells.settled_cell(PENDING, verdict)
    assert cells.verdict_in(settled, RECORD.reference) == verdict
    row = cells.decode_row(ID_HASH, {cells.version_column(RECORD.reference): Cell(settled)})
    assert row.stored(RECORD.reference) == StoredVersion(RECORD, verdict, None)


@given(flag=some.binary(max_size=50), event=some.binary(max_size=50))
def test_a_release_of_any_bytes_comes_back_as_the_verdict(flag: bytes, event: bytes) -> None:
    """Together with the original it was flagged against; the flag stays in the cell, but no longer counts."""
    released = cells.released_cell(cells.settled_cell(PENDING, flag), event, ORIGINAL)
    assert cells.verdict_in(released, RECORD.reference) == event
    assert cells.is_released(released, RECORD.reference)
    assert not cells.is_released(cells.settled_cell(PENDING, flag), RECORD.reference)
    assert not cells.is_released(PENDING, RECORD.reference)
    row = cells.decode_row(ID_HASH, {cells.version_column(RECORD.reference): Cell(released)})
    assert row.stored(RECORD.reference) == StoredVersion(RECORD, event, None, ORIGINAL)
    assert released == (b"\1\2" + PENDING[2:] + ORIGINAL + len(flag).to_bytes(4, "big") + flag + event)


def test_a_row_orders_versions_and_tombstones_by_arrival() -> None:
    """Each version ends where the next of either begins."""
    later, tombstone = make_record("a", b"later", sequence=2), make_tombstone("a", sequence=1)
    row = cells.decode_row(
        ID_HASH,
        {
            cells.version_column(later.reference): Cell(cells.pending_cell(later)),
            cells.tombstone_column(tombstone.reference): Cell(cells.tombstone_cell(tombstone)),
            cells.version_column(RECORD.reference): Cell(PENDING),
        },
    )
    assert row.history() == [
        StoredVersion(RECORD, None, tombstone.arrival),
        tombstone,
        StoredVersion(later, None, None),
    ]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b"", "too short"),
        (PENDING[:-1], "truncated"),
        (PENDING + b"x", "pending but has a verdict"),
        (b"\x02" + PENDING[1:], "format 2"),
        (PENDING[:1] + b"\x07" + PENDING[2:], "unknown state 7"),
        (cells.pending_cell(make_record("another")), "it holds another version"),
        (b"\1\2" + PENDING[2:], "truncated"),
        (b"\1\2" + PENDING[2:] + bytes(35), "truncated"),
        (b"\1\2" + PENDING[2:] + bytes(32) + b"\0\0\0\5flag", "truncated"),
        (PENDING[:6] + bytes(len(PENDING) - 6), "Expected `array`"),
    ],
)
def test_a_damaged_cell_is_named_with_its_row_and_column(value: bytes, says: str) -> None:
    """Nothing is guessed from it."""
    with pytest.raises(StoreDamaged, match=rf"b'a:v.* in the row {ID_HASH.hex()} of articles is damaged: .*{says}"):
        cells.decode_row(ID_HASH, {cells.version_column(RECORD.reference): Cell(value)})


@given(data=some.data())
def test_a_cell_that_was_changed_anywhere_is_read_or_damaged(data: some.DataObject) -> None:
    """It never ends in an error of a library, is always this version, and all readers agree on its verdict."""
    settled = cells.settled_cell(PENDING, b"{}")
    whole = data.draw(some.sampled_from([PENDING, settled, cells.released_cell(settled, b"{}", ORIGINAL)]))
    place = data.draw(some.integers(0, len(whole) - 1))
    changed = data.draw(
        some.sampled_from([whole[:place], whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]])
    )
    with suppress(StoreDamaged):
        verdict = cells.verdict_in(changed, RECORD.reference)
        assert cells.is_released(changed, RECORD.reference) == (changed[1] == 2)
        row = cells.decode_row(ID_HASH, {cells.version_column(RECORD.reference): Cell(changed)})
        stored = row.stored(RECORD.reference)
        assert stored is not None
        assert (stored.record.reference, stored.verdict) == (RECORD.reference, verdict)


@given(kept=some.integers(0, len(PENDING) - 1))
def test_a_pending_cell_that_was_cut_off_is_damaged(kept: int) -> None:
    """For every reader: none takes a part of a record for a version."""
    cut = PENDING[:kept]
    for read in (
        lambda: cells.decode_row(ID_HASH, {cells.version_column(RECORD.reference): Cell(cut)}),
        lambda: cells.verdict_in(cut, RECORD.reference),
        lambda: cells.is_released(cut, RECORD.reference),
    ):
        with pytest.raises(StoreDamaged):
            read()


@given(packed=some.binary(max_size=60))
def test_a_body_of_any_bytes_is_read_or_damaged(packed: bytes) -> None:
    """What is read is what was packed; other bytes never end in an error of a library."""
    try:
        body = cells.body_in(packed, RECORD.reference)
    except StoreDamaged:
        return
    assert unpack_body(pack_body(body)) == body


def test_a_record_whose_fingerprint_has_another_width_is_damaged() -> None:
    """No posting has such a code: reading on would end in an error of its own."""
    odd = cells.pending_cell(msgspec.structs.replace(RECORD, fingerprint=b"123"))
    with pytest.raises(StoreDamaged, match="its fingerprint has 3 bytes"):
        cells.decode_row(ID_HASH, {cells.version_column(RECORD.reference): Cell(odd)})


@pytest.mark.parametrize("packed", [b"", b"garbage", pack_body("text")[:-1]])
def test_a_body_that_cannot_be_unpacked_is_damaged(packed: bytes) -> None:
    """The sentence says which cell it is and what to do."""
    where = rf"b'b:b.* in the row {ID_HASH.hex()} of articles is damaged: .*from a snapshot"
    with pytest.raises(StoreDamaged, match=where):
        cells.body_in(packed, RECORD.reference)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b"", "format"),
        (b"\x02", "format 02"),
        (cells.tombstone_cell(make_tombstone("another")), "it holds another tombstone"),
    ],
)
def test_a_damaged_tombstone_is_named(value: bytes, says: str) -> None:
    """As a version is."""
    tombstone = make_tombstone()
    with pytest.raises(StoreDamaged, match=rf"b'a:t.* is damaged: .*{says}"):
        cells.decode_row(ID_HASH, {cells.tombstone_column(tombstone.reference): Cell(value)})


@given(text=some.text())
def test_a_body_comes_back(text: str) -> None:
    """Every character of it."""
    assert unpack_body(pack_body(text)) == text


def test_the_cache_forgets_what_was_used_longest_ago() -> None:
    """It holds a limited number of cells, and taking a cell removes it."""
    cache = CellCache(2)
    for reference in (b"a", b"b", b"a", b"c"):
        cache.remember(reference, reference)
    assert [cache.take(reference) for reference in (b"a", b"b", b"c", b"c")] == [b"a", None, b"c", None]
