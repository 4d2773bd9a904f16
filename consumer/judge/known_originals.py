"""Remembers kept versions that were repeated, to recognise copies in a flood without postings and look-ups.

Copies of a known original never get postings, because deleted postings slow down later reads of their rows. This memory
is only a hint: an original is read from the store again before it is used.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import RLock
from typing import NamedTuple

from consumer.judge.candidates import NO_CANDIDATES, Candidates
from consumer.judge.decision import Duplicate, VersionState, decide, state_of
from consumer.judge.search import Search
from consumer.judge.settings import JudgeSettings
from consumer.judge.verdict_cells import VerdictCells
from storage.records import Record, StoredVersion

KNOWN_ORIGINALS_MAX = 10_000
"""The maximum number of originals that one process remembers."""
FLOOD_COPIES_MIN = 100
"""The number of copies that make a flood."""
ORIGINALS_A_KEY_MAX = 64
"""A key that more originals than this share is ignored, because it hardly narrows the search."""


class _Original(NamedTuple):
    """The posting keys of a known original, and its codes as numbers."""

    keys: tuple[bytes, ...]
    fingerprint: int
    one_bits: int


class KnownOriginals:
    """A memory of repeated originals by posting key; it forgets the least recently repeated first. Thread-safe."""

    def __init__(self, originals_max: int) -> None:
        self._originals_max = originals_max
        self._copies: dict[bytes, int] = {}
        self._originals: OrderedDict[bytes, _Original] = OrderedDict()
        # Tuples, because nearly every key has one reference, and sets would be half of all objects in the process.
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
        """Return the references of originals that share keys with the record, at most ``originals_max``.

        Those that share most keys come first. Keys that many originals share are skipped: a copy has all keys of its
        original, so other keys remain.
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
        """Return the recalled originals whose codes are so near the record's that a look-up may find them.

        Most texts that share a short key share it by chance; comparing codes shows this without reading a version.
        """
        if self._by_key.keys().isdisjoint(record.keys):
            return NO_CANDIDATES
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
    """The search for copies of known originals; it compares at most ``verifications_max`` of them with a version."""

    known: KnownOriginals
    search: Search
    cells: VerdictCells
    verifications_max: int

    def find(self, pending: Sequence[StoredVersion]) -> list[Duplicate]:
        """Return the copies among these pending versions, each with the original that it repeats. Writes nothing.

        Versions and originals are read again, and originals that are no longer kept are forgotten. Raises the store's
        errors.
        """
        hints = self._hints([version.record for version in pending])
        recalled = {original for originals in hints.values() for original in originals}
        if not hints:
            return []
        fresh = self.cells.read(sorted(recalled | hints.keys()))
        kept = {reference for reference, version in fresh.items() if state_of(version) is VersionState.KEPT}
        for reference in recalled - kept:
            self.known.forget(reference)
        pending_now = {
            reference: version
            for reference in hints
            if (version := fresh.get(reference)) is not None and version.verdict is None
        }
        requests = [(version, hints[reference]) for reference, version in pending_now.items()]
        near = self.search.near(requests, [fresh[reference] for reference in kept])
        states = dict.fromkeys(kept, VersionState.KEPT) | dict.fromkeys(pending_now, VersionState.PENDING)
        return [
            duplicate
            for (reference, version), neighbours in zip(pending_now.items(), near, strict=True)
            for duplicate in decide([version.record], {reference: neighbours}, states).duplicates
        ]

    def _hints(self, records: Sequence[Record]) -> dict[bytes, Sequence[bytes]]:
        """Return the references of known originals that may be near each record, by the record's reference.

        Records without such originals are left out.
        """
        settings = self.search.settings
        recalled = [(record, self.known.candidates(record, self.verifications_max, settings)) for record in records]
        hinted = [(record, hints) for record, hints in recalled if hints.references]
        similar = self.search.similar_by_sketch([record for record, _ in hinted], [hints for _, hints in hinted])
        return {
            record.reference: hints.references
            for (record, _), hints in zip(hinted, similar, strict=True)
            if hints.references
        }


def _codes(record: Record) -> tuple[int, int]:
    return int.from_bytes(record.fingerprint), int.from_bytes(record.one_bits)
