"""Posting sets: packed and unpacked, each posting once and in order, no damage unnoticed."""

import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as some

from storage.hbase import posting_cells
from storage.hbase.posting_cells import DamagedSetError, SetName
from storage.postings import POSTING_LAYOUTS, PostingLayout

LAYOUTS = some.sampled_from(sorted(POSTING_LAYOUTS.values(), key=lambda layout: layout.code_bytes))
POSTINGS = LAYOUTS.flatmap(
    lambda layout: some.tuples(
        some.just(layout),
        some.lists(some.binary(min_size=layout.posting_bytes, max_size=layout.posting_bytes), max_size=20),
    )
)
LAYOUT = POSTING_LAYOUTS[8]
VALUE = posting_cells.encode_set(b"".join(bytes([n % 7]) * LAYOUT.posting_bytes for n in range(40)), LAYOUT)


@given(POSTINGS)
def test_what_was_packed_comes_back_once_and_in_order(case: tuple[object, list[bytes]]) -> None:
    """Whatever bytes the postings have, zeros at their ends too."""
    layout, postings = case
    assert layout in POSTING_LAYOUTS.values()
    value = posting_cells.encode_set(b"".join([*postings, *postings[:3]]), layout)  # type: ignore[arg-type]  # as asserted
    expected = sorted(set(postings))
    assert posting_cells.decode_set(value) == (b"".join(expected), layout)
    assert posting_cells.set_count(value) == len(expected)


@given(POSTINGS, some.lists(some.lists(some.integers(0, 20), max_size=3), max_size=3))
def test_joined_once(case: tuple[PostingLayout, list[bytes]], rows: list[list[int]]) -> None:
    """What stands in several sets of a row comes once, whatever else there is there and in other rows; nothing goes."""
    layout, postings = case
    cut = [[sorted(set(postings[: place + 1])) for place in [*cuts, len(postings)]] for cuts in rows]
    joined = posting_cells.join_parts([[b"".join(part) for part in parts] for parts in cut], layout)
    width = layout.posting_bytes
    found = [sorted(row[place : place + width] for place in range(0, len(row), width)) for row in joined]
    assert found == [sorted(set(postings))] * len(rows)


@pytest.mark.parametrize("layout", POSTING_LAYOUTS.values())
def test_only_what_stands_in_one_row_twice_is_looked_at_again(layout: PostingLayout) -> None:
    """Not what stands in several rows, nor versions of an id, nor one text under many ids."""
    code, arrival = bytes(layout.code_bytes), bytes(16)
    ids, digests = ([bytes([kind * n]) * 16 for n in range(1, 5)] for kind in (1, 16))
    postings = [code + ids[0] + digest + arrival for digest in digests]
    postings += [code + id_hash + digests[0] + arrival for id_hash in ids]
    row = b"".join(dict.fromkeys(postings))
    assert not posting_cells._may_repeat([row, row, row], layout)
    assert posting_cells._may_repeat([row, row + postings[2]], layout)


@pytest.mark.parametrize("place", range(0, len(VALUE), 3))
def test_a_changed_byte_is_noticed_wherever_it_is(place: int) -> None:
    """In the head as in what was packed."""
    damaged = VALUE[:place] + bytes([VALUE[place] ^ 0x10]) + VALUE[place + 1 :]
    with pytest.raises(DamagedSetError):
        posting_cells.decode_set(damaged)


@pytest.mark.parametrize("length", [0, 5, 13, 14, len(VALUE) - 1])
def test_a_set_that_was_cut_off_is_noticed(length: int) -> None:
    """Wherever it ends."""
    with pytest.raises(DamagedSetError):
        posting_cells.decode_set(VALUE[:length])


def test_a_set_has_a_limit() -> None:
    """More postings than that are for several sets."""
    with pytest.raises(ValueError, match="at most 100000 postings, not 100001"):
        posting_cells.encode_set(b"".join(n.to_bytes(56) for n in range(100_001)), LAYOUT)


def test_names_sort_by_bucket_and_then_by_time() -> None:
    """A name is decoded from its qualifier; another width is refused."""
    names = [SetName(2, 1, b"00000000"), SetName(1, 300, b"zzzzzzzz"), SetName(1, 2**40, bytes(8))]
    assert sorted(names, key=SetName.qualifier) == sorted(names)
    assert [posting_cells.set_name(name.qualifier()) for name in names] == names
    with pytest.raises(DamagedSetError, match="24 bytes, not 3"):
        posting_cells.set_name(b"abc")


def test_rows_are_joined_without_a_second_copy_of_all() -> None:
    """A look-up has megabytes of rows: beside what is returned, only a run of them is copied to look for repeats."""
    width = POSTING_LAYOUTS[8].posting_bytes
    chance = random.Random(3)
    rows = [[chance.randbytes(4_000 * width), chance.randbytes(width)] for _ in range(80)]
    rows[40][1] = rows[40][0][:width]
    size_bytes = sum(len(part) for parts in rows for part in parts)
    tracemalloc.start()
    found = posting_cells.join_parts(rows, POSTING_LAYOUTS[8])
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [len(row) // width for row in found] == [4_001] * 40 + [4_000] + [4_001] * 39
    assert peak_bytes < 1.6 * size_bytes
