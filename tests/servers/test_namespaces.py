"""The empty tables that tests are given."""

import happybase
import pytest

from tests.hbase_server import fresh_namespace

pytestmark = pytest.mark.servers


def connected(address: str) -> happybase.Connection:
    """A connection to this gateway."""
    host, port = address.split(":")
    return happybase.Connection(host, int(port))


def test_tables_are_empty_and_can_be_written_at_once(hbase_address: str) -> None:
    """Whatever a test left is gone for the next, which may write the same cells in the same moment."""
    connection = connected(hbase_address)
    cells = {"postings": {b"p:q": b"1", b"s:q": b"2"}, "articles": {b"a:q": b"3", b"b:q": b"4"}, "meta": {b"m:q": b"5"}}
    for _ in range(3):
        namespace = fresh_namespace(hbase_address)
        for name, row in cells.items():
            table = connection.table(f"{namespace}:{name}")
            assert list(table.scan()) == []
            with table.batch() as batch:
                for number in range(1500 if name == "postings" else 10):
                    batch.put(b"%d" % number, row)
            assert table.row(b"7") == row
    connection.close()


def test_a_worker_that_replaces_a_dead_one_has_tables_too(hbase_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that was not there when HBase was started gets its own tables made."""
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw99")
    namespace = fresh_namespace(hbase_address)
    assert namespace == "test_gw99_common"
    connection = connected(hbase_address)
    assert [name for name in connection.tables() if name.startswith(b"test_gw99_common:")] == [
        b"test_gw99_common:articles",
        b"test_gw99_common:meta",
        b"test_gw99_common:postings",
        b"test_gw99_common:seen",
    ]
    connection.close()
