"""Batches that the client cannot unpack. Their partition is held, because the client would fetch them for ever.

A producer may send a compressed batch that the brokers accept, but whose content is larger than
``receive.message.max.bytes``. For such a batch librdkafka returns an error in a message's place, waits for
``fetch.error.backoff.ms``, and fetches the same offset again. That repairs damage in transit, but not such a batch.
For a batch with a wrong checksum (``check.crcs``) or an unknown format it returns an error once and continues behind
it: the partition has to be sought back, or the batch would be lost.
"""

import logging
from typing import Final, NamedTuple

from confluent_kafka import KafkaError

from consumer.kafka.errors import describe
from consumer.kafka.offset_metadata import REASON_CHARS_MAX, HoldReason, HoldRequest
from consumer.kafka.source.handover import Handover
from consumer.model.record import Partition, partition_name

log = logging.getLogger("dupwatch")

FAILURES_MAX: Final = 5
"""How many failed attempts on one batch, without progress, hold its partition."""
_SKIPPED_BY_CLIENT: Final = frozenset(
    {
        KafkaError._BAD_MSG,  # noqa: SLF001  # librdkafka's own codes are named so
        KafkaError._NOT_IMPLEMENTED,  # noqa: SLF001  # as above
    }
)
"""After these errors the client continues behind the batch by itself."""
UNPACK_ERRORS: Final = _SKIPPED_BY_CLIENT | {
    KafkaError._BAD_COMPRESSION,  # noqa: SLF001  # as above
    KafkaError.MSG_SIZE_TOO_LARGE,
}


class _Attempt(NamedTuple):
    position: int
    offset: int
    times: int


class AttemptCounter:
    """Counts failed attempts by partition; the count restarts when the position or the batch changes."""

    def __init__(self) -> None:
        self._last: dict[Partition, _Attempt] = {}

    def failed(self, partition: Partition, position: int, offset: int) -> int:
        """Count a failure at the batch at ``offset``, with ``position`` to be read next. Return the count."""
        last = self._last.get(partition)
        same = last is not None and (last.position, last.offset) == (position, offset)
        times = last.times + 1 if last is not None and same else 1
        self._last[partition] = _Attempt(position, offset, times)
        return times

    def forget(self, partition: Partition) -> None:
        """Forget a partition that has left."""
        self._last.pop(partition, None)


def is_final(error: KafkaError, times: int) -> bool:
    """Return whether a reader that does not seek back has to end after ``times`` failed attempts."""
    return times >= FAILURES_MAX or error.code() in _SKIPPED_BY_CLIENT


def cannot_unpack(error: KafkaError, partition: Partition, offset: int) -> str:
    """Return what has happened, as part of a message."""
    return (
        f"{partition_name(partition)} cannot be read further: the client cannot unpack the batch at offset {offset}:"
        f" {describe(error)}"
    )


class UnpackingFailures:
    """Counts the batches that a consumer's client cannot unpack; for the client's thread only."""

    def __init__(self, handover: Handover) -> None:
        self._handover = handover
        self._attempts = AttemptCounter()

    def failed(self, error: KafkaError, partition: Partition, offset: int) -> None:
        """Note that the client could not unpack the batch at ``offset``; what came before it has been delivered."""
        with self._handover.changed:
            partitions = self._handover.partitions
            position = partitions.readable_position(partition)
            if position is None:
                return
            times = self._attempts.failed(partition, position, offset)
            if times >= FAILURES_MAX:
                partitions.block(partition, HoldRequest(offset, _held(error, offset)))
            elif error.code() in _SKIPPED_BY_CLIENT:
                partitions.seek_back(partition)
        if times == 1:
            log.warning("%s; it is fetched up to %d times", cannot_unpack(error, partition, offset), FAILURES_MAX)

    def gone(self, partition: Partition) -> None:
        """Forget a partition that has left."""
        self._attempts.forget(partition)


def _held(error: KafkaError, offset: int) -> HoldReason:
    reason = error.name().lower().lstrip("_")[:REASON_CHARS_MAX]
    return HoldReason(bad=0, records=0, reason=reason, batch_offset=offset)
