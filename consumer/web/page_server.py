"""The HTTP or HTTPS server for the pages of a run, built on the standard library.

A few pages that are requested every few seconds need no framework, and every dependency must be kept patched.
``prometheus_client.start_http_server`` is built on the same classes, but serves only one page.
"""

import logging
import socket
import socketserver
import ssl
import sys
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Final, Self

from consumer.model.errors import ConfigError
from consumer.web.access import Access, ListenAddress, is_loopback
from consumer.web.page import PLAIN, PageKind, ServedPage, Site
from consumer.web.page_connections import PageConnection, PageLimit, RequestHead

log = logging.getLogger("dupwatch")

ARRIVING_MAX: Final = 128
"""The maximum number of connections with incomplete requests.

Above it, the client with the most connections loses its oldest one.
"""
GRACE_S: Final = 0.25
"""How long a connection may take to send its request before another may replace it."""
REQUESTS_MAX: Final[Mapping[PageKind, int]] = {"probe": 8, "metrics": 4, "page": 16}
"""The maximum number of requests of each kind that are answered at once.

Above it, further requests for pages are refused; further probes and scrapes replace an older request of their kind.
"""
CONNECTIONS_MAX: Final = ARRIVING_MAX + sum(REQUESTS_MAX.values())
REQUEST_S: Final = 5.0
"""How long the handshake and the request may take together."""
ANSWER_S: Final = 10.0
"""How long an answer may take, including the time until the client has read it."""
_CLOSE_S: Final = 5.0
_SHUTDOWN_POLL_S: Final = 0.05
_BACKLOG: Final = 512
"""Connections that the kernel queues while others are accepted.

A client that finds the queue full retries a second later. The last connection in the queue waits one grace period for
every ``ARRIVING_MAX`` connections before it: about a second in all.
"""
_LOG_CUT_S: Final = 10.0
"""The minimum time between two log lines about cut connections."""
_BUSY: Final = b"HTTP/1.0 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_HEADERS: Final[Mapping[str, str]] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Sent with every answer of the site: nothing is loaded, run, framed or cached, and links send no referrer."""


class PageServer:
    """A server of pages with its own threads. A run never waits for it.

    ``pages`` are by path, as in ``Site``. ``failed`` is called for every request that could not be answered or had
    wrong credentials. These requests are logged; cut connections share one line. Raises ``ConfigError`` if the server
    cannot listen on the address.
    """

    def __init__(
        self,
        address: ListenAddress,
        pages: Mapping[str, ServedPage],
        failed: Callable[[], None],
        access: Access | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        site = Site(pages, failed, access or Access(), is_loopback(address))
        try:
            self._server = _Server(address, site, tls)
        except OSError as error:
            raise ConfigError(
                f"cannot serve the health pages at {address.host}:{address.port}: {error.strerror or error}; set "
                "another address in http.listen, or leave it empty to serve no pages"
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_SHUTDOWN_POLL_S,), name="health", daemon=True
        )
        self._thread.start()

    @property
    def address(self) -> ListenAddress:
        """The address that the server listens on."""
        host, port = self._server.server_address[:2]
        return ListenAddress(str(host), int(port))

    @property
    def url(self) -> str:
        """The URL of the pages."""
        return self.address.url(is_secure=self._server.tls is not None)

    def close(self) -> None:
        """Stop listening. Current requests may still finish. Closing again does nothing."""
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
    """Like ``http.server.HTTPServer``, but without asking the name service for its own name before it serves."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = _BACKLOG

    def __init__(self, address: ListenAddress, site: Site, tls: ssl.SSLContext | None) -> None:
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
        self.address_family = found[0][0]
        self.site = site
        self.tls = tls
        self.arriving = PageLimit(ARRIVING_MAX, REQUEST_S, self._count_cut, grace_s=GRACE_S)
        self.answering = {kind: PageLimit(most, ANSWER_S, self._count_cut) for kind, most in REQUESTS_MAX.items()}
        self._connections: dict[socket.socket, PageConnection] = {}
        self._cut = 0
        self._log_cut_s = 0.0
        super().__init__(address, _Handler)  # type: ignore[arg-type]  # ``finish_request`` makes it

    def service_actions(self) -> None:
        """Cut late connections, and log their number now and then. Called several times a second by the base class."""
        for limit in (self.arriving, *self.answering.values()):
            limit.cut_late()
        if self._cut and time.monotonic() >= self._log_cut_s:
            log.warning("Cut %d slow connections to the health pages", self._cut)
            self._cut, self._log_cut_s = 0, time.monotonic() + _LOG_CUT_S

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # as the base class has it
        connection = self._connections[request] = PageConnection(request, str(client_address[0]))
        connection.move_to(self.arriving, cuts=True)
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            # No thread was started that would remove the connection.
            self._forget(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # as above
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._forget(request)

    def finish_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # as above
        connection = self._connections[request]
        if self.tls is None:
            _Handler(request, client_address, self, connection)
            return
        # Shake hands here and not where connections are accepted, because a silent client would block all others there.
        request.settimeout(ANSWER_S)
        # A copy of the descriptor: the server closes the original.
        with self.tls.wrap_socket(request.dup(), server_side=True, suppress_ragged_eofs=True) as secured:
            _Handler(secured, client_address, self, connection)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # as above
        connection = self._connections.get(request)
        if connection is not None and connection.was_cut:
            # Cut connections are counted already, and share one log line.
            return
        log.warning("A request to the health pages from %s was not answered: %r", client_address[0], sys.exception())
        self.site.failed()

    def _forget(self, request: socket.socket) -> None:
        self._connections.pop(request).leave()

    def _count_cut(self) -> None:
        self._cut += 1
        self.site.failed()


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: _Server
    server_version = "dupwatch"
    sys_version = ""
    error_content_type = PLAIN
    error_message_format = "%(message)s\n"
    # ``arriving`` cuts connections without a request sooner.
    timeout = ANSWER_S

    def __init__(
        self,
        request: socket.socket,
        client_address: Any,  # noqa: ANN401  # as the base class has it
        server: _Server,
        connection: PageConnection,
    ) -> None:
        self._page_connection = connection
        super().__init__(request, client_address, server)

    def setup(self) -> None:
        super().setup()
        self.rfile = RequestHead(self.rfile)  # type: ignore[assignment]  # only lines are read from it

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # named by the base class
        log.debug("health pages: %s", format % args)

    def log_error(self, format: str, *args: object) -> None:  # noqa: A002  # as above
        log.warning("health pages: %s", format % args)
        self.server.site.failed()

    def _answer(self, *, with_body: bool) -> None:
        site = self.server.site
        page = site.page_at(self.path)
        kind: PageKind = "page" if page is None else page.kind
        if not self._page_connection.move_to(self.server.answering[kind], cuts=kind != "page"):
            if not self._page_connection.was_cut:
                log.warning("Refused a request to the health pages: %d are being answered already", REQUESTS_MAX[kind])
                site.failed()
                self.wfile.write(_BUSY)
            return
        response = site.answer(page, self.path, self.headers, self.client_address[0])
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.body)))
        for name, value in {**_HEADERS, **response.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(response.body)
