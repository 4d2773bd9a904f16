"""Runs the console within the process of a test, on a free port of this machine, over a database of its own."""

import re
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from html import unescape
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

from prometheus_client import CollectorRegistry

from consumer.banks.bank_log import BankLog
from consumer.config.sections.console import ConsoleSection
from consumer.console.app import build_console
from consumer.console.bank_access import BankAccess
from consumer.console.context import ArticleReader, ArticleView, ConsoleContext, SetupWarnings
from consumer.console.pages.review_evaluation import cached_evaluation
from consumer.console.probes import Probes
from consumer.console.rendering import Rendering
from consumer.console.stored_matches import MatchSearch
from consumer.judge.settings import JudgeSettings
from consumer.model.errors import StoreMismatch
from consumer.model.hooks import Hooks
from consumer.reviews import people, sessions
from consumer.reviews.database import Connection, Database, identity
from consumer.reviews.people import Person
from consumer.reviews.word_index.words import WordCutter
from consumer.store_tools.text_query import QueriedStore
from consumer.telemetry.metrics.instruments import Instruments, ReactingMetrics
from consumer.telemetry.metrics.requests import CONSOLE_REQUESTS, REACTIONS, RequestMetrics
from consumer.web.connections import ConnectionLimits
from consumer.web.request_threads import Workers
from consumer.web.server import Server, listening_socket, url_of
from consumer.webhooks.courier import Courier
from tests.unit.reviews.made import database_in

