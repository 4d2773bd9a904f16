"""Reading topics of a real broker: members join and leave, nothing is lost, nothing unanswered is committed."""

import hashlib
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeVar

import pytest
from confluent_kafka import Consumer

from consumer.kafka.client_settings import KafkaOptions, consumer_settings
from consumer.kafka.message import Offsets
from consumer.kafka.source import client_thread as kafka_client
from consumer.kafka.source.group_source import KafkaSource
from consumer.kafka.source.handover import ClientProgressed
from consumer.kafka.source.rebalances import PartitionsRebalanced
from consumer.model.article import Reason
from consumer.model.dead_letter import DEAD_LETTER_RAW_BYTES_MAX
from consumer.model.errors import Abandoned, ConfigError, SourceError
from consumer.model.limits import ReadLimits
from deploy.local.kafka import KafkaBroker
from tests.examples import drawn
from tests.kafka.reading import (
    SMALL,
    WAIT_S,
    GroupProtocol,
    by_partition,
    delete_records,
    delete_topic,
    evict,
    grouped,
    make_topic,
    message_of,
    send,
    until,
)
from tests.kafka.topics import ordered_producer

pytestmark = pytest.mark.servers

_Test = TypeVar("_Test", bound=Callable[..., None])


def either_protocol(test: _Test) -> _Test:
    """Let a test run with one of the protocols; ``make test-load`` runs it with both."""
    either: _Test = pytest.mark.parametrize("protocol", drawn(["classic", "consumer"], 2, test.__name__))(test)
    return either


def test_partitions_are_read_in_order(kafka_address: str) -> None:
    """Every record of three partitions comes once, in the order of its partition, and all of it is committed."""
    topic = make_topic(kafka_address, 3)
    send(kafka_address, topic, range(900), 3)
    with grouped(kafka_address, topic) as group:
        member = group.joined()
        until(lambda: len(member.finished()) == 900)
        assert by_partition(member.finished()) == {number: list(range(300)) for number in range(3)}
        until(lambda: group.committed(3) == [300] * 3)
        assert max(len(batch) for batch in member.batches) == SMALL.batch_records_max


def test_a_later_member_goes_on_behind_what_was_committed(kafka_address: str) -> None:
    """Closing commits the last answers, and the next member begins after them."""
    topic = make_topic(kafka_address)
    send(kafka_address, topic, range(100))
    with grouped(kafka_address, topic) as group:
        first = group.joined()
        until(lambda: len(first.finished()) == 100)
        first.close()
        assert group.committed() == [50, 50]
        second = group.joined()
        send(kafka_address, topic, range(100, 110))
        until(lambda: len(second.finished()) == 10)
        assert sorted(second.numbers()) == list(range(100, 110))


def test_what_a_message_has_is_given_untouched(kafka_address: str) -> None:
    """Key, headers, timestamp, a null value and the leader's epoch come with the record."""
    topic = make_topic(kafka_address, 1)
    producer = ordered_producer(kafka_address)
    producer.produce(topic, None, b"1", headers=[("a", b"\xff"), ("a", None)], timestamp=1_700_000_000_123)
    producer.produce(topic, b"", b"2")
    producer.flush(WAIT_S)
    with grouped(kafka_address, topic) as group:
        member = group.joined()
        until(lambda: len(member.finished()) == 2)
        tombstone, empty = member.finished()
    assert tombstone.headers == (("a", b"\xff"), ("a", None))
    assert tombstone.time_ms == 1_700_000_000_123
    assert message_of(tombstone).leader_epoch == 0
    assert (tombstone.is_null, empty.is_null) == (True, False)


