"""Consumer groups as seen from outside: their committed offsets, held partitions, and whether they have members.

Offsets are read and set by a consumer with the group's name that never joins the group. An admin client would crash
with a segmentation fault while the coordinator is being found (seen with librdkafka 2.16; docs/decisions/0020).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, NamedTuple

import msgspec
from confluent_kafka import Consumer, ConsumerGroupState, KafkaError, KafkaException, TopicPartition

from consumer.kafka.clients import broker_request, new_admin, new_consumer, waiting_for_brokers
from consumer.kafka.errors import describe
from consumer.kafka.offset_metadata import EMPTY_NOTE, HoldReason, Note, encode_note, note_of
from consumer.kafka.offset_range import Bound, offsets_at, partitions_of, watermarks
from consumer.model.errors import ConfigError, SourceError
from consumer.model.record import Partition, partition_name
from storage.backoff import Backoff

FILLING_NOTE: Final = Note(migrate="filling")
"""The note with the offsets of a group whose store is being filled; its consumers do not start."""
SWITCHED_NOTE: Final = Note(migrate="switched")
"""The note after the switch. It is merged with the old group's note, and remains until the new consumers commit."""
STOP_CONSUMERS: Final = (
    "stop them all, and rerun the command. A consumer that was killed, or has a kafka.instance_id, stays in the group"
    " until its session expires (session.timeout.ms)"
)
REQUEST_TIMEOUT_S: Final = 30.0
SETTLED_WAIT_S: Final = 120.0
"""Longer than an abandoned transaction stays open with the default ``transaction.timeout.ms``."""
_ATTEMPT_S: Final = 5.0
_QUIET: Final[Mapping[str, Any]] = {"log_level": 2}
"""Errors are raised, so the client need not log each failed attempt to connect."""
_PAUSES: Final = Backoff(0.2, 0.2)
_TRANSIENT: Final = frozenset(
    {
        # The first request for a coordinator creates its topic, which takes a moment.
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError._WAIT_COORD,  # noqa: SLF001  # librdkafka's own codes begin with _
        KafkaError._TIMED_OUT,  # noqa: SLF001  # as above
        KafkaError._TRANSPORT,  # noqa: SLF001  # as above
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001  # as above
        # The offsets of an open transaction may or may not be committed.
        KafkaError.UNSTABLE_OFFSET_COMMIT,
    }
)


class CommittedOffset(NamedTuple):
    """The committed offset of a group in a partition, and the note with it."""

    offset: int
    note: Note = EMPTY_NOTE


class ConsumerGroup:
    """One group, seen from outside. ``settings`` come from ``admin_settings``.

    Calls raise ``SourceError`` if the brokers do not answer in time, or refuse the request.
    """

    def __init__(self, settings: Mapping[str, Any], name: str) -> None:
        self.name = name
        self._settings = settings
        self._brokers = str(settings["bootstrap.servers"])
        self._consumer = _client(settings, name, "read_uncommitted")
        self._settled_consumer: Consumer | None = None

    def partitions(self, topics: Sequence[str], wait_s: float = REQUEST_TIMEOUT_S) -> list[Partition]:
        """Return the partitions of these topics."""
        with broker_request(self._brokers, f"the request was refused by {self._brokers}"):
            return _partitions(self._consumer, topics, self._settings, wait_s)

    def committed(
        self, partitions: Sequence[Partition], *, settled: bool = False, wait_s: float = REQUEST_TIMEOUT_S
    ) -> dict[Partition, CommittedOffset]:
        """Return the committed offsets of the group; partitions without one are left out.

        With ``settled``, wait up to ``SETTLED_WAIT_S`` instead of ``wait_s`` for open transactions that include
        offsets: an interrupted transaction may still be committed. While consumers are running, one is almost always
        open.
        """
        requested = [TopicPartition(*partition) for partition in partitions]
        if settled and self._settled_consumer is None:
            self._settled_consumer = _client(self._settings, self.name, "read_committed")
        consumer = self._settled_consumer if settled and self._settled_consumer is not None else self._consumer
        wait_s = SETTLED_WAIT_S if settled else wait_s
        # A wait for a transaction must not be logged as a wait for brokers.
        with nullcontext() if settled else waiting_for_brokers(self._brokers):
            answer = _retry(lambda: consumer.committed(requested, timeout=_ATTEMPT_S), self.name, wait_s)
        return {
            (place.topic, place.partition): CommittedOffset(place.offset, note_of(place.metadata))
            for place in answer
            if place.offset >= 0
        }

    def commit(self, places: Mapping[Partition, CommittedOffset]) -> None:
        """Set these offsets and notes in one request. Raises ``ConfigError`` if the group has members."""
        offsets = [TopicPartition(*key, place.offset, encode_note(place.note)) for key, place in places.items()]

        def commit() -> list[TopicPartition]:
            return self._consumer.commit(offsets=offsets, asynchronous=False) or []

        try:
            with waiting_for_brokers(self._brokers):
                _retry(commit, self.name, REQUEST_TIMEOUT_S)
        except _OffsetsError as failure:
            if failure.error.code() in {KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION}:
                raise ConfigError(f"the group {self.name} has running consumers: {STOP_CONSUMERS}") from failure
            raise

    def close(self) -> None:
        """Close the clients."""
        self._consumer.close()
        if self._settled_consumer is not None:
            self._settled_consumer.close()


