"""``dupwatch run`` over topics as a service: its pages, its log, and a stuck loop; on a mock cluster."""

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from consumer.kafka.mock_cluster import mock_cluster
from deploy.local.ports import free_ports
from storage.hbase import HbaseOptions
from tests.cli.command import FAST, TIMEOUT_S, run_process, start, stop, text, wait_for
from tests.cli.faulty_command import start_faulty
from tests.kafka.topics import ordered_producer

END_S = TIMEOUT_S
TOPICS = ("out.duplicates", "out.dead-letters")
EVIL = 'evil"\n{"level":"critical","message":"forged"}\x1b[31m'


@pytest.fixture(scope="module")
def brokers() -> Iterator[str]:
    """A cluster with the topics that a run writes; each test reads its own topic."""
    with mock_cluster(TOPICS) as address:
        yield address


class Service:
    """A run, its standard error, and its pages."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path, port: int) -> None:
        self.process = process
        self.log = log
        self.port = port

    def page(self, path: str, **headers: str) -> tuple[int, str]:
        """Return status and text; status 0 if nothing answers."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=END_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def wait_ready(self) -> None:
        """Wait until it can judge."""
        wait_for(lambda: self.page("/readyz")[0] == 200 or self.process.poll() is not None, END_S)
        assert self.process.poll() is None, self.log.read_text()

    def stop(self) -> int:
        """Stop it with SIGTERM and return its exit code."""
        return stop(self.process, seconds=END_S)


@contextmanager
def serving(
    brokers: str,
    sink: str,
    folder: Path,
    *more: str,
    begin: Callable[..., "subprocess.Popen[bytes]"] = start,
    **options: Any,  # noqa: ANN401  # as ``begin`` takes them
) -> Iterator[Service]:
    """Run it on the topic named like ``folder``, and kill it at the end if it still runs."""
    (port,) = free_ports(1)
    # Who asks for a topic makes it.
    ordered_producer(brokers).list_topics(folder.name, timeout=END_S)
    log = folder / "log"
    with log.open("wb") as file:
        process = begin(
            "run", "--source", f"kafka://{brokers}/{folder.name}", "--sink", sink,
            "--store", f"lmdb:{folder / 'store'}", *FAST, "--set", f"kafka.group={folder.name}",
            "--set", f"http.listen=127.0.0.1:{port}", *more,
            stderr=file, **options,
        )  # fmt: skip
        try:
            yield Service(process, log, port)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait(END_S)
            if process.stdout is not None:
                process.stdout.close()


def send(brokers: str, folder: Path, *records: tuple[str, bytes]) -> None:
    """Send records to the topic of ``folder``, in their order."""
    producer = ordered_producer(brokers, {"linger.ms": 2})
    for key, value in records:
        producer.produce(folder.name, value, key.encode(), 0)
    assert producer.flush(END_S) == 0


def article(body: str) -> bytes:
    """Return a record."""
    return json.dumps({"body": body}).encode()


def test_its_log_is_json_and_nobody_forges_a_line(brokers: str, tmp_path: Path) -> None:
    """Each line is an object with a level: start, assignment, dead letters and end, with ids but without texts."""
    with serving(brokers, f"kafka://{brokers}/out", tmp_path, "--set", "log.level=debug") as service:
        service.wait_ready()
        send(
            brokers,
            tmp_path,
            (EVIL, article(f"{EVIL} {text(1)}")),
            ("b", article(f"{EVIL} {text(1)}")),
            ("c", b"no json" * 9),
        )
        wait_for(lambda: '"Flagged"' in service.log.read_text() and "invalid_json" in service.log.read_text(), END_S)
        assert service.stop() == 0
    entries = [json.loads(line) for line in service.log.read_bytes().splitlines()]
    messages = [entry["message"] for entry in entries]
    assert {"time", "level", "logger", "thread", "message"} <= set.intersection(*(set(entry) for entry in entries))
    assert {entry["level"] for entry in entries} <= {"debug", "info", "warning"}
    assert messages.count("Judging") == messages.count("The run has ended") == 1
    assert any(message.startswith("Assigned: ") for message in messages)
    assert any("1 invalid_json" in message for message in messages)
    (flag,) = [entry for entry in entries if entry["message"] == "Flagged"]
    assert flag["article_id"] == "b"
    assert flag["duplicate_of"].startswith('evil"\\n{"level"')
    (end,) = [entry for entry in entries if entry["message"] == "The run has ended"]
    assert (end["articles"], end["duplicates"], end["dead_letters"]) == (2, 1, 1)
    logged = service.log.read_text()
    assert text(1)[:40] not in logged
    assert "no json" not in logged
    assert "\x1b" not in logged


