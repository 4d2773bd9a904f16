"""Finds copies of originals that this process remembers by reading records, without postings and look-ups."""

from collections.abc import Sequence
from dataclasses import dataclass

from consumer.judge.decision import Duplicate, State, decide, state_of
from consumer.judge.known_originals import KnownOriginals
from consumer.judge.search import Search
from consumer.judge.tally import Tally
from consumer.judge.verdict_cells import VerdictCells
from storage.records import Record, Stored


@dataclass(frozen=True, slots=True)
class KnownCopies:
    """Finds copies of known originals.

    At most ``verifications_max`` originals are compared with a version.
    """

    known: KnownOriginals
    search: Search
    cells: VerdictCells
    tally: Tally
    verifications_max: int

    def find(self, pending: Sequence[Stored]) -> list[Duplicate]:
        """Return the copies among these pending versions, each with the original that it repeats; write nothing.

        What is remembered is a hint: versions and originals are read again, and an original that is no longer kept is
        forgotten. Raises the store's errors.
        """
        hints = self._hints([version.record for version in pending])
        recalled = {original for originals in hints.values() for original in originals}
        hinted = {reference for reference, originals in hints.items() if originals}
        if not hinted:
            return []
        fresh = self.cells.read(sorted(recalled | hinted))
        kept = {reference for reference, version in fresh.items() if state_of(version) is State.KEPT}
        for reference in recalled - kept:
            self.known.forget(reference)
        copies: list[Duplicate] = []
        compared: list[int] = []
        similarities: list[float] = []
        for reference, originals in hints.items():
            version = fresh.get(reference)
            if version is None or version.verdict is not None:
                continue
            others = [fresh[original] for original in originals if original in kept]
            compared.append(len(others))
            near = self.search.compare(version, others, similarities)
            states = dict.fromkeys(kept, State.KEPT) | {reference: State.PENDING}
            copies.extend(decide([version.record], {reference: near}, states).duplicates)
        self.tally.verifications.add(compared)
        self.tally.similarities.add(similarities)
        return copies

    def _hints(self, records: Sequence[Record]) -> dict[bytes, Sequence[bytes]]:
        """Return the known originals that may be near each record; everything is by reference."""
        settings = self.search.settings
        recalled = [self.known.candidates(record, self.verifications_max, settings) for record in records]
        left = self.search.worth_reading(records, recalled)
        return {record.reference: of_record.references for record, of_record in zip(records, left, strict=True)}
