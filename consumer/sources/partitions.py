"""Which partitions are ours, how far each was read, and what of it was answered. No client, no threads, no clock.

A partition has two places. ``position`` is the next offset to be taken in. ``acknowledged`` is where reading has to
begin again: everything before it was answered. What lies between the two is in the buffer, in a batch that was taken,
or in the one batch that was begun::

    acknowledged ──[ begun ]──[ taken ]──[ taken ]──[ buffered ]── position

A partition is not read before the group knows where it begins: else whoever has it next might begin elsewhere.

Offsets need not have records: the end of a transaction takes one, and so does each record of a transaction that was
aborted. The client passes over them in silence. Where it says that a partition has no more, the offsets from
``position`` up to there are such; once nothing before them is unanswered, both places are moved behind them, so that
the group knows that nothing is waiting.

The **assignment** is a number that goes up whenever what lies behind the begun batch becomes void. A batch carries the
number it was taken under, and can be begun under no other. What is void is read again, by us or by whoever has the
partition then: its partitions are sought back, and what still comes from before the seek is thrown away.
"""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from consumer.kafka.offset_metadata import NOTHING, Held, Holding, Note
from consumer.model.errors import Abandoned
from consumer.model.limits import ReadLimits
from consumer.model.record import Message, Offsets, Partition, RawBatch, RawRecord, headers_bytes

BEGINNING: Final = -2
"""A start before the first record that is there by then; lower than any offset, and never committed."""


_NO_NOTES: Final[Mapping[Partition, Note]] = MappingProxyType({})


class Place(NamedTuple):
    """Where reading begins again, with the leader epoch of the record before it, None where that is not known.

    ``note`` is what is to stand beside the offset.
    """

    offset: int
    leader_epoch: int | None
    note: Note = NOTHING


class Start(NamedTuple):
    """Where a partition begins that came to us, whether the group has that committed, and the note beside it."""

    offset: int
    committed: bool
    note: Note = NOTHING


@dataclass(slots=True)
class _Progress:
    """One partition of ours.

    ``committed`` is what the group knows, None where it knows nothing. ``leader_epochs`` are pairs: the first offset
    that was read under an epoch, and it. ``end`` is the offset up to which there is no record from ``position`` on.
    ``note`` belongs to ``acknowledged``, and ``known_note`` to ``committed``. ``blocked`` says why nothing can be read
    from ``position`` on.
    """

    position: int
    acknowledged: int
    committed: int | None
    seek: bool = False
    leader_epochs: list[tuple[int, int]] = field(default_factory=list)
    end: int | None = None
    note: Note = NOTHING
    known_note: Note = NOTHING
    blocked: Holding | None = None

    def acknowledge(self, offset: int, note: Note) -> None:
        self.acknowledged = offset
        self.note = note
        while len(self.leader_epochs) > 1 and self.leader_epochs[1][0] < offset:
            del self.leader_epochs[0]

    def know(self, offset: int, note: Note) -> None:
        """The group knows this; what was thrown away before it knew anything is read now."""
        self.seek = self.seek or self.committed is None
        self.committed = offset
        self.known_note = note

    def is_known(self) -> bool:
        return self.acknowledged == self.committed and self.note == self.known_note

    def place(self) -> Place:
        before = [epoch for first, epoch in self.leader_epochs if first < self.acknowledged]
        return Place(self.acknowledged, before[-1] if before else None, self.note)

    def go_to(self, offset: int) -> None:
        if self.position != offset:
            self.position = offset
            self.seek = True
            self.end = None
            self.blocked = None
            self.leader_epochs = [one for one in self.leader_epochs if one[0] < offset]


