"""Records that no client library would send, over a real broker: each is answered, and none stops those behind it."""

import json
from operator import methodcaller
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Consumer, TopicPartition

from consumer.kafka.client_settings import KafkaOptions
from consumer.kafka.sink.topic_letters import TopicLetterReader
from consumer.kafka.source.client_headers import HEADERS_LOST, UNREADABLE_NAME, ClientHeaders, read_client_headers
from consumer.kafka.source.records import record_of
from tests.cli.command import Outcome, json_lines, run_process, text
from tests.kafka.raw_records import NO_TIMESTAMP, RawMessage, produce
from tests.kafka.reading import WAIT_S
from tests.kafka.running import running
from tests.kafka.test_run import EITHER, article
from tests.kafka.topics import Seen, Topics, make_topics, read_all, send, wait_for_count

pytestmark = pytest.mark.servers

LATIN = "größe".encode("latin-1")
HEADERS = ((b"before", b"1"), (LATIN, b"\xff2"), (b"\xc3(", None), (b"", b""), (b"none", None), (b"after", b"3"))
AS_READ = [("before", b"1"), (UNREADABLE_NAME, b"\xff2"), (UNREADABLE_NAME, None), ("", b""), ("none", None),
           ("after", b"3"), (HEADERS_LOST, b"2")]  # fmt: skip
BROKEN = b"{\xff"


@pytest.fixture
def topics(kafka_address: str) -> Topics:
    """Topics of the test's own, one partition each; that of the articles takes any time."""
    return make_topics(kafka_address, 1, {"message.timestamp.after.max.ms": str(2**63 - 1)})


def hostile() -> list[RawMessage]:
    """Articles and invalid records; each pair is unusual in another way."""
    body = json.dumps(article(text(1))).encode()
    return [
        RawMessage(b"headers", body, HEADERS),
        RawMessage(b"headers-bad", BROKEN, HEADERS),
        RawMessage(b"retracted", None, HEADERS),
        RawMessage(b"many", json.dumps(article(text(2))).encode(), [(b"h", b"%d" % at) for at in range(10_000)]),
        RawMessage(b"many-bad", BROKEN, [(b"\xff", b"%d" % at) for at in range(10_000)]),
        RawMessage(b"\xff\xfe", body, HEADERS),
        RawMessage(None, b"\x00" * 100, HEADERS),
        RawMessage(b"", None),
    ]


def times() -> list[RawMessage]:
    """The same broken record at times that few clocks show; each batch has one, since offsets of times are bounded."""
    moments = (NO_TIMESTAMP, 0, 1, -5, -(2**62), 253_402_300_800_000, 2**62)
    return [RawMessage(b"time-%d" % at, BROKEN, timestamp_ms=time_ms) for at, time_ms in enumerate(moments)]


def by_key(found: list[Seen]) -> dict[bytes | None, Seen]:
    """The last message of each key."""
    return {message.key: message for message in found}


@EITHER
def test_every_record_gets_one_answer(topics: Topics, tmp_path: Path, more: tuple[str, ...]) -> None:
    """Judged, or a dead letter with all that the client hands out; what it leaves out is logged and counted."""
    for message in times():
        produce(topics.address, topics.source, 0, [message])
    produce(topics.address, topics.source, 0, hostile())
    produce(topics.address, topics.source, 0, hostile(), "gzip")
    send(topics, [("good", article(text(3)))])
    count = len(times()) + 2 * len(hostile()) + 1
    with running(topics, f"lmdb:{tmp_path / 'store'}", tmp_path, "--set", "kafka.unique=true", *more) as consumer:
        wait_for_count(topics, ("verdicts", "dead-letters"), count)
        assert consumer.stop() == 0, consumer.log.read_text()
    verdicts = [message.key for message in read_all(topics, topics.sink("verdicts"))]
    assert sorted(filter(None, verdicts)) == sorted([b"headers", b"retracted", b"many"] * 2 + [b"good"])
    letters = read_all(topics, topics.sink("dead-letters"))
    assert len(letters) == count - len(verdicts)
    letter = by_key(letters)[b"headers-bad"]
    assert (letter.value, letter.headers[: len(AS_READ)]) == (BROKEN, AS_READ)
    headers = dict(letter.headers)
    assert (headers["__connect.errors.topic"], headers["__connect.errors.offset"]) == (topics.source.encode(), b"16")
    many = by_key(letters)[b"many-bad"]
    assert [value for name, value in many.headers if name == UNREADABLE_NAME] == [b"%d" % at for at in range(10_000)]
    clean = by_key(read_all(topics, topics.sink("unique")))[b"headers"]
    assert clean.headers[: len(AS_READ)] == AS_READ
    assert dict(clean.headers)["dupwatch-origin-offset"] == b"15"
    assert len(by_key(read_all(topics, topics.sink("unique")))[b"many"].headers) == 10_001


