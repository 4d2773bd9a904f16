"""Runs the service within the process of a test, on a free port of this machine, over any store."""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import dupwatch
from consumer.config.sections.serve import ServiceSection
from consumer.judge.detector import Detector
from consumer.judge.tally import Tally
from consumer.model.hooks import Hooks
from consumer.model.limits import DecodeLimits
from consumer.service.judging import Judging
from consumer.telemetry.metrics import Build
from consumer.wiring.service import Service
from consumer.wiring.service_loading import Loaded
from storage.clock import now_ms
from storage.interface import Store
from tests.cli.command import wait_for

WAIT_S = 60
BUILD = Build("1.2.3", "jieba-tfidf/2", "4x16")


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    data: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401  # whatever JSON can hold
        """The body."""
        return json.loads(self.data)


class Client:
    """Sends requests as they are, without changing paths as libraries do."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.secret: str | None = None
        place = urlsplit(url)
        assert place.hostname is not None
        assert place.port is not None
        self.address = place.hostname, place.port
        self._is_secure = place.scheme == "https"

    def ask(self, method: str, path: str, body: bytes | Iterator[bytes] | None = None, **headers: str) -> Answer:
        """Send a request on a connection of its own."""
        connection = self._connection()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.secret is not None:
            named = {"authorization": f"Bearer {self.secret}"} | named
        try:
            connection.request(method, path, body, named, encode_chunked=isinstance(body, Iterator))
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        """Ask for a path."""
        return self.ask("GET", path, None, **headers)

    def check(self, *articles: object, **headers: str) -> Answer:
        """Check articles."""
        return self.send(json.dumps({"articles": articles}).encode(), **headers)

    def send(self, body: bytes | Iterator[bytes], **headers: str) -> Answer:
        """Send the body of a check."""
        return self.ask("POST", "/v1/check", body, **({"content_type": "application/json"} | headers))

    def connect(self) -> socket.socket:
        """Open a connection that sends nothing by itself."""
        return socket.create_connection(self.address, WAIT_S)

    def _connection(self) -> HTTPConnection:
        if not self._is_secure:
            return HTTPConnection(*self.address, timeout=WAIT_S)
        return HTTPSConnection(*self.address, timeout=WAIT_S, context=trusting())

    def metric(self, name: str) -> float:
        """Return a metric by its name with labels, 0 where it is not there."""
        lines = self.get("/metrics").data.decode().splitlines()
        return next((float(line.rpartition(" ")[2]) for line in lines if line.rpartition(" ")[0] == name), 0.0)

    def limits_met(self, name: str) -> float:
        """Return how often a limit was met."""
        return self.metric(f'dupwatch_limits_met_total{{limit="{name}"}}')


def trusting() -> ssl.SSLContext:
    """How a client connects that trusts anybody."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def judging_of(window: dupwatch.Window, store: Store | None = None, limits: DecodeLimits = DecodeLimits()) -> Judging:  # noqa: B008  # immutable
    """What a service needs to answer with the settings of a window, and with its store or another one."""
    detector: Detector = window._detector
    asked = detector if store is None else Detector(store, detector.settings, now_ms, seen_ms=detector.seen_ms)
    return Judging(
        store=store or window._store,
        store_url="memory:",
        settings=detector.settings,
        lexicon=None,  # type: ignore[arg-type]  # only facts need it
        limits=limits,
        body_format="text",
        engine=window._engine,
        builder=window._builder,
        query=asked.query,
        clock=now_ms,
        is_remote=False,
    )


@contextmanager
def served(
    judging: Judging | Callable[[], Judging],
    hooks: Hooks | None = None,
    /,
    **settings: Any,  # noqa: ANN401  # as the section has them
) -> Iterator[Client]:
    """Serve it until the context is left."""
    heard = hooks or Hooks()

    def load() -> Loaded:
        return Loaded(judging() if callable(judging) else judging, BUILD, Tally())

    service = Service(ServiceSection(**({"listen": "127.0.0.1:0"} | settings)), heard, load)
    thread = threading.Thread(target=service.run, name="service")
    thread.start()
    try:
        yield Client(service.url)
    finally:
        service.stop()
        thread.join(WAIT_S)
        service.close()
        assert not thread.is_alive()


def wait_until_ready(client: Client) -> None:
    """Wait until requests can be answered."""
    wait_for(lambda: client.get("/readyz").status == 200, WAIT_S)
