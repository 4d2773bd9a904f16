"""Stores arriving versions, each as a stretch of its content.

A version is an id with one content. Each time that content comes into force, a *stretch* of it begins, which is stored
as a separate version. The first stretch has the reference of the content. Later stretches have a reference made from
that reference and a number. So content that ended and returned is judged again, but a redelivered message is not
(docs/decisions/0072-stretches.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import msgspec

from consumer.judge.tally import Tally
from consumer.text.counts import counted
from storage.errors import StoreError
from storage.interface import Store
from storage.records import Record, StoredVersion, Tombstone, Version, stretch_reference


class NewStretch(NamedTuple):
    """A delivery that begins the stretch with this number; 0 is the first of its content."""

    stretch: int


class Replay(NamedTuple):
    """A delivery that replays this stretch. ``is_limited`` says that only the limit prevented a new stretch."""

    stored: StoredVersion
    is_limited: bool = False


DeliveryPlacement = NewStretch | Replay
"""The stretch that a delivery belongs to."""


class StoredBatch(NamedTuple):
    """The stored version of each delivery, in order.

    ``limited_references`` has the references of versions that were returned because the limit was reached.
    """

    stored: list[StoredVersion]
    limited_references: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class Stretches:
    """The stretches in a store. ``stretches_max`` limits the later stretches of a content; 0 allows none."""

    store: Store
    stretches_max: int
    tally: Tally

    def create(self, versions: Sequence[Version]) -> StoredBatch:
        """Store each version, and return the stored versions. The ids must be distinct. Raises the store's errors."""
        stored = self.store.create(versions)
        if not self.stretches_max:
            return StoredBatch(stored)
        returning = {
            place: version
            for place, (version, first) in enumerate(zip(versions, stored, strict=True))
            if first.record is not version.record and may_return(version.record, first)
        }
        limited: set[bytes] = set()
        # Another process can win the race once per stretch.
        for _ in range(self.stretches_max + 2):
            if not returning:
                return StoredBatch(stored, frozenset(limited))
            returning = self._place(returning, stored, limited)
        raise StoreError(
            f"{counted(len(returning), 'article')} lost a compare-and-set for every stretch that a content may have"
        )

    def _place(
        self, returning: dict[int, Version], stored: list[StoredVersion], limited: set[bytes]
    ) -> dict[int, Version]:
        """Fill in ``stored`` and ``limited`` for returning versions; return those that lost a race."""
        placements = placements_in(self.store, list(returning.values()), self.stretches_max)
        new_stretches: dict[int, Version] = {}
        for place, version in returning.items():
            placement = placements[version.reference]
            if isinstance(placement, NewStretch):
                new_stretches[place] = version._replace(record=in_stretch(version.record, placement.stretch))
                continue
            stored[place] = placement.stored
            if placement.is_limited:
                limited.add(placement.stored.record.reference)
                self.tally.stretches_limited += 1
        created = self.store.create(list(new_stretches.values())) if new_stretches else []
        lost = {}
        for (place, version), entry in zip(new_stretches.items(), created, strict=True):
            stored[place] = entry
            if is_delivery_of(version.record, entry.record):
                self.tally.returned += 1
            else:
                lost[place] = returning[place]
        return lost


def in_stretch(first: Record, stretch: int) -> Record:
    """Return the record of the stretch with this number, given that of the first stretch, 0."""
    if not stretch:
        return first
    return msgspec.structs.replace(first, reference=stretch_reference(first.reference, stretch), stretch=stretch)


def is_delivery_of(delivery: Record, stored: Record) -> bool:
    """Return whether this delivery of the same content began a stored stretch."""
    return stored.origin == delivery.origin and (delivery.origin is not None or stored.arrival == delivery.arrival)


def may_return(delivery: Record, first: StoredVersion) -> bool:
    """Return whether a delivery may begin another stretch of content whose first stretch exists."""
    return first.ends_at is not None and not is_delivery_of(delivery, first.record)


def placements_in(store: Store, versions: Sequence[Version], stretches_max: int) -> dict[bytes, DeliveryPlacement]:
    """Return the placement of each delivery, by the reference of its content.

    The first stretch of each content must have ended. The number of reads does not depend on the length of an id's
    history, which senders control. Raises the store's errors.
    """
    if not versions:
        return {}
    # Read the latest versions first: the second read also returns a stretch that begins between the two.
    latest = store.latest([version.record.id_hash for version in versions])
    references = [
        [stretch_reference(version.reference, stretch) for stretch in range(stretches_max + 1)] for version in versions
    ]
    entries = iter(store.read([reference for stretches in references for reference in stretches]))
    return {
        version.reference: placement_of(
            version, last, [entry for entry in islice(entries, stretches_max + 1) if entry is not None], stretches_max
        )
        for version, last in zip(versions, latest, strict=True)
    }


def placement_of(
    version: Version, latest: StoredVersion | Tombstone | None, stretches: Sequence[StoredVersion], stretches_max: int
) -> DeliveryPlacement:
    """Return whether a delivery replays a stretch or begins one. Its version must have the reference of its content.

    ``stretches`` are the stored stretches of its content; without any, it begins the first one. Otherwise it begins a
    stretch if its content has ended, its origin is known and differs from those of the stretches, it arrived later than
    the ``latest`` version or tombstone of its id, and the limit allows another stretch.
    """
    if not stretches:
        # Swept since the version was created.
        return NewStretch(0)
    delivery = version.record
    stretches = sorted(stretches, key=lambda entry: entry.record.arrival)
    for entry in stretches:
        if is_delivery_of(delivery, entry.record):
            return Replay(entry)
    has_ended = latest is not None and stretches[-1].record.arrival < _record_of(latest).arrival
    if latest is None or not has_ended or delivery.origin is None or not _is_later(version, latest):
        earlier = [entry for entry in stretches if delivery.origin is None or _is_later(version, entry)]
        return Replay(earlier[-1] if earlier else stretches[0])
    used = {entry.record.stretch for entry in stretches}
    free = next((stretch for stretch in range(1, stretches_max + 1) if stretch not in used), None)
    return Replay(stretches[-1], is_limited=True) if free is None else NewStretch(free)


def _is_later(version: Version, entry: StoredVersion | Tombstone) -> bool:
    """Return whether a delivery arrived later than a version or tombstone of its id.

    A record without a time of its own gets a later arrival at each delivery, but its place in its feed stays the same.
    Requests, which have keys, have no place.
    """
    delivery, other = version.record, _record_of(entry)
    has_place = delivery.feed == other.feed and delivery.key is None and other.key is None
    if not version.has_fixed_arrival and has_place and delivery.sequence <= other.sequence:
        return False
    return delivery.arrival[:2] > other.arrival[:2]


def _record_of(entry: StoredVersion | Tombstone) -> Record | Tombstone:
    return entry.record if isinstance(entry, StoredVersion) else entry
