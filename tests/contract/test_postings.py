"""Postings: found by key, idempotent, capped."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from storage.errors import StoreRefused
from storage.interface import Store
from storage.postings import KeyedCode, PostingRow, postings_of, truncated_to
from storage.records import Record
from tests.builders import make_key, make_record
from tests.contract.conftest import Kind, Make, SetClock

KEY = make_key(7)
OTHER_KEY = make_key(7, lane=1)


def raw(row: PostingRow) -> list[bytes]:
    """Return the row's postings as sorted bytes, because a store promises no order."""
    assert row.postings.dtype == row.layout.dtype
    assert row.postings.ndim == 1
    assert row.postings.tobytes() == row.packed
    return sorted(posting.tobytes() for posting in row.postings)


def test_postings_are_found_under_each_key_of_their_lane(store: Store, make: Make) -> None:
    """Lane 0 has the fingerprint, lane 1 the widened one-bit minima; reference and arrival are complete."""
    record = make(time_ms=2**40 + 3, sequence=2**33 + 5, keys=(KEY, OTHER_KEY))
    store.add([record])
    rows = store.look_up([KEY, OTHER_KEY])
    zeros = bytes(len(record.fingerprint) - 8)
    for row, code in zip(rows, (record.fingerprint, zeros + record.one_bits), strict=True):
        (posting,) = row.postings
        assert not row.truncated
        assert row.postings["code"].tobytes() == code
        assert posting["reference"].tobytes() == record.reference
        assert (int(posting["time_ms"]), int(posting["sequence"])) == record.arrival[:2]


def test_distances_are_counted_over_all_bits_of_a_row(store: Store, make: Make) -> None:
    """Distances are in the order of the row's postings, in both lanes; bits at both ends of the code count."""
    width = len(make().fingerprint)
    codes = [bytes([n]) + bytes(width - 2) + bytes([n]) for n in range(10)]
    store.add([make(f"a{n}", fingerprint=code, keys=(KEY,)) for n, code in enumerate(codes)])
    (row,) = store.look_up([KEY])
    numbers = [posting.tobytes()[0] for posting in row.postings]
    assert sorted(numbers) == list(range(10))
    assert row.layout.distances(row.packed, bytes(width)).tolist() == [2 * number.bit_count() for number in numbers]
    # One-bit minima are compared with the last 64 bits, as they are stored.
    ones_in_code = [number.bit_count() * (2 if width == 8 else 1) for number in numbers]
    against_ones = row.layout.distances(row.packed, b"\xff" * 8).tolist()
    first_half = [0 if width == 8 else number.bit_count() for number in numbers]
    assert against_ones == [64 - ones + half for ones, half in zip(ones_in_code, first_half, strict=True)]


def test_postings_of_another_width_are_refused(store: Store, make: Make) -> None:
    """The first posting decides; the error names both widths, nothing is written, and reads still work."""
    first = make("first")
    other = make_record("other", code_bytes=24 - len(first.fingerprint))
    store.add([make_record("without keys", keys=(), code_bytes=24 - len(first.fingerprint))])
    store.add([first])
    ours, theirs = 8 * len(first.fingerprint), 8 * len(other.fingerprint)
    for records in ([other], [make("second"), other]):
        with pytest.raises(StoreRefused, match=f"holds fingerprints of {ours} bits and cannot take one of {theirs}"):
            store.add(records)
    store.remove([other])
    assert store.stats().postings == len(first.keys)
    assert [raw(row) for row in store.look_up(first.keys)] == [[posting] for _, posting in postings_of(first)]


def test_one_call_cannot_mix_widths(store: Store) -> None:
    """Not even the first posting of the call is written."""
    with pytest.raises(StoreRefused, match="Use a separate store for another scheme"):
        store.add([make_record("a"), make_record("b", code_bytes=16)])
    assert store.stats().postings == 0
    store.add([make_record("b", code_bytes=16)])


def test_rows_come_in_the_order_of_the_keys(store: Store, make: Make) -> None:
    """There is a row for each key, which may be empty; keys with a common prefix are distinct."""
    keys = [make_key(2), make_key(1), make_key(1, number=1), make_key(3), make_key(1) + b"\0", make_key(1)[:2]]
    records = [make(f"a{number}", keys=(key,)) for number, key in enumerate(keys)]
    del records[3]
    store.add(records)
    found = store.look_up(keys)
    assert [raw(row) for row in found] == [
        [posting for record in records for k, posting in postings_of(record) if k == key] for key in keys
    ]
    assert not any(row.truncated for row in found)


