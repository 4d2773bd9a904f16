"""The thread that owns the Kafka client: it polls, answers for rebalances, seeks, pauses and commits.

A turn of its loop seeks where seeking is due, commits what was acknowledged, and reads what there is. While the buffer
is full it only keeps the client alive. Callbacks of the client come from within its calls, and so in this thread.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, ParamSpec

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as ClientMessage

from consumer.errors import ConfigError, SourceError
from consumer.ports import SourceWatcher
from consumer.sources.kafka_records import record_of
from consumer.sources.kafka_trouble import (
    GAPS,
    UNKNOWN_TOPICS,
    Gap,
    Trouble,
    ask_committed,
    describe,
    find_gap,
    is_fatal,
    is_refusal,
    topic_missing,
)
from consumer.sources.partitions import BEGINNING, Partition, Partitions, Place, Start

log = logging.getLogger("dupwatch")
client_log = logging.getLogger("dupwatch.kafka")

Arguments = ParamSpec("Arguments")

POLL_S: Final = 0.1
_NEEDS: Final = '; kafka.group_protocol = "consumer" needs brokers of Kafka 4.0 or later'
OUTSIDER_S: Final = 30.0
_ASK_S: Final = 5.0
_AGAIN_S: Final = 0.5
_LAG_S: Final = 5.0
_MISSING_TIMES: Final = 4
"""So often a topic is looked for before it is said to be missing: one just made takes a moment to be known."""


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """What the thread needs to know; as in ``SourceOptions``. ``consume_max`` records are read in one call."""

    settings: Mapping[str, Any]
    topics: tuple[str, ...]
    record_bytes_max: int
    consume_max: int
    start: Literal["earliest", "latest"]
    on_gap: Literal["stop", "continue"]
    revoke_s: float
    pause_after_s: float


@dataclass(slots=True)
class Handover:
    """Where the client's thread and the judge's side meet; everything here is touched under ``changed`` only."""

    partitions: Partitions
    closing: bool = False
    error: BaseException | None = None
    group_metadata: object = None
    changed: threading.Condition = field(default_factory=threading.Condition)

    def close(self) -> None:
        """Ask the client's thread to end."""
        with self.changed:
            self.closing = True
            self.changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Say why the client's thread has ended."""
        with self.changed:
            self.error = error
            self.changed.notify_all()

    def over(self) -> bool:
        """Whether no more records will come."""
        return self.closing or self.error is not None

    def raise_error(self) -> None:
        """Raise what ended the client's thread."""
        if self.error is not None:
            raise self.error


