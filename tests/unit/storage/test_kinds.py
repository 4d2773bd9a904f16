"""The registry of stores: which kind a URL names, which URLs name the same store, and what a kind knows of its own."""

import os
from pathlib import Path

import pytest

from storage.errors import StoreRefused
from storage.hbase import HbaseOptions
from storage.hbase.kind import HBASE
from storage.kind import DiskLocation, StoreArguments, StoreKind
from storage.kinds import KINDS, kind_of, lasting_examples, same_store, store_identity, url_forms
from storage.lmdb import LmdbOptions
from storage.lmdb.kind import LMDB
from storage.memory import MEMORY, MemoryStore
from tests.contract.conftest import STORES

OPENING = StoreArguments(lifetime_s=60, plan="4x16")


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("memory:", MEMORY),
        ("lmdb:store", LMDB),
        ("lmdb:/a\nb", LMDB),
        ("hbase://gateway/feed", HBASE),
        ("hbase://one:9090,[::1]:9091/feed", HBASE),
    ],
)
def test_a_url_names_one_kind(url: str, kind: StoreKind) -> None:
    """No two patterns match the same URL."""
    assert kind_of(url) is kind
    assert [found for found in KINDS if found.matches(url)] == [kind]


@pytest.mark.parametrize("url", ["", "memory", "memory:x", "lmdb:", "hbase://gateway", "hbase:/g/feed", "redis://x"])
def test_the_error_for_another_url_lists_all_forms(url: str) -> None:
    """So that a mistyped URL can be corrected."""
    with pytest.raises(ValueError, match="write it as memory:, lmdb:PATH or hbase://HOST:PORT") as error:
        kind_of(url)
    assert all(kind.form in str(error.value) for kind in KINDS)


def test_texts_are_made_of_the_table() -> None:
    """Help texts and messages name each kind that applies, and no other."""
    assert url_forms() == (
        "memory:, lmdb:PATH (a directory) or hbase://HOST:PORT[,HOST:PORT]/NAMESPACE (Thrift gateways)"
    )
    assert lasting_examples() == "lmdb:PATH or hbase://HOST:PORT/NAMESPACE"


def test_the_contract_tests_cover_every_kind() -> None:
    """A kind that is registered is held to the contract."""
    assert set(STORES) == {kind.name for kind in KINDS}


@pytest.mark.parametrize(
    ("url", "other", "same"),
    [
        ("lmdb:a", "lmdb:./a/", True),
        ("lmdb:a", "lmdb:b/../a", True),
        ("lmdb:a", "lmdb:b", False),
        ("hbase://one,two/feed", "hbase://two:9090,three/feed", True),
        ("hbase://one/feed", "hbase://one/other", False),
        ("hbase://one/feed", "hbase://two/feed", False),
        ("lmdb:a", "hbase://one/a", False),
        ("memory:", "memory:", False),
    ],
)
def test_same_store_compares_places_and_not_texts(url: str, other: str, same: bool) -> None:  # noqa: FBT001
    """In both directions. Two runs in memory share nothing."""
    assert same_store(url, other) is same
    assert same_store(other, url) is same


def test_an_identity_does_not_depend_on_how_a_url_is_written(tmp_path: Path) -> None:
    """Checkpoints keep these texts, so they must not change between releases."""
    (tmp_path / "link").symlink_to(tmp_path / "store")
    real = os.path.realpath(tmp_path / "store")
    assert store_identity(f"lmdb:{tmp_path}/link/") == store_identity(f"lmdb:{tmp_path}/store") == f"lmdb:{real}"
    assert store_identity("hbase://two,one:9090/feed") == "hbase://one:9090,two:9090/feed"
    assert store_identity("memory:") == "memory:"


def test_only_an_embedded_store_has_files_here() -> None:
    """Which a run must not write its verdicts to."""
    assert LMDB.on_disk("lmdb:a/b") == DiskLocation(Path("a/b"), (Path("a/b/data.mdb"), Path("a/b/lock.mdb")))
    assert MEMORY.on_disk("memory:") is None
    assert HBASE.on_disk("hbase://gateway/feed") is None


def test_an_opened_store_has_the_files_that_its_kind_names(tmp_path: Path) -> None:
    """Or a sink could be written over them."""
    url = f"lmdb:{tmp_path / 'store'}"
    LMDB.open(url, OPENING).close()
    place = LMDB.on_disk(url)
    assert place is not None
    assert set(place.files) == set(place.directory.iterdir())


def test_opening_passes_options_on(tmp_path: Path) -> None:
    """What holds for every kind, and what only one kind understands."""
    assert isinstance(MEMORY.open("memory:", OPENING), MemoryStore)
    with pytest.raises(StoreRefused, match="no store in the directory"):
        LMDB.open(f"lmdb:{tmp_path / 'none'}", StoreArguments(lifetime_s=1, plan="4x16", readonly=True))
    own = LmdbOptions(map_bytes=1 << 20)
    assert StoreArguments(lifetime_s=1, plan="4x16", own=("other", own)).own_options(LmdbOptions) is own
    assert OPENING.own_options(LmdbOptions) == LmdbOptions()


def test_only_a_store_with_servers_is_judged_into_side_by_side_and_warmed_up() -> None:
    """As its own options say; an embedded store writes one batch after the other."""
    opening = StoreArguments(lifetime_s=1, plan="4x16", own=(HbaseOptions(judges_max=3, warm_up_s=5.0),))
    assert [(kind.judges_max(opening), kind.warm_up_s(opening)) for kind in KINDS] == [(1, 0), (1, 0), (3, 5.0)]
