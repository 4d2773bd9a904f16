"""From the cells of a row to its postings."""

import pytest

from storage.errors import StoreDamaged
from storage.hbase import posting_rows, sets
from storage.hbase.row_answers import RowCells
from storage.postings import POSTING_LAYOUTS, PostingLayout

KEY = b"\0ab"
SET = b"s:" + bytes(24)
LAYOUTS = list(POSTING_LAYOUTS.values())


def _posting(layout: PostingLayout, number: int) -> bytes:
    return bytes([number]) * layout.posting_bytes


@pytest.mark.parametrize("layout", LAYOUTS)
def test_cells_and_sets_are_told_apart(layout: PostingLayout) -> None:
    """Postings that are cells come together, those of each set by themselves, whatever bytes they begin with."""
    fresh = [_posting(layout, number) for number in (ord("s"), 1, ord("p"))]
    packed = b"".join(_posting(layout, number) for number in (2, 3))
    cells = RowCells(b"".join(fresh), {SET: sets.encode_set(packed, layout)})
    assert posting_rows._parts(KEY, cells, layout) == ([packed, b"".join(fresh)], 4)
    assert posting_rows._parts(KEY, RowCells(b"", {}), layout) == ([], 0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_cell_of_another_width_is_damage(layout: PostingLayout) -> None:
    """The error names the wrong widths: one too long and one too short would be postings together."""
    whole = _posting(layout, 1)
    cells = RowCells(whole, {b"p:" + posting: b"" for posting in (whole + b"x", whole[1:], whole)})
    widths = ", ".join(str(len(whole) + more) for more in (-1, 1))
    with pytest.raises(StoreDamaged, match=rf"{KEY.hex()} .* has {len(whole)} bytes, but some have {widths}\."):
        posting_rows._parts(KEY, cells, layout)


def test_a_set_of_another_layout_is_refused() -> None:
    """Its postings would be read at wrong places."""
    narrow, wide = LAYOUTS
    cells = RowCells(b"", {SET: sets.encode_set(_posting(wide, 1), wide)})
    with pytest.raises(StoreDamaged, match="its codes have 16 bytes"):
        posting_rows._parts(KEY, cells, narrow)
