"""The thread that owns the Kafka client: it polls, answers for rebalances, seeks, pauses and commits.

A turn of its loop seeks where seeking is due, commits what was acknowledged, and reads what there is. While the buffer
is full it only keeps the client alive. Callbacks of the client come from within its calls, and so in this thread.
"""

import logging
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, ParamSpec, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as ClientMessage

from consumer.kafka.client_log import client_log
from consumer.kafka.errors import (
    AGAIN_S,
    ASK_S,
    UNKNOWN_TOPICS,
    MissingTopics,
    Trouble,
    ask_committed,
    describe,
    is_fatal,
    is_fenced,
    is_refusal,
)
from consumer.kafka.membership import member_of
from consumer.lifecycle.background_call import Call
from consumer.model.errors import ConfigError, SourceError
from consumer.model.hooks import Hooks
from consumer.model.record import Partition, RawRecord
from consumer.sources.commits import Commits
from consumer.sources.gaps import GAPS, Gaps
from consumer.sources.handover import Handover
from consumer.sources.holds import Holds
from consumer.sources.kafka_records import record_of
from consumer.sources.portion import Portion
from consumer.sources.progress import BEGINNING, Place, Start
from consumer.sources.unpacking import UNPACK_ERRORS, Unpacking

log = logging.getLogger("dupwatch")

Arguments = ParamSpec("Arguments")
Found = TypeVar("Found")

POLL_S: Final = 0.1
_NEEDS: Final = '; kafka.group_protocol = "consumer" needs brokers of Kafka 4.0 or later'
OUTSIDER_S: Final = 30.0
_LAG_S: Final = 5.0
_NO_ENDS: Final[Mapping[Partition, int]] = MappingProxyType({})
_JOINING_S: Final = 30.0
"""So long after partitions were lost a static member may be fenced by a request of its own."""


Rebalance = Literal["assigned", "revoked", "lost"]


class ClientTurned(NamedTuple):
    """The client's thread has made progress, or is about to begin."""


class Rebalanced(NamedTuple):
    """Partitions came or went, and this consumer owns ``partitions`` now; ``lost`` ones went without warning."""

    what: Rebalance
    partitions: int


class LagRead(NamedTuple):
    """So many records of a partition of ours are in its topic and not committed."""

    topic: str
    partition: int
    records: int


class FetchingPaused(NamedTuple):
    """Whether fetching is paused, because what was fetched has not been judged."""

    paused: bool


class FetchingWaited(NamedTuple):
    """For so long no record was taken from the client, because what was taken has not been judged."""

    seconds: float


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
    close_s: float
    pause_after_s: float
    transactional: bool


