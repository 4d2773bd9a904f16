"""A poisoned partition waits, alone: over restarts and rebalances, until a person lets it go on."""

import json
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from consumer.kafka.offset_metadata import HoldReason, Note, decode_note, encode_note
from tests.cli.command import Outcome, run_process, text
from tests.examples import drawn
from tests.kafka.reading import WAIT_S, delete_records, until
from tests.kafka.running import Running, running
from tests.kafka.test_run import EITHER, EXACTLY_ONCE, SHORT_SESSION
from tests.kafka.topics import Topics, make_topics, ordered_producer, read_all, wait_for_count

pytestmark = pytest.mark.servers

MIN, BATCH = 100, 30
LIMITS = (
    "--set", f"kafka.poison_records_min={MIN}",
    "--set", f"source.batch_records_max={BATCH}",
)  # fmt: skip
BAD, GOOD, OTHER = 0, 1, 2
ALL = ("verdicts", "dead-letters")


@pytest.fixture
def topics(kafka_address: str) -> Topics:
    """Topics of the test's own, three partitions each."""
    return make_topics(kafka_address, 3)


def send(topics: Topics, partition: int, values: Iterable[bytes], begin: int = 0) -> None:
    """Send values to a partition, each under an id of its own."""
    producer = ordered_producer(topics.address, {"linger.ms": 5})
    for number, value in enumerate(values, begin):
        producer.produce(topics.source, value, b"%d-%d" % (partition, number), partition=partition)
    assert producer.flush(WAIT_S) == 0


def poison(count: int) -> list[bytes]:
    """Values that cannot be judged."""
    return [b"{"] * count


def articles(numbers: Iterable[int]) -> list[bytes]:
    """Values of articles that are near none."""
    return [json.dumps({"body": text(number)}).encode() for number in numbers]


def buried(topics: Topics) -> set[int]:
    """The offsets of the bad partition that have a dead letter."""
    letters = [dict(message.headers) for message in read_all(topics, topics.sink("dead-letters"))]
    assert {letter["__connect.errors.partition"] for letter in letters} <= {b"%d" % BAD}
    return {int(letter["__connect.errors.offset"] or b"") for letter in letters}


def notes(topics: Topics, *partitions: int) -> dict[int, tuple[int, Note]]:
    """What the group has committed of these partitions, or of all, and the notes beside it; negative where nothing."""
    consumer = Consumer({"bootstrap.servers": topics.address, "group.id": topics.prefix})
    try:
        asked = [TopicPartition(topics.source, number) for number in partitions or range(topics.partitions)]
        found = consumer.committed(asked, timeout=WAIT_S)
        return {place.partition: (place.offset, decode_note(place.metadata)) for place in found}
    finally:
        consumer.close()


def held_by(consumer: Running) -> list[str]:
    """What /readyz says that it holds; it is ready all the same."""
    status, body = consumer.page("/readyz")
    return sorted(json.loads(body)["held"]) if status == 200 else []


def held_by_any(consumers: Iterable[Running]) -> list[str]:
    """What several of them hold together."""
    return sorted(partition for consumer in consumers for partition in held_by(consumer))


def name(topics: Topics, partition: int = BAD) -> str:
    """As commands take it."""
    return f"{topics.source}:{partition}"


def command(topics: Topics, *words: str) -> Outcome:
    """``dupwatch poison``."""
    return run_process("poison", *words, "--source", topics.url(), "--group", topics.prefix)


@EITHER
def test_a_poisoned_partition_waits_alone_over_restarts_until_it_is_let_go_on(
    topics: Topics, tmp_path: Path, more: tuple[str, ...]
) -> None:
    """Killed again and again it buries no more; the others are judged; a person lets it go on, and past a stretch."""
    send(topics, BAD, poison(400))
    send(topics, GOOD, articles(range(10)))
    send(topics, OTHER, articles(range(10, 20)))
    store = f"lmdb:{tmp_path / 'store'}"
    options = (*LIMITS, *SHORT_SESSION, *more)
    # As a supervisor would: it ends in the middle, and is started again.
    with running(topics, store, tmp_path, *options) as consumer:
        wait_for_count(topics, ["dead-letters"], BATCH)
        consumer.kill()
    with running(topics, store, tmp_path, *options) as consumer:
        wait_for_count(topics, ["verdicts"], 20)
        until(lambda: held_by(consumer) == [name(topics)])
        assert consumer.metric("dupwatch_partition_held") == 1
        until(lambda: notes(topics)[BAD][1].held is not None)
        offset, note = notes(topics)[BAD]
        assert note.held is not None
        assert note.held.reason == "invalid_json"
        # A transaction's offsets may be seen a moment before what it wrote: each partition has a marker of its own.
        until(lambda: buried(topics) == set(range(offset)))
        before = buried(topics)
        assert 0 < len(before) < MIN + BATCH
        listed = json.loads(command(topics, "list", "--json").out)
        assert [(line["partition"], line["offset"], line["waiting"]) for line in listed] == [
            (BAD, offset, 400 - offset)
        ]
        refused = command(topics, "resume")
        assert refused.code == 2
        assert "has running consumers" in refused.err
        assert consumer.stop() == 0, consumer.log.read_text()
    with running(topics, store, tmp_path, *options) as consumer:
        until(lambda: held_by(consumer) == [name(topics)])
        send(topics, GOOD, articles(range(20, 25)), 10)
        until(lambda: len({message.key for message in read_all(topics, topics.sink("verdicts"))}) == 25)
        assert consumer.stop() == 0, consumer.log.read_text()
    assert buried(topics) == before
    assert notes(topics)[BAD][0] == offset
    assert f"{name(topics)} resumes at offset {offset}".encode() in command(topics, "resume").out
    with running(topics, store, tmp_path, *options) as consumer:
        until(lambda: held_by(consumer) == [name(topics)])
        until(lambda: notes(topics)[BAD][1].held is not None)
        again = notes(topics)[BAD][0]
        assert consumer.stop() == 0, consumer.log.read_text()
    until(lambda: buried(topics) == set(range(again)))
    assert offset < again < offset + MIN + BATCH
    assert b"becomes a dead letter" in command(topics, "resume", name(topics), "--until", "400").out
    send(topics, BAD, articles(range(30, 35)), 400)
    with running(topics, store, tmp_path, *options) as consumer:
        until(lambda: len({message.key for message in read_all(topics, topics.sink("verdicts"))}) == 30)
        assert held_by(consumer) == []
        assert consumer.stop() == 0, consumer.log.read_text()
    until(lambda: buried(topics) == set(range(400)))
    assert b"No partition" in command(topics, "resume").out


