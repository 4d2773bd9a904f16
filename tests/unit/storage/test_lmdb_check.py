"""Checking a whole store: whatever page or entry is damaged is found, also one that no reader comes across."""

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import lmdb
import pytest

from storage.errors import StoreDamaged, StoreRefused
from storage.lmdb import LmdbStore, data_file, environment
from storage.lmdb.data_file import _free_pages, _newest_meta
from storage.lmdb.layout import is_place
from storage.lmdb.page_check import check_pages
from storage.seen import SeenChange, SeenTimes
from tests.builders import make_key, make_tombstone, make_version
from tests.examples import drawn
from tests.unit.storage.processes import SMALL
from tests.unit.storage.test_lmdb_damage import PAGE_BYTES


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with trees of several levels, rows of many postings, long values and free pages."""
    path = tmp_path_factory.mktemp("whole") / "store"
    chance = random.Random("check")
    versions = [
        make_version(
            f"a{number}",
            b"%d" % number,
            body=chance.randbytes(200 if number % 20 else 6_000).hex(),
            time_ms=number,
            keys=(make_key(number), make_key(number % 3 + 1_000), make_key(number % 30 + 2_000, lane=1)),
        )
        for number in range(300)
    ]
    store = LmdbStore.open(path, SMALL)
    for start in range(0, 300, 50):
        some = versions[start : start + 50]
        store.create(some)
        store.add([version.record for version in some])
        store.settle([(version.record.reference, b"verdict") for version in some])
        store.retract([make_tombstone(f"a{start}", sequence=9, time_ms=start)])
        store.change_seen([SeenChange(chance.randbytes(16), None, SeenTimes(1, 2, 3, 4)) for _ in range(40)])
    store.agree(b"{}")
    store.remove([version.record for version in versions[:20]])
    store.check()
    store.close()
    return path


def checked(path: Path) -> None:
    """Check a store."""
    store = LmdbStore.open(path, SMALL)
    try:
        store.check()
    finally:
        store.close()


def free_pages(path: Path) -> set[int]:
    """The pages that are not in use."""
    with (path / data_file.DATA_FILE).open("rb", buffering=0) as file:
        meta = _newest_meta(file, path)
        assert meta is not None
        return set(_free_pages(file, meta))


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: bytes(PAGE_BYTES),
        lambda page: page[:16] + bytes(PAGE_BYTES - 16),
        lambda page: page[:8] + random.Random(page).randbytes(PAGE_BYTES - 8),
    ],
    ids=["zeroed", "zeroed behind its head", "noise behind its number"],
)
def test_no_page_in_use_can_be_damaged_unnoticed(whole: Path, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """The page of a tree, of the free list, or the first one of a long value; and no other page matters."""
    path = Path(shutil.copytree(whole, tmp_path / "store"))
    data = path / data_file.DATA_FILE
    before = data.read_bytes()
    free = free_pages(path)
    unnoticed = set()
    pages = range(2, len(before) // PAGE_BYTES)
    damaged = drawn(pages, 3)
    for number in damaged:
        start, end = number * PAGE_BYTES, (number + 1) * PAGE_BYTES
        data.write_bytes(before[:start] + damage(before[start:end]) + before[end:])
        try:
            checked(path)
        except StoreRefused:
            continue
        unnoticed.add(number)
    # Behind the first page of a long value there is nothing but its bytes.
    inner = {
        number
        for first in pages
        if first not in free and before[first * PAGE_BYTES + 10] == 0x04
        for number in range(first + 1, first + int.from_bytes(before[first * PAGE_BYTES + 12 :][:4], "little"))
    }
    assert unnoticed - inner == free & {*damaged}
    assert len(free & {*pages}) > 5
    assert inner
    assert len({*pages} - free - inner) > 60


_Change = Callable[[bytes, bytes], tuple[bytes, bytes] | None]


def _first(name: bytes, change: _Change) -> Callable[[Path], None]:
    """Put something else in place of the first entry of a database."""
    return _entry(name, change, lambda _: True)


def _place(change: _Change) -> Callable[[Path], None]:
    """Put something else in place of the first place of a version."""
    return _entry(b"timeline", change, is_place)


def _entry(name: bytes, change: _Change, is_meant: Callable[[bytes], bool]) -> Callable[[Path], None]:
    def harm(path: Path) -> None:
        with lmdb.open(str(path), max_dbs=10) as env, env.begin(write=True) as transaction:
            database = env.open_db(name, transaction)
            key, value = next(entry for entry in transaction.cursor(database).iternext() if is_meant(entry[0]))
            transaction.delete(key, db=database)
            changed = change(key, value)
            if changed is not None:
                transaction.put(*changed, db=database)

    return harm


def _meta(key: bytes, value: bytes) -> Callable[[Path], None]:
    def harm(path: Path) -> None:
        with lmdb.open(str(path), max_dbs=10) as env, env.begin(write=True) as transaction:
            transaction.put(key, value, db=env.open_db(b"meta", transaction))

    return harm


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (_first(b"expiry", lambda key, value: (key[:-3], value)), "a key has 37 bytes instead of 40"),
        (_first(b"expiry", lambda key, value: (key[:8] + bytes(32), value)), "has no record"),
        (_first(b"expiry", lambda key, _: (key, b"x")), "is neither a version nor a retraction"),
        (_first(b"timeline", lambda key, value: (key[:-1], value)), "has no arrival"),
        (_first(b"timeline", lambda *_: None), "has no arrival"),
        (_place(lambda *_: None), "is in another place than its timeline says"),
        (_place(lambda key, place: (key, place[:-1] + b"x")), "is in another place than its timeline says"),
        (_place(lambda key, place: (key[:-1] + b"x", place)), "is in another place than its timeline says"),
        (_first(b"records", lambda *_: None), "has no record"),
        (_first(b"records", lambda key, value: (key, value[:-3])), "the record of .* cannot be read"),
        (_first(b"tombstones", lambda key, _: (key, b"\xff")), "the tombstone .* cannot be read"),
        (_first(b"bodies", lambda key, _: (key, b"\xff\xff")), "the text of .* cannot be read"),
        (_first(b"seen", lambda key, _: (key, b"\xff")), "the entry of the text .* cannot be read"),
        (_first(b"seen", lambda key, value: (key[:5], value)), "the digest of a text has 5 bytes"),
        (_meta(b"code_bytes", b"16"), "the postings under .* have 56 bytes instead of 64"),
        (_meta(b"code_bytes", b"x"), "the width of the postings' codes"),
        (_meta(b"plan", b"x"), "its plan cannot be read"),
    ],
)
def test_no_entry_can_be_damaged_unnoticed(whole: Path, tmp_path: Path, harm: Callable[[Path], None], why: str) -> None:
    """Each with a sentence on what it is."""
    path = Path(shutil.copytree(whole, tmp_path / "store"))
    harm(path)
    with pytest.raises(StoreDamaged, match=f"is damaged: .*{why}"):
        checked(path)


def test_a_store_is_checked_while_it_is_written(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check begins again where three commits have replaced the page that it would begin at."""
    path = Path(shutil.copytree(whole, tmp_path / "store"))
    # The map cannot grow while the check reads in the same thread.
    store = LmdbStore.open(path, replace(SMALL, map_bytes=1 << 24))
    found: list[bool] = []

    def late(path: Path, transaction: int) -> bool:
        for number in range(3 if not found else 1):
            store.create([make_version(f"b{number}-{transaction}", body="x" * 3_000)])
        found.append(check_pages(path, transaction))
        return found[-1]

    monkeypatch.setattr(environment, "check_pages", late)
    store.check()
    store.close()
    assert found == [False, True]
