"""Makes dead letters of records that cannot be judged, and decides when there are too many.

Where they go is up to the kind of sink (``feed_kind.SinkSide``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from consumer.model.dead_letter import LetterPosition, dead_letter
from consumer.model.errors import BadRecord
from consumer.model.ports import DeadLetterSink, Rejection
from consumer.model.record import RawBatch, RawRecord


class Gate:
    """Decides whether a run continues although records cannot be judged. This one lets any number be rejected."""

    def before_judging(self, batch: RawBatch, rejections: Sequence[Rejection]) -> None:
        """Count a batch that has begun. Raises ``Abandoned`` or ``TooManyDeadLetters`` where it must not be judged."""

    def after_commit(self) -> None:
        """Note that the batch is committed. Raises ``TooManyDeadLetters`` where the run has to end after it."""

    def at_end(self) -> None:
        """Decide on the whole input, at its end. Raises ``TooManyDeadLetters`` where the run has failed."""


@dataclass(frozen=True, slots=True)
class DeadLetterPolicy:
    """Where dead letters go, and when there are too many.

    ``source`` names the input in letters of records that did not come from a topic.
    """

    source: str
    sink: DeadLetterSink
    gate: Gate = field(default_factory=Gate)

    def reject(self, record: RawRecord, fault: BadRecord) -> Rejection:
        """Return the rejection of a record that cannot be judged; it is handed to the sink with its batch."""
        where = self.source if record.partition is None else "{}[{}]".format(*record.partition)
        position = LetterPosition(source=where, line=record.line, offset=record.start)
        letter = dead_letter(fault, position, record.data, size_bytes=record.size_bytes, sha256=record.sha256)
        return Rejection(record, letter, fault.limit)
