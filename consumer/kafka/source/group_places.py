"""Where the group is in each partition.

The brokers are asked when partitions come, and after a transaction was lost. Where no transaction commits offsets, that
is done here: in the background, and at once before partitions leave.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from consumer.kafka.errors import AGAIN_S, ASK_S, BrokerHealth, ask_committed, describe, is_fatal, is_refusal
from consumer.kafka.membership import member_of
from consumer.kafka.message import to_client
from consumer.kafka.offset_metadata import encode_note
from consumer.kafka.source.client_failure import ClientFailure
from consumer.kafka.source.handover import ClientTurned, Handover
from consumer.kafka.source.holds import Holds
from consumer.kafka.source.progress import BEGINNING, CommitPoint, Start
from consumer.model.hooks import Hooks
from consumer.model.record import Partition

log = logging.getLogger("dupwatch")

_REBALANCING_S: Final = 0.05
Found = TypeVar("Found")


class Commits:
    """What is to be committed, and the brokers' answers; for the client's thread only."""

    def __init__(self, handover: Handover, fail: Callable[[KafkaError], None], *, transactional: bool) -> None:
        self._handover = handover
        self._fail = fail
        self._transactional = transactional
        self._sent: Mapping[Partition, CommitPoint] | None = None
        self._again_s = 0.0
        self._refused: int | None = None

    def send(self, consumer: Consumer) -> None:
        """Commit what was answered since the last time, one commit at a time; ``answered`` gets the result."""
        if self._transactional or self._sent is not None or time.monotonic() < self._again_s:
            return
        with self._handover.changed:
            places = self.due()
        if not places or member_of(consumer.consumer_group_metadata()) is None:
            return
        try:
            consumer.commit(offsets=_offsets(places), asynchronous=True)
            self._sent = places
        except KafkaException as error:
            self._failed(error.args[0])

    def answered(self, error: KafkaError | None, offsets: Sequence[TopicPartition]) -> None:
        """Take the result of a commit that was sent."""
        sent, self._sent = self._sent or {}, None
        self._keep(error, offsets, sent)

    def forget(self) -> None:
        """Forget the commit that was sent: it was another client's."""
        self._sent = None

    def due(self) -> dict[Partition, CommitPoint]:
        """Return what the client has to commit: nothing with transactions. The caller holds the lock."""
        return {} if self._transactional else self._handover.partitions.uncommitted()

    def now(self, consumer: Consumer, places: Mapping[Partition, CommitPoint]) -> dict[Partition, int]:
        """Commit, wait for the answer, and return what the group knows then.

        A client that is not a member at this moment would be refused; a static one would be fenced, which ends it.
        """
        if not places or member_of(consumer.consumer_group_metadata()) is None:
            return {}
        try:
            return self._keep(None, consumer.commit(offsets=_offsets(places), asynchronous=False), places)
        except KafkaException as error:
            self._failed(error.args[0])
            return {}

    def _keep(
        self, error: KafkaError | None, offsets: Sequence[TopicPartition], sent: Mapping[Partition, CommitPoint]
    ) -> dict[Partition, int]:
        """Note what an answer says about what was sent. Return what the group knows now."""
        refused = error or next((place.error for place in offsets if place.error is not None), None)
        if refused is not None:
            self._failed(refused)
        else:
            self._refused = None
        answered = () if error else [place for place in offsets if place.error is None]
        known = {(place.topic, place.partition): place.offset for place in answered}
        with self._handover.changed:
            for partition, offset in known.items():
                # A place that has changed since is committed again.
                if partition in sent and sent[partition].offset == offset:
                    self._handover.partitions.committed(partition, sent[partition])
        return known

    def _failed(self, error: KafkaError) -> None:
        # During a rebalance no member can commit. It is short, and what is not committed by the next rebalance is read
        # again.
        again_s = _REBALANCING_S if error.code() == KafkaError.REBALANCE_IN_PROGRESS else AGAIN_S
        self._again_s = time.monotonic() + again_s
        if is_fatal(error) or is_refusal(error):
            self._fail(error)
        elif error.code() != self._refused:
            # Logged once until a commit succeeds: a member that hangs can delay a rebalance for a whole session.
            self._refused = error.code()
            log.info("Offsets were not committed; the commit is repeated: %s", describe(error))


