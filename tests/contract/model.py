"""A model of the contract, with plain dictionaries and by brute force, that every store is compared with."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from storage.postings import postings_of
from storage.records import Arrival, Record, Release, StoredVersion, Tombstone, Version


@dataclass(slots=True)
class Model:
    """A store that computes every answer from all its contents."""

    versions: dict[bytes, Version] = field(default_factory=dict)
    tombstones: dict[bytes, Tombstone] = field(default_factory=dict)
    verdicts: dict[bytes, bytes] = field(default_factory=dict)
    releases: dict[bytes, Release] = field(default_factory=dict)
    postings: set[tuple[bytes, bytes]] = field(default_factory=set)
    written_ms: dict[bytes, int] = field(default_factory=dict)
    settings: bytes | None = None

    def create(self, version: Version, now_ms: int) -> StoredVersion:
        """Store it unless it is stored; the first writer wins. Without a verdict it takes a body that is missing."""
        reference = version.record.reference
        if reference not in self.versions:
            self.versions[reference] = version
            self.written_ms[reference] = now_ms
        elif reference not in self.verdicts and self.versions[reference].body is None:
            self.versions[reference] = self.versions[reference]._replace(body=version.body)
        return self.stored(reference)

    def retract(self, tombstone: Tombstone, now_ms: int) -> Tombstone:
        """Store it unless it is stored; the first writer wins."""
        if tombstone.reference not in self.tombstones:
            self.tombstones[tombstone.reference] = tombstone
            self.written_ms[tombstone.reference] = now_ms
        return self.tombstones[tombstone.reference]

    def everything(self) -> Iterator[Record | Tombstone]:
        """Return everything that arrived."""
        for version in self.versions.values():
            yield version.record
        yield from self.tombstones.values()

    def of_id(self, id_hash: bytes) -> list[Record | Tombstone]:
        """Return everything that arrived for an id, in order."""
        return sorted((what for what in self.everything() if what.id_hash == id_hash), key=lambda what: what.arrival)

    def stored(self, reference: bytes) -> StoredVersion:
        """Return a version, its verdict, and the next arrival of its id."""
        record = self.versions[reference].record
        later: list[Arrival] = [what.arrival for what in self.of_id(record.id_hash) if what.arrival > record.arrival]
        release = self.releases.get(reference)
        verdict = self.verdicts.get(reference) if release is None else release.event
        released_from = None if release is None else release.released_from
        return StoredVersion(record, verdict, min(later, default=None), released_from)

    def whole(self, what: Record | Tombstone) -> StoredVersion | Tombstone:
        """Return it as a store does."""
        return what if isinstance(what, Tombstone) else self.stored(what.reference)

    def settle(self, reference: bytes, verdict: bytes) -> bool:
        """Write by compare-and-set from absent."""
        if reference not in self.versions:
            return False
        self.verdicts.setdefault(reference, verdict)
        return self.stored(reference).verdict == verdict

    def release(self, release: Release) -> bytes | None:
        """Write by compare-and-set from absent, where there is a verdict."""
        if release.reference not in self.verdicts:
            return None
        return self.releases.setdefault(release.reference, release).event

    def row(self, key: bytes) -> list[bytes]:
        """Return the postings under a key, sorted."""
        return sorted(posting for at, posting in self.postings if at == key)

    def due(self, before_ms: int) -> list[tuple[int, bytes]]:
        """Return what a sweep may remove, oldest first: the time when it was last new, and its reference."""
        ages = [(max(what.time_ms, self.written_ms[what.reference]), what.reference) for what in self.everything()]
        return sorted(age for age in ages if age[0] < before_ms)

    def forget(self, reference: bytes) -> None:
        """Remove all of a version or tombstone."""
        self.tombstones.pop(reference, None)
        self.verdicts.pop(reference, None)
        self.releases.pop(reference, None)
        version = self.versions.pop(reference, None)
        if version is not None:
            self.postings -= set(postings_of(version.record))
