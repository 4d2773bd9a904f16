"""Versions and tombstones (records, bodies, verdicts, timelines, expiries), and the memory of texts.

Every call works within the caller's transaction.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from storage.lmdb import layout
from storage.lmdb.environment import Cursor, Transaction
from storage.lmdb.layout import TOMBSTONE_KIND, VERSION_KIND, DatabaseName, UnreadableError
from storage.records import (
    ID_HASH_BYTES,
    REFERENCE_BYTES,
    Arrival,
    Record,
    Release,
    StoredVersion,
    Tombstone,
    encode_tombstone,
)
from storage.seen import SeenChange, SeenTimes


class EncodedVersion(NamedTuple):
    """A version ready to be written: ``value`` is its encoded record, ``body`` its packed text."""

    reference: bytes
    record: Record
    value: bytes
    timeline_key: bytes
    body: bytes | None


class Articles:
    """The operations on versions and tombstones, but not on postings."""

    def __init__(self, databases: Mapping[DatabaseName, Any]) -> None:
        self._databases = databases

    def create(
        self, transaction: Transaction, versions: Sequence[EncodedVersion], now_ms: int
    ) -> dict[bytes, StoredVersion]:
        """Write the versions that are missing, with their entries in timeline and expiry; return all of them as stored.

        A version without a verdict gets its missing body. Sorted versions are faster: each page is found once.
        """
        known = self._stored_among(transaction, "records", versions)
        new = [version for version in versions if version.reference not in known]
        settled = self._stored_among(transaction, "verdicts", versions) if known else frozenset()
        unsettled = [version for version in versions if version.reference not in settled] if settled else versions
        self._put(transaction, "records", [(version.reference, version.value) for version in new])
        self._put(transaction, "timeline", [(version.timeline_key, VERSION_KIND) for version in new])
        expiries = [layout.expiry_key(max(version.record.time_ms, now_ms), version.reference) for version in new]
        self._put(transaction, "expiry", [(key, VERSION_KIND) for key in sorted(expiries)])
        bodies = [(version.reference, version.body) for version in unsettled if version.body is not None]
        self._put(transaction, "bodies", bodies)
        timeline = transaction.cursor(self._databases["timeline"])
        return {
            version.reference: self._stored(transaction, timeline, version.reference)
            if version.reference in known
            else StoredVersion(version.record, None, _ends_at(timeline, version.timeline_key))
            for version in versions
        }

    def retract(self, transaction: Transaction, tombstones: Sequence[Tombstone], now_ms: int) -> list[Tombstone]:
        """Write the tombstones that are missing; return all of them as stored."""
        for tombstone in tombstones:
            value = encode_tombstone(tombstone)
            if transaction.put(tombstone.reference, value, overwrite=False, db=self._databases["tombstones"]):
                expiry = layout.expiry_key(max(tombstone.time_ms, now_ms), tombstone.reference)
                self._put(transaction, "timeline", [(layout.timeline_key(tombstone.arrival), TOMBSTONE_KIND)])
                self._put(transaction, "expiry", [(expiry, TOMBSTONE_KIND)])
        return [self._tombstone(transaction, tombstone.reference) for tombstone in tombstones]

    def read(self, transaction: Transaction, references: Iterable[bytes]) -> list[StoredVersion | None]:
        """Read versions, or None for a missing one."""
        timeline = transaction.cursor(self._databases["timeline"])
        return [self._find(transaction, timeline, reference) for reference in references]

    def sketches(self, transaction: Transaction, references: Sequence[bytes]) -> list[bytes]:
        """Read the sketches of versions, empty for a version that has none or is missing."""
        values = dict(transaction.cursor(self._databases["records"]).getmulti(references))
        return [
            layout.decode_sketch(reference, values[reference]) if reference in values else b""
            for reference in references
        ]

    def latest(self, transaction: Transaction, id_hashes: Iterable[bytes]) -> list[StoredVersion | Tombstone | None]:
        """Read the latest version or tombstone of each id, or None for an id that has neither."""
        timeline = transaction.cursor(self._databases["timeline"])
        entries = []
        for id_hash in id_hashes:
            has_any = _seek_before(timeline, layout.timeline_end(id_hash)) and timeline.key().startswith(id_hash)
            entries.append((layout.decode_arrival(timeline.key()).reference, timeline.value()) if has_any else None)
        return [None if entry is None else self._article(transaction, *entry) for entry in entries]

    def history(self, transaction: Transaction, id_hash: bytes) -> list[StoredVersion | Tombstone]:
        """Read all versions and tombstones of an id, in order of arrival."""
        timeline = transaction.cursor(self._databases["timeline"])
        if not timeline.set_range(id_hash):
            return []
        entries = []
        for key, kind in timeline.iternext():
            if key[:ID_HASH_BYTES] != id_hash:
                break
            entries.append((layout.decode_arrival(key).reference, kind))
        return [self._article(transaction, reference, kind) for reference, kind in entries]

    def bodies(self, transaction: Transaction, references: Iterable[bytes]) -> list[bytes | None]:
        """Read the packed texts, or None for a missing one."""
        return [transaction.get(reference, db=self._databases["bodies"]) for reference in references]

    def settle(self, transaction: Transaction, verdicts: Iterable[tuple[bytes, bytes]]) -> list[bool]:
        """Write each verdict if its version has none yet; return for each whether it is the effective one now."""
        records = transaction.cursor(self._databases["records"])
        database = self._databases["verdicts"]
        return [
            records.set_key(reference)
            and (
                transaction.put(reference, verdict, overwrite=False, db=database)
                or self._effective_verdict(transaction, reference)[0] == verdict
            )
            for reference, verdict in verdicts
        ]

    def release(self, transaction: Transaction, releases: Iterable[Release]) -> list[bytes | None]:
        """Write each release if its version has a verdict and no release yet; return the effective verdicts."""
        verdicts = transaction.cursor(self._databases["verdicts"])
        events: list[bytes | None] = []
        for release in releases:
            is_settled = verdicts.set_key(release.reference)
            if is_settled:
                value = layout.encode_release(release)
                transaction.put(release.reference, value, overwrite=False, db=self._databases["releases"])
            events.append(self._effective_verdict(transaction, release.reference)[0] if is_settled else None)
        return events

    def sweep(self, transaction: Transaction, before_ms: int, count_max: int) -> tuple[int, list[Record]]:
        """Delete expired versions and tombstones, oldest first; return their number, and the records of the versions.

        The caller deletes the postings of these records.
        """
        due = []
        for key, kind in islice(transaction.cursor(self._databases["expiry"]).iternext(), max(count_max, 0)):
            if layout.decode_expiry(key)[0] >= before_ms:
                break
            due.append((key, kind))
        records = []
        for key, kind in due:
            article = self._forget(transaction, layout.decode_expiry(key)[1], kind)
            if isinstance(article, Record):
                records.append(article)
            transaction.delete(key, db=self._databases["expiry"])
        return len(due), records

    def newest_ms(self, transaction: Transaction, before_ms: int) -> int | None:
        """Return the latest time in ``expiry`` before ``before_ms``, or None if there is none."""
        cursor = transaction.cursor(self._databases["expiry"])
        bound = layout.expiry_key(max(before_ms, 0), bytes(REFERENCE_BYTES))
        return layout.decode_expiry(cursor.key())[0] if _seek_before(cursor, bound) else None

    def page(
        self, transaction: Transaction, after: bytes, count_max: int
    ) -> list[tuple[bytes, StoredVersion | Tombstone]]:
        """Read versions and tombstones after this timeline key, each with its own key."""
        timeline = transaction.cursor(self._databases["timeline"])
        if not timeline.set_range(after + b"\0" if after else b""):
            return []
        entries = list(islice(timeline.iternext(), count_max))
        return [(key, self._article(transaction, layout.decode_arrival(key).reference, kind)) for key, kind in entries]

    def _stored_among(
        self, transaction: Transaction, name: DatabaseName, versions: Sequence[EncodedVersion]
    ) -> frozenset[bytes]:
        """Return the references of the versions that a database has."""
        cursor = transaction.cursor(self._databases[name])
        return frozenset(version.reference for version in versions if cursor.set_key(version.reference))

    def _put(self, transaction: Transaction, name: DatabaseName, entries: Sequence[tuple[bytes, bytes]]) -> None:
        """Write the entries that a database lacks."""
        transaction.cursor(self._databases[name]).putmulti(entries, overwrite=False)

    def _find(self, transaction: Transaction, timeline: Cursor, reference: bytes) -> StoredVersion | None:
        value = transaction.get(reference, db=self._databases["records"])
        if value is None:
            return None
        record = layout.decode_record(reference, value)
        verdict, released_from = self._effective_verdict(transaction, reference)
        return StoredVersion(record, verdict, _ends_at(timeline, layout.timeline_key(record.arrival)), released_from)

    def _stored(self, transaction: Transaction, timeline: Cursor, reference: bytes) -> StoredVersion:
        stored = self._find(transaction, timeline, reference)
        if stored is None:
            raise UnreadableError(f"{reference.hex()} has no record")
        return stored

    def _effective_verdict(self, transaction: Transaction, reference: bytes) -> tuple[bytes | None, bytes | None]:
        """Return the effective verdict and, if it is a release, the reference that it was flagged against."""
        database = self._databases.get("releases")
        value = None if database is None else transaction.get(reference, db=database)
        if value is None:
            return transaction.get(reference, db=self._databases["verdicts"]), None
        release = layout.decode_release(reference, value)
        return release.event, release.released_from

    def _tombstone(self, transaction: Transaction, reference: bytes) -> Tombstone:
        return layout.decode_tombstone(reference, transaction.get(reference, db=self._databases["tombstones"]))

    def _article(self, transaction: Transaction, reference: bytes, kind: bytes) -> StoredVersion | Tombstone:
        if kind == TOMBSTONE_KIND:
            return self._tombstone(transaction, reference)
        return self._stored(transaction, transaction.cursor(self._databases["timeline"]), reference)

    def _forget(self, transaction: Transaction, reference: bytes, kind: bytes) -> Record | Tombstone:
        article: Record | Tombstone
        if kind == TOMBSTONE_KIND:
            article = layout.decode_tombstone(reference, transaction.pop(reference, db=self._databases["tombstones"]))
        else:
            article = layout.decode_record(reference, transaction.pop(reference, db=self._databases["records"]) or b"")
            transaction.delete(reference, db=self._databases["verdicts"])
            transaction.delete(reference, db=self._databases["releases"])
            transaction.delete(reference, db=self._databases["bodies"])
        transaction.delete(layout.timeline_key(article.arrival), db=self._databases["timeline"])
        return article


def _seek_before(cursor: Cursor, bound: bytes) -> bool:
    """Move a cursor to the last key before ``bound``; return whether there is one."""
    return bool(cursor.prev() if cursor.set_range(bound) else cursor.last())


def _ends_at(timeline: Cursor, timeline_key: bytes) -> Arrival | None:
    """Return the arrival of the id's next version or tombstone after this one, or None if there is none."""
    timeline.set_key(timeline_key)
    is_followed = timeline.next() and timeline.key().startswith(timeline_key[:ID_HASH_BYTES])
    return layout.decode_arrival(timeline.key()) if is_followed else None


