"""Compares all versions in a store with items of banks: exactly, even for parts, but by reading the whole store."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice

from consumer.banks.known_texts import KnownTexts
from consumer.judge.decision import VersionState, state_of
from consumer.store_tools.bank_matches import ComparedVersions, compare
from consumer.store_tools.inspection import last_links
from storage.interface import Store
from storage.records import StoredVersion

_VERSIONS_AT_ONCE = 256
"""The number of versions to compare at once, with their texts in memory."""


@dataclass(slots=True)
class ScanCounts:
    """The counts of a scan so far.

    ``without_text`` counts versions without a stored text, in which no parts can be found. ``limited`` counts versions
    that repeat more items than are named, or are similar to more items than are compared.
    """

    versions: int = 0
    repeating: int = 0
    without_text: int = 0
    limited: int = 0

    def add(self, compared: ComparedVersions) -> None:
        """Add the counts of a batch."""
        self.versions += len(compared.stored)
        self.repeating += sum(map(bool, compared.matches))
        self.without_text += compared.without_text
        self.limited += compared.limited


def scan_store(store: Store, known: KnownTexts, counts: ScanCounts) -> Iterator[ComparedVersions]:
    """Yield all versions of a store with the items that each repeats, batch by batch, and update ``counts``.

    Versions that are stored during the scan may be missing. Raises the store's errors.
    """
    for batch in _batches(store):
        compared = compare(store, known, batch)
        counts.add(compared)
        yield compared


def member_counts(store: Store, kept: Collection[bytes]) -> Iterator[Counter[bytes]]:
    """Yield the numbers of flagged versions found so far for these kept versions, after each batch of a scan.

    A flagged version in force counts for the kept version at the end of its chain. All batches yield the same counter.
    Raises the store's errors.
    """
    members: Counter[bytes] = Counter()
    for batch in _batches(store):
        flags = [stored for stored in batch if stored.ends_at is None and state_of(stored) is VersionState.DUPLICATE]
        ends = (link.stored.record.reference for link in last_links(store, flags))
        members.update(reference for reference in ends if reference in kept)
        yield members


def _batches(store: Store) -> Iterator[list[StoredVersion]]:
    versions = (stored for stored in store.scan() if isinstance(stored, StoredVersion))
    while batch := list(islice(versions, _VERSIONS_AT_ONCE)):
        yield batch
