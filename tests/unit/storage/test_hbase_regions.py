"""Which regions answer, as the doctor has it, with gateways that know or do not."""

from collections.abc import Sequence

from storage.hbase.calls import Gateways
from storage.hbase.checks import region_findings
from storage.hbase.connection import Columns, GatewayConnection, RegionPlace
from storage.hbase.failures import ConnectionLost, RequestDenied
from storage.hbase.options import GatewayAddress, HbaseOptions, StoreAddress
from storage.hbase.pool import Pool
from storage.hbase.waits import Deadline
from storage.kind import StoreFinding

STARTS = {b"feed:postings": (b"", b"\x10\x80\x00"), b"feed:articles": (b"", b"\x80"), b"feed:meta": (b"",)}
PLACE = StoreAddress((GatewayAddress("localhost", 1),), "feed")


class _Servers(GatewayConnection):
    """A gateway to regions on two servers, in turn."""

    def __init__(self, hung: Sequence[str], asked: list[tuple[bytes, bytes]], nowhere: bytes) -> None:
        super().__init__(PLACE.addresses[0], None, 1.0)
        self._hung = hung
        self._asked = asked
        self._nowhere = nowhere

    def regions(self, table: bytes) -> list[RegionPlace]:
        if "meta" in self._hung:
            raise RequestDenied("timed out")
        return [RegionPlace(table, start, self._server(table, start)) for start in STARTS[table]]

    def _server(self, table: bytes, start: bytes) -> str:
        if table == self._nowhere:
            return ""
        return "b:2" if start else "a:1"

    def rows(
        self, table: bytes, rows: Sequence[bytes], columns: Sequence[bytes], bytes_max: int | None = None
    ) -> dict[bytes, Columns]:
        self._asked += ((table, row) for row in rows)
        if any(self._server(table, row.removesuffix(b"\0")) in self._hung for row in rows):
            raise ConnectionLost("timed out")
        return {}


def found(*hung: str, nowhere: bytes = b"") -> tuple[list[StoreFinding], list[tuple[bytes, bytes]]]:
    """The findings where these servers do not answer, and the rows that were read."""
    asked: list[tuple[bytes, bytes]] = []
    gateways = Gateways(PLACE, HbaseOptions())

    def connect(address: GatewayAddress, deadline: Deadline) -> GatewayConnection:
        if "gateway" in hung:
            raise ConnectionLost("Connection refused")
        return _Servers(hung, asked, nowhere)

    gateways.pool = Pool(PLACE.addresses, gateways.options, connect)
    try:
        return list(region_findings(gateways)), asked
    finally:
        gateways.close()


def test_regions_that_answer_are_counted() -> None:
    """One row of every region is read, one that is behind its first key and not that key, which may be a wide row."""
    (finding,), asked = found()
    assert finding == StoreFinding("ok", "All 5 regions answer, on 2 region servers.")
    assert sorted(asked) == sorted((table, start + b"\0") for table, starts in STARTS.items() for start in starts)


def test_a_server_that_hangs_is_named_with_its_tables() -> None:
    """Another one that answers does not hide it, and of what answers nothing is said."""
    (finding,), _ = found("b:2")
    assert finding.status == "broken"
    assert finding.found == "2 regions on b:2 do not answer (feed:articles, feed:postings): timed out"
    both, _ = found("a:1", "b:2")
    assert [finding.found.split(" do ")[0] for finding in both] == ["3 regions on a:1", "2 regions on b:2"]


def test_regions_that_are_on_no_server() -> None:
    """As long as HBase moves them, or has given up."""
    (finding,), _ = found("", nowhere=b"feed:articles")
    assert finding.found.startswith("2 regions that are on no server do not answer (feed:articles): ")


def test_a_table_of_regions_that_does_not_answer() -> None:
    """The server of hbase:meta may be the one that hangs; a gateway that is away has findings of its own."""
    (finding,), asked = found("meta")
    assert (finding.status, asked) == ("broken", [])
    assert "where the regions of the store are" in finding.found
    assert found("gateway") == ([], [])
