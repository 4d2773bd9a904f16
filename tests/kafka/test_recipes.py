"""The recipes of sample/recipes, run as they are in front of a consumer and behind it."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from deploy.local import fetch, java
from deploy.local.connect import ConnectWorker
from deploy.local.kafka import KafkaBroker
from deploy.local.ports import free_ports
from deploy.local.postgres import USER, Postgres
from tests.cli.command import ROOT, json_lines, text
from tests.kafka.reading import WAIT_S, until
from tests.kafka.running import running
from tests.kafka.topics import SINKS, Seen, Topics, ordered_producer, read_all, wait_until_known

pytestmark = [pytest.mark.servers, pytest.mark.load]

RECIPES = ROOT / "sample" / "recipes"
QUIX_PYTHON = ROOT / ".venv" / "recipes" / "bin" / "python"
"""Quix Streams pins older versions of packages that dupwatch has, so it has an environment of its own."""
PARTITIONS = 2
STARTS_MAX = 5


@pytest.fixture
def topics(own_kafka: Callable[..., KafkaBroker]) -> Topics:
    """The topics that the recipes name, on a broker of this test's own."""
    found = Topics(own_kafka().address, "articles", "dupwatch", PARTITIONS)
    names = [found.source, "cms.events", "alerts", *map(found.sink, SINKS)]
    admin = AdminClient({"bootstrap.servers": found.address})
    for creation in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names]).values():
        creation.result(WAIT_S)
    wait_until_known(admin, names)
    return found


@pytest.fixture
def database(own_postgres: Callable[..., Postgres], monkeypatch: pytest.MonkeyPatch) -> Postgres:
    """A database whose changes can be read, with the table of the recipe, and the environment that names it."""
    server = own_postgres()
    execute(server, "ALTER SYSTEM SET wal_level = logical")
    server.stop()
    server.start()
    execute(server, (RECIPES / "connect" / "articles.sql").read_text())
    names = {"PGHOST": "127.0.0.1", "PGPORT": server.port, "PGUSER": USER, "PGPASSWORD": server.password}
    for name, value in {**names, "PGDATABASE": "postgres"}.items():
        monkeypatch.setenv(name, str(value))
    return server


def execute(server: Postgres, statement: str, *values: object) -> None:
    """Execute one or several statements, each in a transaction of its own."""
    with psycopg.connect(server.url("postgres"), password=server.password, autocommit=True) as connection:
        connection.execute(statement.encode(), values or None)


@pytest.fixture
def connect(topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], ConnectWorker]]:
    """Start a worker with both connectors; a second one goes on where the first ended."""
    started: list[ConnectWorker] = []
    folder = RECIPES / "connect"
    connectors = [folder / "articles-from-postgresql.json", folder / "flags-to-file.json"]

    def start() -> ConnectWorker:
        (port,) = free_ports(1)
        variables = {
            "KAFKA_ADDRESS": topics.address,
            "CONNECT_PORT": port,
            "CONNECT_OFFSETS": tmp_path / "offsets",
            "FLAGS_FILE": tmp_path / "flags.jsonl",
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, str(value))
        worker = ConnectWorker(
            folder=tmp_path / f"connect-{len(started)}",
            owner=os.getpid(),
            port=port,
            worker=folder / "worker.properties",
            connectors=connectors,
            jars=fetch.connect_jars(),
            java=java.java(),
        )
        started.append(worker)
        worker.start()
        return worker

    try:
        yield start
    finally:
        for worker in started:
            worker.kill9()


def verdicts_of(topics: Topics, name: str = "verdicts") -> list[dict[str, Any]]:
    """All verdicts so far."""
    return [seen.content for seen in read_all(topics, topics.sink(name))]


def outcomes(topics: Topics) -> dict[str, str]:
    """The last outcome of each id."""
    return {verdict["id"]: verdict["outcome"] for verdict in verdicts_of(topics)}


def test_kafka_connect(
    topics: Topics, database: Postgres, connect: Callable[[], ConnectWorker], tmp_path: Path
) -> None:
    """Rows become articles, deleted rows retractions, and flags lines of a file; a restart loses none."""
    insert = "INSERT INTO articles VALUES (%s, %s, %s, %s, %s)"
    long = text(1, 2000)
    execute(database, insert, "wire-1", "A title", long, "wire", "2026-01-31 08:15:30+08")
    worker = connect()
    with running(topics, f"lmdb:{tmp_path / 'store'}", tmp_path) as consumer:
        until(lambda: "wire-1" in outcomes(topics))
        execute(database, insert, "blog-1", None, long, "blog", None)
        execute(database, insert, "blog-2", None, text(2), "blog", None)
        flags = tmp_path / "flags.jsonl"
        until(lambda: flags.exists() and len(json_lines(flags.read_bytes())) == 1)
        # The body stays as it was, and is so long that PostgreSQL keeps it elsewhere.
        execute(database, "UPDATE articles SET title = 'Another' WHERE id = 'wire-1'")
        execute(database, "DELETE FROM articles WHERE id = 'blog-2'")
        until(lambda: outcomes(topics).get("blog-2") == "retracted")
        worker.stop()
        execute(database, insert, "blog-3", None, long, "blog", None)
        worker = connect()
        until(lambda: len({flag["id"] for flag in json_lines(flags.read_bytes())}) == 2)
        assert consumer.stop() == 0, consumer.log.read_text()
    assert outcomes(topics) == {"wire-1": "unique", "blog-1": "duplicate", "blog-2": "retracted", "blog-3": "duplicate"}
    found = json_lines(flags.read_bytes())
    assert {(flag["id"], flag["duplicate_of"], flag["source"]) for flag in found} == {
        ("blog-1", "wire-1", "blog"),
        ("blog-3", "wire-1", "blog"),
    }
    assert read_all(topics, topics.sink("dead-letters")) == []
    sent: dict[bytes | None, list[Seen]] = {}
    for seen in read_all(topics, topics.source):
        sent.setdefault(seen.key, []).append(seen)
    assert [seen.content for seen in sent[b"wire-1"]] == [
        {"id": "wire-1", "title": title, "body": long, "source": "wire", "published_at": "2026-01-31T00:15:30.000000Z"}
        for title in ("A title", "Another")
    ]
    assert sent[b"blog-2"][-1].value is None


