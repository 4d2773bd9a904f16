"""What happens to records that cannot be judged, as one value that a run is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from consumer.model.dead_letter import LetterPosition, dead_letter
from consumer.model.errors import BadRecord
from consumer.model.ports import DeadLetterSink, Rejection
from consumer.model.record import RawBatch, RawRecord


class Gate(Protocol):
    """Decides whether a run continues although records cannot be judged."""

    def see(self, batch: RawBatch, rejections: Sequence[Rejection]) -> None:
        """Count a batch that is about to be judged; raises where it must not be."""
        ...

    def answered(self) -> None:
        """Note that the batch was committed; raises where the run has to end after it."""
        ...

    def ended(self) -> None:
        """Note that the source has ended without being stopped; raises where the run has failed."""
        ...


@dataclass(frozen=True, slots=True)
class DeadLetterPolicy:
    """Where dead letters go, and when there are too many.

    ``source`` names the input in letters of records that did not come from a topic. Without a ``gate``, any number of
    records may be rejected.
    """

    source: str
    sink: DeadLetterSink
    gate: Gate | None = None

    def reject(self, record: RawRecord, fault: BadRecord) -> Rejection:
        """Return the rejection of a record that cannot be judged; it is handed to the sink with its batch."""
        message = record.message
        where = self.source if message is None else f"{message.topic}[{message.partition}]"
        position = LetterPosition(source=where, line=record.line, offset=record.start)
        letter = dead_letter(fault, position, record.data, size_bytes=record.size_bytes, sha256=record.sha256)
        return Rejection(record, letter)
