"""Exactly once: what a ``read_committed`` reader sees, and where the group continues."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from itertools import pairwise
from statistics import quantiles

import pytest
from confluent_kafka import Consumer

from consumer.kafka.client_settings import TRANSACTION_TIMEOUT_MS, KafkaOptions
from consumer.kafka.topics import SinkTopics
from consumer.model.errors import Abandoned, OutcomeUnknown, SinkError
from deploy.local.kafka import KafkaBroker
from tests.kafka.reading import WAIT_S
from tests.kafka.sink_parts import (
    Given,
    Member,
    answer,
    duplicates,
    fresh_topics,
    keys,
    put,
    raw,
    read,
    rejection,
    sink_to,
)

pytestmark = pytest.mark.servers


@pytest.fixture
def given(kafka_address: str) -> Iterator[Given]:
    """A sink that writes everything, to topics that are there."""
    parts = sink_to(kafka_address, fresh_topics(kafka_address), transactional=True)
    yield parts
    parts.sink.close()


@pytest.fixture
def member(kafka_address: str, given: Given) -> Iterator[Member]:
    """The one consumer of a group, on some topic of one partition that has records."""
    put(kafka_address, given.topics.verdicts_topic, 5)
    member = Member(kafka_address, given.topics.verdicts_topic)
    yield member
    member.close()


def deliver(parts: Given, member: Member, place: int, *ids: str) -> None:
    """One batch of flags, to the commit."""
    parts.sink.emit(duplicates(*ids))
    parts.sink.flush()
    parts.outbox.commit({(member.topic, 0): place}, member.metadata())


def flags(address: str, parts: Given, *, committed: bool = True) -> list[str]:
    """The ids of the flags that a reader sees."""
    return keys(read(address, parts.topics.duplicates_topic, committed=committed))


def test_a_batch_counts_as_a_whole(kafka_address: str, given: Given, member: Member) -> None:
    """Flags, clean feed, near misses, dead letters and offsets are nowhere before the commit, and everywhere after."""
    given.sink.emit([answer("a", near_miss=b"{}"), answer("b", "duplicate")])
    given.letters.reject([rejection(raw(key=b"c"))])
    given.sink.flush()
    topics = given.topics
    names = (topics.duplicates_topic, topics.unique_topic, topics.dead_letters_topic, topics.near_misses_topic)
    assert [read(kafka_address, name, held_up=True) for name in names] == [[], [], [], []]
    assert member.committed() < 0
    given.outbox.commit({(member.topic, 0): 2}, member.metadata())
    assert [keys(read(kafka_address, name)) for name in names] == [["b"], ["a", "b"], ["c"], ["a"]]
    assert member.committed() == 2


def test_a_batch_without_messages_commits_its_offsets(kafka_address: str, given: Given, member: Member) -> None:
    """Offsets are committed also if nothing is sent; and what has not begun is not aborted."""
    given.outbox.abort()
    given.sink.flush()
    given.outbox.commit({(member.topic, 0): 3}, member.metadata())
    assert member.committed() == 3


def test_a_batch_that_was_aborted_is_never_seen(kafka_address: str, given: Given, member: Member) -> None:
    """What was sent before an abort stays unseen, flushed or not, and the next batch is not held up by it."""
    for number in range(6):
        given.sink.emit(duplicates(f"void-{number}"))
        if number % 2:
            given.sink.flush()
        given.outbox.abort()
        deliver(given, member, number + 1, f"good-{number}")
    assert flags(kafka_address, given) == [f"good-{number}" for number in range(6)]
    assert any(value.startswith("void") for value in flags(kafka_address, given, committed=False))
    assert member.committed() == 6


def test_an_abort_at_the_heels_of_a_commit_ends_no_run(kafka_address: str, given: Given, member: Member) -> None:
    """While the brokers end the previous transaction they refuse to abort the next: a new producer continues."""
    good: list[str] = []
    while not given.watching.reconnections and len(good) < 300:
        good.append(f"good-{len(good)}")
        deliver(given, member, len(good), good[-1])
        given.sink.emit(duplicates("void"))
        time.sleep(len(good) % 20 * 0.0005)
        given.outbox.abort()
        deliver(given, member, len(good), "after")
        good.append("after")
    assert given.watching.reconnections
    assert flags(kafka_address, given) == good


def test_a_sink_that_is_closed_leaves_nothing_open(kafka_address: str, given: Given, member: Member) -> None:
    """A transaction that was open when the sink was closed holds no reader up."""
    given.sink.emit(duplicates("void"))
    given.sink.flush()
    given.sink.close()
    again = sink_to(kafka_address, given.topics, transactional=True)
    deliver(again, member, 1, "good")
    again.sink.close()
    begun_s = time.monotonic()
    assert flags(kafka_address, again) == ["good"]
    # Until the brokers end a transaction that was left open.
    assert time.monotonic() - begun_s < TRANSACTION_TIMEOUT_MS / 1000


def test_a_batch_of_a_consumer_that_is_out_of_date_is_abandoned(
    kafka_address: str, given: Given, member: Member
) -> None:
    """With the group metadata of before a rebalance nothing counts; with fresh ones the batch does, once."""
    stale = member.metadata()
    member.close()
    newer = Member(kafka_address, member.topic, member.group)
    given.sink.emit(duplicates("a"))
    given.sink.flush()
    with pytest.raises(Abandoned) as raised:
        given.outbox.commit({(member.topic, 0): 4}, stale)
    assert not isinstance(raised.value, OutcomeUnknown)
    given.outbox.abort()
    assert newer.committed() < 0
    deliver(given, newer, 4, "a")
    assert flags(kafka_address, given) == ["a"]
    assert newer.committed() == 4
    newer.close()


def test_a_batch_of_a_consumer_between_two_memberships_is_abandoned(
    kafka_address: str, given: Given, member: Member
) -> None:
    """The brokers would accept offsets without a member id, though another member has the partition by now."""
    nobody = Consumer({"bootstrap.servers": kafka_address, "group.id": member.group})
    given.sink.emit(duplicates("a"))
    given.sink.flush()
    with pytest.raises(Abandoned, match="left its group"):
        given.outbox.commit({(member.topic, 0): 4}, nobody.consumer_group_metadata())
    nobody.close()
    given.outbox.abort()
    deliver(given, member, 4, "a")
    assert flags(kafka_address, given) == ["a"]


@pytest.mark.parametrize("when", ["before", "sent", "flushed", "aborting"])
def test_a_second_process_with_the_same_id_ends_the_first(
    kafka_address: str, given: Given, member: Member, when: str
) -> None:
    """Whenever the other comes, the first ends with an error; its batch does not count, and it never strikes back."""
    options = KafkaOptions(group="g", instance_id=given.topics.prefix)
    first, second = (
        sink_to(kafka_address, given.topics, transactional=True, options=options, linger_ms=300) for _ in range(2)
    )
    with ExitStack() as stack:
        stack.callback(first.sink.close)
        stack.callback(second.sink.close)
        deliver(first, member, 1, "first")
        if when != "before":
            first.sink.emit(duplicates("void"))
        if when in {"flushed", "aborting"}:
            first.sink.flush()
        deliver(second, member, 2, "second")
        go_on = first.outbox.abort if when == "aborting" else partial(deliver, first, member, 3, "void")
        with pytest.raises(SinkError, match="taken over the transactional id of this one"):
            go_on()
        deliver(second, member, 3, "third")
    assert flags(kafka_address, given) == ["first", "second", "third"]
    assert member.committed() == 3
    assert first.watching.reconnections == 0


@pytest.mark.parametrize("when", ["flush", "commit"])
def test_a_message_that_is_never_taken_ends_the_run(kafka_address: str, member: Member, when: str) -> None:
    """A record too large for its topic is an error that names it, and its batch does not count."""
    parts = sink_to(
        kafka_address,
        fresh_topics(kafka_address, {"unique": {"max.message.bytes": "2000"}}),
        transactional=True,
        compression_type="none",
    )
    parts.sink.emit([*duplicates("a"), answer("long", record=raw(b"z" * 5000, b"long"))])
    end = (
        parts.sink.flush if when == "flush" else partial(parts.outbox.commit, {(member.topic, 0): 1}, member.metadata())
    )
    with pytest.raises(SinkError, match=rf"{parts.topics.unique_topic} \(id 'long'\).*raise max\.message\.bytes"):
        end()
    parts.sink.close()
    assert flags(kafka_address, parts) == []
    assert member.committed() < 0


def test_a_transaction_that_took_too_long_is_begun_anew(kafka_address: str, given: Given, member: Member) -> None:
    """The brokers end a transaction that is open too long; the batch is given up, and a new producer delivers it."""
    parts = sink_to(kafka_address, given.topics, transactional=True, transaction_timeout_ms=1_000)
    parts.sink.emit(duplicates("a"))
    parts.sink.flush()
    until_s = time.monotonic() + WAIT_S
    # The brokers look for such transactions every ten seconds; who begins another with this id ends it sooner.
    while "a" not in flags(kafka_address, given, committed=False):
        assert time.monotonic() < until_s
    time.sleep(1.1)
    usurper = sink_to(kafka_address, given.topics, transactional=True, transactional_id=id_of(parts))
    usurper.outbox.commit({}, None)
    usurper.sink.close()
    with pytest.raises(Abandoned):
        parts.outbox.commit({(member.topic, 0): 1}, member.metadata())
    parts.outbox.abort()
    deliver(parts, member, 1, "a")
    parts.sink.close()
    assert flags(kafka_address, given) == ["a"]
    assert parts.watching.reconnections == 1


def id_of(parts: Given) -> str:
    """The transactional id of a sink."""
    found: str = parts.outbox._settings["transactional.id"]
    return found


def test_batches_without_messages_do_not_wait_for_each_other(kafka_address: str, given: Given, member: Member) -> None:
    """The coordinator still ends the transaction before; the client's default is to ask again after 100 ms.

    The best tenth: others run beside it. Most feeds have few flags, so most batches are like this.
    """
    taken_s = []
    for place in range(1, 61):
        begun_s = time.monotonic()
        given.sink.flush()
        given.outbox.commit({(member.topic, 0): place}, member.metadata())
        taken_s.append(time.monotonic() - begun_s)
    assert quantiles(taken_s, n=10)[0] < 0.06, taken_s
    assert member.committed() == 60


def test_waiting_for_a_coordinator_ends_when_it_is_given_up() -> None:
    """Without brokers the first message asks repeatedly whether to keep waiting, and raises what that raises."""
    asked: list[float] = []

    def give_up() -> None:
        asked.append(time.monotonic())
        if len(asked) > 4:
            raise Abandoned("enough")

    parts = sink_to("127.0.0.1:1", SinkTopics("test-nowhere"), transactional=True, give_up=give_up)
    with pytest.raises(Abandoned, match="enough"):
        parts.sink.emit(duplicates("a"))
    # It waits equally long each time; a busy machine may add to some of these pauses.
    assert min(b - a for a, b in pairwise(asked)) < 1
    parts.outbox.abort()
    parts.sink.close()


def test_a_broker_killed_in_mid_transaction(own_kafka: Callable[[], KafkaBroker]) -> None:
    """Killed before the commit, and while it is under way: once the broker is back each batch counts once."""
    broker = own_kafka()
    topics = fresh_topics(broker.address)
    parts = sink_to(broker.address, topics, transactional=True)
    put(broker.address, topics.verdicts_topic, 5)
    member = Member(broker.address, topics.verdicts_topic)
    with ExitStack() as stack:
        stack.callback(member.close)
        stack.callback(parts.sink.close)
        deliver(parts, member, 1, "0")
        for number, when in enumerate(["flushed", "committing"], 1):
            parts.sink.emit(duplicates(str(number)))
            parts.sink.flush()
            kill = threading.Timer(0.002, broker.kill9)
            kill.start()
            if when == "flushed":
                kill.join()
            revival = threading.Thread(target=start_after, args=(kill, broker))
            revival.start()
            settle(parts, member, number)
            revival.join()
    assert flags(broker.address, parts) == ["0", "1", "2"]


def start_after(kill: threading.Timer, broker: KafkaBroker) -> None:
    """Start a broker again once it was killed."""
    kill.join()
    broker.start()


def settle(parts: Given, member: Member, number: int) -> None:
    """Commit a batch as a run does: again and again until the group is behind it."""
    until_s = time.monotonic() + 90
    while time.monotonic() < until_s:
        member.consumer.poll(0)
        try:
            parts.outbox.commit({(member.topic, 0): number + 1}, member.metadata())
        except OutcomeUnknown:
            parts.outbox.abort()
            if member.committed() == number + 1:
                return
        except Abandoned:
            parts.outbox.abort()
        else:
            assert member.committed() == number + 1
            return
        with suppress(Abandoned):
            parts.sink.emit(duplicates(str(number)))
    raise AssertionError("the batch was never committed")
