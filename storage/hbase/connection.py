"""A connection to a Thrift gateway on which every answer is matched with its request.

The connection has failed if an answer has a different number than its request, answers another call, or contains a row
that was not requested.
"""

import ssl
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

from happybase import Connection
from thriftpy2.transport import TBufferedTransport

from storage.hbase.failures import AnswerTooBig, ConnectionLost, RequestDenied, text_of
from storage.hbase.options import GatewayAddress
from storage.hbase.row_answers import CellShape, MalformedAnswer, RowAnswerReader, RowCells, UnexpectedAnswer
from storage.hbase.thrift_client import (
    DECLARED_ERRORS,
    BatchMutation,
    GatewaySocket,
    Hbase,
    Mutation,
    NumberedProtocol,
    PipeliningClient,
    TScan,
    WrongAnswer,
)
from storage.hbase.waits import Deadline

_BUFFER_BYTES: Final = 1 << 16

Columns = Mapping[bytes, Any]
"""The cells of a row by column (``family:qualifier``); the ``value`` of a cell is bytes."""


class CellChange(NamedTuple):
    """A cell to put, or to delete if ``value`` is None."""

    row: bytes
    column: bytes
    value: bytes | None


class Swap(NamedTuple):
    """A compare-and-set: put ``value`` if the cell holds ``expected``, where None stands for no cell."""

    row: bytes
    column: bytes
    expected: bytes | None
    value: bytes


class CellAddress(NamedTuple):
    """The table, row and column of a cell."""

    table: bytes
    row: bytes
    column: bytes


class ScanSelection(NamedTuple):
    """Rows to scan, from ``start`` up to and excluding ``stop`` (empty: to the end), ``batch`` cells at a time.

    A row with more cells than ``batch`` comes in several pieces. With a ``batch`` of 0, rows come whole. One request
    fetches ``pieces_per_request`` pieces. ``filter_string`` is in HBase's filter language.
    """

    table: bytes
    columns: Sequence[bytes]
    start: bytes = b""
    stop: bytes = b""
    batch: int = 0
    pieces_per_request: int = 1
    filter_string: bytes = b""


class RegionPlace(NamedTuple):
    """A region: its table, its first key, and its server as "host:port", empty while no server has it."""

    table: bytes
    start: bytes
    server: str


