"""Reads and commits the group's offsets.

Offsets are read when partitions are assigned, and after a transaction whose outcome is unknown. Unless transactions
commit them, they are committed here: in the background, and synchronously before partitions leave. The starts that
``kafka.start = "latest"`` chooses are always committed here.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from consumer.kafka.errors import (
    REQUEST_TIMEOUT_S,
    RETRY_PAUSE_S,
    BrokerHealth,
    committed_offsets,
    describe,
    is_fatal,
    is_refusal,
)
from consumer.kafka.membership import member_of
from consumer.kafka.message import to_client
from consumer.kafka.offset_metadata import encode_note
from consumer.kafka.source.client_failure import ClientFailure
from consumer.kafka.source.handover import ClientProgressed, Handover
from consumer.kafka.source.holds import Holds
from consumer.kafka.source.progress import BEGINNING, CommitPoint, Start
from consumer.model.hooks import Hooks
from consumer.model.record import Partition

log = logging.getLogger("dupwatch")

_REBALANCING_S: Final = 0.05
Place = TypeVar("Place")


class Commits:
    """The commits of one client and their answers; for the client's thread only."""

    def __init__(self, handover: Handover, fail: Callable[[KafkaError], None], *, transactional: bool) -> None:
        self._handover = handover
        self._fail = fail
        self._transactional = transactional
        self._sent: Mapping[Partition, CommitPoint] | None = None
        self._next_commit_s = 0.0
        self._refused: int | None = None

    def send(self, consumer: Consumer) -> None:
        """Commit newly answered offsets, one commit at a time; ``note_answer`` gets the result."""
        if self._transactional or self._sent is not None or time.monotonic() < self._next_commit_s:
            return
        with self._handover.changed:
            places = self.due_places()
        if not places or member_of(consumer.consumer_group_metadata()) is None:
            return
        try:
            consumer.commit(offsets=_offsets(places), asynchronous=True)
            self._sent = places
        except KafkaException as error:
            self._note_failure(error.args[0])

    def note_answer(self, error: KafkaError | None, offsets: Sequence[TopicPartition]) -> None:
        """Note the result of a commit that was sent."""
        sent, self._sent = self._sent or {}, None
        self._note_result(error, offsets, sent)

    def forget(self) -> None:
        """Forget the commit that was sent by a previous client."""
        self._sent = None

    def due_places(self) -> dict[Partition, CommitPoint]:
        """Return the places to commit; empty with transactions. The caller holds the lock."""
        return {} if self._transactional else self._handover.partitions.uncommitted()

    def commit_now(self, consumer: Consumer, places: Mapping[Partition, CommitPoint]) -> dict[Partition, int]:
        """Commit, wait for the answer, and return the offsets that were committed.

        Without a membership nothing is committed: the brokers would refuse the commit, and fence a static member. Its
        client could then no longer be used.
        """
        if not places or member_of(consumer.consumer_group_metadata()) is None:
            return {}
        try:
            return self._note_result(None, consumer.commit(offsets=_offsets(places), asynchronous=False), places)
        except KafkaException as error:
            self._note_failure(error.args[0])
            return {}

    def _note_result(
        self, error: KafkaError | None, offsets: Sequence[TopicPartition], sent: Mapping[Partition, CommitPoint]
    ) -> dict[Partition, int]:
        """Note the answer to a commit. Return the offsets that were committed."""
        refused = error or next((place.error for place in offsets if place.error is not None), None)
        if refused is not None:
            self._note_failure(refused)
        else:
            self._refused = None
        accepted = () if error else [place for place in offsets if place.error is None]
        committed = {(place.topic, place.partition): place.offset for place in accepted}
        with self._handover.changed:
            for partition, offset in committed.items():
                # A place that has changed since then is committed again.
                if partition in sent and sent[partition].offset == offset:
                    self._handover.partitions.note_committed(partition, sent[partition])
        return committed

    def _note_failure(self, error: KafkaError) -> None:
        # A rebalance is short, but no member can commit during it. Records that stay uncommitted are read again.
        pause_s = _REBALANCING_S if error.code() == KafkaError.REBALANCE_IN_PROGRESS else RETRY_PAUSE_S
        self._next_commit_s = time.monotonic() + pause_s
        if is_fatal(error) or is_refusal(error):
            self._fail(error)
        elif error.code() != self._refused:
            # Logged once until a commit succeeds: a member that hangs can delay a rebalance for a whole session.
            self._refused = error.code()
            log.info("The offsets could not be committed, and will be committed again: %s", describe(error))


