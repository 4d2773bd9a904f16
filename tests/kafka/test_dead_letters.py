"""Dead letters in a topic of a real broker: listed, shown, and sent back to be judged again."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka import Message as Received
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs leave out what its module names
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from consumer.cli import main
from consumer.kafka.client_settings import KafkaOptions
from consumer.kafka.sink import topic_letters
from consumer.kafka.sink.letter_headers import letter_headers
from consumer.kafka.sink.letter_replay import LetterReplay, ReplayRefused, target_of
from consumer.kafka.sink.topic_letters import TopicLetterReader
from consumer.model.dead_letter import LetterPosition, dead_letter
from consumer.model.errors import BadRecord, ConfigError, SinkError, SourceError
from consumer.model.letter import Letter, LetterOrigin
from consumer.model.ports import Rejection
from consumer.model.record import RawRecord
from tests.cli.command import Outcome, json_lines, start, wait_for
from tests.kafka.topics import ordered_producer, wait_until_known

pytestmark = pytest.mark.servers

PARTITIONS = 3
TIME_MS = 1_700_000_000_000
OWN = (("trace", b"\x00\xff"), ("none", None))
WAIT_S = 120


class Feed:
    """A topic of articles and the topics of a prefix, both new, with what a test needs of the broker."""

    def __init__(self, address: str, command: Callable[..., Outcome]) -> None:
        self.address = address
        self._command = command
        name = f"t{uuid.uuid4().hex}"
        self.articles = f"{name}.articles"
        self.other = f"{name}.other"
        self.prefix = f"{name}.out"
        self.letters = f"{self.prefix}.dead-letters"
        self.sink = f"kafka://{address}/{self.prefix}"
        self.producer = ordered_producer(address)
        admin = AdminClient({"bootstrap.servers": address})
        topics = [NewTopic(topic, PARTITIONS, 1) for topic in (self.articles, self.other, self.letters)]
        for creation in admin.create_topics(topics).values():
            creation.result(WAIT_S)
        wait_until_known(admin, [topic.topic for topic in topics])

    def bury(self, *rejections: Rejection, partition: int = 0) -> None:
        """Write letters as the sink does, all to one partition."""
        for rejection in rejections:
            record = rejection.record
            value, time_ms = None if record.is_null else record.data, max(record.time_ms, 0)
            headers = cast("list[Any]", letter_headers(rejection))
            self.producer.produce(self.letters, value, record.key, partition, timestamp=time_ms, headers=headers)
        assert self.producer.flush(WAIT_S) == 0

    def read(self, topic: str) -> list[Received]:
        """All messages of a topic, by partition and offset."""
        settings = {"bootstrap.servers": self.address, "group.id": "reads", "enable.partition.eof": True,
                    "auto.offset.reset": "earliest", "enable.auto.commit": False}  # fmt: skip
        consumer = Consumer(settings)
        found: list[Received] = []
        try:
            consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
            ended = 0
            while ended < PARTITIONS:
                (message,) = consumer.consume(1, WAIT_S)
                error = message.error()
                if error is None:
                    found.append(message)
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    ended += 1
        finally:
            consumer.close()
        return sorted(found, key=lambda message: (message.partition(), message.offset()))

    def run(self, command: str, *arguments: str) -> Outcome:
        """``dupwatch dead-letters COMMAND`` over this prefix."""
        return self._command("dead-letters", command, *arguments, "--sink", self.sink)


def rejected(
    topic: str,
    key: bytes | None = b"a1",
    value: bytes = b'{"id": 1',
    *,
    reason: str = "invalid_json",
    partition: int = 1,
    offset: int = 0,
    time_ms: int = TIME_MS,
    more_bytes: int = 0,
    null_value: bool = False,
    headers: tuple[tuple[str, bytes | None], ...] = OWN,
) -> Rejection:
    """A rejected record of a topic, whose value had this many more bytes than are kept."""
    fault = BadRecord(reason, f"because of {reason}")
    size_bytes = len(value) + more_bytes
    sha256 = bytes(32) if more_bytes else None
    record = RawRecord(
        0, offset, value, size_bytes, sha256, fault,
        partition=(topic, partition), key=key, headers=headers, time_ms=time_ms, is_null=null_value,
    )  # fmt: skip
    position = LetterPosition(f"kafka://{topic}/{partition}", 0, offset)
    return Rejection(record, dead_letter(fault, position, value, size_bytes=size_bytes, sha256=sha256))


@pytest.fixture
def feed(kafka_address: str, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Feed:
    """Topics of this test alone; commands run within this process, since to start one takes a second."""

    def command(*arguments: str) -> Outcome:
        capfdbinary.readouterr()
        monkeypatch.setattr(sys, "argv", ["dupwatch", *arguments])
        monkeypatch.setenv("COLUMNS", "200")
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        out, err = capfdbinary.readouterr()
        return Outcome(code, out, err.decode())

    return Feed(kafka_address, command)


def listed(feed: Feed, *arguments: str) -> list[str]:
    """The positions that ``list`` shows."""
    ended = feed.run("list", "--json", *arguments)
    assert ended.code == 0, ended.err
    return [line["position"] for line in json_lines(ended.out)]


def test_list_and_its_filters(feed: Feed) -> None:
    """Letters come by position; each filter leaves out what it says, and several all have to hold."""
    feed.bury(
        rejected(feed.articles, b"a1", time_ms=TIME_MS),
        rejected(feed.articles, b"a2", time_ms=TIME_MS + 60_000, reason="missing_id"),
        partition=2,
    )
    feed.bury(rejected(feed.articles, b"a1", time_ms=TIME_MS + 120_000, reason="empty_id"), partition=0)
    assert listed(feed) == ["0:0", "2:0", "2:1"]
    assert listed(feed, "--reason", "missing_id", "--reason", "empty_id") == ["0:0", "2:1"]
    assert listed(feed, "--key", "a1") == ["0:0", "2:0"]
    assert listed(feed, "--since", "2023-11-14T22:14:20Z") == ["0:0", "2:1"]
    assert listed(feed, "--until", "2023-11-14T23:14:20+01:00") == ["2:0"]
    assert listed(feed, "--limit", "2") == ["0:0", "2:0"]
    assert listed(feed, "--key", "a1", "--reason", "empty_id", "--since", "2023-11-14T22:14:20Z") == ["0:0"]
    ended = feed.run("list")
    assert ended.code == 0, ended.err
    first = ended.out.decode().splitlines()[1].strip().split(maxsplit=4)
    assert first == ["0:0", "2023-11-14T22:15:20.000Z", "empty_id", "a1", "because of empty_id"]


def test_a_table_has_an_end(feed: Feed) -> None:
    """Of many letters a table shows the first 100 and says that there are more; JSON lines are all of them."""
    feed.bury(*(rejected(feed.articles, offset=number) for number in range(101)))
    ended = feed.run("list")
    assert len(ended.out.splitlines()) == 101
    assert "Showing the first 100" in ended.err
    assert len(listed(feed)) == 101
    ended = feed.run("list", "--limit", "101")
    assert (len(ended.out.splitlines()), ended.err) == (102, "")


def test_show(feed: Feed) -> None:
    """Everything of a letter is shown, and nothing of it steers a terminal."""
    feed.bury(rejected(feed.articles, "é\x1b[31m".encode(), b'{"id":\x1b]0;x\x07\nsecond \xff line', offset=9))
    ended = feed.run("show", "0:0")
    assert ended.code == 0, ended.err
    shown = ended.out.decode()
    assert "\x1b" not in shown
    assert "\x07" not in shown
    for text in ("invalid_json", "because of invalid_json", f"{feed.articles} 1:9", "é\ufffd[31m", "header trace",
                 '{"id":\ufffd]0;x\ufffd\nsecond \\xff line\n', "2023-11-14T22:13:20.000Z"):  # fmt: skip
        assert text in shown
    (document,) = json_lines(feed.run("show", "0:0", "--json").out)
    assert document["origin"] == {"topic": feed.articles, "partition": 1, "offset": 9}
    assert (document["value"], document["value_base64"] is None) == (None, False)
    assert [header["name"] for header in document["headers"]] == ["trace", "none"]


def test_a_position_where_nothing_is(feed: Feed) -> None:
    """One sentence says whether the position is invalid or has no letter."""
    feed.bury(rejected(feed.articles))
    with TopicLetterReader(feed.address, feed.letters, KafkaOptions()) as letters:
        for position in ("0:1", "7:0"):
            assert letters.letter(position) is None
        for position in ("0:0x", "0", "-1:0", "", "0:０"):
            with pytest.raises(ConfigError, match="write PARTITION:OFFSET"):
                letters.letter(position)
    ended = feed.run("show", "0:1")
    assert (ended.code, ended.err) == (
        2,
        f"dupwatch: no dead letter at 0:1 in {feed.sink}; dupwatch dead-letters list shows all\n",
    )


def test_replay_sends_the_record_as_it_was(feed: Feed) -> None:
    """Key, value, own headers and time are the record's; it goes to the partition it came from."""
    feed.bury(rejected(feed.articles, partition=2), rejected(feed.articles, None, b"", null_value=True, partition=0))
    ended = feed.run("replay", "--json")
    assert ended.code == 0, ended.err
    assert json_lines(ended.out) == [{"sent": 2, "would_be_sent": 0, "refused": 0}]
    tombstone, message = feed.read(feed.articles)
    assert (message.partition(), message.key(), message.value()) == (2, b"a1", b'{"id": 1')
    assert message.headers() == [*OWN, ("dupwatch-replays", b"1")]
    assert message.timestamp()[1] == TIME_MS
    assert (tombstone.partition(), tombstone.key(), tombstone.value()) == (0, None, None)


