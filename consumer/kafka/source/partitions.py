"""Which partitions this consumer owns, how far each was read, and what of it was answered. No client, threads or clock.

A record is *answered* when its verdict or dead letter was sent. A partition has two places. ``position`` is the next
offset to be taken in. ``acknowledged`` is where reading has to begin again: everything before it was answered. What
lies between the two is in the buffer, in a batch that was taken, or in the one batch that was begun::

    acknowledged ──[ begun ]──[ taken ]──[ taken ]──[ buffered ]── position

A partition is not read before the group knows where it begins; otherwise its next owner might begin elsewhere.

Not every offset has a record: the end of a transaction takes one, and so does each record of an aborted transaction.
The client skips these offsets silently. When it reports that a partition has no more records, the offsets from
``position`` to the one it names have none. As soon as nothing before them is unanswered, both places move behind them,
so that the group's lag becomes zero.

The **assignment** is a number that increases whenever everything behind the begun batch becomes void. A batch carries
the number under which it was taken, and can be begun under no other. What is void is read again, here or by the next
owner of the partition: partitions are sought back, and what still comes from before the seek is discarded.
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
    """The bookkeeping of one consumer. Not thread-safe: the ``Handover`` has a lock for it.

    It has room for ``batches_ahead_max`` full batches. With ``transactional``, offsets are committed by batches only: a
    place without records needs a batch without records.
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
        """Take in what was read, except records of other partitions, duplicates, and records from before a seek."""
        for message in messages:
            progress = self._readable(message.partition)
            if progress is None or message.start < progress.position:
                continue
            progress.position = message.start + 1
            progress.end = None
            epoch, known = message.leader_epoch, progress.leader_epochs
            if epoch is not None and (not known or known[-1][1] != epoch):
                known.append((message.start, epoch))
            self._buffer.add(message)

    def ended(self, partition: Partition, offset: int) -> None:
        """Note that the client has delivered all records of a partition before this offset."""
        progress = self._readable(partition)
        if progress is not None and offset > max(progress.position, 0):
            progress.end = offset

    def pass_over(self) -> None:
        """Move behind offsets without records, in partitions where everything before them was answered."""
        for partition, progress in self._owned.items():
            answered = progress.acknowledged == progress.position
            if progress.end is not None and answered and self._readable(partition) is not None:
                progress.acknowledged = progress.position = progress.end
                progress.end = None

    def revoke(self, leaving: Collection[Partition]) -> bool:
        """Void what was not begun before these partitions leave. Return whether the begun batch has any of them."""
        self._void()
        return self.concerns(leaving)

    def concerns(self, leaving: Collection[Partition]) -> bool:
        """Return whether a batch is begun, and not given up, that has records of these partitions."""
        return self._alive() is not None and not self._alive_partitions().isdisjoint(leaving)

    def leave(self, leaving: Collection[Partition], why: str) -> None:
        """Give these partitions up, and with them a begun batch that has records of any of them."""
        if self.concerns(leaving):
            self._given_up = why
            self._void()
        for partition in leaving:
            self._owned.pop(partition, None)

    def suspend(self) -> None:
        """Take nothing more in until ``resume``; what is here already can be answered."""
        self.suspended = True

    def unanswered(self) -> bool:
        """Return whether anything that was read has not been answered."""
        return self._begun is not None or bool(self._taken) or len(self._buffer) > 0

    def jump(self, partition: Partition, offset: int) -> None:
        """Continue at an offset, because the records at the position are gone. Nothing may be unanswered."""
        progress = self._owned.get(partition)
        if progress is not None and offset != progress.position:
            progress.jump(offset)

    def resume(self) -> None:
        """Take records in again."""
        self.suspended = False
        self.rewind()

    def rewind(self) -> None:
        """Seek every partition to its position, and take nothing in before: the client may be anywhere."""
        for progress in self._owned.values():
            progress.seek = True

    def seek_back(self, partition: Partition) -> None:
        """Seek this partition to its position: the client went past a batch that it did not deliver."""
        self._owned[partition].seek = True

    def seeks(self) -> dict[Partition, int]:
        """Return where the client has to seek to before anything more is taken in."""
        return {
            partition: progress.position
            for partition, progress in self._owned.items()
            if progress.seek and progress.note.held is None
        }

    def sought(self, partition: Partition, offset: int) -> None:
        """Note that the client has sought there."""
        progress = self._owned.get(partition)
        if progress is not None and progress.position == offset:
            progress.seek = False

    def uncommitted(self) -> dict[Partition, CommitPoint]:
        """Return the places that were acknowledged and that the group does not know yet."""
        return {partition: progress.place() for partition, progress in self._owned.items() if not progress.is_known()}

    def committed(self, partition: Partition, place: CommitPoint) -> None:
        """Note that the group has committed this place."""
        progress = self._owned.get(partition)
        if progress is not None:
            progress.know(place.offset, place.note)

    def holds(self) -> dict[Partition, HoldReason | None]:
        """Return the owned partitions, and why each is held; None where it is not."""
        return {partition: progress.note.held for partition, progress in self._owned.items()}

    def owned(self) -> dict[Partition, CommitPoint]:
        """Return the owned partitions, and where each would have to be begun again."""
        return {partition: progress.place() for partition, progress in self._owned.items()}

    def position(self, partition: Partition) -> int | None:
        """Return the next offset to be taken in; None where the partition is not owned."""
        progress = self._owned.get(partition)
        return None if progress is None else progress.position

    def readable_position(self, partition: Partition) -> int | None:
        """Return the same; None also where what the client delivers now is not taken in."""
        progress = self._readable(partition)
        return None if progress is None else progress.position

    def block(self, partition: Partition, holding: HoldRequest) -> None:
        """Note that nothing can be read from the position of this partition on; ``hold_blocked`` holds it there.

        If records before the position have to be read again, this is forgotten.
        """
        self._owned[partition].blocked = holding

    def hold_blocked(self) -> None:
        """Hold each partition that is blocked and of which everything that was read is answered."""
        if self.places_lost:
            return
        for partition, progress in self._owned.items():
            holding = progress.blocked
            answered = progress.acknowledged == progress.position and not self._in_hand(partition)
            if holding is None or not answered:
                continue
            progress.hold(holding)
            progress.position = progress.acknowledged
            progress.blocked = None

    def room(self) -> int:
        """Return how many more records may be read, 0 when the buffer is full or reading is suspended."""
        return 0 if self.suspended else self._buffer.room()

    def room_bytes(self) -> int:
        """Return how many more bytes may be read, 0 when the buffer is full."""
        return self._buffer.room_bytes()

    def overfull(self) -> bool:
        """Return whether a whole batch came on top of a full buffer."""
        return self._buffer.overfull()

    # Called by the judge's side.

    def waiting(self) -> int:
        """Return how many records are buffered."""
        return len(self._buffer)

    def full_batch(self) -> bool:
        """Return whether waiting for more records would not make the next batch larger."""
        return self._buffer.full_batch()

    def take(self) -> RawBatch | None:
        """Return the next batch, None when there is nothing to answer."""
        records, ends = self._buffer.take()
        if self._transactional and not self.suspended:
            ends = self._uncommitted_offsets() | ends
        if not ends:
            return None
        end = Offsets(ends, self.assignment)
        self._taken.append(end)
        return RawBatch(tuple(records), end)

    def begin(self, end: Offsets) -> dict[Partition, Note]:
        """Begin the batch that was taken first, and return the notes of its partitions as they are before it.

        Raises ``Abandoned`` where it has become void.
        """
        if self._begun is not None:
            raise ValueError("a batch is begun when the one before it was committed or abandoned")
        if end.assignment != self.assignment:
            raise Abandoned("the assignment of partitions has changed since it was read")
        if not self._taken or self._taken[0] != end:
            raise ValueError("batches are begun in the order in which they were taken")
        self._begun, self._given_up = self._taken.popleft(), None
        return {partition: self._owned[partition].note for partition in end.next}

    def hold_poisoned(self, end: Offsets, holdings: Mapping[Partition, HoldRequest]) -> None:
        """Hold partitions of the begun batch, which is about to be abandoned, where their answered records end.

        The hold is committed beside that offset. Raises ``Abandoned`` where the batch was given up: another consumer
        may own the partitions.
        """
        self._require_begun(end)
        self.check()
        for partition, holding in holdings.items():
            self._owned[partition].hold(holding)

    def check(self) -> None:
        """Raise ``Abandoned`` where the begun batch was given up."""
        if self._given_up is not None:
            raise Abandoned(self._given_up)

    def acknowledge(self, end: Offsets, notes: Mapping[Partition, Note] = _NO_NOTES) -> None:
        """Note that the begun batch is answered, and may be committed with these notes of its partitions.

        Raises ``Abandoned`` where it was given up.
        """
        self._require_begun(end)
        self.check()
        for partition, offset in end.next.items():
            progress = self._owned[partition]
            progress.acknowledge(offset, notes.get(partition, progress.note))
        self._begun = None

    def acknowledge_committed(self, end: Offsets, notes: Mapping[Partition, Note] = _NO_NOTES) -> None:
        """Note that the begun batch is answered and committed, even where it was given up meanwhile."""
        self._require_begun(end)
        given_up, self._begun, self._given_up = self._given_up, None, None
        for partition, offset in end.next.items():
            progress = self._owned.get(partition)
            if progress is not None and progress.acknowledged <= offset:
                note = notes.get(partition, progress.note)
                progress.acknowledge(offset, note)
                progress.know(offset, note)
        if given_up is not None:
            # It is being read again already, which would answer it twice.
            self._void()

    def abandon(self) -> None:
        """Give up the begun batch, and void everything behind it. Without a begun batch, do nothing.

        A batch that could not be begun is void already. Discarding what was read since would never end.
        """
        begun, given_up = self._begun, self._given_up
        self._begun = self._given_up = None
        if begun is not None and given_up is None:
            self._void()

    def lose_places(self) -> None:
        """Void everything because nobody here knows what was committed; nothing is taken in before ``restart``."""
        self._begun = self._given_up = None
        self._void()
        self.places_lost = True

    def restart(self, committed: Mapping[Partition, Start | None]) -> None:
        """Start again at these places, which the group has committed; without one (None), at what was acknowledged."""
        self.places_lost = False
        for partition, start in committed.items():
            progress = self._owned.get(partition)
            if progress is not None:
                self._owned[partition] = progress.restarted(start)

    def _require_begun(self, end: Offsets) -> None:
        if self._begun != end:
            raise ValueError("only the batch that was begun can be committed")

    def _alive(self) -> Offsets | None:
        return self._begun if self._given_up is None else None

    def _alive_partitions(self) -> set[Partition]:
        alive = self._alive()
        return set() if alive is None else set(alive.next)

    def _uncommitted_offsets(self) -> dict[Partition, int]:
        """Return places that the group does not know though all before them is answered: at a start, after a gap."""
        in_hand = {partition for end in self._taken for partition in end.next} | self._alive_partitions()
        return {
            partition: progress.acknowledged
            for partition, progress in self._owned.items()
            if progress.acknowledged == progress.position and not progress.is_known() and partition not in in_hand
        }

    def _in_hand(self, partition: Partition) -> bool:
        """Return whether a taken or begun batch names this partition; its end may still change the note."""
        begun = () if self._begun is None else (self._begun,)
        return any(partition in end.next for end in (*self._taken, *begun))

    def _readable(self, partition: Partition) -> PartitionProgress | None:
        """Return the partition if what the client delivers of it now follows its position."""
        progress = self._owned.get(partition)
        if self.places_lost or self.suspended or progress is None or progress.committed is None or progress.seek:
            return None
        # A held partition may still deliver what was fetched before it was paused: records, and then its end.
        return progress if progress.note.held is None and progress.blocked is None else None

    def _void(self) -> None:
        """Discard what was read behind the begun batch, so that it is read again."""
        self.assignment += 1
        self._buffer.clear()
        self._taken.clear()
        alive = self._alive()
        for partition, progress in self._owned.items():
            begin = progress.acknowledged if alive is None else alive.next.get(partition, progress.acknowledged)
            progress.go_to(begin)
