"""Serves the pages of a run to those who watch it, over HTTP or HTTPS.

The standard library serves them. A few pages that are asked for every few seconds need no framework, and every
dependency of a service is one more that has to be kept patched. ``prometheus_client.start_http_server`` is built on the
same classes, and knows one page only.

A page is a function from a ``Request`` to a ``Response``; the server knows nothing of what it serves.
"""

import logging
import socket
import socketserver
import ssl
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, Self
from urllib.parse import parse_qsl

from consumer.model.errors import ConfigError
from consumer.pages.access import Access, Address, is_loopback
from consumer.pages.connections import Connection, Head, Room

log = logging.getLogger("dupwatch")

Kind = Literal["probe", "metrics", "page"]
ARRIVING_MAX: Final = 128
"""Connections that have not sent all of their request; beyond this the client with the most loses its oldest."""
GRACE_S: Final = 0.25
"""How long a connection has to send its request before another may take its place."""
REQUESTS_MAX: Final[Mapping[Kind, int]] = {"probe": 8, "metrics": 4, "page": 16}
"""Requests of each kind answered at once. More pages are refused; more probes and scrapes cut the slowest reader."""
CONNECTIONS_MAX: Final = ARRIVING_MAX + sum(REQUESTS_MAX.values())
REQUEST_S: Final = 5.0
"""How long a client may take for its handshake and its request together."""
ANSWER_S: Final = 10.0
"""How long an answer may take, with the client that reads it."""
PLAIN: Final = "text/plain; charset=utf-8"
_CLOSE_S: Final = 5.0
_SHUTDOWN_POLL_S: Final = 0.05
_BACKLOG: Final = 512
"""Connections that the kernel holds while others are accepted: one that finds no place asks again a second later.

The last of them waits for as many graces as the hall is filled by those before it: a second.
"""
_LOG_CUT_S: Final = 10.0
_QUERY_FIELDS_MAX: Final = 10
_BUSY: Final = b"HTTP/1.0 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_HEADERS: Final[Mapping[str, str]] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""What every answer has: nothing is loaded, run, framed or kept, and nobody is told where a link was found."""


class Request(NamedTuple):
    """What a page is asked. ``trusted`` is False where credentials are asked for and were not given."""

    path: str
    query: Mapping[str, str]
    headers: Message
    trusted: bool


class Response(NamedTuple):
    """What a page says; ``headers`` go before those that every answer has."""

    status: HTTPStatus
    content_type: str
    body: bytes
    headers: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Page:
    """What answers, and to whom: ``is_open`` to those without credentials too, ``has_articles`` under known names only.

    Pages of each ``kind`` have places of their own.
    """

    answer: Callable[[Request], Response]
    is_open: bool = False
    has_articles: bool = False
    kind: Kind = "page"


@dataclass(frozen=True, slots=True)
class _Served:
    """What the handlers of a server work with."""

    pages: Mapping[str, Page]
    failed: Callable[[], None]
    access: Access
    tls: ssl.SSLContext | None
    is_local: bool


def tls_context(certificate: str, key: str | None) -> ssl.SSLContext:
    """What HTTPS is served with, from PEM files; ConfigError where they will not do."""

    def no_passphrase() -> str:
        raise ConfigError("http.tls_key: the key has a passphrase, and there is nobody to be asked for it")

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key, no_passphrase)
    except OSError as error:
        raise ConfigError(
            f"http.tls_certificate: {certificate}{f' with {key}' if key else ''} cannot be used: "
            f"{error.strerror or error}"
        ) from error
    return context