@pytest.mark.parametrize(
    ("fault", "workers", "thread"),
    [
        ("hangs-in-decoding", "0", "main"),
        ("hangs-in-decoding", "1", "read-ahead"),
        ("hangs-in-fingerprinting", "0", "main"),
        ("hangs-in-fingerprinting", "1", "main"),
    ],
)
def test_a_hang_before_judging_is_seen(brokers: str, tmp_path: Path, fault: str, workers: str, thread: str) -> None:
    """Decoding and fingerprinting must make progress, in workers too; waiting for records need not."""
    with serving(
        brokers, f"kafka://{brokers}/out", tmp_path, "--workers", workers, "--set", "http.stuck_s=1",
        begin=partial(start_faulty, fault),
    ) as service:  # fmt: skip
        service.wait_ready()
        send(brokers, tmp_path, ("a", article(text(1))))
        wait_for(lambda: 'outcome="unique"} 1.0' in service.page("/metrics")[1], END_S)
        # Longer than a thread that works may be silent.
        time.sleep(1.5)
        assert service.page("/healthz")[0] == 200
        send(brokers, tmp_path, ("b", article(f"HANGS {text(2)}")))
        wait_for(lambda: service.page("/healthz")[0] == 503, END_S)
        page = service.page("/healthz")[1]
        assert f"The {thread} thread has made no progress for" in page
        if fault == "hangs-in-decoding" or workers == "0":
            assert "hang_here" in page


def test_a_stuck_loop_is_told_with_its_stack(brokers: str, tmp_path: Path) -> None:
    """If nobody reads its output, the loop hangs in a write: /healthz fails and shows where, until it is read."""
    with serving(
        brokers, "-", tmp_path, "--emit", "all", "--set", "http.stuck_s=1", "--set", "log.format=text",
        stdout=subprocess.PIPE,
    ) as service:  # fmt: skip
        service.wait_ready()
        assert service.page("/healthz")[0] == 200
        # More than a pipe holds.
        send(brokers, tmp_path, *((f"{number}-{'x' * 200}", article("")) for number in range(300)))
        wait_for(lambda: service.page("/healthz")[0] == 503, END_S)
        status, stack = service.page("/healthz")
        assert status == 503
        assert "The main thread has made no progress for" in stack
        assert "files/sinks.py" in stack
        assert "in _finish" in stack
        assert service.process.stdout is not None
        taken = 0
        while taken < 300:
            taken += os.read(service.process.stdout.fileno(), 1 << 16).count(b"\n")
        wait_for(lambda: service.page("/healthz") == (200, "ok\n"), END_S)
        assert service.stop() == 0
    assert "Judging kafka://" in service.log.read_text()
    assert "Summary" in service.log.read_text()


def test_it_is_alive_while_it_waits_for_its_store_and_stops_when_asked(brokers: str, tmp_path: Path) -> None:
    """It may wait for any time; nothing has begun then, so SIGTERM ends it at once, with exit code 0."""
    (nobody,) = free_ports(1)
    more = ("--store", f"hbase://127.0.0.1:{nobody}/feed", "--set", "http.stuck_s=2")
    with serving(brokers, f"kafka://{brokers}/out", tmp_path, *more) as service:
        wait_for(lambda: service.page("/readyz")[0] == 503, END_S)
        alive = []
        for _ in range(20):
            alive.append(service.page("/healthz")[0] == 200)
            time.sleep(0.4)
        # A busy machine may stop any thread for longer than it may be silent, now and then.
        assert sum(alive) > len(alive) / 2, alive
        began_s = time.monotonic()
        assert service.stop() == 0, service.log.read_text()
        assert time.monotonic() - began_s < HbaseOptions().deadline_s / 2
    assert "asked to stop before it had begun" in service.log.read_text()


def test_the_page_asks_for_the_password_that_is_configured(brokers: str, tmp_path: Path) -> None:
    """With user and password file: flags need both, the probe needs neither."""
    password = tmp_path / "password"
    password.write_text("s3cret\n")
    with serving(
        brokers, f"kafka://{brokers}/out", tmp_path, "--set", "http.user=ops", "--set", f"http.password_file={password}"
    ) as service:
        service.wait_ready()
        assert service.page("/flags.json")[0] == 401
        allowed = {"Authorization": f"Basic {b64encode(b'ops:s3cret').decode()}"}
        send(brokers, tmp_path, ("p1", article(text(7))), ("p2", article(text(7))))
        wait_for(lambda: json.loads(service.page("/flags.json", **allowed)[1])["seen"] > 0, END_S)
        assert "moderators' console" in service.page("/flags", **allowed)[1]
        assert service.stop() == 0
    assert "s3cret" not in service.log.read_text()


def test_it_listens_for_other_machines_only_where_told_to(brokers: str, tmp_path: Path) -> None:
    """Otherwise it ends with exit code 2, and one line of its log says what to set."""
    ended = run_process(
        "run", "--source", f"kafka://{brokers}/articles", "--sink", "-", "--set", "http.listen=0.0.0.0:0",
        "--store", f"lmdb:{tmp_path / 'store'}",
    )  # fmt: skip
    assert ended.code == 2, ended.err
    entry = json.loads(ended.err)
    assert (entry["level"], entry["error"], entry["exit_code"]) == ("critical", "ConfigError", 2)
    assert "http.open = true" in entry["message"]