class ClientThread:
    """The thread's work, and what it remembers from turn to turn."""

    def __init__(self, options: ClientOptions, handover: Handover, watcher: SourceWatcher) -> None:
        self.consumer: Consumer | None = None
        self._options = options
        self._handover = handover
        self._watcher = watcher
        self._trouble = Trouble(watcher)
        self._failure: BaseException | None = None
        self._rebalances = 0
        self._paused = False
        self._full_since_s: float | None = None
        self._commit_sent = False
        self._commit_again_s = 0.0
        self._lag_again_s = 0.0
        self._warn_outsider_s = time.monotonic() + OUTSIDER_S
        self._gaps: set[Partition] = set()
        self._gaps_again_s = 0.0
        self._doubted: dict[str, int] = dict.fromkeys(options.topics, 0)
        self._doubted_again_s = 0.0

    def run(self) -> None:
        """Read until the source is closed, or something ends it; then leave the group."""
        try:
            consumer = self.consumer = self._subscribed()
            while not self._handover.closing:
                self._turn(consumer)
        except KafkaException as error:
            self._handover.fail(self._failure or self._error(error.args[0]))
        except BaseException as error:  # noqa: BLE001  # it is raised again on the judge's side
            self._handover.fail(error)
        self._end()

    def _subscribed(self) -> Consumer:
        settings = {
            **self._options.settings,
            "error_cb": self._guarded(self._on_error),
            "on_commit": self._guarded(self._on_commit),
            "logger": client_log,
        }
        try:
            consumer = Consumer(settings)
        except KafkaException as error:
            raise ConfigError(f"kafka: the client does not take its settings: {describe(error.args[0])}") from error
        consumer.subscribe(
            list(self._options.topics),
            on_assign=self._guarded(self._on_assign),
            on_revoke=self._guarded(self._on_revoke),
            on_lost=self._guarded(self._on_lost),
        )
        return consumer

    def _guarded(self, callback: Callable[Arguments, None]) -> Callable[Arguments, None]:
        """Keep what a callback raises: the client would turn it into an error that says nothing of it."""

        def guarded(*args: Arguments.args, **named: Arguments.kwargs) -> None:
            try:
                callback(*args, **named)
            except BaseException as error:  # noqa: BLE001  # it is raised when the client's call returns
                self._failure = error

        return guarded

    def _turn(self, consumer: Consumer) -> None:
        self._watcher.beat()
        self._note_membership(consumer)
        self._ask_places(consumer)
        if not self._paused:
            self._seek(consumer)
        self._commit(consumer)
        self._bridge_gaps(consumer)
        self._look_for_topics(consumer)
        self._warn_outsider()
        self._trouble.probe(consumer, self._options.topics[0])
        self._report_lag(consumer)
        if self._has_room():
            self._resume(consumer)
            self._read(consumer)
        else:
            self._keep_alive(consumer)
        if self._failure is not None:
            raise self._failure

    # Reading

    def _has_room(self) -> bool:
        with self._handover.changed:
            return self._handover.partitions.room() > 0

    def _read(self, consumer: Consumer) -> None:
        first = consumer.poll(POLL_S)
        if first is None:
            return
        self._take_in([first])
        with self._handover.changed:
            room = self._handover.partitions.room()
        rebalances = self._rebalances
        more = consumer.consume(min(room, self._options.consume_max), 0) if room else []
        if rebalances != self._rebalances:
            # Of these nobody can say whether they were fetched before a partition went and came again.
            more = [message for message in more if message.error() is not None]
            with self._handover.changed:
                self._handover.partitions.rewind()
        self._take_in(more)

    def _take_in(self, messages: Sequence[ClientMessage]) -> None:
        records = []
        for message in messages:
            error = message.error()
            if error is None:
                records.append(record_of(message, self._options.record_bytes_max))
            else:
                self._heed(error, (message.topic() or "", -1 if (number := message.partition()) is None else number))
        if records:
            self._trouble.over()
            with self._handover.changed:
                self._handover.partitions.deliver(records)
                self._handover.changed.notify_all()

    def _keep_alive(self, consumer: Consumer) -> None:
        """Serve callbacks, and take in what one call gives. Pause when this goes on, or records are large."""
        handover, now_s = self._handover, time.monotonic()
        if self._full_since_s is None:
            self._full_since_s = now_s
        with handover.changed:
            handover.changed.wait_for(lambda: handover.closing or handover.partitions.room() > 0, POLL_S)
            overfull, owned = handover.partitions.overfull(), list(handover.partitions.owned())
        self._watcher.held_back(time.monotonic() - now_s)
        if not self._paused and (overfull or now_s - self._full_since_s >= self._options.pause_after_s):
            self._paused = True
            consumer.pause(_places(owned))
            self._watcher.paused(paused=True)
        message = consumer.poll(0)
        if message is not None:
            self._take_in([message])

    def _resume(self, consumer: Consumer) -> None:
        self._full_since_s = None
        if not self._paused:
            return
        self._paused = False
        with self._handover.changed:
            # What was assigned or sought around a pause may have been forgotten by the client.
            self._handover.partitions.rewind()
            owned = list(self._handover.partitions.owned())
        consumer.resume(_places(owned))
        self._watcher.paused(paused=False)
        self._seek(consumer)

    def _seek(self, consumer: Consumer) -> None:
        with self._handover.changed:
            seeks = self._handover.partitions.seeks()
        for (topic, number), offset in seeks.items():
            try:
                consumer.seek(TopicPartition(topic, number, offset))
            except KafkaException as error:
                # A partition that the client has not started to fetch yet; the next turn tries again.
                client_log.debug("%s [%d] cannot be sought to %d yet: %s", topic, number, offset, error)
                continue
            with self._handover.changed:
                self._handover.partitions.sought((topic, number), offset)

    def _note_membership(self, consumer: Consumer) -> None:
        """Keep who we are in the group, for transactions. The client may never answer another thread that asks."""
        metadata = consumer.consumer_group_metadata()
        with self._handover.changed:
            self._handover.group_metadata = metadata

    def _ask_places(self, consumer: Consumer) -> None:
        """Where a transaction ended without our knowing how, only the brokers know what was committed."""
        with self._handover.changed:
            lost, owned = self._handover.partitions.places_lost, list(self._handover.partitions.owned())
        if lost:
            starts = self._starts(consumer, _places(owned))
            with self._handover.changed:
                self._handover.partitions.restart(starts)

    # Committing

    def _commit(self, consumer: Consumer) -> None:
        if self._commit_sent or time.monotonic() < self._commit_again_s:
            return
        with self._handover.changed:
            places = self._handover.partitions.uncommitted()
        if not places:
            return
        try:
            consumer.commit(offsets=_offsets(places), asynchronous=True)
            self._commit_sent = True
        except KafkaException as error:
            self._commit_failed(error.args[0])

    def _on_commit(self, error: KafkaError | None, offsets: Sequence[TopicPartition]) -> None:
        self._commit_sent = False
        refused = error or next((one.error for one in offsets if one.error is not None), None)
        if refused is not None:
            self._commit_failed(refused)
        if error is None:
            self._committed(offsets)

    def _committed(self, offsets: Sequence[TopicPartition]) -> None:
        with self._handover.changed:
            for one in offsets:
                if one.error is None:
                    self._handover.partitions.committed((one.topic, one.partition), one.offset)

    def _commit_failed(self, error: KafkaError) -> None:
        self._commit_again_s = time.monotonic() + _AGAIN_S
        if is_fatal(error) or is_refusal(error):
            self._failure = self._error(error)
        else:
            log.info("Offsets were not committed, and will be again: %s", describe(error))

    def _commit_now(self, consumer: Consumer, places: Mapping[Partition, Place]) -> None:
        """Commit and wait for the answer: partitions are about to go."""
        if not places or self._failure is not None:
            return
        try:
            self._committed(consumer.commit(offsets=_offsets(places), asynchronous=False))
        except KafkaException as error:
            self._commit_failed(error.args[0])

    # Rebalances

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._note_membership(consumer)
        self._rebalances += 1
        starts = self._starts(consumer, partitions)
        with self._handover.changed:
            self._handover.partitions.assign(starts)
            owned = len(self._handover.partitions.owned())
            unknown = self._handover.partitions.uncommitted()
        # Else whoever has the partition next would begin at its end, behind what comes until then.
        self._commit_now(consumer, {one: place for one, place in unknown.items() if one in starts})
        consumer.incremental_assign(
            [TopicPartition(topic, number, start.offset) for (topic, number), start in starts.items()]
        )
        if self._paused and starts:
            consumer.pause(_places(list(starts)))
        log.info("Assigned: %s", _names(starts))
        self._watcher.rebalanced("assigned")
        self._watcher.assigned(owned)

    def _starts(self, consumer: Consumer, partitions: list[TopicPartition]) -> dict[Partition, Start]:
        """Where to begin: without an answer there is nowhere to begin, so it is asked until there is one."""
        starts: dict[Partition, Start] = {}
        asked = partitions
        while asked and not self._handover.closing:
            self._watcher.beat()
            try:
                for one in ask_committed(consumer, asked):
                    starts[one.topic, one.partition] = self._start(consumer, one)
            except KafkaException as error:
                if is_fatal(error.args[0]) or is_refusal(error.args[0]):
                    raise self._error(error.args[0]) from error
                self._trouble.suspect(f"the group's offsets cannot be read: {describe(error.args[0])}", certain=True)
                self._wait(_AGAIN_S)
            asked = [one for one in partitions if (one.topic, one.partition) not in starts]
        self._trouble.over()
        return starts

    def _start(self, consumer: Consumer, found: TopicPartition) -> Start:
        if found.offset >= 0:
            return Start(found.offset, committed=True)
        if self._options.start == "earliest":
            return Start(BEGINNING, committed=True)
        _, end = consumer.get_watermark_offsets(TopicPartition(found.topic, found.partition), timeout=_ASK_S)
        return Start(end, committed=False)

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._note_membership(consumer)
        handover, leaving = self._handover, _keys(partitions)
        until_s = time.monotonic() + self._options.revoke_s
        with handover.changed:
            handover.partitions.revoke(leaving)
            while handover.partitions.concerns(leaving) and not handover.over():
                left_s = until_s - time.monotonic()
                if left_s <= 0:
                    log.warning(
                        "A batch was not finished within %.1f s, when partitions of it were taken away",
                        self._options.revoke_s,
                    )
                    break
                self._watcher.beat()
                handover.changed.wait(min(left_s, POLL_S))
            places = {} if handover.error is not None else handover.partitions.uncommitted()
            handover.partitions.leave(leaving, "partitions of it went to another consumer before it was finished")
        self._commit_now(consumer, places)
        self._gone(consumer, partitions, "revoked")

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        with self._handover.changed:
            self._handover.partitions.revoke(_keys(partitions))
            self._handover.partitions.leave(_keys(partitions), "this consumer was taken for dead, and lost them")
        self._gone(consumer, partitions, "lost")

    def _gone(self, consumer: Consumer, partitions: list[TopicPartition], how: Literal["revoked", "lost"]) -> None:
        self._rebalances += 1
        if self._paused:
            # The client remembers a pause beyond the assignment: what comes back would never be fetched again.
            consumer.resume(_places(_keys(partitions)))
        self._gaps -= _keys(partitions)
        consumer.incremental_unassign(partitions)
        with self._handover.changed:
            owned = len(self._handover.partitions.owned())
            self._handover.changed.notify_all()
        log.info("%s: %s", how.capitalize(), _names(_keys(partitions)))
        self._watcher.rebalanced(how)
        self._watcher.assigned(owned)

    # What can be wrong

    def _on_error(self, error: KafkaError) -> None:
        if is_fatal(error):
            self._failure = self._error(error)
        else:
            self._trouble.heed(error)

    def _heed(self, error: KafkaError, partition: Partition) -> None:
        """An event that came in a message's place."""
        code = error.code()
        if code in GAPS:
            self._gaps.add(partition)
        elif code in UNKNOWN_TOPICS:
            doubted = [partition[0]] if partition[0] in self._options.topics else self._options.topics
            for topic in doubted:
                self._doubted.setdefault(topic, 0)
        elif is_fatal(error) or is_refusal(error):
            self._failure = self._error(error)
        else:
            client_log.info("%s", describe(error))
            self._trouble.heed(error)

    def _bridge_gaps(self, consumer: Consumer) -> None:
        if not self._gaps or time.monotonic() < self._gaps_again_s:
            return
        self._gaps_again_s = time.monotonic() + _AGAIN_S
        for partition in sorted(self._gaps):
            with self._handover.changed:
                position = self._handover.partitions.position(partition)
            try:
                if position is not None:
                    self._bridge(consumer, find_gap(consumer, partition, position))
                self._gaps.discard(partition)
            except KafkaException as error:
                self._trouble.heed(error.args[0])

    def _bridge(self, consumer: Consumer, gap: Gap) -> None:
        if gap.real and self._options.on_gap == "stop":
            raise SourceError(f"{gap.what()}; {gap.advice()}")
        topic, number = gap.partition
        # The client has ended this partition, and refuses to seek in it (librdkafka's issue 2961).
        consumer.incremental_unassign([TopicPartition(topic, number)])
        consumer.incremental_assign([TopicPartition(topic, number, gap.resume_at)])
        if self._paused:
            consumer.pause([TopicPartition(topic, number)])
        if gap.real:
            log.warning("%s; going on at offset %d", gap.what(), gap.resume_at)
            self._watcher.gap(gap.records)
        with self._handover.changed:
            self._handover.partitions.jump(gap.partition, gap.resume_at)
            self._handover.partitions.sought(gap.partition, gap.resume_at)
            self._handover.changed.notify_all()

    def _look_for_topics(self, consumer: Consumer) -> None:
        if not self._doubted or time.monotonic() < self._doubted_again_s:
            return
        self._doubted_again_s = time.monotonic() + _AGAIN_S
        for topic, times in list(self._doubted.items()):
            missing = topic_missing(consumer, topic)
            if missing is False:
                del self._doubted[topic]
            elif missing:
                self._doubted[topic] = times + 1
                if times + 1 == _MISSING_TIMES:
                    raise SourceError(
                        f"there is no topic {topic} at {self._options.settings['bootstrap.servers']}: make it, or"
                        " dupwatch topics init"
                    )

    def _warn_outsider(self) -> None:
        """The client does not say why it is not let in, when the brokers do not know the new group protocol."""
        if self._rebalances or not self._warn_outsider_s or time.monotonic() < self._warn_outsider_s:
            return
        self._warn_outsider_s = 0.0
        log.warning(
            "The group %s has assigned nothing to this consumer for %.0f s%s",
            self._options.settings["group.id"],
            OUTSIDER_S,
            _NEEDS if self._is_new_protocol else "",
        )

    def _report_lag(self, consumer: Consumer) -> None:
        if time.monotonic() < self._lag_again_s:
            return
        self._lag_again_s = time.monotonic() + _LAG_S
        with self._handover.changed:
            owned = self._handover.partitions.owned()
        for (topic, number), place in owned.items():
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), cached=True)
            if high >= 0:
                self._watcher.lag(topic, number, max(0, high - max(low, place.offset, 0)))

    @property
    def _is_new_protocol(self) -> bool:
        return self._options.settings.get("group.protocol") == "consumer"

    def _error(self, error: KafkaError) -> SourceError:
        # Some brokers refuse the new group protocol, with these words; others say nothing of it.
        needs = _NEEDS if self._is_new_protocol and "API version not supported" in error.str() else ""
        return SourceError(f"the Kafka client cannot go on: {describe(error)}{needs}")

    def _wait(self, wait_s: float) -> None:
        with self._handover.changed:
            self._handover.changed.wait_for(lambda: self._handover.closing, wait_s)

    def _end(self) -> None:
        consumer = self.consumer
        if consumer is None:
            return
        try:
            if self._handover.error is None:
                with self._handover.changed:
                    places = self._handover.partitions.uncommitted()
                self._commit_now(consumer, places)
            consumer.close()
        except Exception as error:  # noqa: BLE001  # the run ends, and with an error that came before, if any
            log.warning("The Kafka client did not close in order: %s", error)


def _keys(partitions: Sequence[TopicPartition]) -> set[Partition]:
    return {(one.topic, one.partition) for one in partitions}


def _places(partitions: Collection[Partition]) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic, number in partitions]


def _offsets(places: Mapping[Partition, Place]) -> list[TopicPartition]:
    return [
        TopicPartition(topic, number, place.offset)
        if place.leader_epoch is None
        else TopicPartition(topic, number, place.offset, leader_epoch=place.leader_epoch)
        for (topic, number), place in places.items()
    ]


def _names(partitions: Collection[Partition]) -> str:
    return ", ".join(f"{topic} [{number}]" for topic, number in sorted(partitions)) or "nothing"
