"""Packing on a real HBase: what is found before, between and after its steps, and what a kill leaves."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any

import pytest

from storage.errors import StoreDamaged, StoreRefused
from storage.hbase import HbaseOptions, packing, parse_place, posting_cells
from storage.hbase.calls import Calls
from storage.hbase.connection import CellChange
from storage.hbase.packing import PackOptions
from storage.hbase.posting_cells import SetName
from storage.hbase.store import HbaseStore
from storage.postings import POSTING_LAYOUTS, postings_of
from tests.hbase import packed_rows
from tests.hbase.packed_rows import BUCKET_MS, KEYS, pack, records, unpack, wait_until_old, wanted

pytestmark = pytest.mark.servers

LAYOUT = POSTING_LAYOUTS[8]
DAY_MS = 86_400_000
SLOW_BUCKET_MS = 400
"""Longer than it takes to add some postings, so that most of them belong together."""


class Killed(BaseException):
    """The end of a packer, at any point."""


@pytest.fixture
def store(hbase_address: str, hbase_namespace: str) -> Iterator[HbaseStore]:
    """An empty store."""
    opened = packed_rows.opened(f"hbase://{hbase_address}/{hbase_namespace}")
    try:
        yield opened
    finally:
        opened.close()


Act = Callable[[int], None]


@pytest.fixture
def before_change(monkeypatch: pytest.MonkeyPatch) -> Callable[[Act], None]:
    """Have something done before each change of the table of postings by a packer; it gets the change's number."""

    def watch(act: Act) -> None:
        numbers = count()
        change = packing.Packer._change

        def watched(packer: packing.Packer, changes: Iterable[CellChange], until_ms: int | None = None) -> None:
            act(next(numbers))
            change(packer, changes, until_ms)

        monkeypatch.setattr(packing.Packer, "_change", watched)

    return watch


def posting_set(key: bytes, name: SetName, number: int, size: int = 3) -> tuple[CellChange, set[bytes]]:
    """A set of postings of a few records, as another packer would have left it, and what is in it."""
    postings = {
        posting for record in records(size, number * size) for row, posting in postings_of(record) if row == key
    }
    value = posting_cells.encode_set(b"".join(postings), LAYOUT)
    return CellChange(key, b"s:" + name.qualifier(), value), postings


def test_packed_and_unpacked(store: HbaseStore) -> None:
    """The same is found before packing, after it, after unpacking and after packing that, without a compaction."""
    live = records(300)
    store.add(live)
    wait_until_old()
    tally = pack(store)
    assert tally.postings == 300 * len(KEYS)
    assert tally.rows == len(KEYS)
    assert tally.bytes_after < tally.bytes_before
    assert packed_rows.family(store, b"p:") == []
    assert packed_rows.found(store) == wanted(live)
    assert unpack(store) == 300 * len(KEYS)
    assert packed_rows.family(store, b"s:") == []
    assert packed_rows.found(store) == wanted(live)
    wait_until_old()
    assert pack(store).postings == 300 * len(KEYS)
    assert packed_rows.found(store) == wanted(live)


def test_young_and_few_stay(store: HbaseStore) -> None:
    """What is younger than the cut stays fresh, and so do too few of a row; a second run has nothing to do."""
    store.add(records(7))
    wait_until_old()
    assert pack(store, row_postings_min=8).written == 0
    assert pack(store).written > 0
    store.add(records(100, first=100))
    with pytest.raises(StoreRefused, match=r"buckets of 0\.05 seconds"):
        pack(store, bucket_ms=DAY_MS)
    unpack(store)
    assert pack(store, bucket_ms=DAY_MS).written == 0
    assert len(packed_rows.family(store, b"p:")) == 107 * len(KEYS)


def test_content_comes_back(store: HbaseStore) -> None:
    """Content A, then B, then A again under one id, with packing in between: A is found, and so is B."""
    first, second = records(2)
    store.add([first])
    wait_until_old()
    pack(store)
    store.add([second])
    store.remove([first])
    wait_until_old()
    pack(store)
    store.add([first])
    assert packed_rows.found(store) == wanted([first, second])
    unpack(store)
    store.remove([first])
    assert packed_rows.found(store) == wanted([second])
    store.add([first])
    assert packed_rows.found(store) == wanted([first, second])
    wait_until_old()
    pack(store)
    assert packed_rows.found(store) == wanted([first, second])


