"""Finding what is near: from records to the stored versions that are near them, in two steps of the protocol.

look up    the rows of all keys, and of these the candidates
read       the records and verdicts of the candidates; what is near stays
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from consumer.judge.candidates import (
    CROWDED_VERIFICATIONS_MAX,
    SOUGHT_POSTINGS_MAX,
    Candidates,
    Probe,
    find_candidates,
    places_to_seek,
    probe_keys,
)
from consumer.judge.comparison import Compared, Lineup
from consumer.judge.decision import Neighbour, State, state_of
from consumer.judge.settings import JudgeSettings
from consumer.judge.tally import Tally
from storage.errors import StoreError
from storage.interface import Store
from storage.postings import KeyedCode, Row
from storage.records import Record, Stored

LOOK_UP_PROBES_MAX: Final = 16
"""Articles that are looked up at once: all their rows are in memory, each of them up to the store's cap."""


class Sight(NamedTuple):
    """What a look-up showed for a batch. All three are by reference.

    ``stored`` is what was read, ``neighbours`` the versions near each record, ``truncated`` the records whose search
    was cut short.
    """

    stored: Mapping[bytes, Stored]
    neighbours: Mapping[bytes, list[Neighbour]]
    truncated: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class Search:
    """Finds near versions in a store, and adds what that costs to the tally. Writes nothing.

    Every method raises the store's errors.
    """

    store: Store
    settings: JudgeSettings
    tally: Tally

    def look_up(self, records: Sequence[Record], given: Mapping[bytes, Stored]) -> Sight:
        """Find what is near each record.

        The records themselves are read again, since a later version or a retraction may have ended them by now; those
        in ``given`` are taken as they are. Raises StoreError where a record is no longer stored.
        """
        found: list[Candidates] = []
        for start in range(0, len(records), LOOK_UP_PROBES_MAX):
            found += self._candidates(records[start : start + LOOK_UP_PROBES_MAX])
        wanted = {reference for candidates in found for reference in candidates.references}
        wanted |= {record.reference for record in records} - given.keys()
        stored = self.read(sorted(wanted)) | dict(given)
        return self._sight(records, found, stored)

    def read(self, references: Sequence[bytes]) -> dict[bytes, Stored]:
        """Return what is stored under these references; those that are not stored are left out."""
        if not references:
            return {}
        self.tally.record_reads += len(references)
        return {stored.record.reference: stored for stored in self.store.read(references) if stored is not None}

    def compare(self, version: Stored, others: Sequence[Stored], similarities: list[float]) -> list[Neighbour]:
        """Return those that are near the version; add the similarity of each pair to ``similarities``."""
        references = [other.record.reference for other in others]
        compared = Lineup(others).compare(version, references, self.settings)
        similarities += compared.similarities
        return self._neighbours(compared)

    def _candidates(self, records: Sequence[Record]) -> list[Candidates]:
        probes = [Probe(record, probe_keys(record, self.settings)) for record in records]
        keys = sorted({key for probe in probes for key in probe.keys})
        rows = dict(zip(keys, self.store.look_up(keys), strict=True))
        sought = self._seek(records, rows)
        found = find_candidates(probes, rows, self.settings, sought)
        sizes = {key: len(row.postings) for key, row in rows.items()}
        tally = self.tally
        tally.row_reads += sum(len(probe.keys) for probe in probes)
        tally.postings_read += sum(sizes[key] for probe in probes for key in probe.keys)
        tally.crowded_rows += sum(rows[key].truncated for probe in probes for key in probe.keys)
        tally.crowded_articles += sum(each.truncated and each.found > CROWDED_VERIFICATIONS_MAX for each in found)
        tally.candidates.add([candidates.found for candidates in found])
        tally.suspects.add([candidates.suspects for candidates in found])
        return found

    def _seek(self, records: Sequence[Record], rows: Mapping[bytes, Row]) -> dict[KeyedCode, Row]:
        """Read postings with the codes of these records that may lie beyond the cap of rows that were cut."""
        if not any(row.truncated for row in rows.values()):
            return {}
        places = sorted({place for record in records for place in places_to_seek(record, rows, self.settings)})
        return dict(zip(places, self.store.seek(places, SOUGHT_POSTINGS_MAX), strict=True)) if places else {}

    def _sight(self, records: Sequence[Record], found: Sequence[Candidates], stored: Mapping[bytes, Stored]) -> Sight:
        neighbours: dict[bytes, list[Neighbour]] = {}
        verifications: list[int] = []
        similarities: list[float] = []
        # A version may be a candidate of every article of the batch: its state is worked out once.
        matchable = Lineup([version for version in stored.values() if state_of(version) is not State.DUPLICATE])
        for record, candidates in zip(records, found, strict=True):
            if record.reference not in stored:
                raise StoreError(
                    f"{record.id!r} was swept away while it was judged: the window is shorter than the lag"
                )
            compared = matchable.compare(stored[record.reference], candidates.references, self.settings)
            verifications.append(compared.others)
            similarities += compared.similarities
            neighbours[record.reference] = self._neighbours(compared)
        self.tally.verifications.add(verifications)
        self.tally.similarities.add(similarities)
        cut = (record.reference for record, each in zip(records, found, strict=True) if each.truncated)
        truncated = frozenset(cut)
        self.tally.truncated += len(truncated)
        return Sight(stored, neighbours, truncated)

    def _neighbours(self, compared: Compared) -> list[Neighbour]:
        return [
            Neighbour(other.record, comparison.distance, comparison.similarity if self.settings.verify else None)
            for other, comparison in compared.near
        ]
