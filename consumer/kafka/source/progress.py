"""One partition that this consumer owns: where reading continues, what was answered, and what the group knows of it."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

import msgspec

from consumer.kafka.offset_metadata import NOTHING, HoldRequest, Note

BEGINNING: Final = -2
"""A start before the first record that exists by then; lower than any offset, and never committed."""


class CommitPoint(NamedTuple):
    """Where reading begins again, with the leader epoch of the record before it, None where that is not known.

    ``note`` is committed beside the offset.
    """

    offset: int
    leader_epoch: int | None
    note: Note = NOTHING


class Start(NamedTuple):
    """Where a newly assigned partition begins, whether the group has that committed, and the note beside it."""

    offset: int
    committed: bool
    note: Note = NOTHING


@dataclass(slots=True)
class PartitionProgress:
    """The progress of one owned partition.

    ``position`` is the next offset to be taken in, ``acknowledged`` the offset before which everything was answered.
    ``committed`` is what the group knows, None where it knows nothing. ``leader_epochs`` are pairs: the first offset
    that was read under an epoch, and the epoch. ``end`` is the offset up to which there is no record from ``position``
    on. ``note`` belongs to ``acknowledged``, and ``known_note`` to ``committed``. ``blocked`` says why nothing can be
    read from ``position`` on.
    """

    position: int
    acknowledged: int
    committed: int | None
    seek: bool = False
    leader_epochs: list[tuple[int, int]] = field(default_factory=list)
    end: int | None = None
    note: Note = NOTHING
    known_note: Note = NOTHING
    blocked: HoldRequest | None = None

    @classmethod
    def assigned(cls, start: Start) -> Self:
        """Return the progress of a partition that was just assigned."""
        known = start.offset if start.committed else None
        return cls(start.offset, start.offset, known, note=start.note, known_note=start.note)

    def restarted(self, start: Start | None) -> "PartitionProgress":
        """Return the progress after the group was asked; None where it has no offset, so nothing was answered."""
        begin = self.acknowledged if start is None else start.offset
        known = None if start is None and begin != BEGINNING else begin
        note = self.note if start is None else start.note
        known_note = self.known_note if start is None else note
        return PartitionProgress(begin, begin, known, seek=True, note=note, known_note=known_note)

    def acknowledge(self, offset: int, note: Note) -> None:
        """Note that everything before this offset was answered."""
        self.acknowledged = offset
        self.note = note
        while len(self.leader_epochs) > 1 and self.leader_epochs[1][0] < offset:
            del self.leader_epochs[0]

    def know(self, offset: int, note: Note) -> None:
        """Note that the group has this committed; what was discarded before it knew anything is read now."""
        self.seek = self.seek or self.committed is None
        self.committed = offset
        self.known_note = note

    def is_known(self) -> bool:
        """Return whether the group has committed all that was answered."""
        return self.acknowledged == self.committed and self.note == self.known_note

    def place(self) -> CommitPoint:
        """Return where reading has to begin again, by whoever owns the partition then."""
        before = [epoch for first, epoch in self.leader_epochs if first < self.acknowledged]
        return CommitPoint(self.acknowledged, before[-1] if before else None, self.note)

    def go_to(self, offset: int) -> None:
        """Read again from this offset on, unless that is the position already."""
        if self.position != offset:
            self.position = offset
            self.seek = True
            self.end = None
            self.blocked = None
            self.leader_epochs = [(first, epoch) for first, epoch in self.leader_epochs if first < offset]

    def jump(self, offset: int) -> None:
        """Continue at this offset; nothing before it is answered any more."""
        self.acknowledged = self.position = offset
        self.leader_epochs = []
        self.end = None
        self.blocked = None

    def hold(self, holding: HoldRequest) -> None:
        """Write the reason for a hold into the note."""
        if self.acknowledged == BEGINNING:
            # BEGINNING is not an offset and cannot be committed. No record exists before the one that is held.
            self.acknowledged = holding.offset
        self.note = msgspec.structs.replace(self.note, held=holding.held)