def test_removed_and_added_between(store: HbaseStore, before_change: Callable[[Act], None]) -> None:
    """A posting that was removed and added again after the packer had read it stays fresh."""
    live = records(20)
    store.add(live)
    wait_until_old()

    def act(number: int) -> None:
        if number == 1:
            store.remove(live[:1])
            store.add(live[:1])

    before_change(act)
    pack(store)
    fresh = {column[2:] for _, column in packed_rows.family(store, b"p:")}
    assert fresh == wanted(live[:1])[KEYS[0]]
    assert packed_rows.found(store) == wanted(live)


@pytest.mark.parametrize("steps", range(3))
def test_killed_at_each_step(store: HbaseStore, before_change: Callable[[Act], None], steps: int) -> None:
    """A packer that ends before any of its three changes leaves everything to be found once, and the next mends it."""
    live = records(50)
    store.add(live)
    wait_until_old(SLOW_BUCKET_MS)

    def act(number: int) -> None:
        assert packed_rows.found(store) == wanted(live)
        if number == steps:
            raise Killed

    before_change(act)
    with pytest.raises(Killed):
        pack(store, bucket_ms=SLOW_BUCKET_MS)
    assert packed_rows.found(store) == wanted(live)
    pack(store, bucket_ms=SLOW_BUCKET_MS)
    pack(store, bucket_ms=SLOW_BUCKET_MS)
    assert packed_rows.found(store) == wanted(live)
    assert packed_rows.family(store, b"p:") == []
    buckets = [(row, column[:10]) for row, column in packed_rows.family(store, b"s:")]
    assert len(set(buckets)) == len(buckets)


@pytest.mark.parametrize("steps", range(2))
def test_killed_while_unpacking(store: HbaseStore, before_change: Callable[[Act], None], steps: int) -> None:
    """Unpacking that is interrupted before any of its changes leaves every posting readable once, and resumes."""
    live = records(50)
    store.add(live)
    wait_until_old()
    pack(store)

    def act(number: int) -> None:
        assert packed_rows.found(store) == wanted(live)
        if number == steps:
            raise Killed

    before_change(act)
    with pytest.raises(Killed):
        unpack(store)
    assert packed_rows.found(store) == wanted(live)
    unpack(store)
    assert packed_rows.found(store) == wanted(live)
    assert packed_rows.family(store, b"s:") == []


@pytest.mark.parametrize("steps", range(3))
def test_two_packers(store: HbaseStore, before_change: Callable[[Act], None], steps: int) -> None:
    """A packer that does all of its work within a step of another one: nothing is lost, nothing comes twice."""
    live = records(60)
    store.add(live[:40])
    wait_until_old(SLOW_BUCKET_MS)
    pack(store, bucket_ms=SLOW_BUCKET_MS)
    store.add(live[40:])
    wait_until_old(SLOW_BUCKET_MS)

    def act(number: int) -> None:
        if number == steps:
            pack(store, bucket_ms=SLOW_BUCKET_MS)
        assert packed_rows.found(store) == wanted(live)

    before_change(act)
    pack(store, bucket_ms=SLOW_BUCKET_MS)
    pack(store, bucket_ms=SLOW_BUCKET_MS)
    assert packed_rows.found(store) == wanted(live)
    assert packed_rows.family(store, b"p:") == []


