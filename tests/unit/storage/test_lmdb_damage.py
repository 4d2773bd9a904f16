"""A store of which bytes are missing or wrong: one sentence, never a crash, and nothing is made in its place."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lmdb
import pytest

from storage.errors import StoreDamaged, StoreError, StoreRefused
from storage.lmdb import LmdbOptions, LmdbStore
from storage.lmdb.data_file import BRANCH
from storage.records import Release, StoredVersion
from tests.builders import make_tombstone, make_version
from tests.unit.storage.processes import ROOT, SMALL

READONLY = replace(SMALL, readonly=True)
PAGE_BYTES = min(os.sysconf("SC_PAGE_SIZE"), 1 << 15)
VERSIONS = 24


def make_store(path: Path) -> list[bytes]:
    """A store with some hundred pages; the references of its versions, the first of which is released."""
    versions = [make_version(f"a{number}", b"%d" % number, body="text " * 40) for number in range(VERSIONS)]
    store = LmdbStore.open(path, SMALL)
    store.create(versions)
    store.add([version.record for version in versions])
    references = [version.record.reference for version in versions]
    store.settle([(reference, b"kept") for reference in references[: VERSIONS // 2]])
    store.release([Release(references[0], b"released", references[1])])
    store.retract([make_tombstone("a1", sequence=9)])
    store.agree(b"settings")
    store.close()
    return references


def read_all(path: Path) -> None:
    """Open a store and read everything in it in every way."""
    store = LmdbStore.open(path, READONLY)
    try:
        found = [stored for stored in store.scan() if isinstance(stored, StoredVersion)]
        references = [stored.record.reference for stored in found]
        store.read(references)
        store.sketches(references)
        store.bodies(references)
        for stored in found:
            store.look_up(stored.record.keys)
            store.history(stored.record.id_hash)
        store.stats()
        store.settings()
    finally:
        store.close()


@pytest.mark.parametrize("options", [SMALL, READONLY], ids=["to write", "to read"])
@pytest.mark.parametrize(
    "size",
    [0, 1, 20, 100, PAGE_BYTES, PAGE_BYTES + 20, PAGE_BYTES + 100, 2 * PAGE_BYTES - 1, 2 * PAGE_BYTES, -PAGE_BYTES, -1],
)
def test_a_data_file_that_was_cut_short_is_refused_and_left_alone(
    size: int, options: LmdbOptions, tmp_path: Path
) -> None:
    """At whatever length: LMDB alone would make a new store of nothing, or end the process with SIGBUS."""
    make_store(tmp_path)
    data = tmp_path / "data.mdb"
    whole = data.stat().st_size
    os.truncate(data, size if size >= 0 else whole + size)
    left = data.read_bytes()
    for _ in range(2):
        expected = "is empty" if size == 0 else "holds a database that" if 0 < size <= 100 else "was truncated"
        with pytest.raises(StoreRefused, match=expected):
            LmdbStore.open(tmp_path, options)
    assert data.read_bytes() == left
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["data.mdb", "lock.mdb"]


def test_a_file_that_is_short_of_free_pages_only_is_whole(tmp_path: Path) -> None:
    """LMDB never writes pages at the end that were taken and given back in one transaction."""
    make_store(tmp_path)
    with lmdb.open(str(tmp_path), max_dbs=10, map_size=1 << 24) as env, env.begin(write=True) as transaction:
        meta = env.open_db(b"meta", transaction)
        transaction.put(b"large", bytes(300 * PAGE_BYTES), db=meta)
        transaction.put(b"small", b"", db=meta)
        transaction.delete(b"large", db=meta)
    with lmdb.open(str(tmp_path), readonly=True, lock=False) as env:
        last_page = env.info()["last_pgno"]
    assert (tmp_path / "data.mdb").stat().st_size < last_page * PAGE_BYTES
    read_all(tmp_path)
    store = LmdbStore.open(tmp_path, SMALL)
    store.create([make_version("another")])
    store.close()


def test_a_long_list_of_free_pages_is_read_to_its_end(tmp_path: Path) -> None:
    """Over several levels of pages, and with one list of more than 64 KiB: it says that the missing pages are free."""
    make_store(tmp_path)
    with lmdb.open(str(tmp_path), max_dbs=10, map_size=1 << 27) as env:
        meta = env.open_db(b"meta")
        for name, pages in ((b"large", 9_000), (b"spare", 3_000)):
            with env.begin(write=True) as transaction:
                transaction.put(name, bytes(pages * PAGE_BYTES), db=meta)
        for number in range(3):
            with env.begin(write=True) as transaction:
                transaction.put(b"small", b"-%d" % number, db=meta)
                transaction.delete(b"spare", db=meta)
        # What a reader may still see is not used again, so that every transaction adds a list of its own.
        with env.begin():
            for number in range(300):
                with env.begin(write=True) as transaction:
                    transaction.put(b"small", b"%d" % number, db=meta)
            with env.begin(write=True) as transaction:
                transaction.delete(b"large", db=meta)
            with env.begin(write=True) as transaction:
                transaction.put(b"large", bytes(4_000 * PAGE_BYTES), db=meta)
                transaction.delete(b"large", db=meta)
        last_page = env.info()["last_pgno"]
    data = tmp_path / "data.mdb"
    assert data.stat().st_size < last_page * PAGE_BYTES
    read_all(tmp_path)
    os.truncate(data, 40 * PAGE_BYTES)
    with pytest.raises(StoreDamaged, match="was truncated"):
        read_all(tmp_path)


@pytest.mark.parametrize("options", [SMALL, READONLY], ids=["to write", "to read"])
def test_a_data_file_that_is_gone_is_not_made_anew(options: LmdbOptions, tmp_path: Path) -> None:
    """The lock file beside it shows that there was a store."""
    make_store(tmp_path)
    (tmp_path / "data.mdb").unlink()
    with pytest.raises(StoreDamaged, match=r"data\.mdb is missing"):
        LmdbStore.open(tmp_path, options)
    assert [entry.name for entry in tmp_path.iterdir()] == ["lock.mdb"]


def _change(path: Path, database: str, change: Callable[[Any, Any], object]) -> None:
    with lmdb.open(str(path), max_dbs=10) as env:
        named = env.open_db(database.encode())
        with env.begin(write=True) as transaction:
            change(transaction, named)


def _set_all(value: bytes) -> Callable[[Any, Any], object]:
    def change(transaction: Any, named: Any) -> None:  # noqa: ANN401  # LMDB hides their types
        for key in list(transaction.cursor(named).iternext(values=False)):
            transaction.put(key, value, db=named)

    return change


def _set(key: bytes, value: bytes) -> Callable[[Any, Any], object]:
    return lambda transaction, named: transaction.put(key, value, db=named)


def _swap_first_two(transaction: Any, named: Any) -> None:  # noqa: ANN401  # as above
    (key, first), (other, second), *_ = list(transaction.cursor(named))
    transaction.put(key, second, db=named)
    transaction.put(other, first, db=named)


def _clear(transaction: Any, named: Any) -> None:  # noqa: ANN401  # as above
    transaction.drop(named, delete=False)


WRONG_BYTES: dict[str, tuple[str, Callable[[Any, Any], object], str]] = {
    "records that are none": ("records", _set_all(b"\xc1"), "the record of .* cannot be read"),
    "records of no text": ("records", _set_all(b"\x92\xa1\xff"), "the record of .* cannot be read"),
    "records of each other": ("records", _swap_first_two, "the record stored under .* belongs to another version"),
    "no records": ("records", _clear, "has no record"),
    "tombstones that are none": ("tombstones", _set_all(b""), "the tombstone .* cannot be read"),
    "no tombstones": ("tombstones", _clear, "the tombstone .* cannot be read"),
    "bodies that are none": ("bodies", _set_all(b"\xff\xff\xff"), "the text of .* cannot be read"),
    "bodies of no text": ("bodies", _set_all(b"\x02\x04\xff\xfe"), "the text of .* cannot be read"),
    "short releases": ("releases", _set_all(b"short"), "the release of .* has 5 bytes"),
    "keys of another width": (
        "timeline",
        lambda change, named: change.put(b"\xff", b"v", db=named),
        "a key has 1 byte",
    ),
    "no such width": (
        "meta",
        lambda change, named: change.put(b"code_bytes", b"x", db=named),
        "width of the postings' codes",
    ),
    "another width": (
        "meta",
        lambda change, named: change.put(b"code_bytes", b"9", db=named),
        "width of the postings' codes",
    ),
    "a database that is gone": (
        "verdicts",
        lambda change, named: change.drop(named, delete=True),
        "its database verdicts is missing",
    ),
}


@pytest.mark.parametrize("name", WRONG_BYTES)
def test_bytes_that_make_no_sense_are_named(name: str, tmp_path: Path) -> None:
    """In every database: the sentence says what is wrong, which store, and what to do."""
    make_store(tmp_path)
    database, change, why = WRONG_BYTES[name]
    _change(tmp_path, database, change)
    for _ in range(2):
        with pytest.raises(StoreDamaged, match=f"The store {tmp_path} is damaged: .*{why}.* Restore the directory"):
            read_all(tmp_path)


@pytest.mark.parametrize("name", ["records that are none", "no records", "a database that is gone"])
def test_a_damaged_store_is_not_written_to(name: str, tmp_path: Path) -> None:
    """A sweep that meets the damage ends with a sentence each time, and changes nothing."""
    make_store(tmp_path)
    database, change, _ = WRONG_BYTES[name]
    _change(tmp_path, database, change)
    before = _entries(tmp_path)
    for _ in range(2):
        with pytest.raises(StoreDamaged, match=f"The store {tmp_path} is damaged: "):
            _sweep(tmp_path)
    assert _entries(tmp_path) == before


def _entries(path: Path) -> dict[bytes, int]:
    """How many entries each database has."""
    with lmdb.open(str(path), max_dbs=10, lock=False, readonly=True) as env:
        with env.begin() as transaction:
            names = list(transaction.cursor().iternext(values=False))
        databases = {name: env.open_db(name, create=False) for name in names}
        with env.begin() as transaction:
            return {name: transaction.stat(database)["entries"] for name, database in databases.items()}


def _sweep(path: Path) -> None:
    store = LmdbStore.open(path, SMALL)
    try:
        store.sweep(1 << 60, 10)
    finally:
        store.close()


def harm(path: Path, rounds: int) -> dict[str, int]:
    """Damage pages of a store at random, read all of it, put it back; how often it was refused, and how often not."""
    make_store(path)
    data = path / "data.mdb"
    whole = data.read_bytes()
    pages = len(whole) // PAGE_BYTES
    # Without branches: LMDB ends a process that walks from a leaf to one (see below).
    replacements = [page for page in range(2 * PAGE_BYTES, len(whole), PAGE_BYTES) if not whole[page + 10] & BRANCH]
    chance = random.Random(14)
    endings = {"refused": 0, "read": 0}
    for _ in range(rounds):
        harmed = bytearray(whole)
        for _ in range(chance.choice((1, 3))):
            start = chance.randrange(2, pages) * PAGE_BYTES
            page = slice(start, start + PAGE_BYTES)
            kind = chance.randrange(4)
            if kind == 0:
                harmed[page] = bytes(PAGE_BYTES)
            elif kind == 1:
                harmed[page] = chance.randbytes(PAGE_BYTES)
            elif kind == 2:
                other = chance.choice(replacements)
                harmed[page] = whole[other : other + PAGE_BYTES]
            else:
                for _ in range(8):
                    harmed[start + chance.randrange(PAGE_BYTES)] ^= 1 << chance.randrange(8)
        data.write_bytes(harmed)
        try:
            read_all(path)
        except StoreError:
            endings["refused"] += 1
        else:
            endings["read"] += 1
    return endings


def test_damaged_pages_end_in_a_sentence(tmp_path: Path) -> None:
    """Pages of zeros, of noise, in each other's place, or with a few bits changed: no other error, and no crash.

    In a process of its own, which LMDB would end. A bit that changed within a text or a digest shows nowhere. The
    timeline fits into one page here: LMDB asserts that the next page of a walk is a leaf, so only ``check`` is safe on
    larger stores.
    """
    script = (
        f"import json, pathlib; from {__name__} import *; print(json.dumps(harm(pathlib.Path({str(tmp_path)!r}), 100)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    endings = json.loads(ended.stdout)
    assert endings["refused"] > 30
    assert sum(endings.values()) == 100
