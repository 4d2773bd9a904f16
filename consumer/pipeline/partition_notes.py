"""The notes of the partitions of the current batch: read when it begins, stored when it is committed."""

from collections.abc import Mapping

from consumer.kafka.offset_metadata import NOTHING, Note
from consumer.model.record import Partition


class Ledger:
    """Shares notes between the parts of a run that judge a batch and those that commit it. For the main thread only."""

    def __init__(self) -> None:
        self._notes: dict[Partition, Note] = {}

    @property
    def notes(self) -> Mapping[Partition, Note]:
        """The notes to be committed with the batch."""
        return self._notes

    def begin(self, notes: Mapping[Partition, Note]) -> None:
        """Begin a batch whose partitions have these notes."""
        self._notes = {**notes}

    def note(self, partition: Partition) -> Note:
        """Return the current note of a partition of the batch."""
        return self._notes.get(partition, NOTHING)

    def put(self, partition: Partition, note: Note) -> None:
        """Replace the note of a partition."""
        self._notes[partition] = note
