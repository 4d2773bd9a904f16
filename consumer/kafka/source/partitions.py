"""The partitions that this consumer owns, and the progress of reading and answering each. No client, threads or clock.

A record is *answered* when its verdict or dead letter was sent. A partition has two places. ``position`` is the next
offset to accept. ``acknowledged`` is the offset before which everything was answered; reading would have to begin again
there. Records between the two are in the buffer, in a batch that was taken, or in the one batch that was begun::

    acknowledged ──[ begun ]──[ taken ]──[ taken ]──[ buffered ]── position

A partition is not read before its start is committed; otherwise its next owner might begin elsewhere.

Not every offset has a record: the end of a transaction takes an offset, and so does each record of an aborted one. The
client skips these offsets silently. When it reports the end of a partition, the offsets from ``position`` up to that
end have no records. As soon as everything before them is answered, both places move to the end, so that the group's lag
becomes zero.

The **assignment** is a number that increases whenever everything after the begun batch becomes void. A batch carries
the number under which it was taken, and can be begun under no other. Void records are read again, here or by the next
owner of the partition: the client seeks back, and records from before the seek are discarded.
"""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from consumer.kafka.message import Offsets, TopicRecord
from consumer.kafka.offset_metadata import HoldReason, HoldRequest, Note
from consumer.kafka.source.buffer import Buffer
from consumer.kafka.source.progress import CommitPoint, PartitionProgress, Start
from consumer.model.errors import Abandoned
from consumer.model.limits import ReadLimits
from consumer.model.record import Partition, RawBatch

_NO_NOTES: Final[Mapping[Partition, Note]] = MappingProxyType({})