class GroupTopics:
    """The partitions of some topics, and whether a group that reads them has members.

    ``settings`` and the errors are those of ``ConsumerGroup``.
    """

    def __init__(self, settings: Mapping[str, Any], names: Sequence[str]) -> None:
        self._admin = new_admin({**_QUIET, **settings})
        self._settings = settings
        self._brokers = str(settings["bootstrap.servers"])
        self._consumer = _client(settings, "none", "read_committed")
        self._names = names

    def watermarks(self) -> dict[Partition, tuple[int, int]]:
        """Return the low and high watermark of each partition."""
        with broker_request(self._brokers, f"the request was refused by {self._brokers}"):
            keys = _partitions(self._consumer, self._names, self._settings, REQUEST_TIMEOUT_S)
            return {key: watermarks(self._consumer, *key, REQUEST_TIMEOUT_S) for key in keys}

    def offsets_since(self, marks: Mapping[Partition, tuple[int, int]], time_ms: int) -> dict[Partition, int]:
        """Return the offset of each partition's first message at this time or later, or its end if there is none."""
        with broker_request(self._brokers, f"the request was refused by {self._brokers}"):
            return offsets_at(self._consumer, marks, Bound(time_ms=time_ms))

    def is_empty(self, group: str) -> bool:
        """Return whether a group has no members, in either group protocol; an unknown group is empty."""
        with broker_request(self._brokers, f"the request was refused by {self._brokers}"):
            listed = self._admin.list_consumer_groups(request_timeout=REQUEST_TIMEOUT_S).result()
        if listed.errors:
            # The broker that does not answer may be the coordinator of this group.
            raise SourceError(
                f"the groups cannot be listed: {describe(listed.errors[0])}. "
                f"Check that every broker of {self._brokers} is running; run dupwatch doctor for details."
            )
        states = [listing.state for listing in listed.valid if listing.group_id == group]
        return all(state in {ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD} for state in states)

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()


class _OffsetsError(SourceError):
    """The brokers refused a request for offsets, or did not answer it in time."""

    def __init__(self, group: str, error: KafkaError) -> None:
        super().__init__(f"the offsets of the group {group} cannot be read or set: {describe(error)}")
        self.error = error


def _client(settings: Mapping[str, Any], group: str, isolation: str) -> Consumer:
    own = {"group.id": group, "enable.auto.commit": False, "isolation.level": isolation}
    return new_consumer({**_QUIET, **settings, **own})


def _partitions(
    consumer: Consumer, topics: Sequence[str], settings: Mapping[str, Any], wait_s: float
) -> list[Partition]:
    brokers = str(settings["bootstrap.servers"])
    return [(topic, number) for topic in topics for number in partitions_of(consumer, topic, brokers, wait_s)]


