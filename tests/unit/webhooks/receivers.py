"""Receivers of webhooks on this machine: real servers, with TLS or without, that can be away and come back."""

import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final, NamedTuple

from standardwebhooks.webhooks import Webhook
from typing_extensions import override

from consumer.webhooks.courier import Courier

WAIT_S: Final = 60
NAME: Final = "hooks.example"
"""The name in the certificate; ``courier`` leads it to this machine."""
LOCAL: Final = ("127.0.0.0/8",)
SECRET: Final = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="


class Received(NamedTuple):
    """A message that came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message_id(self) -> str:
        """The header that names it."""
        return self.headers["webhook-id"]

    def verify(self, secret: str = SECRET) -> object:
        """Return what it says, once the signature is checked as receivers do."""
        return Webhook(secret).verify(self.body, self.headers)


class Reaction(NamedTuple):
    """The answer to a message."""

    status: int = 204
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""


def accept(received: Received) -> Reaction:
    """Accept everything."""
    return Reaction()


@dataclass
class Receiver:
    """A receiver. ``react`` may be exchanged at any time."""

    port: int
    react: Callable[[Received], Reaction] = accept
    received: list[Received] = field(default_factory=list)
    came: threading.Condition = field(default_factory=threading.Condition)

    def url(self, path: str = "/events", host: str = "127.0.0.1", scheme: str = "http") -> str:
        """Where it is."""
        return f"{scheme}://{host}:{self.port}{path}"

    def wait_for(self, count: int) -> list[Received]:
        """Wait until so many messages came, and return all."""
        with self.came:
            assert self.came.wait_for(lambda: len(self.received) >= count, WAIT_S), self.received
            return list(self.received)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # A browser's test has it come back where it was.
    allow_reuse_address = True

    def __init__(self, receiver: Receiver, tls: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", receiver.port), _Handler)
        self.receiver = receiver
        receiver.port = self.server_address[1]
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    @override
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a client that left."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        """Take a message."""
        receiver = self.server.receiver
        body = self.rfile.read(int(self.headers["content-length"]))
        received = Received(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        reaction = receiver.react(received)
        with receiver.came:
            receiver.received.append(received)
            receiver.came.notify_all()
        self.send_response(reaction.status)
        for name, value in reaction.headers:
            self.send_header(name, value)
        self.send_header("content-length", str(len(reaction.body)))
        self.end_headers()
        self.wfile.write(reaction.body)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def serving(receiver: Receiver, tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """Have a receiver listen while the context is open; it may come back later, on the same port."""
    with _Server(receiver, tls) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join(WAIT_S)


@contextmanager
def raw(answer: Callable[[socket.socket], None]) -> Iterator[Receiver]:
    """Serve connections one after the other with a function that reads and writes bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        receiver = Receiver(listening.getsockname()[1])
        is_over = threading.Event()

        def serve() -> None:
            while not is_over.is_set():
                connection, _ = listening.accept()
                with connection, suppress(OSError):
                    if not is_over.is_set():
                        answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield receiver
        finally:
            is_over.set()
            socket.create_connection(("127.0.0.1", receiver.port)).close()
            thread.join(WAIT_S)


def certificate(folder: Path, name: str = NAME) -> Path:
    """Make a certificate for a name that signs itself, with its key, and return the file."""
    path = folder / f"{name}.pem"
    options: list[str | Path] = [
        "-subj",
        f"/CN={name}",
        "-addext",
        f"subjectAltName=DNS:{name}",
        "-days",
        "2",
        "-out",
        path,
        "-keyout",
        f"{path}.key",
    ]
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run([*command, *options], check=True, capture_output=True)
    return path


def shown_by(path: Path) -> ssl.SSLContext:
    """Return what a server shows of a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path, f"{path}.key")
    return context


def courier(*addresses: str, attempt_s: float = WAIT_S, allows_http: bool = True) -> Courier:
    """Return what sends to this machine, and takes every name to have these addresses, or that of this machine."""
    found = addresses or ("127.0.0.1",)
    return Courier(LOCAL, allows_http=allows_http, resolve=lambda host, port: found, attempt_s=attempt_s)
