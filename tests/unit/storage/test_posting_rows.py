"""From the cells of a row to its postings."""

import pytest

from storage.errors import StoreDamaged
from storage.hbase import posting_cells, posting_rows
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
    cells = RowCells(b"".join(fresh), {SET: posting_cells.encode_set(packed, layout)})
    assert posting_rows._parts(KEY, cells, layout, 5) == ([packed, b"".join(fresh)], 4, False)
    assert posting_rows._parts(KEY, RowCells(b"", {}), layout, 5) == ([], 0, False)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_of_a_row_over_the_cap_the_lowest_are_left(layout: PostingLayout) -> None:
    """A posting that stands in several places counts once; a set is in order, cells may come in any."""
    own = [_posting(layout, number) for number in (9, 8, 2)]
    packed = [_posting(layout, number) for number in (2, 3, 4, 8)]
    cells = RowCells(b"".join(own), {SET: posting_cells.encode_set(b"".join(packed), layout)})
    ordered = sorted({*own, *packed})
    assert posting_rows._parts(KEY, cells, layout, 5) == ([b"".join(ordered)], 4, False)
    assert posting_rows._parts(KEY, cells, layout, 4) == ([b"".join(ordered[:4])], 4, True)
    assert posting_rows._parts(KEY, cells, layout, 2) == ([b"".join(ordered[:2])], 4, True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_cell_of_another_width_is_damage(layout: PostingLayout) -> None:
    """The error names the wrong widths: one too long and one too short would be postings together."""
    whole = _posting(layout, 1)
    cells = RowCells(whole, {b"p:" + posting: b"" for posting in (whole + b"x", whole[1:], whole)})
    widths = ", ".join(str(len(whole) + more) for more in (-1, 1))
    with pytest.raises(StoreDamaged, match=rf"{KEY.hex()} .* has {len(whole)} bytes, but some have {widths}\."):
        posting_rows._parts(KEY, cells, layout, 5)


def test_a_set_of_another_layout_is_refused() -> None:
    """Its postings would be read at wrong places."""
    narrow, wide = LAYOUTS
    cells = RowCells(b"", {SET: posting_cells.encode_set(_posting(wide, 1), wide)})
    with pytest.raises(StoreDamaged, match="its codes have 16 bytes"):
        posting_rows._parts(KEY, cells, narrow, 5)
