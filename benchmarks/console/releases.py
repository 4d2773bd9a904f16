"""Measure how fast the console carries out decisions *wrong*: ``python -m benchmarks.console.releases``.

A consumer with LMDB flags the copies of one text, which come from a topic of a broker of its own, with a clean feed.
Then some of the flags, drawn from all of them, are released: one after another as the HTTP service does and by a sender
of the console, and many at once by that sender. Each release is written to the store, its event goes to the sink, the
article to the clean feed.
"""

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.kafka.broker import PARTITIONS, Record, broker, consumer, make_topics, send
from benchmarks.speed.report import OUT, Row, publish
from consumer.config.config import Config
from consumer.config.loading import load_config
from consumer.console.intake.sending import ReleaseSender, ReleaseSenderParts
from consumer.console.intake.store_reading import entry_verdicts
from consumer.model.hooks import Hooks
from consumer.model.verdict import Verdict
from consumer.pipeline.feed_kind import Streams
from consumer.reviews import decisions, people, sending
from consumer.reviews.database import Database, open_database
from consumer.reviews.flag_events import add_events
from consumer.store_tools.releases import Attribution
from consumer.stress.made_texts import make_feed
from consumer.wiring.console_releases import SinkReleases, event_sinks
from consumer.wiring.console_store import LazyStore
from consumer.wiring.kafka_parts import sink_topics
from consumer.wiring.release_run import FlagReleaser, SingleReleaser
from consumer.wiring.service_loading import build_sink
from consumer.wiring.source_records import SourceRecords
from storage.clock import now_ms
from storage.interface import Store

PART: Final = "console_releases"
_CHARS: Final = 600
_WAIT_S: Final = 30.0
_END_S: Final = 600.0


def main(
    flags: Annotated[int, typer.Option(min=1, help="Flags in the topic.")] = 20_000,
    releases: Annotated[int, typer.Option(min=1, help="Flags to release at once.")] = 1_000,
    single: Annotated[int, typer.Option(min=2, help="Flags to release one after another, by each.")] = 200,
    *,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Measure the time of single releases, and of many at once."""
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
        database = open_database(f"sqlite:///{folder / 'console.db'}")
        try:
            rows = _measure(config, database, single, releases)
        finally:
            database.close()
        publish(PART, f"Releases, of {flags} flags", rows, out=out)


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


def _measure(config: Config, database: Database, single: int, releases: int) -> list[Row]:
    """Release flags one after another, then many at once. Return the times."""
    hooks = Hooks()
    access = LazyStore(config, hooks.report, None)
    versions = [verdict for verdicts in entry_verdicts(access()) for verdict in verdicts]
    for events in entry_verdicts(access()):
        database.write(partial(add_events, events=events))
    chosen = random.Random(1).sample(range(len(versions)), 2 * single + releases)
    by_service, by_console = chosen[:single], chosen[single:]
    person = database.write(lambda connection: people.add_person(connection, "Ann", "reviewer", now_ms()))
    sink, _ = event_sinks(config, hooks, lambda: None)
    port = SinkReleases(config, access, now_ms, sink, lambda: None)
    sender = ReleaseSender(ReleaseSenderParts(database, port, now_ms, hooks))
    # Flags have their numbers in the order in which they were added.
    service_s = _served(config, access(), [versions[place] for place in by_service])
    console_s = [_sent(database, sender, person.person_id, [place + 1]) for place in by_console[:single]]
    seconds = _sent(database, sender, person.person_id, [place + 1 for place in by_console[single:]])
    port.close()
    access.close()
    at_once = {"by": "the console, at once", "releases": releases, "s": seconds, "releases/s": releases / seconds}
    return [_row("the service", service_s), _row("the console", console_s), at_once]


def _row(name: str, took_s: Sequence[float]) -> Row:
    first, *others = took_s
    return {
        "by": name,
        "releases": len(took_s),
        "s": sum(took_s),
        "releases/s": len(took_s) / sum(took_s),
        "first, ms": 1_000 * first,
        "median, ms": 1_000 * statistics.median(others),
        "p95, ms": 1_000 * statistics.quantiles(others, n=20)[-1],
    }


def _served(config: Config, store: Store, versions: Sequence[Verdict]) -> list[float]:
    """Release versions as the service does; return how long each takes, in seconds."""
    streams = Streams(sys.stdout.buffer, sys.stderr.buffer)
    with closing(build_sink(config, streams, Hooks(), lambda: None)) as sink, closing(SourceRecords(config)) as records:
        releases = SingleReleaser(FlagReleaser(store, sink, now_ms), records)
        took_s = []
        for verdict in versions:
            began_s = time.monotonic()
            releases.release(verdict.id, verdict.version, Attribution("Ann"))
            took_s.append(time.monotonic() - began_s)
        return took_s


def _sent(database: Database, sender: ReleaseSender, person_id: int, flag_ids: Sequence[int]) -> float:
    """Decide that these flags are wrong, and return how long the sender takes to release them, in seconds."""
    decided = database.write(
        lambda connection: decisions.decide(connection, flag_ids, person_id, "wrong", "", now_ms(), 0)
    )
    if len(decided.review_ids) != len(flag_ids):
        raise RuntimeError(f"{len(decided.review_ids)} of {len(flag_ids)} could be decided")
    began_s = time.monotonic()
    while sender.work():
        pass
    seconds = time.monotonic() - began_s
    if _left(database):
        raise RuntimeError(f"{_left(database)} were not released")
    return seconds


def _left(database: Database) -> int:
    with database.read_connection() as connection:
        return sending.backlog(connection, now_ms()).due


if __name__ == "__main__":
    typer.run(main)