def test_a_record_over_the_limit_keeps_its_beginning(kafka_address: str) -> None:
    """It has a fault, its first bytes, and the size and digest of the whole; its neighbours go on."""
    topic, large = make_topic(kafka_address, 1), b"x" * 200_000
    send(kafka_address, topic, [1], 1)
    send(kafka_address, topic, [2], 1, large)
    send(kafka_address, topic, [3], 1)
    with grouped(kafka_address, topic) as group:
        member = group.joined(limits=ReadLimits(record_bytes_max=100_000))
        until(lambda: len(member.finished()) == 3)
        record = member.finished()[1]
    assert member.numbers() == [1, 2, 3]
    assert record.fault is not None
    assert record.fault.reason == Reason.RECORD_TOO_LONG
    assert record.data == large[:DEAD_LETTER_RAW_BYTES_MAX]
    assert (record.size_bytes, record.sha256) == (len(large), hashlib.sha256(large).digest())


def test_a_record_on_a_quiet_topic_comes_at_once(kafka_address: str) -> None:
    """From the producer's send to the batch: nothing waits for more records, nor polls now and then.

    A single record takes a few milliseconds. Of three out of four it does not matter if something else ran first.
    """
    topic = make_topic(kafka_address, 1)
    sent_s = {}
    producer = ordered_producer(kafka_address, {"linger.ms": 0})
    with grouped(kafka_address, topic) as group:
        member = group.joined()
        for number in range(40):
            sent_s[number] = time.time()
            producer.produce(topic, b"", b"%d" % number)
            producer.flush(WAIT_S)
            until(lambda number=number: number in member.arrived_s)  # type: ignore[misc]
            time.sleep(0.02)
    waited_ms = [1000 * (member.arrived_s[number] - sent_s[number]) for number in sent_s]
    assert statistics.quantiles(waited_ms)[0] < 50, waited_ms


def test_records_pile_up_to_full_batches_while_one_is_judged(kafka_address: str) -> None:
    """What arrives one by one while the judge is busy comes as one batch afterwards."""
    topic = make_topic(kafka_address, 1)
    with grouped(kafka_address, topic) as group:
        member = group.joined()
        member.hold()
        send(kafka_address, topic, [0], 1)
        until(lambda: member.begun is not None)
        for number in range(1, 11):
            send(kafka_address, topic, [number], 1)
        until(lambda: member.source._handover.partitions.buffered() == 10)
        member.go_on.set()
        until(lambda: len(member.finished()) == 11)
        assert [len(batch) for batch in member.batches] == [1, 10]


@either_protocol
def test_a_member_that_joins_in_the_middle_loses_nothing(kafka_address: str, protocol: GroupProtocol) -> None:
    """Two more members join and one leaves while all are busy; every record is answered, and few of them twice.

    Where a rebalance overtakes another the group refuses a commit, and what was answered meanwhile is read again: how
    much that is depends on how long the members of a busy machine need to join.
    """
    topic = make_topic(kafka_address, 6)
    send(kafka_address, topic, range(3000), 6)
    with grouped(kafka_address, topic, protocol) as group:
        for count in range(3):
            member = group.member()
            member.pace_s = 0.01
            member.start()
            until(lambda count=count: len(group.answered()) > 300 * (count + 1))  # type: ignore[misc]
        until(lambda: all(member.numbers() for member in group.members))
        group.members[0].close()
        until(lambda: len(set(group.answered())) >= 3000)
        assert sorted(set(group.answered())) == list(range(3000))
        assert len(group.answered()) <= 3000 + 3000 // 5
        until(lambda: group.committed(6) == [500] * 6)
        assert all(member.error is None for member in group.members)


@either_protocol
def test_a_batch_finished_before_the_deadline_counts(kafka_address: str, protocol: GroupProtocol) -> None:
    """One of two partitions is revoked during a batch; the batch is finished, committed, and not read again."""
    topic = make_topic(kafka_address)
    with grouped(kafka_address, topic, protocol) as group:
        # Lingering until it is full, the batch has records of both partitions, however busy the machine is.
        first = group.joined(revoke_s=20, limits=ReadLimits(batch_records_max=10), linger_s=WAIT_S / 4)
        first.hold()
        send(kafka_address, topic, range(10))
        until(lambda: first.begun is not None)
        second = group.member().start()
        time.sleep(2)
        assert second.watched.partitions == 0
        first.go_on.set()
        until(lambda: second.watched.partitions == 1)
        # Full batches for both.
        send(kafka_address, topic, range(10, 30))
        until(lambda: len(group.answered()) == 30)
        assert group.answered() == list(range(30))
        assert len(second.numbers()) == 10