class Partitions:
    """The bookkeeping of one consumer. Not thread-safe; the ``Handover`` has its lock.

    The buffer has room for ``batches_ahead_max`` full batches. With ``transactional``, only batches commit offsets, so
    a place without new records is committed by a batch without records. ``places_lost`` is true from ``lose_places``
    until ``restart``, and ``suspended`` from ``suspend`` until ``resume``.
    """

    def __init__(self, limits: ReadLimits, batches_ahead_max: int, *, transactional: bool = False) -> None:
        self.assignment = 0
        self.places_lost = False
        self.suspended = False
        self._transactional = transactional
        self._owned: dict[Partition, PartitionProgress] = {}
        self._buffer = Buffer(limits, batches_ahead_max)
        self._taken: deque[Offsets] = deque()
        self._begun: Offsets | None = None
        self._given_up: str | None = None

    # Called by the client's thread.

    def assign(self, starts: Mapping[Partition, Start]) -> None:
        """Own these partitions from now on."""
        for partition, start in starts.items():
            self._owned[partition] = PartitionProgress.assigned(start)

    def deliver(self, messages: Sequence[TopicRecord]) -> None:
        """Accept records, except duplicates and those of partitions that are not readable now, as before a seek."""
        for message in messages:
            progress = self._readable_progress(message.partition)
            if progress is None or message.start < progress.position:
                continue
            progress.position = message.start + 1
            progress.end = None
            epoch, known = message.leader_epoch, progress.leader_epochs
            if epoch is not None and (not known or known[-1][1] != epoch):
                known.append((message.start, epoch))
            self._buffer.add(message)

    def note_end(self, partition: Partition, offset: int) -> None:
        """Note that the client has delivered all records of a partition before this offset."""
        progress = self._readable_progress(partition)
        if progress is not None and offset > max(progress.position, 0):
            progress.end = offset

    def pass_over(self) -> None:
        """Move past offsets without records, in partitions where everything before them was answered."""
        for partition, progress in self._owned.items():
            answered = progress.acknowledged == progress.position
            if progress.end is not None and answered and self._readable_progress(partition) is not None:
                progress.acknowledged = progress.position = progress.end
                progress.end = None

    def revoke(self, leaving: Collection[Partition]) -> bool:
        """Void all records that are not in the begun batch; return whether that batch has any of these partitions."""
        self._void()
        return self.concerns(leaving)

    def concerns(self, leaving: Collection[Partition]) -> bool:
        """Return whether there is a begun batch, not given up, with records of these partitions."""
        return self._live_batch() is not None and not self._live_partitions().isdisjoint(leaving)

    def leave(self, leaving: Collection[Partition], why: str) -> None:
        """Give up these partitions, and a begun batch that has records of any of them."""
        if self.concerns(leaving):
            self._given_up = why
            self._void()
        for partition in leaving:
            self._owned.pop(partition, None)

    def suspend(self) -> None:
        """Accept no more records until ``resume``; records already here can be answered."""
        self.suspended = True

    def unanswered(self) -> bool:
        """Return whether any record that was read is unanswered."""
        return self._begun is not None or bool(self._taken) or len(self._buffer) > 0

    def jump(self, partition: Partition, offset: int) -> None:
        """Continue at this offset, since the position no longer exists. All records read so far must be answered."""
        progress = self._owned.get(partition)
        if progress is not None and offset != progress.position:
            progress.jump(offset)

    def resume(self) -> None:
        """Accept records again."""
        self.suspended = False
        self.rewind()

    def rewind(self) -> None:
        """Make every partition seek to its position before accepting records; the client may be anywhere."""
        for progress in self._owned.values():
            progress.seek = True

    def seek_back(self, partition: Partition) -> None:
        """Make this partition seek to its position, because the client skipped a batch."""
        self._owned[partition].seek = True

    def seeks(self) -> dict[Partition, int]:
        """Return the offsets that the client has to seek to before more records are accepted."""
        return {
            partition: progress.position
            for partition, progress in self._owned.items()
            if progress.seek and progress.note.held is None
        }

    def note_sought(self, partition: Partition, offset: int) -> None:
        """Note that the client has made this seek."""
        progress = self._owned.get(partition)
        if progress is not None and progress.position == offset:
            progress.seek = False

    def uncommitted(self) -> dict[Partition, CommitPoint]:
        """Return the acknowledged places that are not committed yet."""
        return {key: progress.place() for key, progress in self._owned.items() if not progress.is_committed()}

    def note_committed(self, partition: Partition, place: CommitPoint) -> None:
        """Note that the group has committed this place."""
        progress = self._owned.get(partition)
        if progress is not None:
            progress.note_committed(place.offset, place.note)

    def holds(self) -> dict[Partition, HoldReason | None]:
        """Return the owned partitions, each with the reason why it is held, or None."""
        return {partition: progress.note.held for partition, progress in self._owned.items()}

    def owned(self) -> dict[Partition, CommitPoint]:
        """Return the owned partitions, and the place from which each would have to be read again."""
        return {partition: progress.place() for partition, progress in self._owned.items()}

    def position(self, partition: Partition) -> int | None:
        """Return the next offset to accept; None if the partition is not owned."""
        progress = self._owned.get(partition)
        return None if progress is None else progress.position

    def readable_position(self, partition: Partition) -> int | None:
        """Return the next offset to accept; None if records of the partition are not accepted now."""
        progress = self._readable_progress(partition)
        return None if progress is None else progress.position

    def block(self, partition: Partition, holding: HoldRequest) -> None:
        """Note that this partition cannot be read past its position, where ``hold_blocked`` will hold it.

        If records before the position have to be read again, the block is forgotten.
        """
        self._owned[partition].blocked = holding

    def hold_blocked(self) -> None:
        """Hold each blocked partition whose records have all been answered."""
        if self.places_lost:
            return
        for partition, progress in self._owned.items():
            holding = progress.blocked
            answered = progress.acknowledged == progress.position and not self._is_in_batch(partition)
            if holding is None or not answered:
                continue
            progress.hold(holding)
            progress.position = progress.acknowledged
            progress.blocked = None

    def room(self) -> int:
        """Return how many more records may be read; 0 when the buffer is full or reading is suspended."""
        return 0 if self.suspended else self._buffer.room()

    def room_bytes(self) -> int:
        """Return how many more bytes may be read; 0 when the buffer is full."""
        return self._buffer.room_bytes()

    def is_overfull(self) -> bool:
        """Return whether the buffer exceeds its limit by a whole batch."""
        return self._buffer.is_overfull()

    # Called by the judging thread.

    def buffered(self) -> int:
        """Return the number of buffered records."""
        return len(self._buffer)

    def has_full_batch(self) -> bool:
        """Return whether the next batch is full, so that waiting for more records would not make it larger."""
        return self._buffer.has_full_batch()

    def take(self) -> RawBatch | None:
        """Return the next batch; None when there is nothing to answer or commit."""
        records, ends = self._buffer.take()
        if self._transactional and not self.suspended:
            ends = self._uncommitted_offsets() | ends
        if not ends:
            return None
        end = Offsets(ends, self.assignment)
        self._taken.append(end)
        return RawBatch(tuple(records), end)

    def begin(self, end: Offsets) -> dict[Partition, Note]:
        """Begin the batch that was taken first, and return the notes of its partitions before it.

        Raises ``Abandoned`` if it has become void.
        """
        if self._begun is not None:
            raise ValueError("a batch can begin only after the previous one was committed or abandoned")
        if end.assignment != self.assignment:
            raise Abandoned("the assignment of partitions has changed since it was read")
        if not self._taken or self._taken[0] != end:
            raise ValueError("batches must begin in the order in which they were taken")
        self._begun, self._given_up = self._taken.popleft(), None
        return {partition: self._owned[partition].note for partition in end.next}

    def hold_poisoned(self, end: Offsets, holdings: Mapping[Partition, HoldRequest]) -> None:
        """Hold partitions of the begun batch, which is about to be abandoned, after their last answered record.

        The hold is committed with that offset. Raises ``Abandoned`` if the batch was given up, since another consumer
        may own the partitions.
        """
        self._require_begun(end)
        self.check()
        for partition, holding in holdings.items():
            self._owned[partition].hold(holding)

    def check(self) -> None:
        """Raise ``Abandoned`` if the begun batch was given up."""
        if self._given_up is not None:
            raise Abandoned(self._given_up)

    def acknowledge(self, end: Offsets, notes: Mapping[Partition, Note] = _NO_NOTES) -> None:
        """Mark the begun batch as answered, for a commit with these notes. Raises ``Abandoned`` if it was given up."""
        self._require_begun(end)
        self.check()
        for partition, offset in end.next.items():
            progress = self._owned[partition]
            progress.acknowledge(offset, notes.get(partition, progress.note))
        self._begun = None

    def acknowledge_committed(self, end: Offsets, notes: Mapping[Partition, Note] = _NO_NOTES) -> None:
        """Note that the begun batch is answered and committed, even if it was given up in the meantime."""
        self._require_begun(end)
        given_up, self._begun, self._given_up = self._given_up, None, None
        for partition, offset in end.next.items():
            progress = self._owned.get(partition)
            if progress is not None and progress.acknowledged <= offset:
                note = notes.get(partition, progress.note)
                progress.acknowledge(offset, note)
                progress.note_committed(offset, note)
        if given_up is not None:
            # The batch is already being read again, and would be answered twice.
            self._void()

    def abandon(self) -> None:
        """Give up the begun batch, and void all records after it. Without a begun batch, do nothing.

        A batch that could not be begun is already void. Voiding later records each time could prevent all progress.
        """
        begun, given_up = self._begun, self._given_up
        self._begun = self._given_up = None
        if begun is not None and given_up is None:
            self._void()

    def lose_places(self) -> None:
        """Void all records, because the committed offsets are unknown; no record is accepted before ``restart``."""
        self._begun = self._given_up = None
        self._void()
        self.places_lost = True

    def restart(self, committed: Mapping[Partition, Start | None]) -> None:
        """Start again at these committed places; without one (None), at the acknowledged offset."""
        self.places_lost = False
        for partition, start in committed.items():
            progress = self._owned.get(partition)
            if progress is not None:
                self._owned[partition] = progress.restarted(start)

    def _require_begun(self, end: Offsets) -> None:
        if self._begun != end:
            raise ValueError("only the batch that was begun can be committed")

    def _live_batch(self) -> Offsets | None:
        return self._begun if self._given_up is None else None

    def _live_partitions(self) -> set[Partition]:
        live = self._live_batch()
        return set() if live is None else set(live.next)

    def _uncommitted_offsets(self) -> dict[Partition, int]:
        """Return the uncommitted offsets of partitions without unanswered records, as after an assignment or a gap."""
        in_batch = {partition for end in self._taken for partition in end.next} | self._live_partitions()
        return {
            partition: progress.acknowledged
            for partition, progress in self._owned.items()
            if progress.acknowledged == progress.position and not progress.is_committed() and partition not in in_batch
        }

    def _is_in_batch(self, partition: Partition) -> bool:
        """Return whether a taken or begun batch names this partition; its commit may still change the note."""
        begun = () if self._begun is None else (self._begun,)
        return any(partition in end.next for end in (*self._taken, *begun))

    def _readable_progress(self, partition: Partition) -> PartitionProgress | None:
        """Return the progress of a partition if its next records can be accepted, else None."""
        progress = self._owned.get(partition)
        if self.places_lost or self.suspended or progress is None or progress.committed is None or progress.seek:
            return None
        # A held partition may still deliver records that were fetched before it was paused, and then its end.
        return progress if progress.note.held is None and progress.blocked is None else None

    def _void(self) -> None:
        """Discard the records after the begun batch, so that they are read again."""
        self.assignment += 1
        self._buffer.clear()
        self._taken.clear()
        live = self._live_batch()
        for partition, progress in self._owned.items():
            begin = progress.acknowledged if live is None else live.next.get(partition, progress.acknowledged)
            progress.go_to(begin)
