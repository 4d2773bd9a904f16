"""Commits offsets where no transaction does: in the background, and at once before partitions leave."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from consumer.kafka.errors import AGAIN_S, describe, is_fatal, is_refusal
from consumer.kafka.membership import member_of
from consumer.kafka.offset_metadata import encode_note
from consumer.kafka.source.handover import Handover
from consumer.kafka.source.progress import CommitPoint
from consumer.model.record import Partition

log = logging.getLogger("dupwatch")

_REBALANCING_S: Final = 0.05


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