def test_sets_of_a_bucket_are_merged(store: HbaseStore) -> None:
    """Several sets of one bucket become one behind them, those of other buckets stay as they are."""
    store.add(records(1, first=1000, keys=KEYS[1:2]))
    key = KEYS[0]
    now_ms = packed_rows.written_ms(store, KEYS[1])
    bucket_ms = (now_ms // DAY_MS - 3) * DAY_MS
    names = [SetName(bucket_ms, now_ms + DAY_MS + number, bytes(8)) for number in range(3)]
    other = SetName(bucket_ms - DAY_MS, now_ms, bytes(8))
    sets = [posting_set(key, name, number) for number, name in enumerate([*names, other])]
    packed_rows.put(store, [change for change, _ in sets])
    everything = set().union(*(postings for _, postings in sets))
    tally = pack(store, bucket_ms=DAY_MS)
    assert (tally.merged, tally.written) == (3, 1)
    qualifiers = sorted(column[2:] for _, column in packed_rows.family(store, b"s:"))
    assert qualifiers[0] == other.qualifier()
    assert len(qualifiers) == 2
    assert qualifiers[1] > max(name.qualifier() for name in names)
    assert packed_rows.found(store, [key])[key] == everything
    assert pack(store, bucket_ms=DAY_MS).written == 0


def test_expired_buckets_go(store: HbaseStore) -> None:
    """A set goes when its bucket ended longer ago than cells live, however late it was packed; younger ones stay."""
    store.add(records(1, first=1000, keys=KEYS[1:2]))
    now_ms = packed_rows.written_ms(store, KEYS[1])
    today_ms = now_ms - now_ms % DAY_MS
    old, young = (SetName(today_ms - days * DAY_MS, now_ms, bytes(8)) for days in (367, 364))
    packed_rows.put(store, [posting_set(KEYS[0], name, 0)[0] for name in (old, young)])
    assert pack(store, bucket_ms=DAY_MS).expired == 1
    assert packed_rows.family(store, b"s:") == [(KEYS[0], b"s:" + young.qualifier())]


@pytest.mark.parametrize("age_days", [400, 3])
def test_damaged_set_stops(store: HbaseStore, age_days: int) -> None:
    """A damaged set ends the run with its row and qualifier, and is not dropped, not even when it has expired."""
    store.add(records(1))
    now_ms = packed_rows.written_ms(store, KEYS[1])
    name = SetName((now_ms // DAY_MS - age_days) * DAY_MS, now_ms, bytes(8))
    change, _ = posting_set(KEYS[0], name, 0)
    assert change.value is not None
    packed_rows.put(store, [change._replace(value=change.value[:-1] + b"?")])
    for run in (lambda: pack(store, bucket_ms=DAY_MS), lambda: unpack(store)):
        with pytest.raises(StoreDamaged, match=f"{name.qualifier().hex()} in the row {KEYS[0].hex()} .* damaged"):
            run()
    assert packed_rows.family(store, b"s:") == [(KEYS[0], change.column)]


def test_wide_rows(store: HbaseStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of more than fits into memory is packed part by part into sets of the size allowed, and unpacked again."""
    for module, name, value in (
        (packing, "ROW_CELLS_MAX", 60),
        (packing, "PAGE_CELLS", 40),
        (packing, "_PIECE_CELLS", 16),
        (packing, "UNPACK_BYTES", 2_000),
        (posting_cells, "SET_POSTINGS_MAX", 100),
    ):
        monkeypatch.setattr(module, name, value)
    live = records(500) + records(30, first=1000, keys=[bytes([7, 0, 0])])
    store.add(live)
    wait_until_old(SLOW_BUCKET_MS)
    keys = [*KEYS, bytes([7, 0, 0])]
    tally = pack(store, bucket_ms=SLOW_BUCKET_MS)
    assert tally.rows == len(keys)
    assert packed_rows.family(store, b"p:") == []
    assert packed_rows.found(store, keys) == wanted(live)
    sets = [
        (row, column[:10], posting_cells.set_count(cell.value))
        for row, columns in packed_rows.cells(store).items()
        for column, cell in columns.items()
    ]
    assert max(size for _, _, size in sets) <= 100
    # A busy machine writes them in several buckets, each of which ends with a smaller set.
    buckets = {(row, bucket) for row, bucket, _ in sets}
    assert len(sets) < 4 * 500 / 60 + 8 + len(buckets)
    unpack(store)
    assert packed_rows.found(store, keys) == wanted(live)
    assert packed_rows.family(store, b"s:") == []


def test_gone_on_with(store: HbaseStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was stopped is gone on with where it was, if it has the same cut; another begins at the first row."""
    monkeypatch.setattr(packing, "PAGE_CELLS", 1)
    store.add(records(10))
    wait_until_old()
    before_ms = 100 + packed_rows.written_ms(store, KEYS[0])
    options = PackOptions(before_ms, BUCKET_MS, 1)
    started = store.packer().pack(options)
    done = [next(started), next(started)]
    assert done[-1].row == KEYS[2]
    rest = list(store.packer().pack(options))
    assert rest[-1].tally.rows == len(KEYS) - 2
    assert list(store.packer().pack(options))[-1].tally.rows == len(KEYS)
    stopped = store.packer().pack(options)
    next(stopped)
    later = PackOptions(before_ms + 2 * BUCKET_MS, BUCKET_MS, 1)
    assert list(store.packer().pack(later))[-1].tally.rows == len(KEYS)


def test_reading_only(hbase_address: str, hbase_namespace: str) -> None:
    """A store that was opened for reading only is not packed."""
    place = parse_place(f"hbase://{hbase_address}/{hbase_namespace}")
    store = HbaseStore.open(place, HbaseOptions(readonly=True))
    with pytest.raises(StoreRefused, match="reading only"):
        store.packer()
    store.close()


@pytest.fixture
def reader(hbase_address: str, hbase_namespace: str, store: HbaseStore) -> Iterator[HbaseStore]:
    """A store of another process, which has looked up before anything was packed."""
    opened = packed_rows.opened(f"hbase://{hbase_address}/{hbase_namespace}")
    try:
        store.add(records(1, first=1_000))
        opened.look_up(KEYS)
        yield opened
    finally:
        opened.close()


def asked_families(store: HbaseStore, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note how many families each request for rows asks for."""
    asked: list[int] = []
    row_cells = Calls.row_cells

    def noted(calls: Calls, table: bytes, rows: Sequence[bytes], families: Sequence[bytes], *rest: Any) -> Any:  # noqa: ANN401
        asked.append(len(families))
        return row_cells(calls, table, rows, families, *rest)

    monkeypatch.setattr(Calls, "row_cells", noted)
    store.look_up(KEYS)
    return asked


def test_sets_are_not_read_before_anything_is_packed(
    store: HbaseStore, reader: HbaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then they are read together with the cells, once more for the look-up that found it out."""
    live = [*records(20), *records(1, first=1_000)]
    store.add(live)
    with monkeypatch.context() as patch:
        assert asked_families(reader, patch) == [1]
    wait_until_old()
    pack(store)
    with monkeypatch.context() as patch:
        assert asked_families(reader, patch) == [1, 2]
    with monkeypatch.context() as patch:
        assert asked_families(reader, patch) == [2]
    assert packed_rows.found(reader) == wanted(live)


@pytest.mark.parametrize("steps", range(3))
def test_a_packer_between_two_steps_of_a_reader(
    store: HbaseStore, reader: HbaseStore, before_change: Callable[[Act], None], steps: int
) -> None:
    """A reader that knows of no packer finds everything before each change of the first one, and after the last."""
    live = [*records(20), *records(1, first=1_000)]
    store.add(live)
    wait_until_old()

    def act(number: int) -> None:
        if number == steps:
            assert packed_rows.found(reader) == wanted(live)

    before_change(act)
    pack(store)
    assert packed_rows.found(reader) == wanted(live)


@pytest.mark.parametrize("moment", ["before the rows are read", "after they were read"])
def test_a_packer_within_a_look_up(
    store: HbaseStore, reader: HbaseStore, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole run of the first packer may come before or after the rows of a look-up are read."""
    live = [*records(20), *records(1, first=1_000)]
    store.add(live)
    wait_until_old()
    row_cells = Calls.row_cells
    runs = count()

    def beside(calls: Calls, *asked: Any) -> Any:  # noqa: ANN401
        is_first = next(runs) == 0
        if is_first and moment == "before the rows are read":
            pack(store)
        answer = row_cells(calls, *asked)
        if is_first and moment == "after they were read":
            pack(store)
        return answer

    monkeypatch.setattr(Calls, "row_cells", beside)
    assert packed_rows.found(reader) == wanted(live)


def test_a_store_that_was_unpacked_may_be_packed_again(
    store: HbaseStore, hbase_address: str, hbase_namespace: str
) -> None:
    """A reader that was opened in between expects sets."""
    live = records(20)
    store.add(live)
    wait_until_old()
    pack(store)
    unpack(store)
    late = packed_rows.opened(f"hbase://{hbase_address}/{hbase_namespace}")
    try:
        assert packed_rows.found(late) == wanted(live)
        wait_until_old()
        pack(store)
        assert packed_rows.found(late) == wanted(live)
    finally:
        late.close()