class HealthServer:
    """Serves pages from threads of its own, until it is closed; a run never waits for it.

    A path that ends in ``/`` is of all pages below it, but for ``/`` itself. ``failed`` is told of every request that
    could not be answered, which is logged as well. ConfigError where the address cannot be had.
    """

    def __init__(
        self,
        address: Address,
        pages: Mapping[str, Page],
        failed: Callable[[], None],
        access: Access | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        served = _Served(pages, failed, access or Access(), tls, is_loopback(address))
        try:
            self._server = _Server(address, served)
        except OSError as error:
            raise ConfigError(
                f"the health pages cannot be served at {address.host}:{address.port}: {error.strerror or error}; name "
                "another address in http.listen, or leave it empty for no pages"
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_SHUTDOWN_POLL_S,), name="health", daemon=True
        )
        self._thread.start()

    @property
    def address(self) -> Address:
        """Where it listens."""
        host, port = self._server.server_address[:2]
        return Address(str(host), int(port))

    @property
    def url(self) -> str:
        """Where it is to be asked."""
        host, port = self.address
        scheme = "http" if self._server.served.tls is None else "https"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    def close(self) -> None:
        """Stop listening. Requests under way end by themselves, or with the process; closing again does nothing."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(_CLOSE_S)
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Server(socketserver.ThreadingTCPServer):
    """Not ``http.server.HTTPServer``, which asks the name service for its own name before it serves."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = _BACKLOG

    def __init__(self, address: Address, served: _Served) -> None:
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
        self.address_family = found[0][0]
        self.served = served
        self.hall = Room(ARRIVING_MAX, REQUEST_S, self._count_cut, grace_s=GRACE_S)
        self.rooms = {kind: Room(limit, ANSWER_S, self._count_cut) for kind, limit in REQUESTS_MAX.items()}
        self._connections: dict[socket.socket, Connection] = {}
        self._cut = 0
        self._log_cut_s = 0.0
        super().__init__(address, _Handler)  # type: ignore[arg-type]  # made in ``finish_request``

    def service_actions(self) -> None:
        """Called after each request, and several times a second."""
        for room in (self.hall, *self.rooms.values()):
            room.cut_late()
        if self._cut and time.monotonic() >= self._log_cut_s:
            log.warning("%d slow connections to the health pages were cut", self._cut)
            self._cut, self._log_cut_s = 0, time.monotonic() + _LOG_CUT_S

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # as the base class has it
        connection = self._connections[request] = Connection(request, str(client_address[0]))
        connection.move_to(self.hall, cuts=True)
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            # No thread could be started, so there is none that would make room again.
            self._forget(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # as above
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._forget(request)

    def finish_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # as above
        connection = self._connections[request]
        if self.served.tls is None:
            _Handler(request, client_address, self, connection)
            return
        # Here and not where connections are accepted: there one that says nothing would hold up all others.
        request.settimeout(ANSWER_S)
        # A copy of the descriptor, since the one given is the server's to close.
        with self.served.tls.wrap_socket(request.dup(), server_side=True, suppress_ragged_eofs=True) as secured:
            _Handler(secured, client_address, self, connection)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # as above
        connection = self._connections.get(request)
        if connection is not None and connection.was_cut:
            # It was counted then, and many of them share one line of the log.
            return
        log.warning("A request to the health pages from %s was not answered: %r", client_address[0], sys.exception())
        self.served.failed()

    def _forget(self, request: socket.socket) -> None:
        self._connections.pop(request).leave()

    def _count_cut(self) -> None:
        self._cut += 1
        self.served.failed()


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: _Server
    server_version = "dupwatch"
    sys_version = ""
    # A request that does not come is the hall's affair, which cuts it earlier.
    timeout = ANSWER_S

    def __init__(self, request: socket.socket, client_address: Any, server: _Server, place: Connection) -> None:  # noqa: ANN401
        self._place = place
        super().__init__(request, client_address, server)

    def setup(self) -> None:
        super().setup()
        self.rfile = Head(self.rfile)  # type: ignore[assignment]  # lines are all that is read of it

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class names it so
        log.debug("health pages: %s", format % args)

    def log_error(self, format: str, *args: object) -> None:  # noqa: A002  # as above
        log.warning("health pages: %s", format % args)
        self.server.served.failed()

    def _answer(self, *, with_body: bool) -> None:
        page = self._page()
        kind: Kind = "page" if page is None else page.kind
        if not self._place.move_to(self.server.rooms[kind], cuts=kind != "page"):
            if not self._place.was_cut:
                log.warning("A request to the health pages was refused: %d are being answered", REQUESTS_MAX[kind])
                self.server.served.failed()
                self.wfile.write(_BUSY)
            return
        response = self._response(page)
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.body)))
        for name, value in {**_HEADERS, **response.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(response.body)

    def _page(self) -> Page | None:
        pages, path = self.server.served.pages, self.path.partition("?")[0]
        return pages.get(path) or pages.get(f"/{path.split('/')[1]}/" if path.count("/") > 1 else "")

    def _response(self, page: Page | None) -> Response:
        served = self.server.served
        path, _, query = self.path.partition("?")
        authorization = self.headers.get("Authorization")
        trusted = served.access.lets_in(authorization)
        if authorization and not trusted:
            # A browser asks without any first; only wrong ones are worth a word.
            log.warning("health pages: wrong credentials from %s", self.client_address[0])
            served.failed()
        if not trusted and (page is None or not page.is_open):
            return _UNAUTHORISED
        if page is None:
            known = "".join(f"{path}\n" for path in sorted(served.pages) if path == "/" or not path.endswith("/"))
            return Response(HTTPStatus.NOT_FOUND, PLAIN, f"There are these pages:\n{known}".encode())
        host = self.headers.get("Host")
        if not served.access.answers(host, has_articles=page.has_articles, is_local=served.is_local):
            return _UNKNOWN_NAME
        try:
            return page.answer(Request(path, _fields(query), self.headers, trusted))
        except Exception:
            log.exception("A page of the health pages failed")
            served.failed()
            return Response(HTTPStatus.INTERNAL_SERVER_ERROR, PLAIN, b"the page failed; the log says why\n")


_UNAUTHORISED: Final = Response(
    HTTPStatus.UNAUTHORIZED,
    PLAIN,
    b"This page asks for a user and a password.\n",
    {"WWW-Authenticate": 'Basic realm="dupwatch", charset="UTF-8"'},
)
_UNKNOWN_NAME: Final = Response(
    HTTPStatus.MISDIRECTED_REQUEST,
    PLAIN,
    b"Ask under an IP address, localhost or a name of http.names, or set http.user and a password.\n",
)


def _fields(query: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, max_num_fields=_QUERY_FIELDS_MAX))
    except ValueError:
        return {}