@EITHER
def test_a_record_that_just_fits_into_its_topic_has_a_letter_that_fits(
    topics: Topics, tmp_path: Path, more: tuple[str, ...]
) -> None:
    """A letter has headers of its own, so key, headers and value have one limit together."""
    noise = Random(1).randbytes
    headers = [(b"h%d" % at, noise(10_000)) for at in range(100)]
    heavy = [
        RawMessage(b"headers", BROKEN, [*headers, (b"\xff", noise(47_000))]),
        RawMessage(noise(1_047_000), BROKEN),
        RawMessage(b"value", BROKEN + noise(900_000), headers[:14]),
    ]
    for message in heavy:
        produce(topics.address, topics.source, 0, [message])
    with running(
        topics, f"lmdb:{tmp_path / 'store'}", tmp_path, "--set", "source.record_bytes_max=1000000", *more
    ) as consumer:
        wait_for_count(topics, ("dead-letters",), len(heavy))
        assert consumer.stop() == 0, consumer.log.read_text()
    with TopicLetterReader(topics.address, topics.sink("dead-letters"), KafkaOptions()) as reader:
        letters = list(reader.letters())
    assert [letter.reason for letter in letters] == ["record_too_long"] * 3
    assert all(letter.cut and letter.size_bytes > 1_000_000 for letter in letters)
    first, second, third = letters
    assert first.headers[:6] == tuple((name.decode(), value) for name, value in headers[:6])
    assert (HEADERS_LOST, b"95") in first.headers
    assert second.key == (heavy[1].key or b"")[:65_536]
    assert third.value == (heavy[2].value or b"")[:65_536]


def test_letters_of_hostile_records_are_shown_and_replayed(topics: Topics, tmp_path: Path) -> None:
    """Whatever the headers and times are, the commands over the topic of letters read it, and send records back."""
    for message in times():
        produce(topics.address, topics.source, 0, [message])
    produce(topics.address, topics.source, 0, hostile())
    # Somebody else's record among the letters.
    produce(topics.address, topics.sink("dead-letters"), 0, [RawMessage(b"x", b"y", HEADERS, timestamp_ms=-(2**62))])
    letters = len(times()) + 5
    with running(topics, f"lmdb:{tmp_path / 'store'}", tmp_path) as consumer:
        wait_for_count(topics, ("dead-letters",), letters + 1)
        assert consumer.stop() == 0, consumer.log.read_text()

    def command(name: str, *arguments: str) -> Outcome:
        ended = run_process("dead-letters", name, *arguments, "--sink", topics.sink_url())
        assert ended.code == 0, ended.err
        return ended

    listed = json_lines(command("list", "--json").out)
    assert [letter["reason"] for letter in listed].count(None) == 1
    assert len(listed) == letters + 1
    command("list")
    shown = json_lines(command("show", "0:0", "--json").out)
    assert shown[0]["headers"][1]["name"] == UNREADABLE_NAME
    until_at = len(read_all(topics, topics.source))
    command("replay")
    sent = by_key(read_all(topics, topics.source)[until_at:])
    assert len(sent) == letters
    assert sent[b"headers-bad"].headers == [*AS_READ, ("dupwatch-replays", b"1")]
    assert dict(sent[b"time-6"].headers)["dupwatch-timestamp-ms"] == b"%d" % 2**62
    assert dict(sent[b"time-4"].headers)["dupwatch-timestamp-ms"] == b"%d" % -(2**62)


def test_a_replay_and_a_backfilled_store_read_them_too(topics: Topics, tmp_path: Path) -> None:
    """``dupwatch replay`` answers each, and ends with 0."""
    for message in times():
        produce(topics.address, topics.source, 0, [message])
    produce(topics.address, topics.source, 0, hostile())
    ended = run_process(
        "replay", "--source", topics.url(), "--sink", topics.sink_url(), "--store", f"lmdb:{tmp_path / 'store'}",
        "--from", "0", "--set", "sink.emit=all", "--set", "store.durability=process",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    assert len(read_all(topics, topics.sink("verdicts"))) == 3
    assert len(read_all(topics, topics.sink("dead-letters"))) == len(times()) + 5


def test_a_letter_in_the_topic_keeps_its_readable_headers(topics: Topics) -> None:
    """A letter that was copied with another header before its own is still a letter."""
    letter = [(LATIN, b"own"), (b"dupwatch-schema", b"dupwatch.dead-letter/1"), (b"dupwatch-reason", b"missing_id")]
    produce(topics.address, topics.sink("dead-letters"), 0, [RawMessage(b"a", b"{}", letter)])
    with TopicLetterReader(topics.address, topics.sink("dead-letters"), KafkaOptions()) as reader:
        (found,) = reader.letters()
    assert (found.reason, found.headers[0]) == ("missing_id", (UNREADABLE_NAME, b"own"))


def test_what_the_client_does_with_names_that_are_not_utf_8(topics: Topics) -> None:
    """Where this fails the client has changed, and ``client_headers`` may become simpler."""
    produce(topics.address, topics.source, 0, [RawMessage(b"a", b"1", HEADERS) for _ in range(2)])
    consumer = Consumer({"bootstrap.servers": topics.address, "group.id": "nobody"})
    consumer.assign([TopicPartition(topics.source, 0, 0)])
    first, second = consumer.consume(2, WAIT_S)
    consumer.close()
    with pytest.raises(SystemError):
        methodcaller("headers")(first)
    assert read_client_headers(first) == read_client_headers(second) == ClientHeaders(tuple(AS_READ), 2)


def test_headers_are_read_alike_however_often(topics: Topics) -> None:
    """Once the interpreter has specialised a call it does not check the result: no exception may be left pending."""
    produce(topics.address, topics.source, 0, [RawMessage(b"a", b"1", HEADERS) for _ in range(500)])
    consumer = Consumer({"bootstrap.servers": topics.address, "group.id": "nobody"})
    consumer.assign([TopicPartition(topics.source, 0, 0)])
    seen = 0
    while seen < 500:
        for message in consumer.consume(500, WAIT_S):
            record = record_of(message, 1000)
            assert (record.fault, record.headers) == (None, tuple(AS_READ))
            seen += 1
    consumer.close()
