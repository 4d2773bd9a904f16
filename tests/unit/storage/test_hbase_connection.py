"""Two requests at once on a connection to a gateway: the second is answered after the first, whatever that was."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest
from thriftpy2.protocol.binary import TBinaryProtocol
from thriftpy2.thrift import TProcessor
from thriftpy2.transport import TServerSocket, TTransportException
from thriftpy2.transport.buffered import TBufferedTransport

from deploy.local.ports import free_ports
from storage.hbase.connection import CellAddress, GatewayConnection
from storage.hbase.failures import RequestDenied
from storage.hbase.options import GatewayAddress
from storage.hbase.posting_cells import FRESH
from storage.hbase.row_answers import CellShape, RowCells
from storage.hbase.thrift_client import DECLARED_ERRORS, Hbase, TCell, TRowResult
from storage.hbase.waits import Deadline

ROWS, META = b"feed:postings", b"feed:meta"
SHAPE = CellShape(FRESH, 4)
BEHIND = CellAddress(META, b"pack", b"m:v")
WAIT_S = 30


class Gateway:
    """Answers requests for rows, and notes them. Tables in ``failing`` are answered with an error."""

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, list[bytes]]] = []
        self.tables = {ROWS: {b"row": {FRESH + b"1234": b"", FRESH + b"5678": b""}}, META: {}}
        self.failing: set[bytes] = set()

    def getRowsWithColumns(self, *arguments: Any) -> list[Any]:  # noqa: ANN401, N802  # the call of the interface
        """Return those of the rows that are there."""
        table, rows, *_ = arguments
        self.asked.append((table, list(rows)))
        if table in self.failing:
            raise DECLARED_ERRORS[0](b"the region moves")
        return [_result(row, self.tables[table][row]) for row in rows if row in self.tables[table]]


def _result(row: bytes, cells: Mapping[bytes, bytes]) -> object:
    columns = {column: TCell(value=value, timestamp=1) for column, value in cells.items()}
    return TRowResult(row=row, columns=columns)


@pytest.fixture
def gateway() -> Gateway:
    """A gateway with one row."""
    return Gateway()


@pytest.fixture
def connection(gateway: Gateway) -> Iterator[GatewayConnection]:
    """A connection to it."""
    (port,) = free_ports(1)
    listener = TServerSocket("127.0.0.1", port)
    listener.listen()

    def serve() -> None:
        transport = TBufferedTransport(listener.accept())
        protocol = TBinaryProtocol(transport, decode_response=False)
        processor = TProcessor(Hbase, gateway)
        with suppress(TTransportException):
            while True:
                processor.process(protocol, protocol)
        transport.close()

    serving = threading.Thread(target=serve)
    serving.start()
    opened = GatewayConnection(GatewayAddress("127.0.0.1", port), None, WAIT_S)
    opened.connect(Deadline.after(WAIT_S))
    opened.deadline = Deadline.after(WAIT_S)
    yield opened
    opened.close()
    serving.join(WAIT_S)
    listener.close()


def read(connection: GatewayConnection, behind: CellAddress | None = BEHIND) -> tuple[dict[bytes, RowCells], bool]:
    """Read the row and one that is not there."""
    return connection.row_cells(ROWS, [b"row", b"none"], [b"p"], SHAPE, None, behind)


def test_a_cell_behind_is_asked_for_after_the_rows(connection: GatewayConnection, gateway: Gateway) -> None:
    """And is there or not."""
    rows = {b"row": RowCells(b"12345678", {})}
    assert read(connection) == (rows, False)
    gateway.tables[META][b"pack"] = {b"m:v": b"60000"}
    assert read(connection) == (rows, True)
    assert read(connection, None) == (rows, False)
    asked = (ROWS, [b"row", b"none"])
    assert gateway.asked == [asked, (META, [b"pack"]), asked, (META, [b"pack"]), asked]


@pytest.mark.parametrize("failing", [{ROWS}, {META}, {ROWS, META}])
def test_after_an_error_the_connection_is_good_for_more(
    connection: GatewayConnection, gateway: Gateway, failing: set[bytes]
) -> None:
    """Both answers have been read, so that none is taken for one to a later request."""
    gateway.failing = failing
    with pytest.raises(RequestDenied, match="the region moves"):
        read(connection)
    assert not connection.is_lost
    gateway.failing = set()
    assert read(connection) == ({b"row": RowCells(b"12345678", {})}, False)