class Supervised:
    """A program of the recipes. One that ends is started again, as a supervisor does.

    Quix Streams ends when the broker does not know a topic at once that it has just created.
    """

    def __init__(self, topics: Topics, program: str, folder: Path, **variables: str) -> None:
        self.log = folder / f"{program}.log"
        self._command = [QUIX_PYTHON, RECIPES / "quix" / program]
        self._environment = os.environ | {"KAFKA_ADDRESS": topics.address} | variables
        self._folder = folder
        self._starts = 0
        self.start()

    def start(self) -> None:
        """Start it."""
        self._starts += 1
        with self.log.open("ab") as file:
            self.process = subprocess.Popen(
                self._command, cwd=self._folder, env=self._environment, stdout=file, stderr=file
            )

    def watch(self) -> None:
        """Start it again if it has ended."""
        if self.process.poll() is not None:
            assert self._starts < STARTS_MAX, self.log.read_text()
            self.start()

    def stop(self) -> None:
        """End it as an operator would; it must end with 0."""
        self.process.terminate()
        assert self.process.wait(WAIT_S) == 0, self.log.read_text()


@contextmanager
def supervised(topics: Topics, folder: Path, programs: Mapping[str, Mapping[str, str]]) -> Iterator[list[Supervised]]:
    """Run programs, each with variables of its own, and stop them after the block."""
    assert QUIX_PYTHON.exists(), "make .venv/recipes.stamp"
    running_programs = [Supervised(topics, name, folder, **variables) for name, variables in programs.items()]
    try:
        yield running_programs
        for program in running_programs:
            program.stop()
    finally:
        for program in running_programs:
            program.process.kill()
            program.process.wait()


def send_events(topics: Topics, events: Sequence[bytes]) -> None:
    """Send what a content management system would, under keys that are no ids."""
    producer = ordered_producer(topics.address)
    for event in events:
        producer.produce("cms.events", event, b"some key", partition=0)
    assert producer.flush(WAIT_S) == 0


def test_quix_streams(topics: Topics, tmp_path: Path) -> None:
    """Events become articles, keyed by their id, and many copies of a source one alert."""
    events: list[object] = [
        {"guid": "wire-1", "state": "published", "headline": "Title", "text": text(1), "site": "wire", "at_ms": 10**12},
        *({"guid": f"blog-{number}", "state": "published", "text": text(1), "site": "blog"} for number in range(5)),
        *({"guid": f"paper-{number}", "state": "published", "text": text(1), "site": "paper"} for number in range(2)),
        {"guid": "blog-0", "state": "withdrawn"},
        {"guid": "news-1", "state": "published"},
    ]  # fmt: skip
    send_events(topics, [*(json.dumps(event).encode() for event in events), b"{"])
    programs = {"articles_from_cms.py": {}, "alert_on_copies.py": {"COPIES_MAX": "4"}}
    exactly = ("--set", "kafka.delivery=exactly-once")
    with (
        supervised(topics, tmp_path, programs) as quix,
        running(topics, f"lmdb:{tmp_path / 'store'}", tmp_path, *exactly) as consumer,
    ):

        def all_has_arrived() -> bool:
            for program in quix:
                program.watch()
            judged = len(verdicts_of(topics)) + len(read_all(topics, topics.sink("dead-letters")))
            return judged == len(events) + 1 and len(read_all(topics, "alerts")) == 1

        until(all_has_arrived)
        assert consumer.stop() == 0, consumer.log.read_text()
    by_id = outcomes(topics)
    assert by_id.pop("blog-0") == "retracted"
    # Which of them is kept depends on whose partition was read first.
    assert sorted(by_id.values()) == ["duplicate"] * 6 + ["unique"]
    letters = {seen.value for seen in read_all(topics, topics.sink("dead-letters"))}
    assert letters == {json.dumps(events[-1]).encode(), b"{"}
    articles = [seen for seen in read_all(topics, topics.source) if seen.value not in letters]
    assert [seen.key for seen in articles] == [seen.content["id"].encode() for seen in articles]
    (alert,) = read_all(topics, "alerts")
    assert alert.key == b"blog"
    assert (alert.content["source"], alert.content["copies"]) == ("blog", 4)
