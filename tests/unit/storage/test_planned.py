"""What a store is made for, as bytes and in an embedded store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.errors import StoreDamaged, StoreRefused
from storage.lmdb import LmdbOptions, LmdbStore
from storage.lmdb.layout import PLAN_KEY
from storage.records import CapacityPlan, decode_planned, encode_planned
from tests.contract.conftest import MEMORY

PLANNED = CapacityPlan(3_000_000, "16x28")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LmdbStore]:
    """A new store."""
    opened = LmdbStore.open(tmp_path / "store", LmdbOptions(durability="process"))
    yield opened
    opened.close()


def test_the_bytes_stay_as_they_are() -> None:
    """Scripts of earlier versions have written them into stores; members of later ones are skipped."""
    assert encode_planned(PLANNED) == b'{"articles":3000000,"plan":"16x28"}'
    assert decode_planned(b'{"articles":3000000,"mood":"good","plan":"16x28"}') == PLANNED


@pytest.mark.parametrize(
    "value", [b"", b"16x28", b"{}", b'{"plan":"16x28"}', b'{"articles":0,"plan":"16x28"}', b"\xff"]
)
def test_other_bytes_are_refused(value: bytes) -> None:
    """With the error that stores turn into theirs."""
    with pytest.raises(ValueError, match=r".+"):
        decode_planned(value)


def test_a_plan_stays_and_its_articles_may_change(store: LmdbStore) -> None:
    """Another plan is not written; what is stored is returned."""
    assert store.planned() is None
    assert store.plan_for(PLANNED) == PLANNED == store.planned()
    more = CapacityPlan(5_000_000, "16x28")
    assert store.plan_for(more) == more == store.planned()
    assert store.plan_for(CapacityPlan(9, "4x16")) == more == store.planned()


def test_a_store_for_reading_gets_no_plan(store: LmdbStore, tmp_path: Path) -> None:
    """It raises what every write does."""
    store.close()
    reader = LmdbStore.open(tmp_path / "store", LmdbOptions(readonly=True))
    with pytest.raises(StoreRefused, match="for reading only"):
        reader.plan_for(PLANNED)
    reader.close()


def test_a_plan_that_cannot_be_read_is_damage(store: LmdbStore) -> None:
    """It is named; nothing is written over it."""
    databases = store._environment.databases
    store._environment.write(lambda transaction: transaction.put(PLAN_KEY, b"16x28", db=databases["meta"]))
    for call in (store.planned, lambda: store.plan_for(PLANNED)):
        with pytest.raises(StoreDamaged, match="its plan cannot be read"):
            call()


def test_a_store_in_memory_is_made_for_nothing() -> None:
    """It is always made by the run that uses it."""
    with MEMORY.opened(lambda: 0, 10) as store:
        assert store.planned() is None