class GatewayConnection(Connection):  # type: ignore[misc]  # happybase has no types
    """A connection to one gateway, for one thread at a time.

    Methods that send requests may raise ``RequestDenied`` or ``ConnectionLost``, unless they say otherwise. After
    ``ConnectionLost``, ``is_lost`` is true and the connection cannot be used. The pool sets ``deadline``. Each request
    must be answered by then, and within ``call_s`` seconds.
    """

    def __init__(self, address: GatewayAddress, tls: ssl.SSLContext | None, call_s: float) -> None:
        self.address = address
        self.is_lost = False
        self.deadline = Deadline(0.0)
        self._call_s = call_s
        self.opened_s = time.monotonic()
        self.used_s = self.opened_s
        self._socket = GatewaySocket(address, tls)
        super().__init__(host=address.host, port=address.port, autoconnect=False)

    def _refresh_thrift_client(self) -> None:
        self.transport = TBufferedTransport(self._socket, _BUFFER_BYTES)
        self._protocol = NumberedProtocol(self.transport)
        self.client = PipeliningClient(Hbase, self._protocol)

    def connect(self, deadline: Deadline) -> None:
        """Open the connection. Raises ``ConnectionLost`` if it cannot be opened by the deadline."""
        self._socket.deadline = deadline
        try:
            self.open()
        except Exception as error:
            self.is_lost = True
            raise ConnectionLost(f"{self.address}: {text_of(error)}") from error

    def rows(
        self, table: bytes, rows: Sequence[bytes], columns: Sequence[bytes], bytes_max: int | None = None
    ) -> dict[bytes, Columns]:
        """Return these columns or whole families of these rows, by row. Rows without such cells are omitted.

        Raises ``AnswerTooBig`` once more than ``bytes_max`` bytes have been received; then the connection is lost.
        """
        self._send("getRowsWithColumns", tableName=table, rows=rows, columns=columns, attributes={})
        with self._limited_to(bytes_max):
            results = self._receive("getRowsWithColumns")
        self._check(rows, (result.row for result in results))
        return {result.row: result.columns for result in results}

    def row_cells(
        self,
        table: bytes,
        rows: Sequence[bytes],
        families: Sequence[bytes],
        shape: CellShape,
        bytes_max: int | None,
        check_after: CellAddress | None = None,
    ) -> tuple[dict[bytes, RowCells], bool]:
        """Return families of these rows, by row, without an object for each cell. Most cells should have this shape.

        Also return whether the cell ``check_after`` existed after the rows were read. Both requests are sent together,
        and a gateway answers the requests of a connection in order. In all other respects this works like ``rows``.
        """
        name = "getRowsWithColumns"
        self._send(name, tableName=table, rows=rows, columns=families, attributes={})
        if check_after is not None:
            self._send(
                name, tableName=check_after.table, rows=[check_after.row], columns=[check_after.column], attributes={}
            )
        try:
            with self._limited_to(bytes_max):
                cells = self._receive_cells(name, shape)
        except RequestDenied:
            if check_after is not None:
                # The answer to the second request still comes, and must not be taken for the answer to a later request.
                with suppress(RequestDenied):
                    self._receive(name)
            raise
        checked_rows = [] if check_after is None else self._receive(name)
        self._check(rows, iter(cells))
        self._check([] if check_after is None else [check_after.row], (result.row for result in checked_rows))
        return cells, bool(checked_rows)

    def change(self, table: bytes, changes: Sequence[CellChange], until_ms: int | None = None) -> None:
        """Put and delete cells. After an error some changes may have been made.

        With ``until_ms`` all changes must be deletes. They affect only cells written by that time of the server's
        clock.
        """
        by_row: dict[bytes, list[Any]] = {}
        for row, column, value in changes:
            mutation = Mutation(isDelete=value is None, column=column, value=value)
            by_row.setdefault(row, []).append(mutation)
        batches = [BatchMutation(row=row, mutations=mutations) for row, mutations in by_row.items()]
        name = "mutateRows" if until_ms is None else "mutateRowsTs"
        time_limit = {} if until_ms is None else {"timestamp": until_ms}
        self._send(name, tableName=table, rowBatches=batches, attributes={}, **time_limit)
        self._receive(name)

    def swap(self, table: bytes, swaps: Sequence[Swap]) -> list[bool | RequestDenied | None]:
        """Compare and set each cell: all requests are sent before the first answer is read.

        Returns for each True or False as HBase answered, ``RequestDenied`` if HBase answered with an error, and None if
        the connection was lost before the answer. Raises neither ``RequestDenied`` nor ``ConnectionLost``.
        """
        outcomes: list[bool | RequestDenied | None] = [None] * len(swaps)
        try:
            for swap in swaps:
                mutation = Mutation(column=swap.column, value=swap.value)
                self._send(
                    "checkAndPut",
                    tableName=table,
                    row=swap.row,
                    column=swap.column,
                    value=swap.expected,
                    mput=mutation,
                    attributes={},
                )
            for index in range(len(swaps)):
                try:
                    outcomes[index] = bool(self._receive("checkAndPut"))
                except RequestDenied as denied:
                    outcomes[index] = denied
        except ConnectionLost:
            # Answers received before the loss are valid.
            return outcomes
        return outcomes

    def scan(self, selection: ScanSelection) -> Generator[tuple[bytes, Columns], None, None]:
        """Yield the rows of a selection, or their pieces, in order. Close the generator before the next request."""
        arguments: dict[str, int | bytes] = {"batchSize": selection.batch} if selection.batch else {}
        if selection.stop:
            arguments["stopRow"] = selection.stop
        if selection.filter_string:
            arguments["filterString"] = selection.filter_string
        scan = TScan(
            startRow=selection.start, columns=selection.columns, caching=selection.pieces_per_request, **arguments
        )
        self._send("scannerOpenWithScan", tableName=selection.table, scan=scan, attributes={})
        scanner = self._receive("scannerOpenWithScan")
        try:
            while True:
                self._send("scannerGetList", id=scanner, nbRows=selection.pieces_per_request)
                results = self._receive("scannerGetList")
                if not results:
                    return
                for result in results:
                    self._check_range(selection, result.row)
                    yield result.row, result.columns
        finally:
            if not self.is_lost:
                self._send("scannerClose", id=scanner)
                self._receive("scannerClose")

    def table_names(self) -> list[bytes]:
        """Return the names of all tables of HBase, with their namespaces."""
        return list(self._request("getTableNames"))

    def families(self, table: bytes) -> dict[bytes, Any]:
        """Return the families of a table by name, as far as the gateway describes them."""
        return dict(self._request("getColumnDescriptors", tableName=table))

    def regions(self, table: bytes) -> list[RegionPlace]:
        """Return the regions of a table, in order, with their servers."""
        return [
            RegionPlace(table, region.startKey, _server(region))
            for region in self._request("getTableRegions", tableName=table)
        ]

    def is_enabled(self, table: bytes) -> bool:
        """Return whether a table is enabled."""
        return bool(self._request("isTableEnabled", tableName=table))

    def _request(self, name: str, **arguments: Any) -> Any:  # noqa: ANN401  # as of PipeliningClient
        self._send(name, **arguments)
        return self._receive(name)

    def _send(self, name: str, **arguments: Any) -> None:  # noqa: ANN401  # as of PipeliningClient
        self._socket.deadline = self.deadline.at_most(self._call_s)
        try:
            self.client.send(name, **arguments)
        except Exception as error:
            raise self._lost(error) from error

    def _receive(self, name: str) -> Any:  # noqa: ANN401  # as of PipeliningClient
        with self._receiving():
            return self.client.receive(name)

    def _receive_cells(self, name: str, shape: CellShape) -> dict[bytes, RowCells]:
        """Read an answer with a ``RowAnswerReader`` if it has rows.

        Leave other answers, such as errors, to the library.
        """
        reader = RowAnswerReader(self._socket.read)
        with self._receiving():
            try:
                self._protocol.check_answer(reader.message())
                rows = reader.rows(shape)
            except UnexpectedAnswer as other:
                self._socket.unread = other.received
                self.client.receive(name)
                raise MalformedAnswer(f"{name} was answered without rows") from other
            if reader.rest and not self._protocol.has_unanswered:
                raise MalformedAnswer("bytes after the last row")
            self._socket.unread = reader.rest
            return rows

    @contextmanager
    def _receiving(self) -> Iterator[None]:
        """Translate errors of receiving an answer; the connection is lost unless HBase answered with an error."""
        try:
            yield
        except DECLARED_ERRORS as error:
            raise RequestDenied(text_of(error)) from error
        except AnswerTooBig:
            self.is_lost = True
            raise
        except Exception as error:
            raise self._lost(error) from error

    @contextmanager
    def _limited_to(self, bytes_max: int | None) -> Iterator[None]:
        """Limit the answer that is received in the ``with`` block to this many bytes, or not at all if None."""
        self._socket.left_bytes = bytes_max
        try:
            yield
        finally:
            self._socket.left_bytes = None

    def _check(self, requested: Sequence[bytes], received: Iterator[bytes]) -> None:
        try:
            check_rows(requested, received)
        except WrongAnswer as error:
            raise self._lost(error) from error

    def _check_range(self, selection: ScanSelection, row: bytes) -> None:
        is_beyond = bool(selection.stop) and row >= selection.stop
        if row < selection.start or is_beyond:
            raise self._lost(WrongAnswer(f"received the row {row.hex()}, which was not requested"))

    def _lost(self, error: Exception) -> ConnectionLost:
        self.is_lost = True
        return ConnectionLost(f"{self.address}: {text_of(error)}")


def _server(region: Any) -> str:  # noqa: ANN401  # the library's classes have no common type
    return f"{region.serverName.decode(errors='replace')}:{region.port}" if region.serverName else ""


def check_rows(requested: Sequence[bytes], received: Iterator[bytes]) -> None:
    """Raise ``WrongAnswer`` for rows that were not requested."""
    unexpected = set(received) - set(requested)
    if unexpected:
        raise WrongAnswer(f"received the row {min(unexpected).hex()}, which was not requested")