class ClientThread:
    """The thread's work, and what it remembers from turn to turn."""

    def __init__(self, options: ClientOptions, handover: Handover, hooks: Hooks) -> None:
        self.consumer: Consumer | None = None
        self._options = options
        self._handover = handover
        self._hooks = hooks
        self._trouble = Trouble(hooks)
        self._failure: BaseException | None = None
        self._rebalances = 0
        self._paused = False
        self._full_since_s: float | None = None
        self._commits = Commits(handover, self._fail, transactional=options.transactional)
        self._lag_again_s = 0.0
        self._warn_outsider_s = time.monotonic() + OUTSIDER_S
        self._gaps = Gaps(options.on_gap, handover, hooks)
        self._holds = Holds(handover, hooks)
        self._unpacking = Unpacking(handover)
        self._missing = MissingTopics(options.topics, str(options.settings["bootstrap.servers"]))
        self._member: bytes | None = None
        self._lost_s = -math.inf
        self._outlived = ""
        self._portion = Portion(options.consume_max)

    def run(self) -> None:
        """Read until the source is closed, or something ends it; then leave the group."""
        try:
            self.consumer = self._subscribed()
            while not self._handover.closing:
                self._turn(self.consumer)
                if self._outlived:
                    self.consumer = self._replaced(self.consumer)
        except KafkaException as error:
            self._handover.fail(self._failure or self._error(error.args[0]))
        except BaseException as error:  # noqa: BLE001  # it is raised again on the judge's side
            self._handover.fail(error)
        self._end()

    def _subscribed(self) -> Consumer:
        settings = {
            **self._options.settings,
            "error_cb": self._guarded(self._on_error),
            "on_commit": self._guarded(self._commits.answered),
            "logger": client_log,
            # The only sign of offsets that have no record.
            "enable.partition.eof": True,
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

    def _replaced(self, consumer: Consumer) -> Consumer:
        """Another client instead of one that cannot be relied on any more; it joins with no partitions."""
        log.warning("Another client joins the group in place of this consumer's: %s", self._outlived)
        # Nobody closes it a second time.
        self.consumer = None
        closing, until_s = Call(consumer.close), time.monotonic() + self._options.revoke_s + self._options.close_s
        while not closing.ended(POLL_S):
            self._hooks.report(ClientTurned())
            if time.monotonic() >= until_s:
                raise SourceError(
                    f"the Kafka client does not end, and has to: {self._outlived}; dupwatch has to be started again"
                )
        closing.result()
        if self._failure is not None:
            raise self._failure
        self._outlived, self._lost_s = "", -math.inf
        self._unpacking = Unpacking(self._handover)
        self._commits.forget()
        self._holds.forget()
        return self._subscribed()

    def _guarded(self, callback: Callable[Arguments, None]) -> Callable[Arguments, None]:
        """Keep what a callback raises: the client would turn it into an error that says nothing of it."""

        def guarded(*args: Arguments.args, **named: Arguments.kwargs) -> None:
            try:
                callback(*args, **named)
            except BaseException as error:  # noqa: BLE001  # it is raised when the client's call returns
                self._failure = error

        return guarded

    def _turn(self, consumer: Consumer) -> None:
        self._hooks.report(ClientTurned())
        self._note_membership(consumer)
        self._ask_places(consumer)
        self._holds.keep(consumer)
        if not self._paused:
            self._seek(consumer)
        self._commits.send(consumer)
        if self._paused:
            self._gaps.bridge(consumer, partial(self._serve, consumer), self._trouble.heed)
        self._missing.look(consumer)
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
            room, room_bytes = self._handover.partitions.room(), self._handover.partitions.room_bytes()
        self._portion.saw([_size_bytes(first)])
        count = self._portion.messages(room, room_bytes)
        rebalances = self._rebalances
        more = consumer.consume(count, 0) if count else []
        self._portion.saw(map(_size_bytes, more))
        if rebalances != self._rebalances:
            # Of these nobody can say whether they were fetched before a partition went and came again.
            more = [message for message in more if message.error() is not None]
            with self._handover.changed:
                self._handover.partitions.rewind()
        self._take_in(more)

    def _take_in(self, messages: Sequence[ClientMessage]) -> None:
        records: list[RawRecord] = []
        ends: dict[Partition, int] = {}
        for message in messages:
            error = message.error()
            if error is None:
                records.append(record_of(message, self._options.record_bytes_max))
                continue
            partition = (message.topic() or "", -1 if (number := message.partition()) is None else number)
            if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  # librdkafka's own codes are named so
                ends[partition] = message.offset() or 0
            elif error.code() in UNPACK_ERRORS:
                # What came before it moves the position; what comes behind it may have to be thrown away.
                self._deliver(records)
                records = []
                self._unpacking.failed(error, partition, message.offset() or 0)
            else:
                self._heed(error, partition)
        self._deliver(records, ends)

    def _deliver(self, records: Sequence[RawRecord], ends: Mapping[Partition, int] = _NO_ENDS) -> None:
        if not records and not ends:
            return
        self._trouble.over()
        with self._handover.changed:
            self._handover.partitions.deliver(records)
            for partition, offset in ends.items():
                self._handover.partitions.ended(partition, offset)
            self._handover.changed.notify_all()

    def _keep_alive(self, consumer: Consumer) -> None:
        """Serve callbacks, and take in what one call gives. Pause when it lasts, or at once: gaps, large records."""
        handover, now_s = self._handover, time.monotonic()
        if self._full_since_s is None:
            self._full_since_s = now_s
        with handover.changed:
            handover.changed.wait_for(lambda: handover.closing or handover.partitions.room() > 0, POLL_S)
            overfull = handover.partitions.overfull() or handover.partitions.suspended
            owned = list(handover.partitions.owned())
        self._hooks.report(FetchingWaited(time.monotonic() - now_s))
        if not self._paused and (overfull or now_s - self._full_since_s >= self._options.pause_after_s):
            self._paused = True
            consumer.pause(_places(owned))
            self._hooks.report(FetchingPaused(paused=True))
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
            owned = [one for one, held in self._handover.partitions.holds().items() if held is None]
        consumer.resume(_places(owned))
        self._hooks.report(FetchingPaused(paused=False))
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

    def _serve(self, consumer: Consumer) -> None:
        """Let the client call back whatever it has to say; while fetching is paused that comes to an end."""
        while not self._handover.closing and (message := consumer.poll(0)) is not None:
            self._take_in([message])

    def _note_membership(self, consumer: Consumer) -> None:
        """Keep who we are in the group, for transactions. The client may never answer another thread that asks.

        A static member whose session ran out in the middle of a rebalance is let in again under another id, and its
        client says of no partition that it was lost. With the new id the brokers would take offsets of partitions that
        others have by now: so what was begun is given up before anybody can see that id.
        """
        metadata = consumer.consumer_group_metadata()
        member = member_of(metadata)
        with self._handover.changed:
            self._handover.group_metadata = metadata
            if member is None or member == self._member:
                return
            if self._handover.partitions.owned():
                self._outlive("it was taken for dead, and let in again as another member")
            self._member = member

    def _outlive(self, why: str) -> None:
        """What the client believes to have may be others': give it up. The lock is the caller's."""
        partitions = self._handover.partitions
        owned = list(partitions.owned())
        partitions.revoke(owned)
        partitions.leave(owned, f"its consumer has lost them: {why}")
        self._outlived = why
        self._handover.changed.notify_all()

    def _ask_places(self, consumer: Consumer) -> None:
        """Where a transaction ended without our knowing how, only the brokers know what was committed."""
        with self._handover.changed:
            lost, owned = self._handover.partitions.places_lost, list(self._handover.partitions.owned())
        if lost:
            found = self._asked(consumer, _places(owned), self._committed)
            with self._handover.changed:
                self._handover.partitions.restart(found)

    # Rebalances

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._note_membership(consumer)
        self._rebalances += 1
        starts = self._told(consumer, self._asked(consumer, partitions, partial(self._start, consumer)))
        with self._handover.changed:
            self._handover.partitions.assign(starts)
            owned = len(self._handover.partitions.owned())
        consumer.incremental_assign(
            [TopicPartition(topic, number, start.offset) for (topic, number), start in starts.items()]
        )
        if self._paused and starts:
            consumer.pause(_places(list(starts)))
        self._holds.keep(consumer)
        log.info("Assigned: %s", _names(starts))
        self._hooks.report(Rebalanced("assigned", owned))

    def _asked(
        self, consumer: Consumer, asked: list[TopicPartition], place: Callable[[TopicPartition], Found]
    ) -> dict[Partition, Found]:
        """What follows from what the group has committed; it is asked until there is an answer."""
        found: dict[Partition, Found] = {}
        while len(found) < len(asked) and not self._handover.closing:
            self._hooks.report(ClientTurned())
            try:
                for one in ask_committed(consumer, [one for one in asked if (one.topic, one.partition) not in found]):
                    found[one.topic, one.partition] = place(one)
            except KafkaException as error:
                if is_fatal(error.args[0]) or is_refusal(error.args[0]):
                    raise self._error(error.args[0]) from error
                self._trouble.suspect(f"the group's offsets cannot be read: {describe(error.args[0])}", certain=True)
                self._wait(AGAIN_S)
        self._trouble.over()
        return found

    def _committed(self, found: TopicPartition) -> Start | None:
        return Start(found.offset, committed=True, note=self._holds.read_note(found)) if found.offset >= 0 else None

    def _start(self, consumer: Consumer, found: TopicPartition) -> Start:
        if (start := self._committed(found)) is not None:
            return start
        if self._options.start == "earliest":
            return Start(BEGINNING, committed=True)
        _, end = consumer.get_watermark_offsets(TopicPartition(found.topic, found.partition), timeout=ASK_S)
        return Start(end, committed=False)

    def _told(self, consumer: Consumer, starts: Mapping[Partition, Start]) -> dict[Partition, Start]:
        """Have the group know where it begins. While the client waits for us it is no other member than it was."""
        ours = {partition: Place(start.offset, None) for partition, start in starts.items() if not start.committed}
        known = self._commit_now(consumer, ours)
        return {one: start._replace(committed=start.committed or one in known) for one, start in starts.items()}

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
                self._hooks.report(ClientTurned())
                handover.changed.wait(min(left_s, POLL_S))
            places = {} if handover.error is not None else self._commits.due()
            handover.partitions.leave(leaving, "partitions of it went to another consumer before it was finished")
        self._commit_now(consumer, places)
        self._gone(consumer, partitions, "revoked")

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._lost_s = time.monotonic()
        with self._handover.changed:
            self._handover.partitions.revoke(_keys(partitions))
            self._handover.partitions.leave(_keys(partitions), "this consumer was taken for dead, and lost them")
        self._gone(consumer, partitions, "lost")

    def _gone(self, consumer: Consumer, partitions: list[TopicPartition], how: Literal["revoked", "lost"]) -> None:
        self._rebalances += 1
        for one in _keys(partitions):
            self._unpacking.gone(one)
        if self._paused:
            # The client remembers a pause beyond the assignment: what comes back would never be fetched again.
            consumer.resume(_places(_keys(partitions)))
        else:
            self._holds.leaving(consumer, _keys(partitions))
        consumer.incremental_unassign(partitions)
        with self._handover.changed:
            owned = len(self._handover.partitions.owned())
            self._handover.changed.notify_all()
        log.info("%s: %s", how.capitalize(), _names(_keys(partitions)))
        self._hooks.report(Rebalanced(how, owned))

    def _commit_now(self, consumer: Consumer, places: Mapping[Partition, Place]) -> dict[Partition, int]:
        """Commit at once, unless something has ended the run; what the group knows then."""
        return {} if self._failure is not None else self._commits.now(consumer, places)

    # What can be wrong

    def _on_error(self, error: KafkaError) -> None:
        if is_fatal(error):
            self._fail(error)
        else:
            self._trouble.heed(error)

    def _fail(self, error: KafkaError) -> None:
        """End the run, unless a static member has fenced itself: its client does so where it joins twice after a loss.

        That is librdkafka's issue 3437: the brokers were silent, and answer both requests. Who is fenced again after
        that has a rival.
        """
        if is_fenced(error) and time.monotonic() < self._lost_s + _JOINING_S:
            with self._handover.changed:
                self._outlive("it has fenced itself")
        else:
            self._failure = self._error(error)

    def _heed(self, error: KafkaError, partition: Partition) -> None:
        """An event that came in a message's place."""
        code = error.code()
        if code in GAPS:
            # What is missing in a held partition stops nobody before it is read again.
            if not self._holds.has(partition):
                self._gaps.add(partition)
        elif code in UNKNOWN_TOPICS:
            self._missing.doubt(partition[0])
        elif is_fatal(error) or is_refusal(error):
            self._fail(error)
        else:
            client_log.info("%s", describe(error))
            self._trouble.heed(error)

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
            self._handover.partitions.pass_over()
            owned = self._handover.partitions.owned()
        for (topic, number), place in owned.items():
            if place.note.held is not None:
                continue
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), cached=True)
            if high >= 0:
                self._hooks.report(LagRead(topic, number, max(0, high - max(low, place.offset, 0))))

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
                    self._handover.partitions.pass_over()
                    places = self._commits.due()
                self._commit_now(consumer, places)
            consumer.close()
        except Exception as error:  # noqa: BLE001  # the run ends, and with an error that came before, if any
            log.warning("The Kafka client did not close in order: %s", error)


def _size_bytes(message: ClientMessage) -> int:
    """What its value takes; what comes in a message's place takes nothing."""
    return len(message.value() or b"") if message.error() is None else 0


def _keys(partitions: Sequence[TopicPartition]) -> set[Partition]:
    return {(one.topic, one.partition) for one in partitions}


def _places(partitions: Collection[Partition]) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic, number in partitions]


def _names(partitions: Collection[Partition]) -> str:
    return ", ".join(f"{topic} [{number}]" for topic, number in sorted(partitions)) or "nothing"