@either_protocol
def test_a_batch_that_takes_too_long_is_given_up(kafka_address: str, protocol: GroupProtocol) -> None:
    """The partition that goes is read by its new owner; the one that stays is read again from the batch's beginning."""
    topic = make_topic(kafka_address)
    with grouped(kafka_address, topic, protocol) as group:
        # A batch has records of both partitions, however busy the machine is. Once it is full it is not waited for. One
        # that never fills comes in time: after another rebalance the partitions may be the other way round.
        first = group.joined(revoke_s=0.3, limits=ReadLimits(batch_records_max=20), linger_s=WAIT_S / 4)
        send(kafka_address, topic, range(20))
        until(lambda: len(first.finished()) == 20)
        until(lambda: group.committed() == [10, 10])
        first.hold()
        send(kafka_address, topic, range(20, 40))
        until(lambda: first.begun is not None)
        assert {record.known_partition()[1] for record in first.begun.records} == {0, 1}  # type: ignore[union-attr]
        second = group.joined()
        until(lambda: first.abandoned > 0)
        assert len(first.finished()) == 20
        until(lambda: len(second.finished()) == 10)
        # These fill the batch that it begins again with.
        send(kafka_address, topic, range(40, 60))
        first.go_on.set()
        until(lambda: len(group.answered()) == 60)
        assert group.answered() == list(range(60))
        assert first.watched.partitions == 1


@either_protocol
def test_a_batch_that_was_given_up_is_committed_with_no_later_membership(
    kafka_address: str, protocol: GroupProtocol
) -> None:
    """The judge has looked for the last time, and then partitions go: what it asks for to commit is refused."""
    topic = make_topic(kafka_address)
    with grouped(kafka_address, topic, protocol) as group:
        first = group.member(revoke_s=0.3, limits=ReadLimits(batch_records_max=20), linger_s=0.3)
        # Nobody but the test itself answers its batches.
        group.members.remove(first)
        try:
            begin_one_of_both_partitions(kafka_address, topic, first.source)
            assert first.source.group_metadata() is not None
            group.joined()
            until(lambda: first.watched.partitions == 1)
            with pytest.raises(Abandoned):
                first.source.group_metadata()
        finally:
            first.source.close()


def begin_one_of_both_partitions(address: str, topic: str, source: KafkaSource) -> None:
    """Answer batches until one has records of both, and leave that one begun."""
    send(address, topic, range(20))
    for batch in source.batches():
        assert isinstance(batch.end, Offsets)
        notes = source.begin(batch.end)
        if len(batch.end.next) == 2:
            return
        source.commit(batch.end, notes)
        send(address, topic, range(20))


def test_paused_partitions_are_read_to_the_end_later(kafka_address: str) -> None:
    """If no batch is taken, fetching pauses, the buffer stays bounded, and afterwards nothing is missing."""
    topic = make_topic(kafka_address)
    send(kafka_address, topic, range(2000))
    with grouped(kafka_address, topic) as group:
        first = group.member(pause_after_s=0.3)
        first.hold()
        first.start()
        until(lambda: first.watched.pauses == [True])
        time.sleep(0.3)
        beats = first.watched.beats
        assert first.source._handover.partitions.buffered() <= 3 * SMALL.batch_records_max
        until(lambda: first.watched.beats > beats)
        first.go_on.set()
        until(lambda: len(first.finished()) == 2000)
        assert by_partition(first.finished()) == {0: list(range(1000)), 1: list(range(1000))}
        assert first.watched.pauses[:2] == [True, False]


