"""Topics whose values are Avro or Protobuf: the verdicts of their JSON twins, and a registry that goes away."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import text, wait_for
from tests.kafka.running import running
from tests.kafka.topics import Topics, make_topics, read_all, send, wait_for_count
from tests.registry_server import Answer, RegistryServer, any_registry, serving
from tests.written_articles import FIELDS, WRITERS, as_json

pytestmark = pytest.mark.servers

MAPPED = tuple(part for name, path in FIELDS.items() for part in ("--set", f"source.fields.{name}={path}"))
ALL = ("verdicts", "dead-letters")
BAD = {
    b"no schema": (b'{"meta": {}}', b"no_schema_id"),
    b"no such schema": (b"\0\x7f\xff\xff\xffx", b"unknown_schema"),
}


def articles(count: int) -> list[dict[str, Any]]:
    """Articles of which every fifth repeats the one before."""
    return [
        {
            "id": f"a{number}",
            "source": "wire",
            "lang": "en",
            "title": f"Title {number}",
            "body": text(number - (number % 5 == 4)),
            "published": f"2026-01-31T08:15:{number % 60:02}.250+00:00",
        }
        for number in range(count)
    ]


def written_by(value_format: str, registry_url: str) -> tuple[str, ...]:
    """The settings for values in a format."""
    return ("--set", f"kafka.value_format={value_format}", "--set", f"registry.url={registry_url}", *MAPPED)


def verdicts_in(topics: Topics) -> list[dict[str, Any]]:
    """All verdicts, but for when they were."""
    verdicts = [message.content for message in read_all(topics, topics.sink("verdicts"))]
    return [{name: what for name, what in verdict.items() if not name.endswith("_at")} for verdict in verdicts]


def test_verdicts_are_those_of_the_same_articles_in_json(kafka_address: str, tmp_path: Path) -> None:
    """Word for word; what cannot be read is a dead letter; the clean feed has the bytes as they were."""
    given = articles(30)
    everything: dict[str, Topics] = {}
    with any_registry() as url, ExitStack() as stack:
        writers: dict[str, Callable[[dict[str, Any]], bytes]] = {"json": as_json}
        for value_format, writer in WRITERS.items():
            writers[value_format] = stack.enter_context(writer(url, f"articles-{value_format}"))
        running_ones = []
        for value_format, write in writers.items():
            topics = everything[value_format] = make_topics(kafka_address, partitions=1)
            values: list[tuple[str | bytes | None, object]] = [(article["id"], write(article)) for article in given]
            bad = [] if value_format == "json" else [(key, value) for key, (value, _) in BAD.items()]
            send(topics, [*values[:20], *bad, *values[20:], ("a3", None)])
            folder = tmp_path / value_format
            folder.mkdir()
            settings = MAPPED if value_format == "json" else written_by(value_format, url)
            more = ("--set", "kafka.unique=true", *settings)
            running_ones.append(stack.enter_context(running(topics, f"lmdb:{folder / 'store'}", folder, *more)))
        for topics, consumer in zip(everything.values(), running_ones, strict=True):
            wait_for_count(topics, ALL, len(given) + 1 + (0 if topics is everything["json"] else len(BAD)))
            assert consumer.stop() == 0, consumer.log.read_text()
    expected = verdicts_in(everything["json"])
    assert [verdict["outcome"] for verdict in expected].count("duplicate") == 6
    for value_format in WRITERS:
        topics = everything[value_format]
        assert verdicts_in(topics) == expected
        letters = {message.key: (message.value, dict(message.headers)["dupwatch-reason"]) for message in
                   read_all(topics, topics.sink("dead-letters"))}  # fmt: skip
        assert letters == BAD
        sent = {message.key: message.value for message in read_all(topics, topics.source) if message.value is not None}
        clean = [message for message in read_all(topics, topics.sink("unique")) if message.value is not None]
        assert len(clean) == 24
        assert all(message.value == sent[message.key] for message in clean)


def test_a_registry_that_is_away_is_waited_for(kafka_address: str, tmp_path: Path) -> None:
    """Not ready, no dead letter, an end with 0 when asked; and when it is back everything is judged."""
    topics = make_topics(kafka_address, partitions=1)
    store = f"lmdb:{tmp_path / 'store'}"
    with serving(RegistryServer()) as registry:
        with WRITERS["avro"](registry.url, topics.source) as write:
            send(topics, [(article["id"], write(article)) for article in articles(10)])
        registry.says = Answer.json(503, message="no leader")
        settings = written_by("avro", registry.url)

        def away(stored: str) -> bool:
            return stored.startswith("source: ") and registry.url in stored and "no leader" in stored

        # Decoded by the thread that reads ahead, and by the judge's own.
        for workers, back in ((1, False), (0, True)):
            with running(topics, store, tmp_path, "--workers", str(workers), *settings) as consumer:
                wait_for(lambda: any(map(away, consumer.reasons())))
                assert consumer.page("/healthz")[0] == 200
                assert consumer.metric("dupwatch_dead_letters_total") == 0
                if back:
                    registry.says = None
                    wait_for_count(topics, ALL, 10)
                    consumer.wait_ready()
                assert consumer.stop() == 0, consumer.log.read_text()
    assert [verdict["outcome"] for verdict in verdicts_in(topics)].count("duplicate") == 2
    assert read_all(topics, topics.sink("dead-letters")) == []
