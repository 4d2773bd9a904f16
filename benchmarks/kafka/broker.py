"""A broker of a measurement's own, its topics, and the clients that fill and read them."""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import getpid
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from consumer.stress.load import wait_until
from consumer.stress.made_texts import make_feed
from deploy.local import fetch, java
from deploy.local.kafka import KafkaBroker
from deploy.local.ports import free_ports

PARTITIONS: Final = 2
PREFIX: Final = "judged"
_WAIT_S: Final = 30.0
_END_S: Final = 60.0


class Record(NamedTuple):
    """An article as it is sent: its id as the key, and the rest as JSON."""

    key: str
    value: bytes


@contextmanager
def broker() -> Iterator[KafkaBroker]:
    """Run a broker while this is entered; its data go with it, also where the measurement is ended from outside."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="dupwatch-bench-") as folder:
        port, controller_port = free_ports(2)
        started = KafkaBroker(
            folder=Path(folder) / "kafka",
            port=port,
            controller_port=controller_port,
            jars=fetch.jars(),
            java=java.java(),
            owner=getpid(),
        )
        started.start()
        try:
            yield started
        finally:
            started.kill9()


@contextmanager
def consumer(source: str, sink: str, store: str, more: Sequence[str]) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a consumer as a process, which sends all verdicts and serves no pages."""
    command = [
        str(Path(sys.executable).with_name("dupwatch")), "run", "--source", source, "--sink", sink, "--store", store,
        "--emit", "all", "--set", "http.listen=", *more,
    ]  # fmt: skip
    with subprocess.Popen(command) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def make_topics(address: str, name: str) -> tuple[str, str]:
    """A source topic and the topics of a sink, all of them new; their URLs."""
    prefix = f"{PREFIX}-{name}"
    sinks = [f"{prefix}.{suffix}" for suffix in ("duplicates", "verdicts", "dead-letters")]
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in (name, *sinks)]).values():
        future.result(_WAIT_S)
    return f"kafka://{address}/{name}", f"kafka://{address}/{prefix}"


def articles(count: int, chars: int, seed: int) -> list[Record]:
    """Articles of about this many characters, some of them edited copies of earlier ones."""
    return [
        Record(text.id, msgspec.json.encode({"id": text.id, "body": text.body}))
        for text in make_feed(count, chars, seed=seed)
    ]


def send(address: str, topic: str, records: Sequence[Record], rate: float | None = None) -> None:
    """Send them, all at once or at this rate a second; the timestamps are the producer's."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0 if rate else 50, "compression.type": "lz4"})
    began_s = time.monotonic()
    for number, record in enumerate(records):
        if rate is not None:
            wait_until(began_s + number / rate, lambda: False)
        while True:
            try:
                producer.produce(topic, record.value, record.key)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    left = producer.flush(_WAIT_S)
    if left:
        raise RuntimeError(f"{left} articles could not be sent")
