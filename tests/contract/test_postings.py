"""Postings: found by key, idempotent, capped."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from storage.interface import Store
from storage.postings import POSTING, Row, postings_of
from storage.records import Record
from tests.builders import make_key, make_record
from tests.contract.conftest import Kind, SetClock

KEY = make_key(7)
OTHER_KEY = make_key(7, lane=1)


def raw(row: Row) -> list[bytes]:
    """The row's postings as bytes, sorted: a store promises no order."""
    assert row.postings.dtype == POSTING
    assert row.postings.ndim == 1
    return sorted(posting.tobytes() for posting in row.postings)


def test_postings_are_found_under_each_key_of_their_lane(store: Store) -> None:
    """Lane 0 carries the fingerprint, lane 1 the one-bit minima; reference and arrival are whole."""
    record = make_record(time_ms=2**40 + 3, sequence=2**33 + 5, keys=(KEY, OTHER_KEY))
    store.add([record])
    rows = store.look_up([KEY, OTHER_KEY])
    for row, code in zip(rows, (record.fingerprint, record.one_bits), strict=True):
        (posting,) = row.postings
        assert not row.truncated
        assert int(posting["code"]) == int.from_bytes(code, "big")
        assert posting["reference"].tobytes() == record.reference
        assert (int(posting["time_ms"]), int(posting["sequence"])) == record.arrival[:2]


def test_numpy_can_select_within_a_row(store: Store) -> None:
    """A row is an array that is compared and masked like any other."""
    store.add([make_record(f"a{n}", fingerprint=bytes(7) + bytes([n]), keys=(KEY,)) for n in range(10)])
    (row,) = store.look_up([KEY])
    near = np.bitwise_count(row.postings["code"].astype(np.uint64)) <= 1
    assert sorted(row.postings["code"][near].tolist()) == [0, 1, 2, 4, 8]


def test_rows_come_in_the_order_of_the_keys(store: Store) -> None:
    """One row for each key, empty where nothing is; keys that begin alike are told apart."""
    keys = [make_key(2), make_key(1), make_key(1, number=1), make_key(3), make_key(1) + b"\0", make_key(1)[:2]]
    records = [make_record(f"a{number}", keys=(key,)) for number, key in enumerate(keys)]
    del records[3]
    store.add(records)
    found = store.look_up(keys)
    assert [raw(row) for row in found] == [
        [posting for record in records for k, posting in postings_of(record) if k == key] for key in keys
    ]
    assert not any(row.truncated for row in found)


def test_looking_up_keys_that_are_nowhere_gives_empty_rows(store: Store) -> None:
    """Before, between and after all that is stored, and in an empty store."""
    before, between, after = make_key(0), make_key(8), make_key(9, lane=1)
    assert [len(row.postings) for row in store.look_up([before, after])] == [0, 0]
    store.add([make_record(keys=(KEY, OTHER_KEY))])
    rows = store.look_up([before, KEY, between, after])
    assert [len(row.postings) for row in rows] == [0, 1, 0, 0]
    assert all(row.postings.dtype == POSTING for row in rows)


def test_adding_again_changes_nothing(store: Store) -> None:
    """Neither in a later call nor twice in one."""
    record = make_record()
    store.add([record, record])
    store.add([record])
    assert [len(row.postings) for row in store.look_up(record.keys)] == [1] * len(record.keys)
    assert store.stats().postings == len(record.keys)


def test_removing_takes_just_the_postings_of_the_record(store: Store) -> None:
    """Neighbours in the same rows stay, and removing again is no error; nor is removing what never was."""
    mine, neighbour = (make_record(article_id, keys=(KEY, OTHER_KEY)) for article_id in "ab")
    store.add([mine, neighbour])
    for _ in range(2):
        store.remove([mine, make_record("never", keys=(KEY, make_key(99)))])
        assert [raw(row) for row in store.look_up([KEY, OTHER_KEY])] == [
            [posting] for _, posting in postings_of(neighbour)
        ]


def test_adding_after_a_removal_counts_again(store: Store) -> None:
    """A release brings the postings back."""
    record = make_record()
    store.add([record])
    store.remove([record])
    assert store.stats().rows == 0
    store.add([record])
    assert [raw(row) for row in store.look_up(record.keys)] == [[posting] for _, posting in postings_of(record)]


def test_a_record_without_keys_has_no_postings(store: Store) -> None:
    """An article without keywords is neither found nor a problem."""
    record = make_record(keys=())
    store.add([record])
    store.remove([record])
    assert store.stats().postings == 0


def test_a_row_read_earlier_is_not_changed_by_what_follows(store: Store) -> None:
    """Rows are copies: they outlive the call, and every later one."""
    records = [make_record(f"a{number}", keys=(KEY,)) for number in range(300)]
    store.add(records[:200])
    (row,) = store.look_up([KEY])
    before = raw(row)
    store.remove(records[:100])
    store.add(records[200:])
    assert raw(row) == before == sorted(posting for record in records[:200] for _, posting in postings_of(record))


@pytest.mark.parametrize(("width", "read", "truncated"), [(9, 9, False), (10, 10, False), (11, 10, True)])
def test_a_row_wider_than_the_cap_is_truncated_and_says_so(
    kind: Kind, clock: SetClock, width: int, read: int, *, truncated: bool
) -> None:
    """At the cap all of it is read, above it as many as the cap; other rows of the call are whole."""
    wide = [make_record(f"a{number}", b"%d" % number, keys=(KEY,)) for number in range(width)]
    narrow = make_record("b", keys=(OTHER_KEY,))
    with kind.opened(clock, 10) as store:
        store.add([*wide, narrow])
        row, other = store.look_up([KEY, OTHER_KEY])
        assert (len(row.postings), row.truncated) == (read, truncated)
        assert set(raw(row)) <= {posting for record in wide for _, posting in postings_of(record)}
        assert len(set(raw(row))) == read
        assert (len(other.postings), other.truncated) == (1, False)


def test_rows_of_many_pages_are_whole(store: Store) -> None:
    """Rows that do not fit into one page, or a hundred, come back as they were added."""
    records: list[Record] = [
        make_record(f"a{n}", b"%d" % n, keys=(KEY, make_key(n % 50, number=1))) for n in range(12_000)
    ]
    for start in range(0, len(records), 4_000):
        store.add(records[start : start + 4_000])
    row, part = store.look_up([KEY, make_key(3, number=1)])
    assert raw(row) == sorted(postings_of(record)[0][1] for record in records)
    assert raw(part) == sorted(postings_of(record)[1][1] for record in records[3::50])


@pytest.fixture
def _busy_threads() -> Iterator[None]:
    """Let threads take turns so often that what is not locked breaks."""
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval_s)


@pytest.mark.usefixtures("_busy_threads")
def test_threads_that_add_to_the_same_row_lose_nothing(store: Store) -> None:
    """Six threads write into one row, some of it taken out again, and read it meanwhile."""

    def write(writer: int) -> bool:
        for number in range(60):
            stays, goes = (make_record(f"{writer} {number} {name}", keys=(KEY,)) for name in ("stays", "goes"))
            store.add([stays])
            store.add([goes])
            store.remove([goes])
            (row,) = store.look_up([KEY])
            if postings_of(stays)[0][1] not in raw(row):
                return False
        return True

    with ThreadPoolExecutor(6) as threads:
        assert all(threads.map(write, range(6)))
    (row,) = store.look_up([KEY])
    assert len(set(raw(row))) == len(row.postings) == 360
