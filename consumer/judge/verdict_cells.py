"""The verdict of each version in the store: one cell, written once by compare-and-set from absent."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from consumer.judge.tally import Tally
from consumer.model.verdict import VerdictEvent
from storage.errors import StoreError
from storage.interface import Store
from storage.records import Record, StoredVersion

Settlement = tuple[Record, VerdictEvent]
"""A version and the verdict to settle it with."""


class SettledVerdicts(NamedTuple):
    """The verdicts written, by reference, and the references of the other versions.

    Those were settled or released by another process first, or are no longer stored.
    """

    written: dict[bytes, VerdictEvent]
    lost: Sequence[bytes]


@dataclass(slots=True)
class VerdictCells:
    """The verdict cells of a store: settles versions, reads verdicts, and adds the cost to the tally.

    Every method raises the store's errors.
    """

    store: Store
    tally: Tally

    def settle(self, settlements: Sequence[Settlement], removing: Sequence[Record] = ()) -> SettledVerdicts:
        """Settle these versions by compare-and-set. A verdict that the store already has counts as written.

        The same call deletes the postings of the records in ``removing``.
        """
        if not settlements:
            self.store.remove(removing)
            return SettledVerdicts({}, ())
        outcome = self.store.settle([(record.reference, event.encoded) for record, event in settlements], removing)
        pairs = zip(settlements, outcome, strict=True)
        written = {record.reference: event for (record, event), is_written in pairs if is_written}
        if len(written) == len(settlements):
            return SettledVerdicts(written, ())
        lost = [record.reference for record, _ in settlements if record.reference not in written]
        self.tally.lost_compare_and_sets += len(lost)
        return SettledVerdicts(written, lost)

    def read(self, references: Sequence[bytes]) -> dict[bytes, StoredVersion]:
        """Return the stored versions under these references, with their verdicts."""
        if not references:
            return {}
        self.tally.record_reads += len(references)
        return {stored.record.reference: stored for stored in self.store.read(references) if stored is not None}

    def verdicts(self, references: Sequence[bytes]) -> dict[bytes, VerdictEvent]:
        """Return the verdicts of these versions, by reference. All that are still stored must be settled."""
        return {reference: verdict_of(stored) for reference, stored in self.read(references).items()}


def verdict_of(stored: StoredVersion) -> VerdictEvent:
    """Return the verdict of a version that this or another process has settled.

    Raises ``StoreError`` if the store has no verdict, and ``UnreadableEvent`` if the verdict is damaged.
    """
    if stored.verdict is None:
        raise StoreError(f"the verdict of {stored.record.id!r} was settled, but the store has none")
    return VerdictEvent.read(stored.verdict)
