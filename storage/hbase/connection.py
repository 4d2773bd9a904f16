"""One connection to a Thrift gateway, on which no answer can be taken for another's.

The Thrift library numbers no request and looks at no number, so that after a time-out the next question can get the
previous one's answer. Here every request has a number, counted from a random one, that the gateway sends back; an
answer with another number, of another call, or with a row that was not asked for is a failure of the connection.
"""

import socket
import ssl
import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from secrets import randbits
from typing import Any, Final, NamedTuple

from happybase import Connection
from thriftpy2.protocol import TBinaryProtocol
from thriftpy2.thrift import TClient
from thriftpy2.transport import TBufferedTransport, TSocket

from storage.hbase.deadline import Deadline
from storage.hbase.failures import AnswerTooBig, Denied, Lost, text_of
from storage.hbase.options import Address
from storage.hbase.thrift_api import DECLARED_ERRORS, BatchMutation, Hbase, Mutation, TScan

_NUMBER_BITS: Final = 31
_BUFFER_BYTES: Final = 1 << 16

Columns = Mapping[bytes, Any]
"""A row's cells by column (``family:qualifier``); a cell has a ``value`` of bytes."""


class Change(NamedTuple):
    """A cell to be put, or where ``value`` is None to be deleted."""

    row: bytes
    column: bytes
    value: bytes | None


class Swap(NamedTuple):
    """A compare-and-set: ``value`` is put if the cell holds ``expected``, or where that is None if there is no cell."""

    row: bytes
    column: bytes
    expected: bytes | None
    value: bytes


class Selection(NamedTuple):
    """Rows to be scanned, from ``start`` up to but without ``stop`` (empty: to the end), ``batch`` cells at a time.

    A row of more cells than ``batch`` comes in several pieces; 0 for whole rows. ``ahead`` is how many pieces are
    fetched at once.
    """

    table: bytes
    columns: Sequence[bytes]
    start: bytes = b""
    stop: bytes = b""
    batch: int = 0
    ahead: int = 1
    only: bytes = b""


class _MixedUp(Exception):  # noqa: N818  # it is what happened to the answers
    """An answer to another question."""


class _Socket(TSocket):  # type: ignore[misc]  # the library has no types here
    """A socket whose every operation ends at a deadline, in the clear or within TLS."""

    def __init__(self, address: Address, tls: ssl.SSLContext | None) -> None:
        super().__init__(host=address.host, port=address.port)
        self._tls = tls
        self.deadline = Deadline(0.0)
        # What may still be read of the answer under way, None for any amount.
        self.left_bytes: int | None = None

    def open(self) -> None:
        plain = socket.create_connection((self.host, self.port), timeout=self._left_s())
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.set_handle(plain if self._tls is None else self._tls.wrap_socket(plain, server_hostname=self.host))
        except BaseException:
            plain.close()
            raise

    def read(self, sz: int) -> bytes:
        self._arm()
        received: bytes = super().read(sz)
        if self.left_bytes is not None:
            self.left_bytes -= len(received)
            if self.left_bytes < 0:
                raise AnswerTooBig
        return received

    def write(self, buf: bytes) -> None:
        self._arm()
        super().write(buf)

    def _arm(self) -> None:
        if self.sock is None:
            raise ConnectionError("the connection is closed")
        self.sock.settimeout(self._left_s())

    def _left_s(self) -> float:
        left_s = self.deadline.left_s
        # A time-out of zero would mean not to wait at all.
        if not left_s:
            raise TimeoutError("timed out")
        return left_s