def test_a_record_without_a_time_stays_without_its_letters(feed: Feed) -> None:
    """It gets the time at which it is sent again, and not that of its letter."""
    feed.bury(rejected(feed.articles, time_ms=-1))
    (letter,) = feed.read(feed.letters)
    time.sleep(0.05)
    assert feed.run("replay").code == 0
    (message,) = feed.read(feed.articles)
    assert message.timestamp()[1] > letter.timestamp()[1]


def test_a_letter_of_a_replayed_record_is_counted_on(feed: Feed) -> None:
    """Replayed, rejected and replayed again it has one header that says twice, and none of its letters'."""
    feed.bury(rejected(feed.articles))
    feed.run("replay")
    (message,) = feed.read(feed.articles)
    headers = cast("tuple[tuple[str, bytes | None], ...]", tuple(message.headers() or ()))
    feed.bury(rejected(feed.articles, headers=headers, reason="missing_id"))
    assert feed.run("replay", "--reason", "missing_id").code == 0
    assert feed.read(feed.articles)[-1].headers() == [*OWN, ("dupwatch-replays", b"2")]


def test_replay_elsewhere_and_of_some(feed: Feed) -> None:
    """All that the filters take go to the topic that is named, where the key chooses the partition."""
    records = [rejected(feed.articles, b"k%d" % number, offset=number) for number in range(20)]
    feed.bury(*records, rejected(feed.articles, reason="missing_id"))
    ended = feed.run("replay", "--to", feed.other, "--reason", "invalid_json", "--limit", "19")
    assert ended.code == 0, ended.err
    found = feed.read(feed.other)
    assert {message.key() for message in found} == {b"k%d" % number for number in range(19)}
    assert len({message.partition() for message in found}) > 1
    assert feed.read(feed.articles) == []


