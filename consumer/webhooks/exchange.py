"""Sends one HTTP request to known addresses, without looking up names or following redirects.

``h11`` implements the protocol, over our own sockets. Complete HTTP clients look up names themselves, read proxies from
the environment, and limit the time of each step instead of the total.
"""

import socket
import ssl
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import Final, NamedTuple

import h11

from consumer.webhooks.deadline import AttemptDeadline, DeadlinePassed
from consumer.webhooks.endpoint import Endpoint

ANSWER_BYTES_MAX: Final = 4_096
"""The maximum number of bytes read from an answer, including its head."""
_READ_BYTES_MAX: Final = 1_024


class WebhookReply(NamedTuple):
    """The answer of a receiver. ``body`` is the beginning of its body, or empty if the message was accepted."""

    status: int
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes

    def header(self, name: bytes) -> str:
        """Return the value of a header, or "" if it is missing. ``name`` must be in lower case."""
        return next((value.decode("latin-1") for key, value in self.headers if key == name), "")

    @property
    def is_accepted(self) -> bool:
        """Whether the receiver has accepted the message."""
        return 200 <= self.status < 300  # noqa: PLR2004  # HTTP statuses


class NoReply(Exception):  # noqa: N818  # named for what is missing
    """The answer is not valid HTTP, its head is too long, or it ended before its head was complete."""


def exchange(
    endpoint: Endpoint,
    addresses: Sequence[str],
    message: tuple[Sequence[tuple[str, str]], bytes],
    tls: ssl.SSLContext | None,
    deadline: AttemptDeadline,
) -> WebhookReply:
    """Send a message (headers and body) to the first address that accepts a connection, and return the answer.

    With TLS, the certificate must be valid for the endpoint's name. Raises ``OSError``, ``NoReply`` and
    ``DeadlinePassed``.
    """
    with closing(_connect(addresses, endpoint.port, deadline)) as plain:
        connection = plain
        if tls is not None:
            plain.settimeout(deadline.left_s())
            connection = tls.wrap_socket(plain, server_hostname=endpoint.host)
        with closing(connection):
            protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=ANSWER_BYTES_MAX)
            try:
                # A receiver may answer and close before it has read the whole message.
                with suppress(BrokenPipeError, ConnectionResetError):
                    _send(connection, _request(protocol, endpoint, *message), deadline)
                return _reply(_IncomingAnswer(connection, protocol, deadline))
            except h11.ProtocolError as error:
                raise NoReply(str(error)) from error


def _connect(addresses: Sequence[str], port: int, deadline: AttemptDeadline) -> socket.socket:
    """Connect to the first address that answers. Raises ``OSError`` and ``DeadlinePassed``.

    Each address gets a share of the time left, since some may never answer.
    """
    for number, address in enumerate(addresses):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        opened = socket.socket(family, socket.SOCK_STREAM)
        try:
            opened.settimeout(deadline.left_s() / (len(addresses) - number))
            opened.connect((address, port))
        except BaseException as error:
            opened.close()
            if isinstance(error, OSError) and number < len(addresses) - 1:
                continue
            raise
        return opened
    raise OSError("the name has no addresses")


def _request(protocol: h11.Connection, endpoint: Endpoint, headers: Sequence[tuple[str, str]], body: bytes) -> bytes:
    """Return the bytes of a request."""
    sent = [
        ("host", endpoint.host_header),
        ("user-agent", "dupwatch"),
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        ("connection", "close"),
        *headers,
    ]
    events = (h11.Request(method="POST", target=endpoint.target, headers=sent), h11.Data(body), h11.EndOfMessage())
    return b"".join(protocol.send(event) or b"" for event in events)


def _send(connection: socket.socket, data: bytes, deadline: AttemptDeadline) -> None:
    left = memoryview(data)
    while left:
        connection.settimeout(deadline.left_s())
        left = left[connection.send(left) :]


class _IncomingAnswer:
    """An answer as it comes in, up to ``ANSWER_BYTES_MAX``."""

    def __init__(self, connection: socket.socket, protocol: h11.Connection, deadline: AttemptDeadline) -> None:
        self._connection = connection
        self._protocol = protocol
        self._deadline = deadline
        self._bytes_left = ANSWER_BYTES_MAX

    def event(self) -> object:
        """Return the next protocol event.

        Raises ``OSError``, ``NoReply``, ``DeadlinePassed`` and ``h11.ProtocolError``.
        """
        while (event := self._protocol.next_event()) is h11.NEED_DATA:
            if not self._bytes_left:
                raise NoReply(f"its head has more than {ANSWER_BYTES_MAX} bytes")
            self._connection.settimeout(self._deadline.left_s())
            data = self._connection.recv(min(_READ_BYTES_MAX, self._bytes_left))
            self._bytes_left -= len(data)
            self._protocol.receive_data(data)
        return event


def _reply(incoming: _IncomingAnswer) -> WebhookReply:
    """Return the answer, with the beginning of its body unless it accepts the message. Raises as ``event`` does."""
    event = incoming.event()
    while isinstance(event, h11.InformationalResponse):
        event = incoming.event()
    if not isinstance(event, h11.Response):
        raise NoReply("the connection was closed before an answer")
    head = WebhookReply(event.status_code, list(event.headers), b"")
    return head if head.is_accepted else head._replace(body=_beginning(incoming))


def _beginning(incoming: _IncomingAnswer) -> bytes:
    body = bytearray()
    try:
        while isinstance(event := incoming.event(), h11.Data):
            body += event.data
    except (OSError, DeadlinePassed, NoReply, h11.ProtocolError):
        # The status is already known, so an incomplete body does not matter.
        return bytes(body)
    return bytes(body)