@pytest.mark.parametrize("rows_bytes", [0, 1, 3, 40])
def test_a_look_up_ends_when_it_has_enough(store: Store, make: Make, rows_bytes: int) -> None:
    """It returns the rows of the first keys, at least one; those that are over the limit are the last ones."""
    keys = [make_key(number) for number in range(40)]
    records = [make(f"a{number}", keys=(key,)) for number, key in enumerate(keys)]
    store.add(records)
    whole = store.look_up(keys)
    posting_bytes = len(whole[0].packed)
    bytes_max = rows_bytes * posting_bytes
    rows = store.look_up(keys, bytes_max)
    assert [raw(row) for row in rows] == [raw(row) for row in whole[: len(rows)]]
    # A store may read some rows together, so how far it is over the limit is its own affair.
    assert min(rows_bytes + 1, len(keys)) <= len(rows) <= len(keys)
    assert store.look_up([], bytes_max) == []


def test_looking_up_keys_that_are_nowhere_gives_empty_rows(store: Store, make: Make) -> None:
    """Keys before, between and after all stored ones have empty rows, also in an empty store."""
    before, between, after = make_key(0), make_key(8), make_key(9, lane=1)
    assert [len(row.postings) for row in store.look_up([before, after])] == [0, 0]
    store.add([make(keys=(KEY, OTHER_KEY))])
    rows = store.look_up([before, KEY, between, after])
    assert [len(row.postings) for row in rows] == [0, 1, 0, 0]
    assert [raw(row) for row in rows if not row.packed] == [[]] * 3


def test_adding_again_changes_nothing(store: Store, make: Make) -> None:
    """Neither in a later call nor twice in the same call."""
    record = make()
    store.add([record, record])
    store.add([record])
    assert [len(row.postings) for row in store.look_up(record.keys)] == [1] * len(record.keys)
    assert store.stats().postings == len(record.keys)


def test_removing_takes_just_the_postings_of_the_record(store: Store, make: Make) -> None:
    """Other postings of the rows stay; removing again, or removing what was never stored, is not an error."""
    mine, neighbour = (make(article_id, keys=(KEY, OTHER_KEY)) for article_id in "ab")
    store.add([mine, neighbour])
    for _ in range(2):
        store.remove([mine, make("never", keys=(KEY, make_key(99)))])
        assert [raw(row) for row in store.look_up([KEY, OTHER_KEY])] == [
            [posting] for _, posting in postings_of(neighbour)
        ]


def test_adding_after_a_removal_counts_again(store: Store, make: Make) -> None:
    """A release adds the postings again."""
    record = make()
    store.add([record])
    store.remove([record])
    assert store.stats().rows == 0
    store.add([record])
    assert [raw(row) for row in store.look_up(record.keys)] == [[posting] for _, posting in postings_of(record)]


def test_a_record_without_keys_has_no_postings(store: Store, make: Make) -> None:
    """An article without keywords is not found, and not an error."""
    record = make(keys=())
    store.add([record])
    store.remove([record])
    assert store.stats().postings == 0


def test_a_row_read_earlier_is_not_changed_by_what_follows(store: Store, make: Make) -> None:
    """Rows are copies, which stay valid after later calls."""
    records = [make(f"a{number}", keys=(KEY,)) for number in range(300)]
    store.add(records[:200])
    (row,) = store.look_up([KEY])
    before = raw(row)
    store.remove(records[:100])
    store.add(records[200:])
    assert raw(row) == before == sorted(posting for record in records[:200] for _, posting in postings_of(record))


@pytest.mark.parametrize(("width", "read", "truncated"), [(9, 9, False), (10, 10, False), (11, 10, True)])
def test_a_row_wider_than_the_cap_is_truncated_and_says_so(
    kind: Kind, clock: SetClock, make: Make, width: int, read: int, *, truncated: bool
) -> None:
    """Up to the cap a row is read in full, above it up to the cap; other rows of the call are whole."""
    wide = [make(f"a{number}", b"%d" % number, keys=(KEY,)) for number in range(width)]
    narrow = make("b", keys=(OTHER_KEY,))
    with kind.opened(clock, 10) as store:
        store.add([*wide, narrow])
        row, other = store.look_up([KEY, OTHER_KEY])
        assert (len(row.postings), row.truncated) == (read, truncated)
        assert set(raw(row)) <= {posting for record in wide for _, posting in postings_of(record)}
        assert len(set(raw(row))) == read
        assert (len(other.postings), other.truncated) == (1, False)