def _retry(request: Callable[[], list[TopicPartition]], group: str, wait_s: float) -> list[TopicPartition]:
    """Return the answer to a request for offsets, repeated for up to ``wait_s``. Raises ``_OffsetsError``."""

    def attempt() -> list[TopicPartition]:
        answer = request()
        for place in answer:
            if place.error is not None:
                raise KafkaException(place.error)
        return answer

    try:
        return _PAUSES.call(attempt, _is_transient, wait_s)
    except KafkaException as error:
        raise _OffsetsError(group, error.args[0]) from error


def _is_transient(error: Exception) -> bool:
    return isinstance(error, KafkaException) and error.args[0].code() in _TRANSIENT


class HeldPartition(NamedTuple):
    """A held partition: the offset where it waits, the offsets left to read, the high watermark, and why it is held.

    Fewer offsets are ``waiting`` than lie between ``offset`` and ``end`` if messages after ``offset`` were deleted.
    """

    partition: Partition
    offset: int
    waiting: int
    end: int
    held: HoldReason

    @property
    def name(self) -> str:
        """The name that commands take, for example articles:0."""
        return partition_name(self.partition)


class ResumePoint(NamedTuple):
    """How to resume: bad records before ``until`` are not counted, and messages before ``skip_to`` are not read."""

    until: int | None = None
    skip_to: int | None = None


@dataclass(frozen=True, slots=True)
class HeldPartitions:
    """The held partitions of one group. Calls raise ``SourceError`` as those of ``ConsumerGroup`` do."""

    group: ConsumerGroup
    topics: GroupTopics

    def partitions(self, *, settled: bool = False) -> list[HeldPartition]:
        """Return the held partitions; ``settled`` as in ``ConsumerGroup.committed``."""
        return [partition for partition, _ in self._held(settled=settled)]

    def resume(self, names: Sequence[str], point: ResumePoint = ResumePoint()) -> list[HeldPartition]:  # noqa: B008  # immutable
        """Resume the named partitions, or all held ones if none is named; return their state before that.

        Raises ``ConfigError`` if the group has consumers, a partition is not held, or ``point`` has an offset that is
        out of range or meant for several partitions.
        """
        if not self.topics.is_empty(self.group.name):
            raise ConfigError(f"the group {self.group.name} has running consumers: {STOP_CONSUMERS}")
        held = {partition.name: (partition, note) for partition, note in self._held(settled=True)}
        for name in names:
            if name not in held:
                raise ConfigError(f"{name} is not held in the group {self.group.name}; see dupwatch poison list")
        selected = [held[name] for name in names or held]
        if point != ResumePoint() and len(selected) != 1:
            raise ConfigError("an offset belongs to one partition: name the partition, for example articles:0")
        if selected:
            self.group.commit(
                {partition.partition: _resumed_offset(partition, note, point) for partition, note in selected}
            )
        return [partition for partition, _ in selected]

    def _held(self, *, settled: bool) -> list[tuple[HeldPartition, Note]]:
        marks = self.topics.watermarks()
        committed = self.group.committed([*marks], settled=settled)
        return [*_held_partitions(committed, marks)]


def _held_partitions(
    committed: Mapping[Partition, CommittedOffset], marks: Mapping[Partition, tuple[int, int]]
) -> Iterator[tuple[HeldPartition, Note]]:
    for partition, (offset, note) in sorted(committed.items(), key=itemgetter(0)):
        if note.held is not None:
            low, high = marks[partition]
            yield HeldPartition(partition, offset, max(0, high - max(low, offset)), high, note.held), note


def _resumed_offset(held: HeldPartition, note: Note, point: ResumePoint) -> CommittedOffset:
    """Return the offset and note of a resumed partition; its bad records are counted from zero.

    Raises ``ConfigError`` for an offset that is out of range.
    """
    if point.until is not None and point.until <= held.offset:
        raise ConfigError(f"{held.name} waits at offset {held.offset}: --until takes a later one")
    if point.skip_to is not None and not held.offset < point.skip_to <= held.end:
        raise ConfigError(f"{held.name} waits at offset {held.offset}: --skip-to takes a later one, up to {held.end}")
    offset = held.offset if point.skip_to is None else point.skip_to
    return CommittedOffset(offset, msgspec.structs.replace(note, held=None, window=(), free_until=point.until or 0))
