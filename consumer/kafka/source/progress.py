"""The progress of one partition that this consumer owns: its next offset, what was answered, what was committed."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

import msgspec

from consumer.kafka.offset_metadata import EMPTY_NOTE, HoldRequest, Note

BEGINNING: Final = -2
"""The start before the first existing record; lower than any offset, and never committed."""


class CommitPoint(NamedTuple):
    """A place to commit: the next offset, and the leader epoch of the record before it, or None if unknown.

    ``note`` is committed with the offset.
    """

    offset: int
    leader_epoch: int | None
    note: Note = EMPTY_NOTE


class Start(NamedTuple):
    """The start of a newly assigned partition, whether it is committed, and the note with it.

    ``BEGINNING`` counts as committed.
    """

    offset: int
    committed: bool
    note: Note = EMPTY_NOTE


@dataclass(slots=True)
class PartitionProgress:
    """The progress of one owned partition.

    ``position``: the next offset to accept. ``acknowledged``: the offset before which everything was answered.
    ``committed``: the committed offset, or None without one. ``seek``: the client must seek to ``position`` first.
    ``leader_epochs``: pairs of the first offset that was read under an epoch, and the epoch. ``end``: there are no
    records from ``position`` up to this offset; None if unknown. ``note`` belongs to ``acknowledged``, and
    ``committed_note`` to ``committed``. ``blocked``: why the partition cannot be read past ``position``.
    """

    position: int
    acknowledged: int
    committed: int | None
    seek: bool = False
    leader_epochs: list[tuple[int, int]] = field(default_factory=list)
    end: int | None = None
    note: Note = EMPTY_NOTE
    committed_note: Note = EMPTY_NOTE
    blocked: HoldRequest | None = None

    @classmethod
    def assigned(cls, start: Start) -> Self:
        """Return the progress of a partition that was just assigned."""
        committed = start.offset if start.committed else None
        return cls(start.offset, start.offset, committed, note=start.note, committed_note=start.note)

    def restarted(self, start: Start | None) -> "PartitionProgress":
        """Return the progress of a partition that starts again at the group's committed start.

        If the group has no committed start (None), nothing was answered, and the partition starts at ``acknowledged``.
        """
        begin = self.acknowledged if start is None else start.offset
        committed = None if start is None and begin != BEGINNING else begin
        note = self.note if start is None else start.note
        committed_note = self.committed_note if start is None else note
        return PartitionProgress(begin, begin, committed, seek=True, note=note, committed_note=committed_note)

    def acknowledge(self, offset: int, note: Note) -> None:
        """Note that everything before this offset was answered."""
        self.acknowledged = offset
        self.note = note
        while len(self.leader_epochs) > 1 and self.leader_epochs[1][0] < offset:
            del self.leader_epochs[0]

    def note_committed(self, offset: int, note: Note) -> None:
        """Note a commit. After the first one, records that were discarded before it are read again."""
        self.seek = self.seek or self.committed is None
        self.committed = offset
        self.committed_note = note

    def is_committed(self) -> bool:
        """Return whether everything that was answered is committed."""
        return self.acknowledged == self.committed and self.note == self.committed_note

    def place(self) -> CommitPoint:
        """Return the place where the partition's next owner has to begin."""
        before = [epoch for first, epoch in self.leader_epochs if first < self.acknowledged]
        return CommitPoint(self.acknowledged, before[-1] if before else None, self.note)

    def go_to(self, offset: int) -> None:
        """Read again from this offset on, unless it is the current position."""
        if self.position != offset:
            self.position = offset
            self.seek = True
            self.end = None
            self.blocked = None
            self.leader_epochs = [(first, epoch) for first, epoch in self.leader_epochs if first < offset]

    def jump(self, offset: int) -> None:
        """Continue at this offset; records before it no longer exist."""
        self.acknowledged = self.position = offset
        self.leader_epochs = []
        self.end = None
        self.blocked = None

    def hold(self, holding: HoldRequest) -> None:
        """Write the reason for a hold into the note."""
        if self.acknowledged == BEGINNING:
            # BEGINNING cannot be committed, and no record exists before the offset of the hold.
            self.acknowledged = holding.offset
        self.note = msgspec.structs.replace(self.note, held=holding.held)
