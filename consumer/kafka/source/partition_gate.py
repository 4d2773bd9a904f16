"""The limit on bad records of a partition. A few become dead letters; a feed of them is a fault that needs attention.

It counts the last records of each partition, across restarts: the counts are part of the note of the partition.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from typing_extensions import override

from consumer.kafka.message import Offsets
from consumer.kafka.offset_metadata import REASON_CHARS_MAX, Held, HoldRequest, Ledger
from consumer.model.errors import Abandoned
from consumer.model.ports import Rejection
from consumer.model.record import Partition, RawBatch, RawRecord, partition_name
from consumer.pipeline.dead_letter_policy import Gate
from consumer.pipeline.poison_limit import PoisonLimit, totals


@dataclass(frozen=True, slots=True)
class PartitionGate(Gate):
    """Admits batches while none of their partitions has too many bad records.

    ``hold`` is called with partitions that are to be held.
    """

    limit: PoisonLimit
    ledger: Ledger
    hold: Callable[[Offsets, Mapping[Partition, HoldRequest]], None]

    @override
    def before_judging(self, batch: RawBatch, rejections: Sequence[Rejection]) -> None:
        """Count the batch. Raises ``Abandoned`` if a partition of it is held from now on."""
        reasons = {id(rejection.record): rejection.letter.reason for rejection in rejections}
        holdings: dict[Partition, HoldRequest] = {}
        for partition, records in _by_partition(batch.records).items():
            note = self.ledger.note(partition)
            counted = [record for record in records if record.start >= note.free_until]
            bad = [reasons[id(record)] for record in counted if id(record) in reasons]
            window = self.limit.after(note.window, len(counted), len(bad))
            if bad and self.limit.exceeded(window):
                seen, found = totals(window)
                ((reason, _),) = Counter(bad).most_common(1)
                held = Held(bad=found, records=seen, reason=reason[:REASON_CHARS_MAX])
                holdings[partition] = HoldRequest(records[0].start, held)
            free_until = 0 if counted else note.free_until
            self.ledger.put(partition, msgspec.structs.replace(note, window=window, free_until=free_until))
        if holdings and isinstance(batch.end, Offsets):
            self.hold(batch.end, holdings)
            raise Abandoned("; ".join(f"{partition_name(partition)} is held from now on" for partition in holdings))


def _by_partition(records: Sequence[RawRecord]) -> dict[Partition, list[RawRecord]]:
    found: defaultdict[Partition, list[RawRecord]] = defaultdict(list)
    for record in records:
        found[record.known_partition()].append(record)
    return found
