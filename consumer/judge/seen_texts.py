"""Remembers texts beyond the window, to recognise a story that keeps coming back.

This memory informs readers of verdicts and never decides. It is read before a batch is decided, and written once the
verdicts are; after a crash in between, the replay of the batch writes it. Only arrivals later than the last remembered
one count, so that a replay counts nothing twice.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple

from consumer.fingerprint import TextKind
from consumer.judge.tally import Tally
from consumer.model.verdict import SeenBefore
from consumer.text.counts import counted
from consumer.text.timestamps import rfc3339
from storage.errors import StoreError
from storage.interface import Store
from storage.records import Record
from storage.seen import SeenChange, SeenTimes

CHANGE_ROUNDS_MAX: Final = 1_000
"""How often a batch retries lost compare-and-sets before it fails."""


class RememberedTexts(NamedTuple):
    """The versions of a batch by text digest, in order of arrival, and the memory of each text."""

    records: Mapping[bytes, Sequence[Record]]
    seen: Mapping[bytes, SeenTimes | None]


NOTHING_RECALLED: Final = RememberedTexts({}, {})


@dataclass(frozen=True, slots=True)
class TextMemory:
    """The memory of texts in a store. It keeps a text for ``keep_ms`` after it was last seen; 0 keeps none.

    A verdict reports only texts first seen longer than ``window_ms`` ago, because postings find the others. Every
    method raises the store's errors.
    """

    store: Store
    keep_ms: int
    window_ms: int
    tally: Tally

    def recall(self, batch: Sequence[Record]) -> RememberedTexts:
        """Return the memory of the texts of these versions, replays included."""
        if not self.keep_ms:
            return NOTHING_RECALLED
        records: defaultdict[bytes, list[Record]] = defaultdict(list)
        for record in sorted(batch, key=attrgetter("arrival")):
            # Empty texts, or texts without keywords in schemes that need them, all have the same digest.
            if record.kind != TextKind.EMPTY:
                records[record.text_digest].append(record)
        return RememberedTexts(records, self._read(sorted(records)))

    def sightings(self, recalled: RememberedTexts, claimed: Sequence[Record] = ()) -> dict[bytes, SeenBefore]:
        """Return the earlier sightings of versions whose text was seen before their window, by reference.

        ``claimed`` are versions of other batches that this batch settles.
        """
        sightings = self._sightings(recalled)
        if claimed and self.keep_ms:
            batch = [record for records in recalled.records.values() for record in records]
            sightings = self._sightings(self.recall([*batch, *claimed])) | sightings
        return sightings

    def sightings_of_unstored(self, records: Sequence[Record]) -> dict[bytes, SeenBefore]:
        """Return the sightings that a verdict would report for each version if it arrived alone, by reference."""
        recalled = self.recall(records)
        sightings: dict[bytes, SeenBefore] = {}
        for digest, versions in recalled.records.items():
            for record in versions:
                sightings |= self._sightings(recalled._replace(records={digest: [record]}))
        return sightings

    def note(self, recalled: RememberedTexts) -> None:
        """Store the sightings of these texts, with one change per text."""
        seen = dict(recalled.seen)
        for _ in range(CHANGE_ROUNDS_MAX):
            changes = [
                SeenChange(digest, before, after)
                for digest, before in seen.items()
                if (after := _with_sightings(before, recalled.records[digest], self.keep_ms)) != before
                and after is not None
            ]
            if not changes:
                return
            outcome = self.store.change_seen(changes)
            lost = [change.digest for change, is_done in zip(changes, outcome, strict=True) if not is_done]
            self.tally.lost_compare_and_sets += len(lost)
            seen = self._read(lost)
        raise StoreError(f"{counted(len(seen), 'text')} lost a compare-and-set {CHANGE_ROUNDS_MAX} times in a row")

    def _sightings(self, recalled: RememberedTexts) -> dict[bytes, SeenBefore]:
        sightings = {}
        for digest, records in recalled.records.items():
            seen = recalled.seen[digest]
            for record in records:
                earlier = unexpired(seen, record, self.keep_ms)
                if earlier is not None and earlier.first_ms < record.time_ms - self.window_ms:
                    sightings[record.reference] = seen_before(earlier)
                seen = with_sighting(seen, record, self.keep_ms)
        return sightings

    def _read(self, digests: Sequence[bytes]) -> dict[bytes, SeenTimes | None]:
        return dict(zip(digests, self.store.seen(digests), strict=True)) if digests else {}


def unexpired(seen: SeenTimes | None, record: Record, keep_ms: int) -> SeenTimes | None:
    """Return the memory of a text, or None if it was last seen more than ``keep_ms`` before this version."""
    return None if seen is None or seen.last_ms < record.time_ms - keep_ms else seen


def with_sighting(seen: SeenTimes | None, record: Record, keep_ms: int) -> SeenTimes:
    """Return the memory of a text after this version."""
    known = unexpired(seen, record, keep_ms)
    if known is None:
        return SeenTimes(record.time_ms, record.time_ms, record.sequence, 1)
    arrival = record.time_ms, record.sequence
    first_ms = min(known.first_ms, record.time_ms)
    if arrival <= (known.last_ms, known.last_sequence):
        return known._replace(first_ms=first_ms)
    return SeenTimes(first_ms, *arrival, known.times + 1)


def seen_before(seen: SeenTimes) -> SeenBefore:
    """Return the memory of a text in the form that verdicts have."""
    return SeenBefore(first=rfc3339(seen.first_ms), last=rfc3339(seen.last_ms), times=seen.times)


def _with_sightings(seen: SeenTimes | None, records: Sequence[Record], keep_ms: int) -> SeenTimes | None:
    for record in records:
        seen = with_sighting(seen, record, keep_ms)
    return seen