@pytest.mark.parametrize(
    "more",
    drawn(
        [
            pytest.param(SHORT_SESSION, id="at least once, classic"),
            pytest.param((*EXACTLY_ONCE, "--set", "kafka.group_protocol=consumer"), id="exactly once, consumer"),
        ],
        2,
    ),
)
def test_who_gets_a_held_partition_holds_it(topics: Topics, tmp_path: Path, more: tuple[str, ...]) -> None:
    """It moves from consumer to consumer with its note; none of them reads it or commits beyond it."""
    send(topics, BAD, poison(200))
    send(topics, GOOD, articles(range(5)))
    store = f"lmdb:{tmp_path / 'store'}"
    options = (*LIMITS, *more)
    with ExitStack() as stack:
        first = stack.enter_context(running(topics, store, tmp_path, *options))
        until(lambda: held_by(first) == [name(topics)])
        until(lambda: notes(topics)[BAD][1].held is not None)
        before = notes(topics)[BAD]
        others = [stack.enter_context(running(topics, store, tmp_path, *options)) for _ in range(2)]
        everyone = [first, *others]
        until(lambda: [consumer.metric("dupwatch_assigned_partitions") for consumer in everyone] == [1, 1, 1])
        until(lambda: held_by_any(everyone) == [name(topics)])
        holder = next(consumer for consumer in everyone if held_by(consumer))
        assert holder.stop() == 0, holder.log.read_text()
        rest = [consumer for consumer in everyone if consumer is not holder]
        until(lambda: held_by_any(rest) == [name(topics)])
        send(topics, GOOD, articles(range(5, 10)), 5)
        send(topics, OTHER, articles(range(10, 15)))
        until(lambda: len({message.key for message in read_all(topics, topics.sink("verdicts"))}) == 15)
    assert notes(topics)[BAD] == before
    until(lambda: buried(topics) == set(range(before[0])))


def test_offsets_are_skipped_only_where_that_was_said(topics: Topics, tmp_path: Path) -> None:
    """It says which; what cannot be meant is refused, and changes nothing; other notes are not in the way.

    Deleted records after the hold leave the end where it is.
    """
    send(topics, BAD, poison(50))
    send(topics, BAD, articles(range(3)), 50)
    note = Note(held=HoldReason(bad=9, records=10, reason="invalid_json"), highest_ms=5)
    consumer = Consumer({"bootstrap.servers": topics.address, "group.id": topics.prefix})
    places = [
        TopicPartition(topics.source, BAD, 20, encode_note(note)),
        TopicPartition(topics.source, GOOD, 0, "somebody else's"),
    ]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()
    assert b"9 of the last 10" in command(topics, "list").out
    report = run_process("doctor", "--source", topics.url(), "--set", f"kafka.group={topics.prefix}").out.decode()
    delete_records(topics.address, topics.source, BAD, 25)
    assert f"{name(topics)} is held at offset 20: 9 of the last 10 records" in " ".join(report.split())
    wrong: list[tuple[tuple[str, ...], str]] = [
        (("resume", name(topics), "--skip-to", "20"), "waits at offset 20"),
        (("resume", name(topics), "--skip-to", "54"), "up to 53"),
        (("resume", name(topics), "--until", "20"), "waits at offset 20"),
        (("resume", name(topics), "--until", "30", "--skip-to", "30"), "use one"),
        (("resume", name(topics, GOOD)), "is not held"),
    ]
    for words, why in wrong:
        refused = command(topics, *words)
        assert refused.code == 2, words
        assert why in refused.err
    assert notes(topics, BAD)[BAD] == (20, note)
    done = command(topics, "resume", name(topics), "--skip-to", "50")
    assert b"Offsets 20 to 49 are skipped" in done.out
    assert notes(topics, BAD)[BAD] == (50, Note(highest_ms=5))
    with running(topics, f"lmdb:{tmp_path / 'store'}", tmp_path, *LIMITS) as running_one:
        wait_for_count(topics, ["verdicts"], 3)
        assert running_one.metric("dupwatch_errors_total") == 1
        assert "somebody else's" in running_one.log.read_text()
        assert running_one.stop() == 0
    assert buried(topics) == set()
