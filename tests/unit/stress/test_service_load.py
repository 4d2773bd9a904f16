"""Sending to a service: refusals, failures, closed connections, and that a slow service does not slow the sender."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from consumer.model.errors import ConfigError, SinkError
from consumer.stress.schedule import due_times
from consumer.stress.service_load import CHECK, STORE, ServiceAddress, ServiceLoad
from consumer.stress.trial import Trial

UNIQUE = b'{"results":[{"outcome":"unique"}]}'
DUPLICATE = UNIQUE.replace(b"unique", b"duplicate")
Answer = Callable[[int], tuple[int, bytes]]


@contextmanager
def answering(answer: Answer, requests: list[tuple[str, str | None]] | None = None) -> Iterator[str]:
    """A service that answers by the number of the article, and may close each connection without saying so."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if requests is not None:
                requests.append((self.path, self.headers["Authorization"]))
            status, data = answer(int(body["articles"][0]["id"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            self.wfile.flush()
            self.close_connection = status == 200

        def log_request(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def run(url: str, trial: Trial, connections: int = 8, wait_s: float = 5.0) -> None:
    """Send an article for each due time."""
    load = ServiceLoad(ServiceAddress(url), STORE, connections, wait_s)
    articles = (json.dumps({"id": number}).encode() for number in range(len(trial.due_s)))
    load.run(articles, trial, lambda: False)


def test_every_article_is_sent_once_and_answered() -> None:
    """Although the service closes each connection after an answer without saying so."""
    trial = Trial("r", due_times(200, 0.2))
    requests: list[tuple[str, str | None]] = []
    with answering(lambda number: (200, DUPLICATE if number % 2 else UNIQUE), requests) as url:
        run(url, trial)
    report = trial.report()
    assert (report.sent, report.waits.articles, report.originals_flagged, report.missing) == (40, 40, 20, ())
    assert [path for path, _ in requests] == [STORE] * 40


def test_refusals_and_answers_without_a_verdict_are_counted() -> None:
    """By status; the articles are named as without a verdict."""
    error = b'{"results":[{"outcome":"error","problem":{}}]}'
    answers = {0: (429, b"{}"), 1: (429, b"{}"), 2: (503, b"{}"), 3: (200, error), 4: (200, b"<html>")}
    trial = Trial("r", due_times(50, 0.2))
    with answering(lambda number: answers.get(number, (200, UNIQUE))) as url:
        run(url, trial)
    report = trial.report()
    assert (report.refused, report.failed) == ({429: 2, 503: 1}, {"the answer has no verdict": 2})
    assert report.missing == tuple(f"r-{number}" for number in range(5))
    assert report.waits.articles == 5


def test_a_slow_answer_delays_no_other_article_and_counts_from_when_it_was_due() -> None:
    """One takes half a second: with two connections the other goes on. With one, all wait, and their waits say so."""

    def answer(number: int) -> tuple[int, bytes]:
        time.sleep(0.5 if number == 0 else 0)
        return 200, UNIQUE

    two, one = Trial("r", due_times(40, 0.5)), Trial("r", due_times(40, 0.5))
    with answering(answer) as url:
        run(url, two, connections=2)
        run(url, one, connections=1)
    assert two.report().waits.longest >= 0.5 > 10 * np.median(two.answered_s[1:] - two.due_s[1:])
    # If waits counted from sending, only the first article would have a long one.
    assert np.median(one.answered_s - one.due_s) > 0.2
    assert one.report().late >= 15


def test_a_service_that_does_not_answer_in_time_fails_the_article() -> None:
    """The reason is counted."""
    trial = Trial("r", np.array([0.0]))
    ended = threading.Event()
    with answering(lambda _: (ended.wait(5), (200, UNIQUE))[1]) as url:
        run(url, trial, wait_s=0.2)
        ended.set()
    assert trial.report().failed == {"no answer in time": 1}


def test_the_first_article_says_what_is_wrong() -> None:
    """The address, the token, or that it is another server."""
    problem = json.dumps({"detail": "Send a token."}).encode()
    requests: list[tuple[str, str | None]] = []
    with answering(lambda number: [(401, problem), (404, b"?"), (200, UNIQUE)][number], requests) as url:
        load = ServiceLoad(ServiceAddress(url, "secret"), CHECK, 1, 5.0)
        with pytest.raises(SinkError, match="answers 401: Send a token"):
            load.try_out("a", b'{"id":0}')
        with pytest.raises(SinkError, match="answers 404; check that the URL is that of dupwatch serve"):
            load.try_out("a", b'{"id":1}')
        load.try_out("a", b'{"id":2}')
    assert requests == [(CHECK, "Bearer secret")] * 3
    with pytest.raises(SinkError, match=r"does not answer at http://127\.0\.0\.1:1: Connection refused"):
        ServiceLoad(ServiceAddress("http://127.0.0.1:1"), CHECK, 1, 5.0).try_out("a", b"{}")


@pytest.mark.parametrize("url", ["127.0.0.1:80", "ftp://a", "http://", "http://a:x", "http://u:p@a", "http://a?b"])
def test_other_addresses_are_refused(url: str) -> None:
    """The message shows how to write one, or what is wrong."""
    with pytest.raises(ConfigError, match="--service"):
        ServiceLoad(ServiceAddress(url), STORE, 1, 1.0)