def test_a_dry_run_sends_nothing(feed: Feed) -> None:
    """It says how many would be sent, and refuses what would be refused."""
    feed.bury(rejected(feed.articles), rejected(feed.articles, more_bytes=10))
    ended = feed.run("replay", "--dry-run", "--json")
    assert json_lines(ended.out) == [{"sent": 0, "would_be_sent": 1, "refused": 1}]
    assert "Not replayed: 0:1:" in ended.err
    assert feed.read(feed.articles) == []


def test_what_cannot_be_replayed_is_said(feed: Feed) -> None:
    """A cut value, a topic that is gone, a record of a file, and something that is no letter: the others are sent."""
    of_file = rejected(feed.articles)
    of_file = replace(of_file, record=RawRecord(0, 0, of_file.record.data, of_file.record.size_bytes, None, None))
    feed.bury(rejected(feed.articles, more_bytes=10), rejected("gone"), of_file)
    feed.producer.produce(feed.letters, b"foreign", b"key", 0)
    feed.bury(rejected(feed.articles))
    ended = feed.run("replay")
    assert ended.code == 0
    lines = [line for line in ended.err.splitlines() if line.startswith("Not replayed: ")]
    assert [line.split()[2] for line in lines] == ["0:0:", "0:1:", "0:2:", "0:3:"]
    reasons = (
        "only 8 of the 18 bytes of its value were kept",
        "its topic gone no longer exists",
        "which is not a topic",
        "does not have the headers of a dead letter",
    )
    for line, why in zip(lines, reasons, strict=True):
        assert why in line
    assert ended.out.decode().split() == ["Replayed", "sent", "1", "refused", "4"]
    assert len(feed.read(feed.articles)) == 1
    assert [line["reason"] for line in json_lines(feed.run("list", "--json").out)][2:4] == ["invalid_json", None]