class _Buffer:
    """Records that wait to be taken, counted."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self._records: deque[tuple[RawRecord, Message, int]] = deque()

    def __len__(self) -> int:
        return len(self._records)

    def add(self, record: RawRecord, message: Message) -> None:
        size = memory_bytes(record, message)
        self._records.append((record, message, size))
        self.size_bytes += size

    def take(self, limits: ReadLimits) -> tuple[list[RawRecord], dict[Partition, int]]:
        records: list[RawRecord] = []
        ends: dict[Partition, int] = {}
        taken_bytes = 0
        while self._records and len(records) < limits.batch_records_max:
            record, message, size = self._records[0]
            if records and taken_bytes + size > limits.batch_bytes_max:
                break
            self._records.popleft()
            records.append(record)
            taken_bytes += size
            ends[message.topic, message.partition] = message.offset + 1
        self.size_bytes -= taken_bytes
        return records, ends

    def clear(self) -> None:
        self._records.clear()
        self.size_bytes = 0


def memory_bytes(record: RawRecord, message: Message) -> int:
    """What a record holds in bytes that its sender chose the number of."""
    return len(record.data) + len(message.key or b"") + headers_bytes(message.headers)


class Partitions:
    """The bookkeeping of one consumer. Not safe for threads: whoever shares it has a lock around it.

    At most ``batches_ahead_max`` full batches are buffered before it calls itself full; what comes all the same is
    taken in, and ``overfull`` says when that was one batch more. ``transactional``: the group is told of places by
    batches only, of a place without records by a batch without any.
    """

    def __init__(self, limits: ReadLimits, batches_ahead_max: int, *, transactional: bool = False) -> None:
        self.assignment = 0
        self.places_lost = False
        self.held = False
        self._transactional = transactional
        self._limits = limits
        self._batches_ahead_max = batches_ahead_max
        self._owned: dict[Partition, _Progress] = {}
        self._buffer = _Buffer()
        self._taken: deque[Offsets] = deque()
        self._begun: Offsets | None = None
        self._given_up: str | None = None

    # What the client's thread tells.

    def assign(self, starts: Mapping[Partition, Start]) -> None:
        """These partitions are ours from now on."""
        for partition, start in starts.items():
            known = start.offset if start.committed else None
            self._owned[partition] = _Progress(
                start.offset, start.offset, known, note=start.note, known_note=start.note
            )

    def deliver(self, records: Sequence[RawRecord]) -> None:
        """Take in what was read, but for what is not ours, was there before, or comes from before a seek."""
        for record in records:
            message = _message(record)
            progress = self._readable((message.topic, message.partition))
            if progress is None or message.offset < progress.position:
                continue
            progress.position = message.offset + 1
            progress.end = None
            epoch, known = message.leader_epoch, progress.leader_epochs
            if epoch is not None and (not known or known[-1][1] != epoch):
                known.append((message.offset, epoch))
            self._buffer.add(record, message)

    def ended(self, partition: Partition, offset: int) -> None:
        """The client has given all that a partition has before this offset, and it was delivered."""
        progress = self._readable(partition)
        if progress is not None and offset > max(progress.position, 0):
            progress.end = offset

    def pass_over(self) -> None:
        """Move behind offsets that have no records, where nothing is unanswered before them."""
        for partition, progress in self._owned.items():
            answered = progress.acknowledged == progress.position
            if progress.end is not None and answered and self._readable(partition) is not None:
                progress.acknowledged = progress.position = progress.end
                progress.end = None

    def revoke(self, leaving: Collection[Partition]) -> bool:
        """These partitions are about to go: void what was not begun. Whether the begun batch has any of them."""
        self._void()
        return self.concerns(leaving)

    def concerns(self, leaving: Collection[Partition]) -> bool:
        """Whether a batch is begun, and not given up, that has records of these partitions."""
        return self._alive() is not None and not self._alive_partitions().isdisjoint(leaving)

    def leave(self, leaving: Collection[Partition], why: str) -> None:
        """These partitions are gone, and a begun batch that has records of them does not count any more."""
        self._give_up(leaving, why)
        for partition in leaving:
            self._owned.pop(partition, None)

    def hold(self) -> None:
        """Take nothing more in before ``release``; what is there already can be answered."""
        self.held = True

    def unanswered(self) -> bool:
        """Whether anything that was read has not been answered."""
        return self._begun is not None or bool(self._taken) or len(self._buffer) > 0

    def jump(self, partition: Partition, offset: int) -> None:
        """Go on at an offset, since what we would read next is not there. Nothing may be unanswered."""
        progress = self._owned.get(partition)
        if progress is not None and offset != progress.position:
            progress.acknowledged = progress.position = offset
            progress.leader_epochs = []
            progress.end = None
            progress.blocked = None

    def release(self) -> None:
        """Take in again what comes."""
        self.held = False
        self.rewind()

    def rewind(self) -> None:
        """The client may be anywhere: seek every partition to its position, and take nothing in before that."""
        for progress in self._owned.values():
            progress.seek = True

    def seek_back(self, partition: Partition) -> None:
        """The client has gone on behind something that it did not give: seek this partition to its position."""
        self._owned[partition].seek = True

    def seeks(self) -> dict[Partition, int]:
        """Where the client has to go before anything more is taken in."""
        return {
            partition: progress.position
            for partition, progress in self._owned.items()
            if progress.seek and progress.note.held is None
        }

    def sought(self, partition: Partition, offset: int) -> None:
        """The client went there."""
        progress = self._owned.get(partition)
        if progress is not None and progress.position == offset:
            progress.seek = False

    def uncommitted(self) -> dict[Partition, Place]:
        """What was acknowledged and the group does not know yet."""
        return {partition: progress.place() for partition, progress in self._owned.items() if not progress.is_known()}

    def committed(self, partition: Partition, place: Place) -> None:
        """The group knows this."""
        progress = self._owned.get(partition)
        if progress is not None:
            progress.know(place.offset, place.note)

    def holds(self) -> dict[Partition, Held | None]:
        """The partitions that are ours, and why each is not read on; None where it is."""
        return {partition: progress.note.held for partition, progress in self._owned.items()}

    def owned(self) -> dict[Partition, Place]:
        """The partitions that are ours, and where each would have to be begun again."""
        return {partition: progress.place() for partition, progress in self._owned.items()}

    def position(self, partition: Partition) -> int | None:
        """The next offset to be taken in; None where the partition is not ours."""
        progress = self._owned.get(partition)
        return None if progress is None else progress.position

    def readable_position(self, partition: Partition) -> int | None:
        """The same; None also where what the client gives now is not taken in."""
        progress = self._readable(partition)
        return None if progress is None else progress.position

    def block(self, partition: Partition, holding: Holding) -> None:
        """Nothing can be read from the position of this partition on: ``hold_blocked`` holds it there.

        Where what is before that has to be read again, reading goes on as if this had not been said.
        """
        self._owned[partition].blocked = holding

    def hold_blocked(self) -> None:
        """Hold the partitions that were blocked, as soon as all that was read of them is answered."""
        if self.places_lost:
            return
        for partition, progress in self._owned.items():
            holding = progress.blocked
            answered = progress.acknowledged == progress.position and not self._in_hand(partition)
            if holding is None or not answered:
                continue
            if progress.acknowledged == BEGINNING:
                # That is no offset, and so cannot be committed; before the blocked place there was no record.
                progress.acknowledged = progress.position = holding.offset
            progress.note = msgspec.structs.replace(progress.note, held=holding.held)
            progress.blocked = None

    def room(self) -> int:
        """How many records more are to be read, 0 when it is full, or held."""
        batches, limits = self._batches_ahead_max, self._limits
        if self.held or self._buffer.size_bytes >= batches * limits.batch_bytes_max:
            return 0
        return max(0, batches * limits.batch_records_max - len(self._buffer))

    def room_bytes(self) -> int:
        """How many bytes more are to be read, 0 when it is full."""
        return max(0, self._batches_ahead_max * self._limits.batch_bytes_max - self._buffer.size_bytes)

    def overfull(self) -> bool:
        """Whether a whole batch came on top of a full buffer."""
        batches, limits = self._batches_ahead_max + 1, self._limits
        return (
            self._buffer.size_bytes >= batches * limits.batch_bytes_max
            or len(self._buffer) >= batches * limits.batch_records_max
        )

    # What the judge's side asks.

    def waiting(self) -> int:
        """How many records are buffered."""
        return len(self._buffer)

    def full_batch(self) -> bool:
        """Whether waiting for more would not make the next batch larger."""
        limits = self._limits
        return len(self._buffer) >= limits.batch_records_max or self._buffer.size_bytes >= limits.batch_bytes_max

    def take(self) -> RawBatch | None:
        """The next batch, None when there is nothing to answer."""
        records, ends = self._buffer.take(self._limits)
        if self._transactional and not self.held:
            ends = self._untold() | ends
        if not ends:
            return None
        end = Offsets(ends, self.assignment)
        self._taken.append(end)
        return RawBatch(tuple(records), end)

    def begin(self, end: Offsets) -> dict[Partition, Note]:
        """Begin the batch that was taken first, and have the notes of its partitions before it.

        Raises ``Abandoned`` where it became void since.
        """
        if self._begun is not None:
            raise ValueError("a batch is begun when the one before it was committed or abandoned")
        if end.assignment != self.assignment:
            raise Abandoned("the assignment of partitions has changed since it was read")
        if not self._taken or self._taken[0] != end:
            raise ValueError("batches are begun in the order in which they were taken")
        self._begun, self._given_up = self._taken.popleft(), None
        return {partition: self._owned[partition].note for partition in end.next}

    def hold_poisoned(self, end: Offsets, holdings: Mapping[Partition, Holding]) -> None:
        """Of the batch that was begun, and is about to be abandoned, these partitions are not read on.

        The group is told so beside the offset where what was answered ends. Raises ``Abandoned`` where the batch was
        given up: then its partitions may be another's.
        """
        self._require_begun(end)
        self.check()
        for partition, holding in holdings.items():
            progress = self._owned[partition]
            if progress.acknowledged == BEGINNING:
                # That is no offset, and so cannot be committed; before the first record that came there was none.
                progress.acknowledged = holding.offset
            progress.note = msgspec.structs.replace(progress.note, held=holding.held)

    def check(self) -> None:
        """Raise ``Abandoned`` where the batch that was begun was given up."""
        if self._given_up is not None:
            raise Abandoned(self._given_up)

    def acknowledge(self, end: Offsets, notes: Mapping[Partition, Note] = _NO_NOTES) -> None:
        """The batch that was begun is answered, and may be committed, with these notes of its partitions.

        Raises ``Abandoned`` where it was given up.
        """
        self._require_begun(end)
        self.check()
        for partition, offset in end.next.items():
            progress = self._owned[partition]
            progress.acknowledge(offset, notes.get(partition, progress.note))
        self._begun = None

    def acknowledge_committed(self, end: Offsets, notes: Mapping[Partition, Note] = _NO_NOTES) -> None:
        """The batch that was begun is answered and committed, whatever we thought of it meanwhile."""
        self._require_begun(end)
        given_up, self._begun, self._given_up = self._given_up, None, None
        for partition, offset in end.next.items():
            progress = self._owned.get(partition)
            if progress is not None and progress.acknowledged <= offset:
                note = notes.get(partition, progress.note)
                progress.acknowledge(offset, note)
                progress.know(offset, note)
        if given_up is not None:
            # It is being read again already, and must not be.
            self._void()

    def abandon(self) -> None:
        """The batch that was begun is given up, and everything behind it is void. Without one there is nothing to do.

        A batch that could not be begun is void already; throwing away what was read since would go on for ever.
        """
        begun, given_up = self._begun, self._given_up
        self._begun = self._given_up = None
        if begun is not None and given_up is None:
            self._void()

    def lose_places(self) -> None:
        """Nobody here knows what was committed: everything is void, and nothing is taken in before ``restart``."""
        self._begun = self._given_up = None
        self._void()
        self.places_lost = True

    def restart(self, committed: Mapping[Partition, Start | None]) -> None:
        """These are the places that the group has committed; where it has none, nothing was answered since ours."""
        self.places_lost = False
        for partition, start in committed.items():
            progress = self._owned.get(partition)
            if progress is None:
                continue
            begin = progress.acknowledged if start is None else start.offset
            known = None if start is None and begin != BEGINNING else begin
            note = progress.note if start is None else start.note
            known_note = progress.known_note if start is None else note
            self._owned[partition] = _Progress(begin, begin, known, seek=True, note=note, known_note=known_note)

    def _give_up(self, concerned: Collection[Partition], why: str) -> None:
        if self.concerns(concerned):
            self._given_up = why
            self._void()

    def _require_begun(self, end: Offsets) -> None:
        if self._begun != end:
            raise ValueError("only the batch that was begun can be committed")

    def _alive(self) -> Offsets | None:
        return self._begun if self._given_up is None else None

    def _alive_partitions(self) -> set[Partition]:
        alive = self._alive()
        return set() if alive is None else set(alive.next)

    def _untold(self) -> dict[Partition, int]:
        """Places that the group does not know, though nothing before them is unanswered: at the start, behind a gap."""
        in_hand = {partition for end in self._taken for partition in end.next} | self._alive_partitions()
        return {
            partition: progress.acknowledged
            for partition, progress in self._owned.items()
            if progress.acknowledged == progress.position and not progress.is_known() and partition not in in_hand
        }

    def _in_hand(self, partition: Partition) -> bool:
        """Whether a batch names this partition whose end may still change its note; it need have no records of it."""
        begun = () if self._begun is None else (self._begun,)
        return any(partition in end.next for end in (*self._taken, *begun))

    def _readable(self, partition: Partition) -> _Progress | None:
        """The partition, where what the client gives of it now is what follows on its position."""
        progress = self._owned.get(partition)
        if self.places_lost or self.held or progress is None or progress.committed is None or progress.seek:
            return None
        # Of a held partition records may come that were fetched before it was paused, and then its end.
        return progress if progress.note.held is None and progress.blocked is None else None

    def _void(self) -> None:
        """Throw away what was read behind the begun batch, and have it read again."""
        self.assignment += 1
        self._buffer.clear()
        self._taken.clear()
        alive = self._alive()
        for partition, progress in self._owned.items():
            begin = progress.acknowledged if alive is None else alive.next.get(partition, progress.acknowledged)
            progress.go_to(begin)


def _message(record: RawRecord) -> Message:
    if record.message is None:
        raise TypeError("a record of a topic has a message")
    return record.message
