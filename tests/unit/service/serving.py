"""Runs the service within the process of a test, on a free port of this machine, over any store."""

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPConnection, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import dupwatch
from consumer.banks.bank_log import BankLog
from consumer.config.config import Config
from consumer.config.sections.service import ServiceSection
from consumer.decode.article import FieldMap
from consumer.files.sinks import NullSink
from consumer.judge.binding import Binding
from consumer.judge.detector import Detector
from consumer.lifecycle.interruption import Drain
from consumer.lifecycle.stopping import StopSignal
from consumer.lifecycle.thread_progress import ThreadProgress
from consumer.model.hooks import Hooks
from consumer.model.limits import DecodeLimits, ReadLimits
from consumer.model.ports import ReleasingSink
from consumer.model.verdict import VerdictEvent
from consumer.pipeline.group_interruption import ReportedDrain
from consumer.service.answering import AnsweringSink
from consumer.service.context import LoadedService
from consumer.service.inbox import Inbox, InboxLimits
from consumer.store_tools.releases import Attribution
from consumer.telemetry.health import HEARTBEAT_MAX_S, Health
from consumer.telemetry.metrics import Build, ServiceMetrics
from consumer.web.audit_log import AuditLog
from consumer.wiring import pipeline_factory
from consumer.wiring.release_run import FlagReleaser, SingleReleaser
from consumer.wiring.service import JUDGE, Logs, Observers, Service
from consumer.wiring.service_loading import ServiceParts, build_requests_pipeline
from consumer.wiring.source_records import SourceRecords
from consumer.workers.pool import InlineFingerprinting
from storage.clock import now_ms
from storage.interface import Store
from storage.watched import WatchedStore
from tests.cli.command import text, wait_for

WAIT_S = 60
BUILD = Build("1.2.3", "jieba-tfidf/2", "4x16")


def article(number: int, article_id: str | None = None, **more: object) -> dict[str, object]:
    """An article whose text is like no other's."""
    return {"id": article_id or f"a{number}", "body": text(number)} | more


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

    def store(self, *articles: object, **headers: str) -> Answer:
        """Store articles."""
        body = json.dumps({"articles": articles}).encode()
        return self.ask("POST", "/v1/articles", body, **({"content_type": "application/json"} | headers))

    def retract(self, article_id: str, key: str) -> Answer:
        """Retract an article."""
        return self.ask("DELETE", f"/v1/articles/{quote(article_id, safe='')}", None, idempotency_key=key)

    def release(self, article_id: str, **body: str) -> Answer:
        """Undo a flag."""
        data = json.dumps({"by": "An Na", "reason": "a correction"} | body).encode()
        path = f"/v1/articles/{quote(article_id, safe='')}/release"
        return self.ask("POST", path, data, content_type="application/json")

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


def judging_of(
    window: dupwatch.Window,
    store: Store | None = None,
    limits: DecodeLimits = DecodeLimits(),  # noqa: B008  # immutable
) -> LoadedService:
    """What a service needs to answer with the settings of a window, and with its store or another one."""
    detector: Detector = window._detector
    asked = detector if store is None else Detector(store, detector.settings, now_ms, seen_ms=detector.seen_ms)
    return LoadedService(
        store=store or window._store,
        settings=detector.settings,
        lexicon=None,  # type: ignore[arg-type]  # only facts need it
        fields=FieldMap(),
        limits=limits,
        body_form="text",
        engine=window._engine,
        builder=window._builder,
        query=asked.query,
        release=_no_release,
        clock=now_ms,
        is_remote=False,
    )


def _no_release(article_id: str, version: str | None, attribution: Attribution) -> VerdictEvent:
    """What a service over it has in place of this."""
    raise NotImplementedError(article_id, version, attribution)


@contextmanager
def served(
    judging: LoadedService | Callable[[], LoadedService],
    sink: ReleasingSink | None = None,
    heard: Hooks | None = None,
    audit_log: AuditLog | None = None,
    stuck_s: float = HEARTBEAT_MAX_S,
    banks: BankLog | None = None,
    /,
    **settings: Any,  # noqa: ANN401  # as the section has them
) -> Iterator[Client]:
    """Serve it until the context is left; verdicts on what is stored go to this sink. Raises what ended it."""
    hooks, section = heard or Hooks(), ServiceSection(**({"listen": "127.0.0.1:0"} | settings))
    limits = InboxLimits(section.inbox_records_max, section.inbox_bytes_max)
    inbox = Inbox(section.gather_s, limits, ReadLimits(), hooks.report)
    interruption = ReportedDrain(ThreadProgress(hooks), Drain(StopSignal(interrupts=False), WAIT_S))

    def load() -> ServiceParts:
        chosen, answering = judging() if callable(judging) else judging, AnsweringSink(sink or NullSink())
        judge = Detector(WatchedStore.interruptible(chosen.store, interruption.while_judging), chosen.settings, now_ms)
        parts = pipeline_factory.JudgingParts(Binding(chosen.settings), InlineFingerprinting(chosen.engine), judge)
        pipeline = build_requests_pipeline(Config(), parts, inbox, answering, interruption, hooks)
        releasing = SingleReleaser(FlagReleaser(chosen.store, answering, now_ms), SourceRecords(Config()))
        return ServiceParts(replace(chosen, release=releasing.release), pipeline, BUILD, (judge.tally,))

    observers = Observers(ServiceMetrics(), Health(stuck_s, grouped=False, judge=JUDGE))
    service = Service(section, inbox, Logs(audit_log, banks), observers, hooks, load)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            service.run()
        except BaseException as error:  # noqa: BLE001  # raised below
            errors.append(error)

    thread = threading.Thread(target=run, name="service")
    thread.start()
    try:
        yield Client(service.url)
    finally:
        service.stop()
        thread.join(WAIT_S)
        service.close()
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def stays_alive(client: Client, stuck_s: float) -> None:
    """Fail unless it is alive for several times as long as a thread may be silent.

    A busy machine may stop any thread for that long, now and then.
    """
    alive = []
    for _ in range(20):
        alive.append(client.get("/healthz").data == b"ok\n")
        time.sleep(stuck_s / 5)
    assert sum(alive) > len(alive) / 2, alive


def wait_until_ready(client: Client) -> None:
    """Wait until requests can be answered."""
    wait_for(lambda: client.get("/readyz").status == 200, WAIT_S)
