"""``dupwatch store pack`` and ``unpack``, without a server."""

import pytest

from consumer.cli.operations.store_pack import share_before
from storage.hbase.schema import PrefixLoad
from tests.cli.command import Command

STORE = "hbase://127.0.0.1:1/feed"


@pytest.mark.parametrize("command", ["pack", "unpack"])
@pytest.mark.parametrize("store", ["memory:", "lmdb:nowhere"])
def test_other_stores(dupwatch: Command, command: str, store: str) -> None:
    """A store without posting sets is refused, and none is created."""
    ended = dupwatch("store", command, "--store", store)
    assert ended.code == 2
    assert f"{store} has no posting sets" in ended.err


@pytest.mark.parametrize("time", ["yesterday", "1969-12-31T23:59:59"])
def test_wrong_time(dupwatch: Command, time: str) -> None:
    """An invalid time, or one before 1970, is refused before the store is opened."""
    ended = dupwatch("store", "pack", "--store", STORE, "--before", time)
    assert ended.code == 2
    assert f"--before: {time!r} is " in ended.err


def test_share_of_keys() -> None:
    """The share of postings before a key rises from 0 to 1, first byte by first byte, and within each by value."""
    shares = [PrefixLoad(0, 1), PrefixLoad(1, 1), PrefixLoad(16, 2)]
    keys = [b"", b"\x00\x80\x00", b"\x01", b"\x01\x80", b"\x10\x00\x00\x07", b"\x10\x80\x00", b"\x11", None]
    assert [share_before(key, shares) for key in keys] == [0, 0.125, 0.25, 0.375, 0.5, 0.75, 1, 1]
