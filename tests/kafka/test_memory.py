"""Memory has a bound, whatever arrives: a consumer over a real broker, beside a client that only polls."""

import json
import logging
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaError, Producer

from tests.kafka.memory import ABOVE_BARE_MB_MAX, MemoryWatch, bare_peak_mb
from tests.kafka.reading import until
from tests.kafka.running import running
from tests.kafka.topics import WAIT_S, Topics, make_topics, wait_for_count

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

BODY_CHARS = 1_000_000
PAGE_CHARS = 4_000_000
RECORD_BYTES = (8 << 20) - 64
"""A key belongs to its record."""
log = logging.getLogger(__name__)


class Hostile(NamedTuple):
    """Values of one kind, the reason for which they are refused, None where they are judged, and how they are read."""

    value: bytes
    reason: str | None
    body_format: str = "html"


def article(body: str) -> bytes:
    """A value with this body."""
    return json.dumps({"body": body}, ensure_ascii=False).encode()


def words(length: int) -> str:
    """Different words, as many as go into a body."""
    rng, letters = random.Random(7), "abcdefghijklmnopqrstuvwxyz"
    return " ".join("".join(rng.choices(letters, k=length)) for _ in range(BODY_CHARS // (length + 1)))


def han() -> str:
    """Ideographs by chance, no more different ones than can be packed into a batch of 1 MiB."""
    rng = random.Random(7)
    return "".join(map(chr, rng.choices(range(0x4E00, 0x4E20), k=BODY_CHARS)))


def padded(start: bytes, item: bytes, end: bytes) -> bytes:
    """As many items as a record has room for."""
    return start + item * ((RECORD_BYTES - len(start) - len(end)) // len(item)) + end


HOSTILE: dict[str, Callable[[], Hostile]] = {
    "40 MB": lambda: Hostile(b" " * (40 << 20), "record_too_long"),
    "folding": lambda: Hostile(article("\ufdfa" * BODY_CHARS), "folded_too_long"),
    "folding to the limit": lambda: Hostile(article("\ufdfa" * 55_000 + "中" * 257_000), None),
    "lists": lambda: Hostile(padded(b'{"body": "", "x": [', b"[],", b"[]]}"), "too_many_values"),
    "objects": lambda: Hostile(padded(b'{"body": "", "x": [', b'{"":{}},', b"{}]}"), "too_many_values"),
    "numbers to the limit": lambda: Hostile(b'{"body": "", "x": [' + b"12345678901234," * 499_000 + b"1]}", None),
    "not JSON": lambda: Hostile(padded(b'{"body": "', b"\\u4e2d", b'", "x": NaN}'), "invalid_json"),
    "words": lambda: Hostile(article(words(3)), None),
    "longer words": lambda: Hostile(article(words(6)), None),
    "ideographs": lambda: Hostile(article(han()), None),
    "one word": lambda: Hostile(article("a" * BODY_CHARS), None),
    "paragraphs": lambda: Hostile(article("<p>" * (BODY_CHARS // 3)), None),
    "a page of paragraphs": lambda: Hostile(article("<p>xxxxxx" * (PAGE_CHARS // 9)), "body_too_long", "article"),
}


@pytest.fixture
def topics(kafka_address: str) -> Topics:
    """Topics of the test's own, one partition each."""
    return make_topics(kafka_address, partitions=1)


def send_packed(topics: Topics, value: bytes, count: int) -> None:
    """Send the same value so often, each in a batch of its own, packed as small as it goes."""
    settings = {
        "bootstrap.servers": topics.address,
        "compression.type": "gzip",
        "compression.level": 9,
        "message.max.bytes": 64 << 20,
        "queue.buffering.max.kbytes": 128 << 10,
    }
    producer = Producer(settings)
    answers: list[KafkaError | None] = []
    for number in range(count):
        producer.produce(topics.source, value, f"{number}", on_delivery=lambda error, _: answers.append(error))
        assert producer.flush(WAIT_S) == 0
    assert answers == [None] * count


def consumer_peak_mb(topics: Topics, folder: Path, count: int, hostile: Hostile) -> float:
    """What a consumer takes over the same; each record has one answer, and the reason if it is a refusal."""
    read_as = ("--set", f"source.body_format={hostile.body_format}")
    with running(topics, f"lmdb:{folder / 'store'}", folder, *read_as) as consumer:
        with MemoryWatch() as memory:
            memory.watch("consumer", consumer.process.pid)
            wait_for_count(topics, ("verdicts", "dead-letters"), count, seconds=600)
        # What is to be seen of a batch is counted after it.
        until(lambda: sum(map(consumer.metric, ("dupwatch_articles_total", "dupwatch_dead_letters_total"))) == count)
        letters = re.findall(
            r'^dupwatch_dead_letters_total{reason="(\w+)"} (\S+)$', consumer.page("/metrics")[1], re.MULTILINE
        )
        assert {name: float(number) for name, number in letters if float(number)} == (
            {hostile.reason: count} if hostile.reason else {}
        )
        assert consumer.stop() == 0, consumer.log.read_text()
    return memory.peaks_mb["consumer"]


def check(topics: Topics, folder: Path, name: str, count: int) -> None:
    """One answer for each, and memory below the bound."""
    hostile = HOSTILE[name]()
    send_packed(topics, hostile.value, count)
    bare_mb = bare_peak_mb(topics, count)
    own_mb = consumer_peak_mb(topics, folder, count, hostile)
    log.info(
        "%d times %s (%d bytes): a client %.0f MB, a consumer %.0f MB", count, name, len(hostile.value), bare_mb, own_mb
    )
    assert own_mb - bare_mb < ABOVE_BARE_MB_MAX


def test_a_record_that_grows_takes_no_memory(topics: Topics, tmp_path: Path) -> None:
    """3 kB in the topic are 3 MB of article, and would be 54 MB of text."""
    check(topics, tmp_path, "folding", 3)


def test_records_of_40_mb(topics: Topics, tmp_path: Path) -> None:
    """40 kB each in the topic."""
    check(topics, tmp_path, "40 MB", 8)


@pytest.mark.load
@pytest.mark.parametrize("count", [1, 64])
@pytest.mark.parametrize("name", [name for name in HOSTILE if name != "40 MB"])
def test_each_alone_and_many_at_once(topics: Topics, tmp_path: Path, name: str, count: int) -> None:
    """What takes most memory at each stage."""
    check(topics, tmp_path, name, count)


@pytest.mark.load
@pytest.mark.parametrize("count", [24, 64])
def test_many_records_of_40_mb(topics: Topics, tmp_path: Path, count: int) -> None:
    """As they were seen."""
    check(topics, tmp_path, "40 MB", count)