class SeenTexts:
    """The entries of ``seen``, which remembers texts beyond the window, by digest.

    A store that an earlier version created may lack the database when it is opened for reading only. Then it has no
    entries.
    """

    def __init__(self, databases: Mapping[DatabaseName, Any]) -> None:
        self._databases = databases

    def read(self, transaction: Transaction, digests: Iterable[bytes]) -> list[SeenTimes | None]:
        """Read the entries of these texts, or None for a text without one."""
        database = self._databases.get("seen")
        if database is None:
            return [None for _ in digests]
        return [_decode_seen(digest, transaction.get(digest, db=database)) for digest in digests]

    def change(self, transaction: Transaction, changes: Sequence[SeenChange], now_ms: int) -> list[bool]:
        """Carry out each compare-and-set; return True where ``after`` is stored now."""
        database = self._databases["seen"]
        stored = self.read(transaction, [change.digest for change in changes])
        for change, current in zip(changes, stored, strict=True):
            if current == change.before:
                entry = layout.encode_seen_entry(now_ms, change.after)
                transaction.put(change.digest, entry, db=database)
        return [current in (change.before, change.after) for change, current in zip(changes, stored, strict=True)]

    def page(self, transaction: Transaction, after: bytes, count_max: int) -> list[tuple[bytes, int, SeenTimes]]:
        """Read entries after this digest, each with its digest and the time of writing."""
        database = self._databases.get("seen")
        cursor = None if database is None else transaction.cursor(database)
        if cursor is None or not cursor.set_range(after + b"\0" if after else b""):
            return []
        entries = list(islice(cursor.iternext(), max(count_max, 0)))
        return [(digest, *layout.decode_seen_entry(digest, value)) for digest, value in entries]

    def forget(self, transaction: Transaction, digests: Iterable[bytes]) -> None:
        """Delete these entries."""
        for digest in digests:
            transaction.delete(digest, db=self._databases["seen"])


def _decode_seen(digest: bytes, value: bytes | None) -> SeenTimes | None:
    return None if value is None else layout.decode_seen_entry(digest, value)[1]