def test_a_topic_with_fewer_partitions_than_it_had() -> None:
    """A record whose partition is not there any more goes where its key says."""
    letter = Letter("0:0", None, None, "invalid_json", "", None, "", b"k", b"", 0, None, cut=False)
    with pytest.raises(ReplayRefused, match="--to TOPIC"):
        target_of(letter, None, {"t": 3})
    fewer = replace(letter, origin=LetterOrigin("t", 3, 0))
    assert target_of(fewer, None, {"t": 3}) == ("t", -1)
    assert target_of(fewer, None, {"t": 4}) == ("t", 3)


def test_not_more_than_so_many_a_second(feed: Feed) -> None:
    """Twenty-one records at forty a second take half a second, and hardly more."""
    feed.bury(*(rejected(feed.articles, offset=number) for number in range(21)))
    with TopicLetterReader(feed.address, feed.letters, KafkaOptions()) as letters:
        given = list(letters.letters())
    sending = LetterReplay(feed.address, KafkaOptions(), feed.letters, None, 300_000, dry_run=False)
    began_s = time.monotonic()
    for letter in given:
        sending.pace(40, began_s, lambda: False)
        sending.send(letter)
    took_s = time.monotonic() - began_s
    sending.finish()
    assert 0.5 <= took_s < 10
    assert sending.acknowledged == 21


def test_a_time_that_the_topic_of_the_articles_refuses(feed: Feed) -> None:
    """The records come all the same; the time of each that is refused is in a header, the others keep theirs."""
    recent_ms = int(time.time() * 1000) - 60_000
    limit = ConfigEntry("message.timestamp.before.max.ms", "86400000", incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ResourceType.TOPIC, feed.articles, incremental_configs=[limit])
    admin = AdminClient({"bootstrap.servers": feed.address})
    for changed in admin.incremental_alter_configs([topic]).values():
        changed.result(WAIT_S)
    times = {b"old": TIME_MS, b"recent": recent_ms, b"older": TIME_MS - 5}
    feed.bury(*(rejected(feed.articles, key, time_ms=time_ms) for key, time_ms in times.items()))
    ended = feed.run("replay")
    assert ended.code == 0, ended.err
    sent = {message.key(): message for message in feed.read(feed.articles)}
    assert sent.keys() == times.keys()
    assert sent[b"recent"].timestamp()[1] == recent_ms
    for key in (b"old", b"older"):
        assert sent[key].timestamp()[1] > recent_ms
        assert dict(sent[key].headers() or [])["dupwatch-timestamp-ms"] == b"%d" % times[key]


