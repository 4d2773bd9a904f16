"""A collector that takes spans by OTLP over HTTP, or does not."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """What came, and what is answered."""

    def __init__(self) -> None:
        self.port = 0
        self.status = 200
        self.answering = threading.Event()
        self.answering.set()
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: dict[str, str] = {}
        self.paths: set[str] = set()

    @property
    def endpoint(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def spans(self) -> list[Span]:
        """All that came."""
        return [
            span for request in self.requests for resource in request.resource_spans for scope in resource.scope_spans
            for span in scope.spans
        ]  # fmt: skip

    @property
    def services(self) -> set[str]:
        """The names of the services that sent spans."""
        return {
            attribute.value.string_value for request in self.requests for resource in request.resource_spans
            for attribute in resource.resource.attributes if attribute.key == "service.name"
        }  # fmt: skip


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector until the end."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        """Takes what comes."""

        def do_POST(self) -> None:
            """Take spans."""
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.answering.wait(60)
            collector.paths.add(self.path)
            collector.headers = dict(self.headers.items())
            if collector.status == 200:
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.requests.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(collector.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class names it so
            """Say nothing."""

    class Quiet(ThreadingHTTPServer):
        """Says nothing of clients that go away."""

        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Say nothing."""

    with Quiet(("127.0.0.1", 0), Handler) as server:
        collector.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            collector.answering.set()
            server.shutdown()
            thread.join()
