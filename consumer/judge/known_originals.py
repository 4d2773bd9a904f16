"""Remembers kept versions that were repeated, so that copies in a flood are recognised without postings and look-ups.

Copies of a known original never get postings, since deleted postings slow down every later read of their rows. What is
remembered here is only a hint: it is read again from the store before it is used.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import RLock
from typing import NamedTuple

from consumer.judge.candidates import Candidates
from consumer.judge.decision import Duplicate, VersionState, decide, state_of
from consumer.judge.search import Search
from consumer.judge.settings import JudgeSettings
from consumer.judge.tally import Tally
from consumer.judge.verdict_cells import VerdictCells
from storage.records import Record, StoredVersion

KNOWN_ORIGINALS_MAX = 10_000
"""Originals that one process remembers."""
FLOOD_COPIES_MIN = 100
"""The number of copies from which on an original has a flood."""
ORIGINALS_A_KEY_MAX = 64
"""A key that more originals share is ignored, since it hardly helps to recognise a copy."""


class _Original(NamedTuple):
    """The posting keys of a known original, and its codes as numbers."""

    keys: tuple[bytes, ...]
    fingerprint: int
    one_bits: int


class KnownOriginals:
    """References of kept versions by posting key; the least recently repeated one is forgotten first. Thread-safe."""

    def __init__(self, originals_max: int) -> None:
        self._originals_max = originals_max
        self._copies: dict[bytes, int] = {}
        self._originals: OrderedDict[bytes, _Original] = OrderedDict()
        # Tuples: nearly every key has one reference, and a set for each would be half of all objects in the process.
        self._by_key: dict[bytes, tuple[bytes, ...]] = {}
        self._lock = RLock()

    def remember(self, record: Record) -> int:
        """Note that a kept version was repeated; return the number of repeats since it was first remembered."""
        reference = record.reference
        with self._lock:
            copies = self._copies[reference] = self._copies.get(reference, 0) + 1
            if reference in self._originals:
                self._originals.move_to_end(reference)
                return copies
            self._originals[reference] = _Original(record.keys, *_codes(record))
            for key in record.keys:
                self._by_key[key] = (*self._by_key.get(key, ()), reference)
            if len(self._originals) > self._originals_max:
                self.forget(next(iter(self._originals)))
            return copies

    def forget(self, reference: bytes) -> None:
        """Forget a version that is no longer kept, or no longer stored."""
        with self._lock:
            self._copies.pop(reference, None)
            forgotten = self._originals.pop(reference, None)
            for key in () if forgotten is None else forgotten.keys:
                others = tuple(other for other in self._by_key.pop(key) if other != reference)
                if others:
                    self._by_key[key] = others

    def recall(self, record: Record, originals_max: int) -> list[bytes]:
        """Return originals that share a key with the record, by reference; those that share the most keys come first.

        Keys that many originals share are skipped: a copy has all keys of its original, so others remain.
        """
        shared: defaultdict[bytes, int] = defaultdict(int)
        for key in record.keys:
            references = self._by_key.get(key)
            if references is None or len(references) > ORIGINALS_A_KEY_MAX:
                continue
            for reference in references:
                shared[reference] += 1
        return sorted(shared, key=lambda reference: (-shared[reference], reference))[:originals_max]

    def candidates(self, record: Record, originals_max: int, settings: JudgeSettings) -> Candidates:
        """Return those originals to recall whose codes are near enough to the record's for a look-up to find them.

        Two texts share a short key by chance more often than not; their codes tell that without reading a version.
        """
        fingerprint, one_bits = _codes(record)
        references: list[bytes] = []
        same_code: list[bytes] = []
        for reference in self.recall(record, originals_max):
            original = self._originals.get(reference)
            if original is None:
                continue
            distance = (original.fingerprint ^ fingerprint).bit_count()
            one_bits_distance = (original.one_bits ^ one_bits).bit_count()
            if distance <= settings.suspect_distance_max or one_bits_distance <= settings.one_bits_distance_max:
                references.append(reference)
            if not distance:
                same_code.append(reference)
        return Candidates(tuple(references), len(references), truncated=False, same_code=frozenset(same_code))


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

    def find(self, pending: Sequence[StoredVersion]) -> list[Duplicate]:
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
        kept = {reference for reference, version in fresh.items() if state_of(version) is VersionState.KEPT}
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
            states = dict.fromkeys(kept, VersionState.KEPT) | {reference: VersionState.PENDING}
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


def _codes(record: Record) -> tuple[int, int]:
    return int.from_bytes(record.fingerprint), int.from_bytes(record.one_bits)