def test_stopped_while_it_waits(feed: Feed) -> None:
    """A signal ends a slow replay at once: what was sent is written and counted, the exit code names the signal."""
    feed.bury(*(rejected(feed.articles, offset=number) for number in range(5)))
    process = start(
        "dead-letters", "replay", "--rate", "0.01", "--json", "--sink", feed.sink, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        wait_for(partial(_has_messages, feed, feed.articles))
        os.kill(process.pid, signal.SIGTERM)
        out, err = process.communicate(timeout=WAIT_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 143, err
    assert json.loads(out)["sent"] == 1
    assert len(feed.read(feed.articles)) == 1


def _has_messages(feed: Feed, topic: str) -> bool:
    return bool(feed.read(topic))


def test_only_what_there_was_at_the_start(feed: Feed) -> None:
    """Letters that are written while others are read are left to the next time: a replay ends."""
    feed.bury(rejected(feed.articles), rejected(feed.articles))
    with TopicLetterReader(feed.address, feed.letters, KafkaOptions()) as letters:
        feed.bury(rejected(feed.articles))
        assert letters.progress() == (0, 2)
        assert [letter.position for letter in letters.letters()] == ["0:0", "0:1"]
        assert letters.progress() == (2, 2)


def test_transactions(feed: Feed) -> None:
    """Letters of an aborted transaction are ignored, and the markers at the end of a transaction delay nothing."""
    producer = Producer({"bootstrap.servers": feed.address, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(WAIT_S)
    ends: Sequence[Callable[[float], None]] = (producer.abort_transaction, producer.commit_transaction)
    for key, end in zip((b"aborted", b"committed"), ends, strict=True):
        producer.begin_transaction()
        headers = cast("list[Any]", letter_headers(rejected(feed.articles, key)))
        producer.produce(feed.letters, b"{", key, 1, headers=headers)
        # What was not sent yet would be thrown away, and leave no trace in the topic.
        assert producer.flush(WAIT_S) == 0
        end(WAIT_S)
    began_s = time.monotonic()
    with TopicLetterReader(feed.address, feed.letters, KafkaOptions()) as letters:
        assert [letter.article_id for letter in letters.letters()] == ["committed"]
        assert letters.letter("1:0") is None
        assert letters.letter("1:2") is not None
        assert letters.letter("1:3") is None
    assert time.monotonic() - began_s < topic_letters._SILENCE_S_MAX


def test_letters_deleted_meanwhile(feed: Feed) -> None:
    """What a topic's retention takes while it is read is passed over."""
    feed.bury(*(rejected(feed.articles, offset=number) for number in range(3)))
    with TopicLetterReader(feed.address, feed.letters, KafkaOptions()) as letters:
        admin = AdminClient({"bootstrap.servers": feed.address})
        (deleted,) = admin.delete_records([TopicPartition(feed.letters, 0, 2)]).values()
        deleted.result(WAIT_S)
        assert [letter.position for letter in letters.letters()] == ["0:2"]
    assert listed(feed) == ["0:2"]


def test_no_group_and_no_commit(feed: Feed) -> None:
    """Reading letters makes no group, so it disturbs no consumer, whatever the options of its group are."""
    feed.bury(rejected(feed.articles))
    group = f"group-{uuid.uuid4().hex}"
    options = KafkaOptions(group=group, instance_id="one", group_protocol="consumer")
    with TopicLetterReader(feed.address, feed.letters, options) as letters:
        assert len(list(letters.letters())) == 1
    # A client that nothing refers to is destroyed, and its future never has a result.
    admin = AdminClient({"bootstrap.servers": feed.address})
    found = admin.list_consumer_groups(request_timeout=WAIT_S).result(WAIT_S)
    assert group not in {known.group_id for known in found.valid}


def test_a_topic_that_is_not_there(feed: Feed) -> None:
    """The error says so, and no topic is created, neither for letters nor for what is sent."""
    missing = f"{feed.prefix}-missing"
    with pytest.raises(SourceError, match=f"no topic {missing} at {feed.address}; .*dupwatch topics init"):
        TopicLetterReader(feed.address, missing, KafkaOptions())
    ended = feed.run("replay", "--to", missing)
    assert (ended.code, f"there is no topic {missing} at {feed.address}" in ended.err) == (2, True)
    assert missing not in AdminClient({"bootstrap.servers": feed.address}).list_topics(timeout=WAIT_S).topics


def test_not_into_the_letters_themselves(feed: Feed) -> None:
    """A replay into the topic that it reads is refused."""
    ended = feed.run("replay", "--to", feed.letters)
    assert ended.code == 2
    assert "the topic of the dead letters itself" in ended.err


def test_a_record_that_cannot_be_written(feed: Feed) -> None:
    """A record that is larger than the producer takes ends the replay with a sentence."""
    options = KafkaOptions(producer={"message.max.bytes": 10 << 20})
    feed.bury(rejected(feed.articles))
    with TopicLetterReader(feed.address, feed.letters, options) as letters:
        sending = LetterReplay(feed.address, options, feed.letters, None, 300_000, dry_run=False)
        with pytest.raises(SinkError, match=r"0:0 cannot be sent to .*too large"):
            sending.send(replace(next(letters.letters()), value=bytes(11 << 20)))


def test_a_record_that_the_broker_refuses(feed: Feed) -> None:
    """A record that the broker refuses ends the replay, and the error says why."""
    admin = AdminClient({"bootstrap.servers": feed.address})
    narrow = f"{feed.prefix}.narrow"
    admin.create_topics([NewTopic(narrow, 1, 1, config={"max.message.bytes": "1000"})])[narrow].result(WAIT_S)
    wait_until_known(admin, [narrow])
    feed.bury(rejected(feed.articles, value=os.urandom(5000)))
    ended = feed.run("replay", "--to", narrow)
    assert ended.code == 6
    assert "a record could not be written: " in ended.err
    assert "0 were written before it" in ended.err


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers that do not answer are an error that says so."""
    monkeypatch.setattr(topic_letters, "_REQUEST_TIMEOUT_S", 0.5)
    with pytest.raises(SourceError, match=r"no broker answers at 127\.0\.0\.1:1 "):
        TopicLetterReader("127.0.0.1:1", "t.dead-letters", KafkaOptions(client={"log_level": 0}))