def test_partitions_assigned_while_paused_are_paused(kafka_address: str) -> None:
    """A partition that comes while fetching is paused is not fetched, and is read from its place afterwards."""
    topic = make_topic(kafka_address)
    with grouped(kafka_address, topic) as group:
        first, second = group.joined(pause_after_s=0.2), group.joined()
        until(lambda: first.watched.partitions == 1)
        first.hold()
        send(kafka_address, topic, range(400))
        until(lambda: first.watched.pauses == [True])
        waiting = first.source._handover.partitions.buffered()
        until(lambda: len(second.finished()) == 200)
        second.close()
        until(lambda: first.watched.partitions == 2)
        send(kafka_address, topic, range(400, 600))
        time.sleep(0.7)
        assert first.source._handover.partitions.buffered() == waiting
        first.go_on.set()
        until(lambda: len(group.answered()) >= 600)
        assert group.answered() == list(range(600))


@either_protocol
def test_a_partition_that_went_while_paused_is_fetched_when_it_comes_back(
    kafka_address: str, protocol: GroupProtocol
) -> None:
    """The client remembers a pause beyond the assignment; a partition that is assigned again is read nevertheless."""
    topic = make_topic(kafka_address)
    with grouped(kafka_address, topic, protocol) as group:
        first = group.joined(pause_after_s=0.2, revoke_s=0.3)
        first.hold()
        send(kafka_address, topic, range(400))
        until(lambda: first.watched.pauses == [True])
        second = group.joined()
        first.go_on.set()
        until(lambda: group.answered() == list(range(400)))
        second.close()
        until(lambda: first.watched.partitions == 2)
        send(kafka_address, topic, range(400, 600))
        until(lambda: group.answered()[-200:] == list(range(400, 600)))


@pytest.mark.parametrize("on_gap", ["stop", "continue"])
def test_records_deleted_unread(kafka_address: str, on_gap: Literal["stop", "continue"]) -> None:
    """If the group's offset was deleted, the source ends with a sentence, or counts the lost records and continues."""
    topic = make_topic(kafka_address, 1)
    send(kafka_address, topic, range(20), 1)
    with grouped(kafka_address, topic) as group:
        first = group.joined()
        until(lambda: len(first.finished()) == 20)
        first.close()
        send(kafka_address, topic, range(20, 50), 1)
        delete_records(kafka_address, topic, 0, 35)
        second = group.joined(on_gap=on_gap)
        if on_gap == "stop":
            until(lambda: second.error is not None)
            assert isinstance(second.error, SourceError)
            assert f"15 records of partition 0 of {topic} were deleted" in str(second.error)
            assert 'kafka.on_gap = "continue"' in str(second.error)
            assert group.committed(1) == [20]
        else:
            until(lambda: len(second.finished()) == 15)
            assert second.numbers() == list(range(35, 50))
            assert second.watched.gaps == [15]


@pytest.mark.parametrize("on_gap", ["stop", "continue"])
def test_a_topic_made_anew(kafka_address: str, on_gap: Literal["stop", "continue"]) -> None:
    """A committed place beyond the end of the log ends the source with a sentence, or all that is there is read."""
    topic = make_topic(kafka_address, 1)
    send(kafka_address, topic, range(20), 1)
    with grouped(kafka_address, topic) as group:
        first = group.joined()
        until(lambda: len(first.finished()) == 20)
        first.close()
        delete_records(kafka_address, topic, 0, 20)
        # Deleting a topic takes its groups' offsets along, but not where another cluster took its place.
        group.commit(30)
        second = group.joined(on_gap=on_gap)
        until(lambda: second.error is not None or second.watched.gaps == [0])
        send(kafka_address, topic, range(20, 25), 1)
        if on_gap == "stop":
            assert isinstance(second.error, SourceError)
            assert "ends at offset 20" in str(second.error)
        else:
            until(lambda: len(second.finished()) == 5)
            until(lambda: group.committed(1) == [25])


