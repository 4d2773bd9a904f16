"""Stores of layouts 1 to 3, whose versions are stored under their references, open and continue."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import lmdb
import pytest

from storage.lmdb import LmdbStore, layout
from storage.lmdb.environment import Transaction
from storage.records import Release, StoredVersion, Tombstone
from tests.builders import make_tombstone, make_version
from tests.unit.storage.processes import SMALL

VERSIONS = [make_version(f"a{number}", time_ms=1_000 + number, sequence=number) for number in range(12)]
LATER = make_version("a3", content=b"a later version", time_ms=2_000, sequence=100)
NEW = [make_version(f"b{number}", time_ms=3_000 + number, sequence=number) for number in range(12)]
RETRACTED = make_tombstone("a4", time_ms=2_500, sequence=101, place=b"offset")
REFERENCES = [version.reference for version in (*VERSIONS, LATER)]
SETTLED = [(reference, b'{"outcome":"unique"}') for reference in REFERENCES[:6]]
RELEASED = Release(REFERENCES[5], b"kept", REFERENCES[0])
OPTIONS = replace(SMALL, clock=lambda: 5_000)

Contents = list[StoredVersion | Tombstone]


@pytest.fixture
def before(tmp_path: Path) -> Contents:
    """Fill a store as an earlier version does, and return its contents."""
    store = LmdbStore.open(tmp_path, OPTIONS)
    store.create([*VERSIONS, LATER])
    store.add([version.record for version in VERSIONS])
    store.settle(SETTLED)
    store.release([RELEASED])
    store.retract([RETRACTED])
    contents = list(store.scan())
    store.close()
    put_under_references(tmp_path)
    return contents


def put_under_references(path: Path) -> None:
    """Turn a store into one of layout 1."""
    with lmdb.open(str(path), max_dbs=10) as env, env.begin(write=True) as transaction:
        for name in (b"records", b"verdicts", b"bodies"):
            database = env.open_db(name, transaction)
            for key, value in list(transaction.cursor(database).iternext()):
                transaction.delete(key, db=database)
                transaction.put(layout.reference_in(key), value, db=database)
        timeline = env.open_db(b"timeline", transaction)
        for key in list(transaction.cursor(timeline).iternext(values=False)):
            if layout.is_place(key):
                transaction.delete(key, db=timeline)
        transaction.put(layout.LAYOUT_KEY, b"1", db=env.open_db(b"meta", transaction))


@pytest.fixture
def store(tmp_path: Path, before: Contents) -> Iterator[LmdbStore]:
    """Open the earlier store."""
    assert before
    opened = LmdbStore.open(tmp_path, OPTIONS)
    yield opened
    opened.close()


def test_everything_in_it_is_read(store: LmdbStore, before: Contents) -> None:
    """By all calls that read versions, and by the check."""
    assert list(store.scan()) == before
    stored = {version.record.reference: version for version in before if isinstance(version, StoredVersion)}
    assert store.read(REFERENCES) == [stored[reference] for reference in REFERENCES]
    assert store.sketches(REFERENCES) == [stored[reference].record.sketch for reference in REFERENCES]
    assert store.bodies(REFERENCES) == [version.body for version in (*VERSIONS, LATER)]
    assert store.latest([LATER.record.id_hash, RETRACTED.id_hash]) == [stored[LATER.reference], RETRACTED]
    assert store.history(LATER.record.id_hash) == [stored[VERSIONS[3].reference], stored[LATER.reference]]
    store.check()


def test_it_continues(store: LmdbStore, before: Contents) -> None:
    """Versions are not written twice, verdicts are settled once, and new versions join."""
    created = store.create([*VERSIONS, *NEW])
    assert created[: len(VERSIONS)] == store.read(REFERENCES[: len(VERSIONS)])
    assert store.settle([(REFERENCES[0], b"another"), (REFERENCES[7], b"first"), (NEW[0].reference, b"new")]) == [
        False,
        True,
        True,
    ]
    assert [version and version.verdict for version in store.read([REFERENCES[7], NEW[0].reference])] == [
        b"first",
        b"new",
    ]
    assert store.release([Release(REFERENCES[1], b"released", REFERENCES[0])]) == [b"released"]
    assert store.bodies([NEW[3].reference, REFERENCES[3]]) == [NEW[3].body, VERSIONS[3].body]
    assert store.stats().versions == len(VERSIONS) + 1 + len(NEW)
    assert len(list(store.scan())) == len(before) + len(NEW)
    store.check()


def test_all_of_it_expires(store: LmdbStore, before: Contents) -> None:
    """Nothing of the earlier versions remains, nor of the new ones."""
    store.create(NEW)
    assert store.sweep(10_000, 100) == len(before) + len(NEW)
    store.sweep(10_000, 100)
    databases = store._environment.databases

    def count(transaction: Transaction) -> dict[str, int]:
        return {name: transaction.stat(database)["entries"] for name, database in databases.items()}

    entries = store._environment.read(count)
    assert {name for name, count in entries.items() if count} == {"meta"}


def test_a_reader_leaves_its_layout_alone_and_a_writer_raises_it(tmp_path: Path, before: Contents) -> None:
    """Then a program that looks for versions under their references refuses the store."""
    for readonly, expected in ((True, b"1"), (False, b"4"), (True, b"4")):
        store = LmdbStore.open(tmp_path, replace(OPTIONS, readonly=readonly))
        assert list(store.scan()) == before
        meta = store._environment.databases["meta"]
        read = store._environment.read(partial(_layout, meta))
        assert read == expected
        store.close()


def _layout(meta: object, transaction: Transaction) -> object:
    return transaction.get(layout.LAYOUT_KEY, db=meta)