class _NumberedProtocol(TBinaryProtocol):  # type: ignore[misc]  # as above
    """Thrift's binary protocol, each request with a number that its answer has to repeat."""

    def __init__(self, transport: Any) -> None:  # noqa: ANN401  # the library's classes have no common type
        super().__init__(transport, decode_response=False)
        self._number = randbits(_NUMBER_BITS)
        self._asked: deque[tuple[str, int]] = deque()

    def write_message_begin(self, name: str, ttype: int, seqid: int) -> None:
        del seqid
        self._number = (self._number + 1) % (1 << _NUMBER_BITS)
        self._asked.append((name, self._number))
        super().write_message_begin(name, ttype, self._number)

    def read_message_begin(self) -> tuple[str, int, int]:
        name, ttype, number = super().read_message_begin()
        check_number(self._asked.popleft(), (name, number))
        return name, ttype, number


class _Client(TClient):  # type: ignore[misc]  # as above
    """The library's client with its two halves apart, so that several questions can be under way."""

    def send(self, name: str, **arguments: Any) -> None:  # noqa: ANN401  # whatever the call takes
        self._send(name, **arguments)

    def receive(self, name: str) -> Any:  # noqa: ANN401  # whatever the call returns
        return self._recv(name)


class GatewayConnection(Connection):  # type: ignore[misc]  # as above
    """A connection to one gateway, for one thread at a time.

    Every method raises ``Denied`` or ``Lost``; after the latter ``is_lost`` is true and the connection is of no use.
    ``deadline`` is set by whoever uses it next; by then, and within ``call_s``, a question has to be answered.
    """

    def __init__(self, address: Address, tls: ssl.SSLContext | None, call_s: float) -> None:
        self.address = address
        self.is_lost = False
        self.deadline = Deadline(0.0)
        self._call_s = call_s
        self.opened_s = time.monotonic()
        self.used_s = self.opened_s
        self._socket = _Socket(address, tls)
        super().__init__(host=address.host, port=address.port, autoconnect=False)

    def _refresh_thrift_client(self) -> None:
        self.transport = TBufferedTransport(self._socket, _BUFFER_BYTES)
        self.client = _Client(Hbase, _NumberedProtocol(self.transport))

    def connect(self, deadline: Deadline) -> None:
        """Open the connection."""
        self._socket.deadline = deadline
        try:
            self.open()
        except Exception as error:
            self.is_lost = True
            raise Lost(f"{self.address}: {text_of(error)}") from error

    def rows(
        self, table: bytes, rows: Sequence[bytes], columns: Sequence[bytes], bytes_max: int | None = None
    ) -> dict[bytes, Columns]:
        """What these rows hold of these columns or whole families; a row that holds nothing is left out.

        Raises ``AnswerTooBig`` as soon as more than ``bytes_max`` bytes have come; the connection is lost then.
        """
        self._send("getRowsWithColumns", tableName=table, rows=rows, columns=columns, attributes={})
        self._socket.left_bytes = bytes_max
        try:
            found = self._receive("getRowsWithColumns")
        finally:
            self._socket.left_bytes = None
        self._check(rows, (result.row for result in found))
        return {result.row: result.columns for result in found}

    def change(self, table: bytes, changes: Sequence[Change], until_ms: int | None = None) -> None:
        """Put and delete cells. After an error some of it may be done.

        With ``until_ms`` all are deletes, and take only what the server had written by that time of its clock.
        """
        by_row: dict[bytes, list[Any]] = {}
        for row, column, value in changes:
            mutation = Mutation(isDelete=value is None, column=column, value=value)
            by_row.setdefault(row, []).append(mutation)
        batches = [BatchMutation(row=row, mutations=mutations) for row, mutations in by_row.items()]
        name = "mutateRows" if until_ms is None else "mutateRowsTs"
        timed = {} if until_ms is None else {"timestamp": until_ms}
        self._send(name, tableName=table, rowBatches=batches, attributes={}, **timed)
        self._receive(name)

    def swap(self, table: bytes, swaps: Sequence[Swap]) -> list[bool | Denied | None]:
        """Compare and set each: all questions are sent before the first answer is read.

        True or False as HBase answered, ``Denied`` where it answered with an error, None where the connection was lost
        before the answer came. Never raises ``Lost``.
        """
        outcomes: list[bool | Denied | None] = [None] * len(swaps)
        try:
            for one in swaps:
                mutation = Mutation(column=one.column, value=one.value)
                self._send(
                    "checkAndPut",
                    tableName=table,
                    row=one.row,
                    column=one.column,
                    value=one.expected,
                    mput=mutation,
                    attributes={},
                )
            for index in range(len(swaps)):
                try:
                    outcomes[index] = bool(self._receive("checkAndPut"))
                except Denied as denied:
                    outcomes[index] = denied
        except Lost:
            # What was answered until then is true all the same.
            return outcomes
        return outcomes

    def scan(self, selection: Selection) -> Generator[tuple[bytes, Columns], None, None]:
        """The rows of a selection in order, or their pieces. The connection does nothing else until this is closed."""
        arguments: dict[str, int | bytes] = {"batchSize": selection.batch} if selection.batch else {}
        if selection.stop:
            arguments["stopRow"] = selection.stop
        if selection.only:
            arguments["filterString"] = selection.only
        scan = TScan(startRow=selection.start, columns=selection.columns, caching=selection.ahead, **arguments)
        self._send("scannerOpenWithScan", tableName=selection.table, scan=scan, attributes={})
        scanner = self._receive("scannerOpenWithScan")
        try:
            while True:
                self._send("scannerGetList", id=scanner, nbRows=selection.ahead)
                found = self._receive("scannerGetList")
                if not found:
                    return
                for result in found:
                    self._check_range(selection, result.row)
                    yield result.row, result.columns
        finally:
            if not self.is_lost:
                self._send("scannerClose", id=scanner)
                self._receive("scannerClose")

    def table_names(self) -> list[bytes]:
        """The tables that HBase has, with their namespaces."""
        return list(self._ask("getTableNames"))

    def families(self, table: bytes) -> dict[bytes, Any]:
        """The families of a table, as far as the gateway describes them."""
        return dict(self._ask("getColumnDescriptors", tableName=table))

    def is_enabled(self, table: bytes) -> bool:
        """Whether a table is switched on."""
        return bool(self._ask("isTableEnabled", tableName=table))

    def _ask(self, name: str, **arguments: Any) -> Any:  # noqa: ANN401  # as of _Client
        self._send(name, **arguments)
        return self._receive(name)

    def _send(self, name: str, **arguments: Any) -> None:  # noqa: ANN401  # as of _Client
        self._socket.deadline = self.deadline.at_most(self._call_s)
        try:
            self.client.send(name, **arguments)
        except Exception as error:
            raise self._lost(error) from error

    def _receive(self, name: str) -> Any:  # noqa: ANN401  # as of _Client
        try:
            return self.client.receive(name)
        except DECLARED_ERRORS as error:
            raise Denied(text_of(error)) from error
        except AnswerTooBig:
            self.is_lost = True
            raise
        except Exception as error:
            raise self._lost(error) from error

    def _check(self, asked: Sequence[bytes], found: Iterator[bytes]) -> None:
        try:
            check_rows(asked, found)
        except _MixedUp as error:
            raise self._lost(error) from error

    def _check_range(self, selection: Selection, row: bytes) -> None:
        is_beyond = bool(selection.stop) and row >= selection.stop
        if row < selection.start or is_beyond:
            raise self._lost(_MixedUp(f"the row {row.hex()} was not asked for"))

    def _lost(self, error: Exception) -> Lost:
        self.is_lost = True
        return Lost(f"{self.address}: {text_of(error)}")


def check_number(asked: tuple[str, int], answered: tuple[str, int]) -> None:
    """Refuse an answer that has another number than its request, or is one to another call."""
    if asked != answered:
        raise _MixedUp(f"the answer is to {answered}, and {asked} was asked")


def check_rows(asked: Sequence[bytes], found: Iterator[bytes]) -> None:
    """Refuse rows that were not asked for."""
    strangers = set(found) - set(asked)
    if strangers:
        raise _MixedUp(f"the row {min(strangers).hex()} was not asked for")
