"""Sets are turned back a portion at a time, so that memory is bounded however much was packed."""

from types import SimpleNamespace

from storage.hbase.packing import UNPACK_BYTES, _take_sets


def test_a_portion_ends_with_the_row_that_fills_it() -> None:
    """The next one begins at that row, which may have more sets; the last one says that nothing is left."""
    cells = [SimpleNamespace(value=bytes(UNPACK_BYTES // 2 + 1)) for _ in range(3)]
    found = [(b"row %d" % number, {b"p:set": cell}) for number, cell in enumerate(cells)]
    portion, left = _take_sets(iter(found))
    assert (list(portion), left) == ([b"row 0", b"row 1"], b"row 1")
    portion, left = _take_sets(iter(found[2:]))
    assert (list(portion), left) == ([b"row 2"], None)
