"""Remembers texts beyond the window: a story that keeps coming back is found however often its window has ended.

What is remembered informs, and never decides. It is read before a batch is decided, so that a verdict says it, and
written once the verdicts are: after a crash in between, the replay of the batch writes it. Only arrivals later than the
last one remembered count, so that a replay counts nothing twice.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple

from consumer.fingerprint import TextKind
from consumer.judge.tally import Tally
from consumer.model.verdict import SeenBefore
from consumer.text.timestamps import rfc3339
from storage.errors import StoreError
from storage.interface import Store
from storage.records import Record
from storage.seen import SeenChange, SeenTimes

CHANGE_ROUNDS_MAX: Final = 1_000
"""How often entries are changed again after a lost compare-and-set before a batch fails."""


class RememberedTexts(NamedTuple):
    """The versions of a batch by their text, in order of arrival, and what was remembered of each text."""

    records: Mapping[bytes, Sequence[Record]]
    seen: Mapping[bytes, SeenTimes | None]


NOTHING_RECALLED: Final = RememberedTexts({}, {})


@dataclass(frozen=True, slots=True)
class TextMemory:
    """Reads and writes what is remembered of texts, for ``keep_ms`` after each was seen last; 0 for none.

    A verdict says that a text was seen before if that was longer ago than ``window_ms``: what is nearer is found by its
    postings. Every method raises the store's errors.
    """

    store: Store
    keep_ms: int
    window_ms: int
    tally: Tally

    def recall(self, batch: Sequence[Record]) -> RememberedTexts:
        """Read what is remembered of the texts of these versions, replays among them."""
        if not self.keep_ms:
            return NOTHING_RECALLED
        records: defaultdict[bytes, list[Record]] = defaultdict(list)
        for record in sorted(batch, key=attrgetter("arrival")):
            # All texts without a character, and without keywords in schemes that need them, look the same.
            if record.kind != TextKind.EMPTY:
                records[record.text_digest].append(record)
        return RememberedTexts(records, self._read(sorted(records)))

    def said(self, recalled: RememberedTexts, claimed: Sequence[Record] = ()) -> dict[bytes, SeenBefore]:
        """Return what verdicts say of versions whose text was seen earlier than their window, by reference.

        The ``claimed`` are versions of other processes that this batch settles.
        """
        said = self._said(recalled)
        if claimed and self.keep_ms:
            batch = [record for records in recalled.records.values() for record in records]
            said = self._said(self.recall([*batch, *claimed])) | said
        return said

    def said_of_unstored(self, records: Sequence[Record]) -> dict[bytes, SeenBefore]:
        """Return what a verdict would say of each of these versions if it arrived alone, by reference."""
        recalled = self.recall(records)
        said: dict[bytes, SeenBefore] = {}
        for digest, of_text in recalled.records.items():
            for record in of_text:
                said |= self._said(recalled._replace(records={digest: [record]}))
        return said

    def note(self, recalled: RememberedTexts) -> None:
        """Remember that the texts of these versions were seen, all versions with one text at once."""
        seen = dict(recalled.seen)
        for _ in range(CHANGE_ROUNDS_MAX):
            changes = [
                SeenChange(digest, before, after)
                for digest, before in seen.items()
                if (after := _noted_all(before, recalled.records[digest], self.keep_ms)) != before and after is not None
            ]
            if not changes:
                return
            done = self.store.change_seen(changes)
            lost = [change.digest for change, is_done in zip(changes, done, strict=True) if not is_done]
            self.tally.lost_compare_and_sets += len(lost)
            seen = self._read(lost)
        raise StoreError(f"{len(seen)} texts lost a compare-and-set {CHANGE_ROUNDS_MAX} times in a row")

    def _said(self, recalled: RememberedTexts) -> dict[bytes, SeenBefore]:
        said = {}
        for digest, records in recalled.records.items():
            seen = recalled.seen[digest]
            for record in records:
                earlier = living(seen, record, self.keep_ms)
                if earlier is not None and earlier.first_ms < record.time_ms - self.window_ms:
                    said[record.reference] = seen_before(earlier)
                seen = noted(seen, record, self.keep_ms)
        return said

    def _read(self, digests: Sequence[bytes]) -> dict[bytes, SeenTimes | None]:
        return dict(zip(digests, self.store.seen(digests), strict=True)) if digests else {}


def living(seen: SeenTimes | None, record: Record, keep_ms: int) -> SeenTimes | None:
    """Return what is remembered when a version arrives: nothing of a text that was seen last longer ago than that."""
    return None if seen is None or seen.last_ms < record.time_ms - keep_ms else seen


def noted(seen: SeenTimes | None, record: Record, keep_ms: int) -> SeenTimes:
    """Return what is remembered of a text once this version has been seen."""
    known = living(seen, record, keep_ms)
    if known is None:
        return SeenTimes(record.time_ms, record.time_ms, record.sequence, 1)
    arrival = record.time_ms, record.sequence
    first_ms = min(known.first_ms, record.time_ms)
    if arrival <= (known.last_ms, known.last_sequence):
        return known._replace(first_ms=first_ms)
    return SeenTimes(first_ms, *arrival, known.times + 1)


def seen_before(seen: SeenTimes) -> SeenBefore:
    """Return what a verdict says."""
    return SeenBefore(first=rfc3339(seen.first_ms), last=rfc3339(seen.last_ms), times=seen.times)


def _noted_all(seen: SeenTimes | None, records: Sequence[Record], keep_ms: int) -> SeenTimes | None:
    for record in records:
        seen = noted(seen, record, keep_ms)
    return seen
