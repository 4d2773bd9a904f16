"""The pages of a consumer, which tests can change while they are served."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final

METRICS: Final = """\
process_start_time_seconds 1000
dupwatch_articles_total{outcome="unique"} 80
dupwatch_articles_total{outcome="duplicate"} 20
dupwatch_lag_records{topic="articles",partition="0"} 1234
dupwatch_dead_letters_total{reason="invalid_json"} 5
dupwatch_errors_total{type="store"} 2
dupwatch_assigned_partitions 3
dupwatch_end_to_end_seconds_bucket{le="0.01"} 50
dupwatch_end_to_end_seconds_bucket{le="0.1"} 100
dupwatch_end_to_end_seconds_bucket{le="+Inf"} 100
dupwatch_stage_seconds_count{stage="commit"} 10
dupwatch_stage_seconds_sum{stage="commit"} 1
dupwatch_stage_seconds_count{stage="look_up"} 10
dupwatch_stage_seconds_sum{stage="look_up"} 5
dupwatch_stage_seconds_count{stage="decode"} 10
dupwatch_stage_seconds_sum{stage="decode"} 0.5
"""


def flag(article_id: str, decided_at: str, title: str = "A title") -> dict[str, Any]:
    """A flag as /flags.json has it, with more than is shown."""
    return {
        "id": article_id, "version": "00", "duplicate_of": f"{article_id}-original", "duplicate_of_version": "00",
        "distance": 3, "similarity": 0.95, "cluster": "c", "shared_keywords": ["words"], "truncated": False,
        "arrived_at": decided_at, "decided_at": decided_at, "released": False, "href": "/flags/00",
        "article": {"title": title, "source": "s", "url": "", "lang": "", "arrived_at": decided_at}, "original": None,
    }  # fmt: skip


def flags_page(*flags: dict[str, Any]) -> bytes:
    """The whole page."""
    return json.dumps({"schema": "dupwatch.flags/1", "seen": len(flags), "flags_max": 50, "flags": flags}).encode()


class Pages:
    """The answer for each path, and the headers of the last request; it listens on ``port``."""

    def __init__(self) -> None:
        self.port = 0
        self.server = "dupwatch"
        self.asked: dict[str, str] = {}
        self.answers: dict[str, tuple[int, bytes]] = {
            "/metrics": (200, METRICS.encode()),
            "/readyz": (200, b'{"ready": true, "reasons": []}'),
            "/flags.json": (200, flags_page()),
        }
        self.before_answer: Callable[[], object] = lambda: None

    @property
    def url(self) -> str:
        """Where they are."""
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def served(context: ssl.SSLContext | None = None) -> Iterator[Pages]:
    """Serve pages from a thread until the end."""
    pages = Pages()

    class Handler(BaseHTTPRequestHandler):
        """Answers as the pages say."""

        def do_GET(self) -> None:
            """Answer."""
            pages.asked = dict(self.headers.items())
            pages.before_answer()
            status, body = pages.answers.get(self.path, (HTTPStatus.NOT_FOUND, b""))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def version_string(self) -> str:
            """The server that answers."""
            return pages.server

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class names it so
            """Say nothing."""

    class Quiet(HTTPServer):
        """Says nothing of clients that go away."""

        def handle_error(self, request: object, client_address: object) -> None:
            """Say nothing."""

    with Quiet(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        pages.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield pages
        finally:
            server.shutdown()
            thread.join()
