"""A Thrift client that never waits past a deadline, and never confuses answers.

The library neither numbers requests nor checks the numbers of answers, so after a time-out the next request could get
the answer to the previous request. Here requests are numbered from a random start, and the gateway returns the number.
"""

import socket
import ssl
from collections import deque
from importlib import resources
from secrets import randbits
from typing import Any, Final

import thriftpy2
from thriftpy2.protocol import TBinaryProtocol
from thriftpy2.thrift import TClient
from thriftpy2.transport import TSocket
from typing_extensions import override

from storage.hbase.failures import AnswerTooBig
from storage.hbase.options import GatewayAddress
from storage.hbase.waits import Deadline

# HBase's Thrift 1 interface, from the definition that happybase ships. Its classes have no type stubs.
_API: Final[Any] = thriftpy2.load(str(resources.files("happybase") / "Hbase.thrift"), module_name="Hbase_thrift")

Hbase: Final = _API.Hbase
Mutation: Final = _API.Mutation
BatchMutation: Final = _API.BatchMutation
TScan: Final = _API.TScan
TRowResult: Final = _API.TRowResult
TCell: Final = _API.TCell
DECLARED_ERRORS: Final[tuple[type[Exception], ...]] = (_API.IOError, _API.IllegalArgument, _API.AlreadyExists)
"""The exceptions that the interface declares. Any other one leaves the connection in an unknown state."""
_NUMBER_BITS: Final = 31


class WrongAnswer(Exception):  # noqa: N818  # it is what was received
    """An answer that does not belong to its request."""


class GatewaySocket(TSocket):  # type: ignore[misc]  # the library has no types here
    """A socket whose operations all end by a deadline, with or without TLS."""

    def __init__(self, address: GatewayAddress, tls: ssl.SSLContext | None) -> None:
        super().__init__(host=address.host, port=address.port)
        self._tls = tls
        self.deadline = Deadline(0.0)
        # How many more bytes of the current answer may be read, or None for no limit.
        self.left_bytes: int | None = None
        # Bytes that were read already and will be returned again, before new ones.
        self.unread = b""

    @override
    def open(self) -> None:
        plain = socket.create_connection((self.host, self.port), timeout=self._left_s())
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.set_handle(plain if self._tls is None else self._tls.wrap_socket(plain, server_hostname=self.host))
        except BaseException:
            plain.close()
            raise

    @override
    def read(self, sz: int) -> bytes:
        if self.unread:
            data, self.unread = self.unread[:sz], self.unread[sz:]
            return data
        self._arm()
        received: bytes = super().read(sz)
        if self.left_bytes is not None:
            self.left_bytes -= len(received)
            if self.left_bytes < 0:
                raise AnswerTooBig
        return received

    @override
    def write(self, buf: bytes) -> None:
        self._arm()
        super().write(buf)

    def _arm(self) -> None:
        if self.sock is None:
            raise ConnectionError("the connection is closed")
        self.sock.settimeout(self._left_s())

    def _left_s(self) -> float:
        left_s = self.deadline.left_s
        # A time-out of 0 would make the socket non-blocking.
        if not left_s:
            raise TimeoutError("timed out")
        return left_s


class NumberedProtocol(TBinaryProtocol):  # type: ignore[misc]  # as above
    """Thrift's binary protocol with numbered requests; each answer must have the number of its request."""

    def __init__(self, transport: Any) -> None:  # noqa: ANN401  # the library's classes have no common type
        super().__init__(transport, decode_response=False)
        self._number = randbits(_NUMBER_BITS)
        self._unanswered: deque[tuple[str, int]] = deque()

    @override
    def write_message_begin(self, name: str, ttype: int, seqid: int) -> None:
        del seqid
        self._number = (self._number + 1) % (1 << _NUMBER_BITS)
        self._unanswered.append((name, self._number))
        super().write_message_begin(name, ttype, self._number)

    @override
    def read_message_begin(self) -> tuple[str, int, int]:
        name, ttype, number = super().read_message_begin()
        self.check_answer((name, number))
        return name, ttype, number

    def check_answer(self, answered: tuple[str, int]) -> None:
        """Raise ``WrongAnswer`` unless this is the name and number of the earliest unanswered request."""
        check_number(self._unanswered.popleft(), answered)

    @property
    def has_unanswered(self) -> bool:
        """Whether there are unanswered requests."""
        return bool(self._unanswered)


class PipeliningClient(TClient):  # type: ignore[misc]  # as above
    """The library's client with separate sending and receiving, so that several requests can be in flight."""

    def send(self, name: str, **arguments: Any) -> None:  # noqa: ANN401  # whatever the call takes
        """Send a request without waiting for its answer."""
        self._send(name, **arguments)

    def receive(self, name: str) -> Any:  # noqa: ANN401  # whatever the call returns
        """Return the answer to the earliest unanswered request, or raise it if it is an error."""
        return self._recv(name)


def check_number(requested: tuple[str, int], answered: tuple[str, int]) -> None:
    """Raise ``WrongAnswer`` unless an answer has the name and number of its request."""
    if requested != answered:
        raise WrongAnswer(f"received the answer to {answered} instead of that to {requested}")