def _offsets(places: Mapping[Partition, CommitPoint]) -> list[TopicPartition]:
    return [
        TopicPartition(topic, number, place.offset, encode_note(place.note))
        if place.leader_epoch is None
        else TopicPartition(topic, number, place.offset, encode_note(place.note), leader_epoch=place.leader_epoch)
        for (topic, number), place in places.items()
    ]


@dataclass(frozen=True, slots=True)
class GroupPlaces:
    """Asks the group where it is, and tells it where it begins; for the client's thread only.

    ``first`` is where a partition begins of which the group has no offset.
    """

    first: Literal["earliest", "latest"]
    handover: Handover
    hooks: Hooks
    trouble: BrokerHealth
    holds: Holds
    commits: Commits
    failure: ClientFailure

    def starts(self, consumer: Consumer, partitions: list[TopicPartition]) -> dict[Partition, Start]:
        """Return where these partitions begin, which were just assigned."""
        return self._commit_starts(consumer, self._ask(consumer, partitions, partial(self._start, consumer)))

    def restore(self, consumer: Consumer) -> None:
        """Ask for all places after a transaction of which only the brokers know whether it was committed."""
        with self.handover.changed:
            lost, owned = self.handover.partitions.places_lost, list(self.handover.partitions.owned())
        if lost:
            found = self._ask(consumer, to_client(owned), self._committed)
            with self.handover.changed:
                self.handover.partitions.restart(found)

    def commit_now(self, consumer: Consumer, places: Mapping[Partition, CommitPoint]) -> dict[Partition, int]:
        """Commit at once, unless the run has failed. Return what the group knows then."""
        return {} if self.failure.error is not None else self.commits.now(consumer, places)

    def _ask(
        self, consumer: Consumer, asked: list[TopicPartition], place: Callable[[TopicPartition], Found]
    ) -> dict[Partition, Found]:
        """Ask for what the group has committed until there is an answer, and return what ``place`` makes of it."""
        found: dict[Partition, Found] = {}
        while len(found) < len(asked) and not self.handover.closing:
            self.hooks.report(ClientTurned())
            try:
                left = [partition for partition in asked if (partition.topic, partition.partition) not in found]
                for committed in ask_committed(consumer, left):
                    found[committed.topic, committed.partition] = place(committed)
            except KafkaException as error:
                if is_fatal(error.args[0]) or is_refusal(error.args[0]):
                    raise self.failure.describe(error.args[0]) from error
                self.trouble.suspect(f"the group's offsets cannot be read: {describe(error.args[0])}", certain=True)
                self._wait(AGAIN_S)
        self.trouble.over()
        return found

    def _committed(self, found: TopicPartition) -> Start | None:
        return Start(found.offset, committed=True, note=self.holds.read_note(found)) if found.offset >= 0 else None

    def _start(self, consumer: Consumer, found: TopicPartition) -> Start:
        if (start := self._committed(found)) is not None:
            return start
        if self.first == "earliest":
            return Start(BEGINNING, committed=True)
        _, end = consumer.get_watermark_offsets(TopicPartition(found.topic, found.partition), timeout=ASK_S)
        return Start(end, committed=False)

    def _commit_starts(self, consumer: Consumer, starts: Mapping[Partition, Start]) -> dict[Partition, Start]:
        """Commit where partitions begin that have no offset yet; during its callback a client stays a member."""
        ours = {
            partition: CommitPoint(start.offset, None) for partition, start in starts.items() if not start.committed
        }
        known = self.commit_now(consumer, ours)
        return {
            partition: start._replace(committed=start.committed or partition in known)
            for partition, start in starts.items()
        }

    def _wait(self, wait_s: float) -> None:
        with self.handover.changed:
            self.handover.changed.wait_for(lambda: self.handover.closing, wait_s)
