"""The pages of a run for those who watch it: ``/healthz``, ``/readyz`` and ``/metrics``, over HTTP.

The standard library serves them. A few short pages that are asked for every few seconds need no framework, and every
dependency of a service is one more that has to be kept patched. ``prometheus_client.start_http_server`` is built on the
same classes, and knows one page only.

A page is a function from the request's headers to a ``Response``; the server knows nothing of what it serves.
"""

import json
import logging
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from prometheus_client.exposition import choose_encoder

from consumer.errors import ConfigError
from consumer.health import Health, main_stack
from consumer.metrics import Metrics

log = logging.getLogger("dupwatch")

HOST: Final = "127.0.0.1"
REQUESTS_MAX: Final = 16
"""Requests answered at once; more are refused, so that nobody takes the run's memory by asking."""
REQUEST_S: Final = 5.0
"""How long a client may take to send its request, or to take the answer."""
_CLOSE_S: Final = 5.0
_SHUTDOWN_POLL_S: Final = 0.05
_PORT_MAX: Final = 65_535
_PLAIN: Final = "text/plain; charset=utf-8"
_BUSY: Final = b"HTTP/1.0 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Address(NamedTuple):
    """Where pages are served; port 0 is any that is free."""

    host: str
    port: int


class Response(NamedTuple):
    """What a page says."""

    status: HTTPStatus
    content_type: str
    body: bytes


Page = Callable[[Message], Response]


def parse_address(text: str) -> Address:
    """The address that ``HOST:PORT``, ``[IPV6]:PORT`` or ``PORT`` names; ConfigError where it names none."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if colon else HOST
    if not host or not (port.isascii() and port.isdigit()) or int(port) > _PORT_MAX:
        raise ConfigError(f"{text!r} is no address: write it as HOST:PORT, for example {HOST}:9464")
    return Address(host, int(port))


def pages_of(health: Health, metrics: Metrics) -> dict[str, Page]:
    """The pages of a run, by path."""
    return {
        "/healthz": lambda _: _alive(health),
        "/readyz": lambda _: _ready(health),
        "/metrics": lambda headers: _measured(metrics, headers),
    }


def _alive(health: Health) -> Response:
    late = health.late()
    if not late:
        return Response(HTTPStatus.OK, _PLAIN, b"ok\n")
    lines = [
        f"The {one.thread} thread has not turned for {one.silent_s:.0f} s. It is here:\n{one.stack}" for one in late
    ]
    if all(one.thread != "main" for one in late):
        lines.append(f"The main thread is here:\n{main_stack()}")
    return Response(HTTPStatus.SERVICE_UNAVAILABLE, _PLAIN, "\n".join(lines).encode())


def _ready(health: Health) -> Response:
    reasons = health.reasons()
    status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
    body = json.dumps({"ready": not reasons, "reasons": reasons}, ensure_ascii=False).encode() + b"\n"
    return Response(status, "application/json", body)


def _measured(metrics: Metrics, headers: Message) -> Response:
    encode, content_type = choose_encoder(headers.get("Accept", ""))
    return Response(HTTPStatus.OK, content_type, encode(metrics.registry))


@dataclass(frozen=True, slots=True)
class _Served:
    """What the handlers of a server work with."""

    pages: Mapping[str, Page]
    failed: Callable[[], None]
    room: threading.BoundedSemaphore


class HealthServer:
    """Serves pages from threads of its own, until it is closed; a run never waits for it.

    ``failed`` is told of every request that could not be answered, which is logged as well. ConfigError where the
    address cannot be had.
    """

    def __init__(self, address: Address, pages: Mapping[str, Page], failed: Callable[[], None]) -> None:
        served = _Served(pages, failed, threading.BoundedSemaphore(REQUESTS_MAX))
        try:
            self._server = _Server(address, served)
        except OSError as error:
            raise ConfigError(
                f"the health pages cannot be served at {address.host}:{address.port}: {error.strerror or error}"
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
    request_queue_size = 2 * REQUESTS_MAX

    def __init__(self, address: Address, served: _Served) -> None:
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
        self.address_family = found[0][0]
        self.served = served
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # as the base class has it
        if not self.served.room.acquire(blocking=False):
            log.warning("A request to the health pages was refused: %d are being answered", REQUESTS_MAX)
            self.served.failed()
            request.settimeout(0)
            try:
                request.send(_BUSY)
            finally:
                self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            # No thread could be started, so there is none that would make room again.
            self.served.room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # as above
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.served.room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401, ARG002  # as above
        error = sys.exception()
        log.warning("A request to the health pages from %s was not answered: %r", client_address[0], error)
        self.served.failed()


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: _Server
    server_version = "dupwatch"
    sys_version = ""
    timeout = REQUEST_S

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
        response = self._response()
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if with_body:
            self.wfile.write(response.body)

    def _response(self) -> Response:
        pages = self.server.served.pages
        page = pages.get(self.path.partition("?")[0])
        if page is None:
            known = "".join(f"{path}\n" for path in sorted(pages))
            return Response(HTTPStatus.NOT_FOUND, _PLAIN, f"There are these pages:\n{known}".encode())
        try:
            return page(self.headers)
        except Exception:
            log.exception("A page of the health pages failed")
            self.server.served.failed()
            return Response(HTTPStatus.INTERNAL_SERVER_ERROR, _PLAIN, b"the page failed; the log says why\n")