WAIT_S: Final = 60
PASSWORD: Final = "correct horse battery"
_TOKEN: Final = re.compile(r'name="token" value="([0-9a-f]{64})"')


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: list[tuple[str, str]]
    data: bytes

    @property
    def text(self) -> str:
        """The body."""
        return self.data.decode()

    @property
    def shown(self) -> str:
        """What a reader sees of a page: its text, without markup, style and script."""
        inside = re.sub(r"<(style|script)\b.*?</\1>", "", self.text, flags=re.DOTALL)
        return " ".join(unescape(re.sub(r"<[^>]*>", " ", inside)).split())

    def header(self, name: str) -> str:
        """Return a header, "" where it is not there."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")

    def all_headers(self, name: str) -> list[str]:
        """Return all headers of a name."""
        return [value for key, value in self.headers if key.lower() == name.lower()]

    @property
    def token(self) -> str:
        """What the first form of a page proves itself with."""
        found = _TOKEN.search(self.text)
        assert found is not None, self.shown
        return found.group(1)


class Browser:
    """Sends requests as a browser does: keeps cookies, says where a form comes from. Does not follow redirects."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.cookies: dict[str, str] = {}
        self._host = urlsplit(url).netloc

    def ask(self, method: str, path: str, body: bytes | Iterator[bytes] | None = None, **headers: str | None) -> Answer:
        """Send a request on a connection of its own; a header of None is left out."""
        named: dict[str, str | None] = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookies:
            named.setdefault("cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        connection = HTTPConnection(self._host, timeout=WAIT_S)
        try:
            sent = {name: value for name, value in named.items() if value is not None}
            connection.request(method, path, body, sent, encode_chunked=isinstance(body, Iterator))
            got = connection.getresponse()
            answer = Answer(got.status, got.getheaders(), got.read())
        finally:
            connection.close()
        for line in answer.all_headers("set-cookie"):
            self._keep(line)
        return answer

    def get(self, path: str, **headers: str | None) -> Answer:
        """Ask for a page."""
        return self.ask("GET", path, None, **headers)

    def post(self, path: str, form: Sequence[tuple[str, str]] | dict[str, str], **headers: str | None) -> Answer:
        """Send a form as it is."""
        body = urlencode(list(form.items()) if isinstance(form, dict) else form).encode()
        given = {"content_type": "application/x-www-form-urlencoded", "origin": self.url}
        return self.ask("POST", path, body, **(given | headers))

    def send(self, path: str, page: str = "/me", /, **form: str) -> Answer:
        """Send a form with the token that forms of a page have."""
        return self.post(path, {"token": self.get(page).token, **form})

    def sign_in(self, name: str, password: str = PASSWORD, **more: str) -> Answer:
        """Sign in."""
        return self.send("/sign-in", "/sign-in", name=name, password=password, **more)

    def _keep(self, line: str) -> None:
        name, _, value = line.partition(";")[0].partition("=")
        if value.strip('"'):
            self.cookies[name] = value
        else:
            self.cookies.pop(name, None)


class Clock:
    """A time that a test moves."""

    def __init__(self) -> None:
        self.at_ms = 1_764_000_000_000

    def __call__(self) -> int:
        """Return the time."""
        return self.at_ms

    def pass_s(self, seconds: float) -> None:
        """Let some time pass."""
        self.at_ms += round(seconds * 1_000)


class KnownArticles:
    """A store of articles."""

    def __init__(self, *views: ArticleView) -> None:
        self.views = {(view.id, view.version): view for view in views}
        self.error: Exception | None = None

    def read(self, pairs: Sequence[tuple[str, str]], *, bodies: bool = True) -> list[ArticleView | None]:
        """Return what is known."""
        if self.error is not None:
            raise self.error
        return [self.views.get(pair) for pair in pairs]


class Served(NamedTuple):
    """A console that answers."""

    url: str
    database: Database
    clock: Clock
    workers: Workers
    registry: CollectorRegistry

    @property
    def cookie(self) -> str:
        """The name of the cookie that holds the secret of a session, without TLS."""
        return f"dupwatch-{self.identity}"

    @property
    def identity(self) -> str:
        """What is in the names of cookies."""
        with self.database.read_connection() as connection:
            return identity(connection)

    def browser(self) -> Browser:
        """Return a browser that was never here."""
        return Browser(self.url)

    def add(self, name: str, role: people.Role = "reviewer") -> Person:
        """Add somebody with the password that all have."""
        return self.database.write(lambda c: people.add_person(c, name, role, self.clock(), password=PASSWORD))

    def signed_in(self, name: str, role: people.Role = "reviewer") -> Browser:
        """Return a browser in which somebody new is signed in."""
        self.add(name, role)
        browser = self.browser()
        answer = browser.sign_in(name)
        assert answer.status == 303, answer.shown
        return browser

    def in_session_of(self, name: str, begun_ms: int = 0, session_ms: int = 3_600_000) -> Browser:
        """Return a browser in which somebody who is there signed in, so many milliseconds ago."""

        def begun(connection: Connection) -> str:
            person = people.person_named(connection, name)
            assert person is not None
            return sessions.begin_session(connection, person.person_id, self.clock() - begun_ms, session_ms)

        browser = self.browser()
        browser.cookies[self.cookie] = self.database.write(begun)
        return browser

    def connect(self) -> socket.socket:
        """Open a connection that sends nothing by itself."""
        place = urlsplit(self.url)
        return socket.create_connection((place.hostname, place.port), WAIT_S)


def empty_store() -> QueriedStore:
    """Open a store that nothing was ever judged into."""
    raise StoreMismatch("the store is empty: nothing was ever judged into it")


@cache
def _rendering() -> Rendering:
    """Compile each template once, as a console does, and not again in every test."""
    return Rendering()


@cache
def metrics() -> tuple[CollectorRegistry, RequestMetrics, ReactingMetrics]:
    """Return the metrics of all consoles: to begin more than a thousand series takes longer than many a test.

    A test that needs them to begin at zero clears this cache.
    """
    registry = CollectorRegistry()
    instruments = Instruments(registry)
    return registry, RequestMetrics(instruments, CONSOLE_REQUESTS), ReactingMetrics(instruments, *REACTIONS)


@contextmanager
def served(
    database: Database | Path,
    articles: ArticleReader | None = None,
    *,
    fixed_person: str | None = None,
    is_tls: bool = False,
    unready_reasons: Callable[[], Sequence[str]] = tuple,
    hooks: Hooks | None = None,
    judging: JudgeSettings | None = None,
    banks: BankLog | None = None,
    comparable: Callable[[], QueriedStore] | None = None,
    warnings: Callable[[], SetupWarnings] = SetupWarnings,
    cutter: WordCutter | None = None,
    courier: Courier | None = None,
    **settings: Any,  # noqa: ANN401  # as the section has them
) -> Iterator[Served]:
    """Serve it until the context is left."""
    section = ConsoleSection(**({"listen": "127.0.0.1:0"} | settings))
    opened = database if isinstance(database, Database) else database_in(database)
    heard, clock = hooks or Hooks(), Clock()
    registry, requests, reactions = metrics()
    requests.listen(heard)
    reactions.listen(heard)
    evaluation = cached_evaluation(opened, judging, clock)
    access = None if banks is None else BankAccess(banks, section)
    archive = comparable or empty_store
    desk = ConsoleContext(
        opened,
        section,
        articles or KnownArticles(),
        lambda: archive().compared.store,
        MatchSearch(archive, clock),
        _rendering(),
        clock,
        heard,
        judging,
        evaluation,
        access,
        warnings,
        cutter,
        courier=courier or Courier(section.webhooks.networks, allows_http=section.webhooks.http),
    )
    workers = Workers(section.threads, section.requests_max, section.answer_s)
    app = build_console(desk, workers, Probes(unready_reasons, registry), is_tls=is_tls, fixed_person=fixed_person)
    listening = listening_socket(section.listen, needs_token=False)
    limits = ConnectionLimits(section.connections_max, section.receive_s, section.send_s, section.unread_bytes_max)
    server = Server(app, limits, heard.report, section.drain_s, None)
    thread = threading.Thread(target=server.run, args=([listening],), name="console")
    thread.start()
    try:
        yield Served(url_of(listening, is_secure=False), opened, clock, workers, registry)
    finally:
        server.stop()
        thread.join(WAIT_S)
        workers.close()
        if access is not None:
            access.close()
        listening.close()
        opened.close()
        assert not thread.is_alive()
