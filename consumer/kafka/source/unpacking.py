"""Holds the partitions of batches that the client cannot unpack, and would otherwise fetch for ever.

A producer may send a compressed batch that the brokers accept, but whose content is larger than
``receive.message.max.bytes``. For such a batch librdkafka returns an error in place of a message, waits for
``fetch.error.backoff.ms``, and fetches the same offset again. Fetching again helps after damage in transit, but not
here.
For a batch with a wrong checksum (``check.crcs``) or an unknown format, librdkafka returns one error and continues
after the batch: the partition has to seek back, or the batch would be lost.
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
"""The partition of a batch is held after this many failed attempts without progress."""
_SKIPPED_BY_CLIENT: Final = frozenset(
    {
        KafkaError._BAD_MSG,  # noqa: SLF001  # librdkafka's own codes begin with _
        KafkaError._NOT_IMPLEMENTED,  # noqa: SLF001  # as above
    }
)
"""The client skips the batch after these errors."""
UNPACK_ERRORS: Final = _SKIPPED_BY_CLIENT | {
    KafkaError._BAD_COMPRESSION,  # noqa: SLF001  # as above
    KafkaError.MSG_SIZE_TOO_LARGE,
}


class _Attempt(NamedTuple):
    """The last failed attempt in a partition, and the number of attempts like it in a row."""

    position: int
    offset: int
    attempts: int


class AttemptCounter:
    """A counter of failed attempts by partition. A count restarts when the position or the batch changes."""

    def __init__(self) -> None:
        self._last: dict[Partition, _Attempt] = {}

    def count_failure(self, partition: Partition, position: int, offset: int) -> int:
        """Count a failure of the batch at ``offset``, while ``position`` is the next offset. Return the count."""
        last = self._last.get(partition)
        same = last is not None and (last.position, last.offset) == (position, offset)
        attempts = last.attempts + 1 if last is not None and same else 1
        self._last[partition] = _Attempt(position, offset, attempts)
        return attempts

    def forget(self, partition: Partition) -> None:
        """Forget the attempts of a partition that has left."""
        self._last.pop(partition, None)


def is_final(error: KafkaError, attempts: int) -> bool:
    """Return whether a reader that does not seek back has to give up after this many failed attempts."""
    return attempts >= FAILURES_MAX or error.code() in _SKIPPED_BY_CLIENT


def unpack_failure(error: KafkaError, partition: Partition, offset: int) -> str:
    """Return a description of a batch that the client cannot unpack, as part of a message."""
    return (
        f"{partition_name(partition)} cannot be read further: the client cannot unpack the batch at offset {offset}:"
        f" {describe(error)}"
    )


class UnpackingFailures:
    """The batches that a consumer's client cannot unpack; for the client's thread only."""

    def __init__(self, handover: Handover) -> None:
        self._handover = handover
        self._attempts = AttemptCounter()

    def note_failure(self, error: KafkaError, partition: Partition, offset: int) -> None:
        """Count a failure to unpack the batch at ``offset``. Messages before it must have been delivered."""
        with self._handover.changed:
            partitions = self._handover.partitions
            position = partitions.readable_position(partition)
            if position is None:
                return
            attempts = self._attempts.count_failure(partition, position, offset)
            if attempts >= FAILURES_MAX:
                partitions.block(partition, HoldRequest(offset, _hold_reason(error, offset)))
            elif error.code() in _SKIPPED_BY_CLIENT:
                partitions.seek_back(partition)
        if attempts == 1:
            log.warning(
                "%s; the batch is fetched up to %d times", unpack_failure(error, partition, offset), FAILURES_MAX
            )

    def forget(self, partition: Partition) -> None:
        """Forget the failures of a partition that has left."""
        self._attempts.forget(partition)


def _hold_reason(error: KafkaError, offset: int) -> HoldReason:
    reason = error.name().lower().lstrip("_")[:REASON_CHARS_MAX]
    return HoldReason(bad=0, records=0, reason=reason, batch_offset=offset)
