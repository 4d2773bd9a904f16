"""Stores arriving versions, each as a stretch of its content.

A version is an id with one content. Each time that content comes into force begins a *stretch* of it, which is stored
as a version of its own: the first one under the reference of the content, a later one under a reference made of that
and a number. So content that ended and returned is judged again, and a message that is delivered again is not
(docs/decisions/0072-stretches.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import msgspec

from consumer.judge.tally import Tally
from storage.errors import StoreError
from storage.interface import Store
from storage.records import Record, StoredVersion, Tombstone, Version, stretch_reference


class NewStretch(NamedTuple):
    """The number of the stretch that a delivery begins; 0 is the first of its content."""

    stretch: int


class Replay(NamedTuple):
    """The stretch that a delivery replays; ``is_limited`` says that a new one would be one too many."""

    stored: StoredVersion
    is_limited: bool = False


Placement = NewStretch | Replay
"""Where a delivery belongs."""


class StoredBatch(NamedTuple):
    """What is stored of each version, in order; ``limited`` are references of stretches that stand in for new ones."""

    stored: list[StoredVersion]
    limited: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class Stretches:
    """Creates the versions of a batch. ``stretches_max`` limits the later stretches of a content; 0 allows none."""

    store: Store
    stretches_max: int
    tally: Tally

    def create(self, versions: Sequence[Version]) -> StoredBatch:
        """Store each version, whose ids differ, and return what is stored. Raises the store's errors."""
        stored = self.store.create(versions)
        if not self.stretches_max:
            return StoredBatch(stored)
        returning = {
            place: version
            for place, (version, found) in enumerate(zip(versions, stored, strict=True))
            if found.record is not version.record and may_return(version.record, found)
        }
        limited: set[bytes] = set()
        # Another process can be faster once for each stretch.
        for _ in range(self.stretches_max + 2):
            if not returning:
                return StoredBatch(stored, frozenset(limited))
            returning = self._place(returning, stored, limited)
        raise StoreError(f"{len(returning)} articles lost a compare-and-set for each stretch that a content may have")

    def _place(
        self, returning: dict[int, Version], stored: list[StoredVersion], limited: set[bytes]
    ) -> dict[int, Version]:
        """Put what is stored of these into their places; return those for which another process was faster."""
        placements = placements_in(self.store, list(returning.values()), self.stretches_max)
        beginning: dict[int, Version] = {}
        for place, version in returning.items():
            placement = placements[version.reference]
            if isinstance(placement, NewStretch):
                beginning[place] = version._replace(record=in_stretch(version.record, placement.stretch))
                continue
            stored[place] = placement.stored
            if placement.is_limited:
                limited.add(placement.stored.record.reference)
                self.tally.stretches_limited += 1
        created = self.store.create(list(beginning.values())) if beginning else []
        lost = {}
        for (place, version), found in zip(beginning.items(), created, strict=True):
            stored[place] = found
            if is_delivery_of(version.record, found.record):
                self.tally.returned += 1
            else:
                lost[place] = returning[place]
        return lost


def in_stretch(first: Record, stretch: int) -> Record:
    """Return the record of another stretch of the same content; 0 is the first one."""
    if not stretch:
        return first
    return msgspec.structs.replace(first, reference=stretch_reference(first.reference, stretch), stretch=stretch)


def is_delivery_of(delivery: Record, stored: Record) -> bool:
    """Return whether a stored stretch was begun by this delivery of the same content."""
    return stored.origin == delivery.origin and (delivery.origin is not None or stored.arrival == delivery.arrival)


def may_return(delivery: Record, first: StoredVersion) -> bool:
    """Return whether more has to be read to place a delivery of content whose first stretch exists."""
    return first.ends_at is not None and not is_delivery_of(delivery, first.record)


def placements_in(store: Store, versions: Sequence[Version], stretches_max: int) -> dict[bytes, Placement]:
    """Place deliveries of content whose first stretch has ended; by the first reference.

    It takes the same reads however long the history of an id is: senders choose that. Raises the store's errors.
    """
    if not versions:
        return {}
    # A stretch that begins between the two reads is among those of the second.
    latest = store.latest([version.record.id_hash for version in versions])
    references = [
        [stretch_reference(version.reference, stretch) for stretch in range(stretches_max + 1)] for version in versions
    ]
    found = iter(store.read([reference for each in references for reference in each]))
    return {
        version.reference: placement_of(
            version, last, [stored for stored in islice(found, stretches_max + 1) if stored is not None], stretches_max
        )
        for version, last in zip(versions, latest, strict=True)
    }


def placement_of(
    version: Version, latest: StoredVersion | Tombstone | None, stretches: Sequence[StoredVersion], stretches_max: int
) -> Placement:
    """Decide whether a delivery, under the first reference of its content, replays a stretch or begins one.

    It begins one if its content has ended, no stored stretch has its origin, and it arrived later than the ``latest``
    version or tombstone of its id. ``stretches`` are those of its content.
    """
    if not stretches:
        # Swept since the version was created.
        return NewStretch(0)
    delivery = version.record
    stretches = sorted(stretches, key=lambda entry: entry.record.arrival)
    for entry in stretches:
        if is_delivery_of(delivery, entry.record):
            return Replay(entry)
    has_ended = latest is not None and stretches[-1].record.arrival < _about(latest).arrival
    if latest is None or not has_ended or delivery.origin is None or not _is_later(version, latest):
        earlier = [entry for entry in stretches if delivery.origin is None or _is_later(version, entry)]
        return Replay(earlier[-1] if earlier else stretches[0])
    used = {entry.record.stretch for entry in stretches}
    free = next((stretch for stretch in range(1, stretches_max + 1) if stretch not in used), None)
    return Replay(stretches[-1], is_limited=True) if free is None else NewStretch(free)


def _is_later(version: Version, entry: StoredVersion | Tombstone) -> bool:
    """Return whether a delivery arrived later than a version or tombstone of its id.

    A record whose arrival is not its own would arrive later each time it is delivered again. In the feed that both
    are from, its place does not change. Requests, which have keys, have no place.
    """
    delivery, other = version.record, _about(entry)
    has_place = delivery.feed == other.feed and delivery.key is None and other.key is None
    if not version.arrival_is_its_own and has_place and delivery.sequence <= other.sequence:
        return False
    return delivery.arrival[:2] > other.arrival[:2]


def _about(entry: StoredVersion | Tombstone) -> Record | Tombstone:
    return entry.record if isinstance(entry, StoredVersion) else entry