def test_the_latest_start_is_kept_for_whoever_comes_next(kafka_address: str) -> None:
    """What arrives after the first member saw the end is read by the next one, though the first answered nothing."""
    topic = make_topic(kafka_address, 1)
    send(kafka_address, topic, range(10), 1)
    with grouped(kafka_address, topic) as group:
        first = group.joined(start="latest")
        first.close()
        send(kafka_address, topic, range(10, 20), 1)
        second = group.joined(start="latest")
        until(lambda: len(second.finished()) == 10)
        assert second.numbers() == list(range(10, 20))


def test_a_topic_that_is_not_there(kafka_address: str) -> None:
    """It is named, with what to do."""
    with grouped(kafka_address, "no-such-topic") as group:
        member = group.member().start()
        until(lambda: member.error is not None)
        assert isinstance(member.error, SourceError)
        assert "no-such-topic" in str(member.error)
        assert "dupwatch topics init" in str(member.error)


def test_a_topic_that_is_deleted_ends_the_source(kafka_address: str) -> None:
    """A topic that goes while it is read is an error, not an end without words."""
    topic = make_topic(kafka_address, 1)
    send(kafka_address, topic, range(10), 1)
    with grouped(kafka_address, topic) as group:
        member = group.joined(client={"topic.metadata.refresh.interval.ms": 500})
        until(lambda: len(member.finished()) == 10)
        delete_topic(kafka_address, topic)
        until(lambda: member.error is not None)
        assert isinstance(member.error, SourceError)
        assert topic in str(member.error)


def test_a_wrong_setting_is_a_config_error(kafka_address: str) -> None:
    """A setting that the client rejects is a configuration error with a sentence."""
    with grouped(kafka_address, "any") as group:
        member = group.member(client={"no.such.setting": 1}).start()
        until(lambda: member.error is not None)
        assert isinstance(member.error, ConfigError)
        assert "no.such.setting" in str(member.error)


def fail(_: object) -> None:
    """A defect."""
    raise ZeroDivisionError


@pytest.mark.parametrize("where", [ClientProgressed, PartitionsRebalanced])
def test_a_defect_in_the_clients_thread_comes_out(
    kafka_address: str, where: type[ClientProgressed | PartitionsRebalanced]
) -> None:
    """An exception of the client's thread, in its loop or in a callback, is raised where batches are asked for."""
    topic = make_topic(kafka_address, 1)
    with grouped(kafka_address, topic) as group:
        member = group.member()
        member.watched.hooks.on(where, fail)
        member.start()
        until(lambda: member.error is not None)
        assert isinstance(member.error, ZeroDivisionError)


@either_protocol
def test_a_static_member_restarts_without_a_rebalance(kafka_address: str, protocol: GroupProtocol) -> None:
    """It leaves without a farewell and comes back under its name; the other member is never asked for anything."""
    topic = make_topic(kafka_address)
    with grouped(kafka_address, topic, protocol) as group:
        first, second = group.joined(instance_id="one"), group.joined(instance_id="two")
        until(lambda: first.watched.partitions == 1)
        events = list(second.watched.events)
        first.close()
        again = group.joined(instance_id="one")
        send(kafka_address, topic, range(20))
        until(lambda: len(group.answered()) == 20)
        assert len(again.numbers()) == len(second.numbers()) == 10
        assert second.watched.events == events