def test_of_a_row_over_the_cap_a_fixed_part_is_read(kind: Kind, clock: SetClock, make: Make) -> None:
    """With any row and cap the lowest codes are read, so that the result depends only on the row."""
    wide = [make(f"a{number}", b"%d" % number, keys=(KEY,)) for number in range(1_300)]
    postings = sorted(posting for record in wide for _, posting in postings_of(record))
    with kind.opened(clock, 1_200) as store:
        store.add(wide[:1_200])
        (row,) = store.look_up([KEY])
        assert (len(row.postings), row.truncated) == (1_200, False)
        store.add(wide[1_200:])
        (row,) = store.look_up([KEY])
        assert row.truncated
        assert raw(row) == postings[: truncated_to(1_200)]


def test_a_code_is_found_in_a_row_of_any_width(kind: Kind, clock: SetClock, make: Make) -> None:
    """All postings with this code, in either lane, whether or not the row is over the cap."""
    width = len(make().fingerprint)
    codes = [bytes(width), bytes(width - 1) + b"\1", b"'" * width, b"\xff" * width]
    minima = [bytes(8), b"'" * 8, b"\xff" * 8]
    records = [
        make(f"{number} {code.hex()}", fingerprint=code, one_bits=minima[number % 3], keys=(KEY, OTHER_KEY))
        for code in codes
        for number in range(7)
    ]
    with kind.opened(clock, 10) as store:
        assert store.seek([KeyedCode(KEY, codes[0])], 9) == [PostingRow(b"", truncated=False)]
        store.add(records)
        store.add([make("narrow", fingerprint=codes[2], keys=(make_key(8),))])
        places = [KeyedCode(KEY, code) for code in codes]
        places += [KeyedCode(OTHER_KEY, bytes(width - 8) + ones) for ones in minima]
        places += [KeyedCode(make_key(8), codes[2]), KeyedCode(KEY, b"\x80" * width), KeyedCode(make_key(99), codes[0])]
        for postings_max, cut in ((16, False), (12, False), (6, True)):
            rows = store.seek(places, postings_max)
            assert [len(row.postings) for row in rows[:4]] == [min(7, postings_max)] * 4
            assert [len(row.postings) for row in rows[4:]] == [min(n, postings_max) for n in (12, 8, 8, 1, 0, 0)]
            assert [row.truncated for row in rows] == [cut] * 7 + [False] * 3
            for place, row in zip(places, rows, strict=True):
                assert {posting[:width] for posting in raw(row)} <= {place.code}
                assert len(set(raw(row))) == len(row.postings)


def test_rows_of_many_pages_are_whole(store: Store, make: Make) -> None:
    """Rows of many pages are read as they were added."""
    records: list[Record] = [make(f"a{n}", b"%d" % n, keys=(KEY, make_key(n % 50, number=1))) for n in range(12_000)]
    for start in range(0, len(records), 4_000):
        store.add(records[start : start + 4_000])
    row, part = store.look_up([KEY, make_key(3, number=1)])
    assert raw(row) == sorted(postings_of(record)[0][1] for record in records)
    assert raw(part) == sorted(postings_of(record)[1][1] for record in records[3::50])


@pytest.fixture
def _busy_threads() -> Iterator[None]:
    """Switch threads so often that missing locks show."""
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval_s)


@pytest.mark.usefixtures("_busy_threads")
def test_threads_that_add_to_the_same_row_lose_nothing(kind: Kind, store: Store, make: Make) -> None:
    """Six threads add to one row, remove some of it again, and read it meanwhile."""

    def write(writer: int) -> bool:
        for number in range(kind.rounds):
            stays, goes = (make(f"{writer} {number} {name}", keys=(KEY,)) for name in ("stays", "goes"))
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
    assert len(set(raw(row))) == len(row.postings) == 6 * kind.rounds
