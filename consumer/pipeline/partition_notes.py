"""The notes of the partitions that the batch at hand is of: read when it is begun, kept when it is committed."""

from collections.abc import Mapping

from consumer.kafka.offset_metadata import NOTHING, Note
from consumer.model.record import Partition


class Ledger:
    """Where the parts of a run that judge a batch meet those that commit it. For the judge's thread only."""

    def __init__(self) -> None:
        self._notes: dict[Partition, Note] = {}

    @property
    def notes(self) -> Mapping[Partition, Note]:
        """The notes as they are to be committed with the batch."""
        return self._notes

    def begin(self, notes: Mapping[Partition, Note]) -> None:
        """A batch is begun, and these are the notes of its partitions before it."""
        self._notes = {**notes}

    def note(self, partition: Partition) -> Note:
        """The note of a partition of the batch."""
        return self._notes.get(partition, NOTHING)

    def put(self, partition: Partition, note: Note) -> None:
        """This is the partition's note now."""
        self._notes[partition] = note
