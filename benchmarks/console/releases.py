"""How long it takes to carry out many decisions *wrong* at once: ``python -m benchmarks.console.releases``.

A broker of its own, a topic with one text and its copies, and a consumer with LMDB that flags them, with a clean feed.
Then so many of the flags, drawn from all of them, are said to be wrong, and one sender of the console carries that out:
a release in the store, its event in the sink, the article in the clean feed.
"""

import random
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.kafka.broker import PARTITIONS, Record, broker, consumer, make_topics, send
from benchmarks.speed.report import OUT, publish
from benchmarks.speed.texts import make_feed
from consumer.config.config import Config
from consumer.config.loading import load_config
from consumer.console.intake.sending import Sender, SenderParts
from consumer.console.intake.store_reading import flags_in
from consumer.model.hooks import Hooks
from consumer.reviews import decisions, people, sending
from consumer.reviews.database import Database, opened_database
from consumer.reviews.flag_events import add_events
from consumer.wiring.console_releases import TopicReleases
from consumer.wiring.console_store import LazyStore
from consumer.wiring.kafka_parts import sink_topics
from storage.clock import now_ms

PART: Final = "console_releases"
_CHARS: Final = 600
_WAIT_S: Final = 30.0
_END_S: Final = 600.0


def main(
    flags: Annotated[int, typer.Option(min=1, help="Flags in the topic.")] = 20_000,
    releases: Annotated[int, typer.Option(min=1, help="How many of them are wrong.")] = 1_000,
    *,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Measure how long it takes until all are released."""
    with tempfile.TemporaryDirectory() as name, broker() as running:
        folder = Path(name)
        source, sink = make_topics(running.address, "feed")
        store = f"lmdb:{folder / 'store'}"
        config = load_config(
            None,
            {"source": {"url": source}, "sink": {"url": sink}, "store": {"url": store}, "kafka": {"unique": True}},
        )
        _add_topic(running.address, config)
        _judge(running.address, config, flags)
        database = opened_database(f"sqlite:///{folder / 'console.db'}")
        try:
            seconds = _release(config, database, releases)
        finally:
            database.close()
        row = {"flags": flags, "releases": releases, "s": seconds, "releases/s": releases / seconds}
        publish(PART, "Decisions *wrong* carried out", [row], out=out)


def _add_topic(address: str, config: Config) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic(sink_topics(config).unique_topic, PARTITIONS, 1)]).values():
        future.result(_WAIT_S)


def _judge(address: str, config: Config, flags: int) -> None:
    """Send one text many times, and return once the topic of flags has them all."""
    (text,) = make_feed(1, _CHARS, seed=1)
    body = msgspec.json.encode({"body": text.body})
    send(address, "feed", [Record(f"a{number}", body) for number in range(flags + 1)])
    topic = sink_topics(config).duplicates_topic
    with consumer(config.source.url, config.sink.url, config.store.url, ["--set", "kafka.unique=true"]):
        until_s = time.monotonic() + _END_S
        while _messages(address, topic) < flags:
            if time.monotonic() > until_s:
                raise RuntimeError(f"{_messages(address, topic)} of {flags} flags came")
            time.sleep(0.5)


def _messages(address: str, topic: str) -> int:
    reader = Consumer({"bootstrap.servers": address, "group.id": "count"})
    try:
        marks = [
            reader.get_watermark_offsets(TopicPartition(topic, number), timeout=_WAIT_S) for number in range(PARTITIONS)
        ]
    finally:
        reader.close()
    return sum(high - low for low, high in filter(None, marks))


def _release(config: Config, database: Database, count: int) -> float:
    """Decide, and return how long the sender takes, in seconds."""
    hooks = Hooks()
    access = LazyStore(config, hooks.report, None)
    for events in flags_in(access()):
        database.written(partial(add_events, events=events))
    ids = list(range(1, 1 + sum(1 for batch in flags_in(access()) for _ in batch)))
    chosen = random.Random(1).sample(ids, count)
    person = database.written(lambda connection: people.add_person(connection, "Ann", "reviewer", now_ms()))
    decided = database.written(
        lambda connection: decisions.decide(connection, chosen, person.person_id, "wrong", "", now_ms(), 0)
    )
    if len(decided.review_ids) != count:
        raise RuntimeError(f"{len(decided.review_ids)} of {count} could be decided")
    releases = TopicReleases(config, access, now_ms, hooks, lambda: None)
    sender = Sender(SenderParts(database, releases, now_ms, hooks))
    began_s = time.monotonic()
    while sender.work():
        print(f"\r{_left(database)} left  ", end="", file=sys.stderr)
    seconds = time.monotonic() - began_s
    if _left(database):
        raise RuntimeError(f"{_left(database)} were not released")
    releases.close()
    access.close()
    return seconds


def _left(database: Database) -> int:
    with database.reading() as connection:
        return sending.backlog(connection, now_ms()).due


if __name__ == "__main__":
    typer.run(main)