def _offsets(places: Mapping[Partition, CommitPoint]) -> list[TopicPartition]:
    return [
        TopicPartition(topic, number, place.offset, encode_note(place.note))
        if place.leader_epoch is None
        else TopicPartition(topic, number, place.offset, encode_note(place.note), leader_epoch=place.leader_epoch)
        for (topic, number), place in places.items()
    ]


@dataclass(frozen=True, slots=True)
class GroupPlaces:
    """The places of the group: where it continues in each partition; for the client's thread only.

    ``start`` is where a partition without a committed offset begins.
    """

    start: Literal["earliest", "latest"]
    handover: Handover
    hooks: Hooks
    broker_health: BrokerHealth
    holds: Holds
    commits: Commits
    failure: ClientFailure

    def starts(self, consumer: Consumer, partitions: list[TopicPartition]) -> dict[Partition, Start]:
        """Return the starts of newly assigned partitions. If ``start`` is "latest", new starts are committed first."""
        return self._commit_starts(consumer, self._read(consumer, partitions, partial(self._first_start, consumer)))

    def restore(self, consumer: Consumer) -> None:
        """Read all places again after a transaction whose outcome only the brokers know."""
        with self.handover.changed:
            lost, owned = self.handover.partitions.places_lost, list(self.handover.partitions.owned())
        if lost:
            starts = self._read(consumer, to_client(owned), self._committed_start)
            with self.handover.changed:
                self.handover.partitions.restart(starts)

    def commit_now(self, consumer: Consumer, places: Mapping[Partition, CommitPoint]) -> dict[Partition, int]:
        """Commit and wait for the answer, unless the run has failed. Return the offsets that were committed."""
        return {} if self.failure.error is not None else self.commits.commit_now(consumer, places)

    def _read(
        self, consumer: Consumer, partitions: list[TopicPartition], convert: Callable[[TopicPartition], Place]
    ) -> dict[Partition, Place]:
        """Return the committed offsets, converted by ``convert``. Retries until all are read or the source closes.

        Raises ``SourceError`` if the brokers refuse permanently.
        """
        places: dict[Partition, Place] = {}
        while len(places) < len(partitions) and not self.handover.closing:
            self.hooks.report(ClientProgressed())
            try:
                left = [partition for partition in partitions if (partition.topic, partition.partition) not in places]
                for committed in committed_offsets(consumer, left):
                    places[committed.topic, committed.partition] = convert(committed)
            except KafkaException as error:
                if is_fatal(error.args[0]) or is_refusal(error.args[0]):
                    raise self.failure.source_error(error.args[0]) from error
                why = f"the group's offsets cannot be read: {describe(error.args[0])}"
                self.broker_health.suspect(why, certain=True)
                self._wait(RETRY_PAUSE_S)
        self.broker_health.note_answer()
        return places

    def _committed_start(self, place: TopicPartition) -> Start | None:
        return Start(place.offset, committed=True, note=self.holds.read_note(place)) if place.offset >= 0 else None

    def _first_start(self, consumer: Consumer, place: TopicPartition) -> Start:
        if (start := self._committed_start(place)) is not None:
            return start
        if self.start == "earliest":
            return Start(BEGINNING, committed=True)
        _, end = consumer.get_watermark_offsets(TopicPartition(place.topic, place.partition), timeout=REQUEST_TIMEOUT_S)
        return Start(end, committed=False)

    def _commit_starts(self, consumer: Consumer, starts: Mapping[Partition, Start]) -> dict[Partition, Start]:
        """Commit the uncommitted starts. A client can do so during its callback, since it is still a member."""
        new = {partition: CommitPoint(start.offset, None) for partition, start in starts.items() if not start.committed}
        committed = self.commit_now(consumer, new)
        return {
            partition: start._replace(committed=start.committed or partition in committed)
            for partition, start in starts.items()
        }

    def _wait(self, wait_s: float) -> None:
        with self.handover.changed:
            self.handover.changed.wait_for(lambda: self.handover.closing, wait_s)
