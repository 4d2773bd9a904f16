"""A limit on poison: one bad record in a while is a dead letter, a feed of them is a fault that somebody has to see.

It counts by partition, over the last records, and over restarts: the counts are part of the partition's note.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from consumer.dead_letters.policy import Gate
from consumer.kafka.offset_metadata import REASON_CHARS_MAX, WINDOW_COUNTS_MAX, Held, Holding
from consumer.model.errors import Abandoned
from consumer.model.ports import Rejection
from consumer.model.record import Offsets, Partition, RawBatch, RawRecord, partition_name
from consumer.pipeline.partition_notes import Ledger

Window = tuple[tuple[int, int], ...]
"""Counts of records and of bad ones among them, the oldest first."""

_PARTS: Final = 20


@dataclass(frozen=True, slots=True)
class PoisonLimit:
    """More than ``share_max`` of the last ``records_min`` records, or some more, are too many.

    So that a window stays small however small batches are, a count takes in batches until it has a 20th of
    ``records_min``. The oldest count goes as soon as the others have ``records_min`` without it.
    """

    share_max: float
    records_min: int

    def after(self, window: Window, records: int, bad: int) -> Window:
        """The window once these were seen too."""
        if not records:
            return window
        counts = [*window]
        if counts and counts[-1][0] < self.records_min / _PARTS:
            last = counts.pop()
            records, bad = records + last[0], bad + last[1]
        counts.append((records, bad))
        seen = sum(count for count, _ in counts)
        # A window that was counted under a larger limit may have more counts than are kept.
        while seen - counts[0][0] >= self.records_min or len(counts) > WINDOW_COUNTS_MAX:
            seen -= counts.pop(0)[0]
        return tuple(counts)

    def exceeded(self, window: Window) -> bool:
        """Whether too many of a window are bad."""
        records, bad = totals(window)
        return records >= self.records_min and bad > self.share_max * records


def totals(window: Window) -> tuple[int, int]:
    """How many records a window has, and how many of them are bad."""
    return sum(records for records, _ in window), sum(bad for _, bad in window)


@dataclass(frozen=True, slots=True)
class PoisonGate(Gate):
    """Lets a batch through while no partition of it has too much poison.

    ``hold`` is told of partitions that are to wait from now on.
    """

    limit: PoisonLimit
    ledger: Ledger
    hold: Callable[[Offsets, Mapping[Partition, Holding]], None]

    def see(self, batch: RawBatch, rejections: Sequence[Rejection]) -> None:
        """Count a batch that is about to be judged; ``Abandoned`` where a partition of it is held from now on."""
        reasons = {id(one.record): one.letter.reason for one in rejections}
        holdings: dict[Partition, Holding] = {}
        for partition, records in _by_partition(batch.records).items():
            note = self.ledger.note(partition)
            counted = [one for one in records if one.start >= note.free_until]
            bad = [reasons[id(one)] for one in counted if id(one) in reasons]
            window = self.limit.after(note.window, len(counted), len(bad))
            if bad and self.limit.exceeded(window):
                seen, found = totals(window)
                ((reason, _),) = Counter(bad).most_common(1)
                held = Held(bad=found, records=seen, reason=reason[:REASON_CHARS_MAX])
                holdings[partition] = Holding(records[0].start, held)
            free_until = 0 if counted else note.free_until
            self.ledger.put(partition, msgspec.structs.replace(note, window=window, free_until=free_until))
        if holdings and isinstance(batch.end, Offsets):
            self.hold(batch.end, holdings)
            raise Abandoned("; ".join(f"{partition_name(one)} is held from now on" for one in holdings))

    def answered(self) -> None:
        """Nothing: it was seen before."""

    def ended(self) -> None:
        """Nothing: topics have no end."""


def _by_partition(records: Sequence[RawRecord]) -> dict[Partition, list[RawRecord]]:
    found: defaultdict[Partition, list[RawRecord]] = defaultdict(list)
    for record in records:
        if record.message is None:
            raise TypeError("a record of a topic has a message")
        found[record.message.topic, record.message.partition].append(record)
    return found
