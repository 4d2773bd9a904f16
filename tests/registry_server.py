"""A schema registry for tests, over HTTP: the part of Confluent's API that serializers and readers use, and its faults.

``TEST_REGISTRY`` names a real registry for those tests that need no faults: http://HOST:PORT/apis/ccompat/v7 of an
Apicurio, for one.
"""

import base64
import json
import os
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, NamedTuple
from urllib.parse import unquote, urlsplit

_REAL = "TEST_REGISTRY"


class Answer(NamedTuple):
    """An answer."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}

    @classmethod
    def json(cls, status: int, **content: object) -> "Answer":
        """An answer as a registry gives it."""
        return cls(status, json.dumps(content).encode())


NO_SCHEMA = Answer.json(404, error_code=40403, message="Schema not found")


@dataclass
class RegistryServer:
    """What a registry holds, what it was asked, and what it says instead where a test wants that.

    ``says`` is the answer to everything; ``silent`` gives none while it is set, ``drip_s`` is the time from byte to
    byte. ``user`` may ask, "NAME:PASSWORD".
    """

    says: Answer | None = None
    drip_s: float = 0
    user: str | None = None
    url: str = ""
    asked: list[str] = field(default_factory=list)
    silent: threading.Event = field(default_factory=threading.Event)
    schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    subjects: dict[str, list[int]] = field(default_factory=dict)
    closing: threading.Event = field(default_factory=threading.Event)

    def add(self, text: str, kind: str = "AVRO", subject: str = "s", references: object = ()) -> int:
        """Register a schema, as the API does: the same one twice is one; its id."""
        schema = {"schema": text, "schemaType": kind, "references": list(references or ())}  # type: ignore[call-overload]
        schema_id = next((known for known, stored in self.schemas.items() if stored == schema), len(self.schemas) + 1)
        self.schemas[schema_id] = schema
        versions = self.subjects.setdefault(subject, [])
        if schema_id not in versions:
            versions.append(schema_id)
        return schema_id

    def answer(self, method: str, target: str, given: Any, authorization: str | None) -> Answer:  # noqa: ANN401  # JSON
        """What is said to a request."""
        self.asked.append(f"{method} {target}")
        while self.silent.is_set() and not self.closing.wait(0.02):
            pass
        if self.says is not None:
            return self.says
        if self.user and authorization != f"Basic {base64.b64encode(self.user.encode()).decode()}":
            return Answer.json(401, error_code=40101, message="Unauthorized")
        return self._found(method, target, given) or Answer.json(404, error_code=404, message="HTTP 404 Not Found")

    def _found(self, method: str, target: str, given: Any) -> Answer | None:  # noqa: ANN401  # JSON
        match method, [unquote(part) for part in urlsplit(target).path.strip("/").split("/")]:
            case "POST", ["subjects", subject, "versions"]:
                return Answer.json(200, id=self._added(subject, given))
            case "POST", ["subjects", subject]:
                return self._version(subject, self._added(subject, given))
            case "GET", ["schemas", "ids", number]:
                found = self.schemas.get(int(number))
                return NO_SCHEMA if found is None else Answer.json(200, **found)
            case "GET", ["subjects", subject, "versions", number]:
                versions = self.subjects.get(subject, [])
                if not 1 <= int(number) <= len(versions):
                    return Answer.json(404, error_code=40402, message="Version not found")
                return self._version(subject, versions[int(number) - 1])
        return None

    def _added(self, subject: str, given: dict[str, Any]) -> int:
        return self.add(given["schema"], given.get("schemaType", "AVRO"), subject, given.get("references"))

    def _version(self, subject: str, schema_id: int) -> Answer:
        version = self.subjects[subject].index(schema_id) + 1
        return Answer.json(200, subject=subject, id=schema_id, version=version, **self.schemas[schema_id])


class _Handler(BaseHTTPRequestHandler):
    registry: ClassVar[RegistryServer]

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, given: object) -> None:
        answer = self.registry.answer(self.command, self.path, given, self.headers["Authorization"])
        self.send_response(answer.status)
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json", "Content-Length": str(len(answer.body))}
        for name, value in {**headers, **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if not self.registry.drip_s:
            self.wfile.write(answer.body)
            return
        for place in range(len(answer.body)):
            self.wfile.write(answer.body[place : place + 1])
            self.registry.closing.wait(self.registry.drip_s)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that has gone away is what some tests are about."""


@contextmanager
def serving(registry: RegistryServer, tls: ssl.SSLContext | None = None, port: int = 0) -> Iterator[RegistryServer]:
    """Serve a registry on loopback; its ``url`` says where."""
    handler = type("Handler", (_Handler,), {"registry": registry})
    with _Server(("127.0.0.1", port), handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        registry.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield registry
        finally:
            registry.closing.set()
            server.shutdown()
            thread.join()


@contextmanager
def any_registry() -> Iterator[str]:
    """Where a registry is that has no faults: the real one that is named, or the one here."""
    if real := os.environ.get(_REAL):
        yield real
    else:
        with serving(RegistryServer()) as registry:
            yield registry.url
