"""Sends articles to the HTTP service, and takes the verdicts from its answers."""

import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from consumer.doctor.pages_client import ClientAccess, failure_reason, ssl_context
from consumer.model.errors import ConfigError, SinkError
from consumer.stress.load import Load, Stop, wait_until
from consumer.stress.trial import Trial

STORE: Final = "/v1/articles"
CHECK: Final = "/v1/check"
_OK: Final = 200


class _JudgedArticle(msgspec.Struct):
    outcome: str


class _Answer(msgspec.Struct):
    results: tuple[_JudgedArticle, ...]


class _Problem(msgspec.Struct):
    detail: str


class ServiceAddress(NamedTuple):
    """A service: its URL, a token if it needs one, and a PEM file of certificates to trust, None for the system's."""

    url: str
    token: str | None = None
    authorities: Path | None = None


class ServiceLoad(Load):
    """A ``dupwatch serve``, asked for one article at a time over up to ``connections`` connections.

    ``path`` is ``STORE`` or ``CHECK``. ``wait_s`` limits connecting, and each wait for a part of an answer. Raises
    ``ConfigError`` for an invalid URL or unreadable certificates.
    """

    def __init__(self, address: ServiceAddress, path: str, connections: int, wait_s: float) -> None:
        try:
            parts = urlsplit(address.url)
            self._host, self._port = parts.hostname or "", parts.port
        except ValueError as error:
            raise ConfigError(f"--service {address.url}: {error}") from error
        if parts.scheme not in {"http", "https"} or not self._host or parts.username is not None or parts.query:
            raise ConfigError(f"--service {address.url}: write http://HOST:PORT or https://HOST:PORT")
        authorities = None if address.authorities is None else str(address.authorities)
        access = ClientAccess(authorities=authorities)
        self._context: ssl.SSLContext | None = ssl_context(access) if parts.scheme == "https" else None
        self._url, self._path = address.url, parts.path.rstrip("/") + path
        self._connections, self._wait_s = connections, wait_s
        self._headers = {"Content-Type": "application/json"}
        if address.token is not None:
            self._headers["Authorization"] = f"Bearer {address.token}"

    def try_out(self, article_id: str, article: bytes) -> None:
        """Send one article. Raises ``SinkError`` unless the service judges it."""
        del article_id
        client = _Client(self)
        try:
            status, body = client.post(article)
        except (OSError, HTTPException) as error:
            raise SinkError(
                f"the service does not answer at {self._url}: {failure_reason(error)}. Check the URL and that it runs."
            ) from error
        finally:
            client.close()
        if status != _OK or _outcome(body) is None:
            raise SinkError(f"the service at {self._url} answers {status}{_detail(body)}")

    def run(self, articles: Iterator[bytes], trial: Trial, stop: Stop) -> None:
        """Send the articles when they are due. If all connections wait for answers, articles are sent late."""
        began_s = time.monotonic()
        numbered = enumerate(articles)
        lock = threading.Lock()

        def send_in_turn() -> None:
            client = _Client(self)
            while True:
                with lock:
                    number, article = next(numbered, (None, b""))
                if number is None or not wait_until(began_s + float(trial.due_s[number]), stop):
                    break
                trial.note_sent(number, time.monotonic() - began_s)
                self._send(client, number, article, trial, began_s)
            client.close()

        with ThreadPoolExecutor(self._connections, thread_name_prefix="stress") as threads:
            for done in [threads.submit(send_in_turn) for _ in range(self._connections)]:
                done.result()

    def close(self) -> None:
        """Do nothing: each thread closes its connection."""

    def connection(self) -> HTTPConnection:
        """Return a new connection, which connects with the first request."""
        if self._context is None:
            return HTTPConnection(self._host, self._port, timeout=self._wait_s)
        return HTTPSConnection(self._host, self._port, timeout=self._wait_s, context=self._context)

    def request(self, connection: HTTPConnection, article: bytes) -> tuple[int, bytes]:
        """Send an article, and return status and body. Raises ``OSError`` and ``HTTPException``."""
        connection.request("POST", self._path, b'{"articles":[' + article + b"]}", self._headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def _send(self, client: "_Client", number: int, article: bytes, trial: Trial, began_s: float) -> None:
        try:
            status, body = client.post(article)
        except (OSError, HTTPException) as error:
            trial.note_failed(failure_reason(error))
            return
        now_s = time.monotonic() - began_s
        if status != _OK:
            trial.note_refused(status)
        elif (outcome := _outcome(body)) is None:
            trial.note_failed("the answer has no verdict")
        else:
            trial.note_verdict(f"{trial.prefix}-{number}", now_s, is_flag=outcome == "duplicate")


class _Client:
    """A connection that is opened again when the service has closed it."""

    def __init__(self, load: ServiceLoad) -> None:
        self._load = load
        self._connection: HTTPConnection | None = None

    def post(self, article: bytes) -> tuple[int, bytes]:
        """Return status and body of the answer. Raises ``OSError`` and ``HTTPException``."""
        if self._connection is not None:
            try:
                return self._load.request(self._connection, article)
            except ConnectionError:
                # The service closes idle connections. An article may be sent again: it keeps its verdict.
                self.close()
            except (OSError, HTTPException):
                self.close()
                raise
        self._connection = self._load.connection()
        try:
            return self._load.request(self._connection, article)
        except (OSError, HTTPException):
            self.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _outcome(body: bytes) -> str | None:
    """Return the outcome of the only article in an answer, or None if the article was not judged."""
    try:
        (judged,) = msgspec.json.decode(body, type=_Answer).results
    except (msgspec.DecodeError, ValueError):
        return None
    return judged.outcome if judged.outcome in {"unique", "duplicate"} else None


def _detail(body: bytes) -> str:
    try:
        return f": {msgspec.json.decode(body, type=_Problem).detail}"
    except msgspec.DecodeError:
        return "; check that the URL is that of dupwatch serve"