def test_a_static_member_that_is_another_member_now_gives_up_what_it_had_begun(kafka_address: str) -> None:
    """Its session runs out while it waits for a rebalance: its client joins under a new id, and tells of no loss."""
    topic, other = make_topic(kafka_address, 1), make_topic(kafka_address, 1)
    states: list[str] = []
    client = {
        "statistics.interval.ms": 50,
        "stats_cb": lambda statistics: states.append(json.loads(statistics)["cgrp"]["join_state"]),
    }
    with grouped(kafka_address, topic) as group, grouped(kafka_address, other, group=group.group) as others:
        first = group.joined(instance_id="one", client=client)
        first.hold()
        send(kafka_address, topic, range(10), 1)
        until(lambda: first.begun is not None)
        with silent_member(kafka_address, group.group, other, "silent"):
            until(lambda: first.watched.events == ["assigned", "assigned"] and states[-1] == "steady")
            others.member().start()
            until(lambda: states[-1] == "wait-join")
            evict(kafka_address, group.group, "one")
            evict(kafka_address, group.group, "silent")
            until(lambda: first.abandoned == 1)
        assert "lost" not in first.watched.events
        first.go_on.set()
        until(lambda: group.answered() == list(range(10)))
        assert first.watched.partitions == 1


@contextmanager
def silent_member(address: str, group: str, topic: str, instance_id: str) -> Iterator[None]:
    """A member whose application never says a word: it joins, and at the next rebalance everybody waits for it."""
    consumer = Consumer(consumer_settings(address, KafkaOptions(group=group, instance_id=instance_id)))
    consumer.subscribe([topic], on_assign=lambda *_: None)
    try:
        yield
    finally:
        # A client that is closed before its application has said that word may never end.
        consumer.poll(0)
        consumer.close()


def test_a_fenced_instance_ends_with_a_sentence(kafka_address: str) -> None:
    """Of two members under one name the older one ends, and nothing that it had begun is committed."""
    topic = make_topic(kafka_address, 1)
    with grouped(kafka_address, topic) as group:
        first = group.joined(instance_id="same")
        first.hold()
        send(kafka_address, topic, range(10), 1)
        until(lambda: first.begun is not None)
        second = group.joined(instance_id="same")
        until(lambda: first.error is not None)
        assert isinstance(first.error, SourceError)
        until(lambda: len(second.finished()) == 10)


def test_a_broker_that_is_killed_and_restarted(own_kafka: Callable[[], KafkaBroker]) -> None:
    """Reading resumes by itself, an outage and its end are reported; closing ends in time without a broker."""
    broker = own_kafka()
    topic = make_topic(broker.address)
    send(broker.address, topic, range(100))
    with grouped(broker.address, topic) as group:
        member = group.joined()
        until(lambda: len(member.finished()) == 100)
        broker.kill9()
        until(lambda: bool(member.watched.troubles))
        beats = member.watched.beats
        until(lambda: member.watched.beats > beats)
        broker.start()
        until(lambda: member.watched.troubles[-1] is None)
        send(broker.address, topic, range(100, 200))
        until(lambda: len(member.finished()) >= 200)
        assert sorted(set(member.numbers())) == list(range(200))
        until(lambda: group.committed() == [100, 100])
        broker.kill9()
        began_s = time.monotonic()
        member.close()
        # The client has ten seconds (CLOSE_S).
        assert time.monotonic() - began_s < WAIT_S / 2


def test_an_instance_that_is_there_already(kafka_address: str) -> None:
    """With the new group protocol the second of two members with one name ends, and the first continues."""
    topic = make_topic(kafka_address, 1)
    with grouped(kafka_address, topic, "consumer") as group:
        first = group.joined(instance_id="same")
        second = group.joined(instance_id="same")
        assert isinstance(second.error, SourceError)
        send(kafka_address, topic, range(10), 1)
        until(lambda: len(first.finished()) == 10)
        assert first.error is None


def test_brokers_without_the_new_group_protocol(
    own_kafka: Callable[..., KafkaBroker], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether the brokers say so or the client would wait silently: the error says which brokers are needed."""
    monkeypatch.setattr(kafka_client, "UNASSIGNED_S", 0.5)
    broker = own_kafka({"group.coordinator.rebalance.protocols": "classic"})
    with grouped(broker.address, make_topic(broker.address), "consumer") as group:
        member = group.member().start()
        until(lambda: "needs brokers of Kafka 4.0" in f"{caplog.text} {member.error}")
