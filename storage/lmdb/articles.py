"""Versions and tombstones (records, bodies, verdicts, timelines, expiries), and the memory of texts.

Every call works within the caller's transaction.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, takewhile
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
        known = self._row_keys(transaction, [version.reference for version in versions])
        new = [version for version in versions if version.reference not in known]
        row_keys = known | {
            version.reference: layout.row_key(max(version.record.time_ms, now_ms), version.reference) for version in new
        }
        settled = dict(self._cursor(transaction, "verdicts").getmulti(list(known.values())))
        bodies = [
            (row_key, version.body)
            for version in versions
            if version.body is not None and (row_key := row_keys[version.reference]) not in settled
        ]
        self._put(transaction, "records", [(row_keys[version.reference], version.value) for version in new])
        self._put(transaction, "expiry", [(row_keys[version.reference], VERSION_KIND) for version in new])
        self._put(transaction, "bodies", bodies)
        arrivals = [(version.timeline_key, VERSION_KIND) for version in new]
        places = [
            (layout.place_key(version.reference), layout.place_of(row_keys[version.reference])) for version in new
        ]
        self._put(transaction, "timeline", arrivals + places)
        timeline = self._cursor(transaction, "timeline")
        stored = self._find(transaction, known)
        return stored | {
            version.reference: StoredVersion(version.record, None, _ends_at(timeline, version.timeline_key))
            for version in new
        }

    def retract(self, transaction: Transaction, tombstones: Sequence[Tombstone], now_ms: int) -> list[Tombstone]:
        """Write the tombstones that are missing; return all of them as stored."""
        for tombstone in tombstones:
            value = encode_tombstone(tombstone)
            if transaction.put(tombstone.reference, value, overwrite=False, db=self._databases["tombstones"]):
                expiry = layout.row_key(max(tombstone.time_ms, now_ms), tombstone.reference)
                self._put(transaction, "timeline", [(layout.timeline_key(tombstone.arrival), TOMBSTONE_KIND)])
                self._put(transaction, "expiry", [(expiry, TOMBSTONE_KIND)])
        return [self._tombstone(transaction, tombstone.reference) for tombstone in tombstones]

    def read(self, transaction: Transaction, references: Sequence[bytes]) -> list[StoredVersion | None]:
        """Read versions, or None for a missing one."""
        stored = self._find(transaction, self._row_keys(transaction, references))
        return [stored.get(reference) for reference in references]

    def sketches(self, transaction: Transaction, references: Sequence[bytes]) -> list[bytes]:
        """Read the sketches of versions, empty for a version that has none or is missing."""
        row_keys = self._row_keys(transaction, references)
        values = dict(self._cursor(transaction, "records").getmulti(list(row_keys.values())))
        return [
            layout.decode_sketch(reference, values[row_key])
            if (row_key := row_keys.get(reference, b"")) in values
            else b""
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
        timeline = self._cursor(transaction, "timeline")
        if not timeline.set_range(id_hash):
            return []
        end = layout.timeline_end(id_hash)
        entries = [
            (layout.decode_arrival(key).reference, kind)
            for key, kind in takewhile(lambda entry: entry[0] < end, timeline.iternext())
        ]
        return [self._article(transaction, reference, kind) for reference, kind in entries]

    def bodies(self, transaction: Transaction, references: Sequence[bytes]) -> list[bytes | None]:
        """Read the packed texts, or None for a missing one."""
        row_keys = self._row_keys(transaction, references)
        packed = dict(self._cursor(transaction, "bodies").getmulti(list(row_keys.values())))
        return [packed.get(row_keys.get(reference, b"")) for reference in references]

    def settle(self, transaction: Transaction, verdicts: Sequence[tuple[bytes, bytes]]) -> list[bool]:
        """Write each verdict if its version has none yet; return for each whether it is the effective one now."""
        row_keys = self._row_keys(transaction, [reference for reference, _ in verdicts])
        database = self._databases["verdicts"]
        return [
            (row_key := row_keys.get(reference)) is not None
            and (
                transaction.put(row_key, verdict, overwrite=False, db=database)
                or self._effective_verdict(transaction, row_key)[0] == verdict
            )
            for reference, verdict in verdicts
        ]

    def release(self, transaction: Transaction, releases: Sequence[Release]) -> list[bytes | None]:
        """Write each release if its version has a verdict and no release yet; return the effective verdicts."""
        row_keys = self._row_keys(transaction, [release.reference for release in releases])
        verdicts = self._cursor(transaction, "verdicts")
        events: list[bytes | None] = []
        for release in releases:
            row_key = row_keys.get(release.reference)
            if row_key is None or not verdicts.set_key(row_key):
                events.append(None)
                continue
            value = layout.encode_release(release)
            transaction.put(release.reference, value, overwrite=False, db=self._databases["releases"])
            events.append(self._effective_verdict(transaction, row_key)[0])
        return events

    def sweep(self, transaction: Transaction, before_ms: int, count_max: int) -> tuple[int, list[Record]]:
        """Delete expired versions and tombstones, oldest first; return their number, and the records of the versions.

        The caller deletes the postings of these records.
        """
        due = []
        for key, kind in islice(transaction.cursor(self._databases["expiry"]).iternext(), max(count_max, 0)):
            if layout.decode_row_key(key)[0] >= before_ms:
                break
            due.append((key, kind))
        records = []
        for key, kind in due:
            article = self._forget(transaction, key, kind)
            if isinstance(article, Record):
                records.append(article)
            transaction.delete(key, db=self._databases["expiry"])
        return len(due), records

    def newest_ms(self, transaction: Transaction, before_ms: int) -> int | None:
        """Return the latest time in ``expiry`` before ``before_ms``, or None if there is none."""
        cursor = transaction.cursor(self._databases["expiry"])
        bound = layout.row_key(max(before_ms, 0), bytes(REFERENCE_BYTES))
        return layout.decode_row_key(cursor.key())[0] if _seek_before(cursor, bound) else None

    def page(
        self, transaction: Transaction, after: bytes, count_max: int
    ) -> list[tuple[bytes, StoredVersion | Tombstone]]:
        """Read versions and tombstones after this timeline key, each with its own key."""
        timeline = self._cursor(transaction, "timeline")
        if not timeline.set_range(after + b"\0" if after else b""):
            return []
        entries = list(islice((entry for entry in timeline.iternext() if not layout.is_place(entry[0])), count_max))
        return [(key, self._article(transaction, layout.decode_arrival(key).reference, kind)) for key, kind in entries]

    def _cursor(self, transaction: Transaction, name: DatabaseName) -> Cursor:
        return transaction.cursor(self._databases[name])

    def _put(self, transaction: Transaction, name: DatabaseName, entries: list[tuple[bytes, bytes]]) -> None:
        """Write the entries that a database lacks, in the order of their keys, so that each page is found once."""
        self._cursor(transaction, name).putmulti(sorted(entries), overwrite=False)

    def _row_keys(self, transaction: Transaction, references: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the keys of the rows of these versions, by reference. Missing versions are left out."""
        places = self._cursor(transaction, "timeline").getmulti(
            [layout.place_key(reference) for reference in references]
        )
        row_keys = {(reference := layout.placed_reference(key)): place + reference for key, place in places}
        if len(row_keys) == len(references):
            return row_keys
        # Earlier layouts have no places, and the reference is the key.
        missing = [reference for reference in references if reference not in row_keys]
        records = self._cursor(transaction, "records")
        return row_keys | {reference: reference for reference in missing if records.set_key(reference)}

    def _find(self, transaction: Transaction, row_keys: Mapping[bytes, bytes]) -> dict[bytes, StoredVersion]:
        """Read the versions with these row keys, by reference. Raises ``UnreadableError`` if one has no record."""
        timeline = self._cursor(transaction, "timeline")
        values = dict(self._cursor(transaction, "records").getmulti(list(row_keys.values())))
        stored = {}
        for reference, row_key in row_keys.items():
            if row_key not in values:
                raise UnreadableError(f"{reference.hex()} has no record")
            record = layout.decode_record(reference, values[row_key])
            verdict, released_from = self._effective_verdict(transaction, row_key)
            ends_at = _ends_at(timeline, layout.timeline_key(record.arrival))
            stored[reference] = StoredVersion(record, verdict, ends_at, released_from)
        return stored

    def _effective_verdict(self, transaction: Transaction, row_key: bytes) -> tuple[bytes | None, bytes | None]:
        """Return the effective verdict and, if it is a release, the reference that it was flagged against."""
        reference = layout.reference_in(row_key)
        database = self._databases.get("releases")
        value = None if database is None else transaction.get(reference, db=database)
        if value is None:
            return transaction.get(row_key, db=self._databases["verdicts"]), None
        release = layout.decode_release(reference, value)
        return release.event, release.released_from

    def _tombstone(self, transaction: Transaction, reference: bytes) -> Tombstone:
        return layout.decode_tombstone(reference, transaction.get(reference, db=self._databases["tombstones"]))

    def _article(self, transaction: Transaction, reference: bytes, kind: bytes) -> StoredVersion | Tombstone:
        if kind == TOMBSTONE_KIND:
            return self._tombstone(transaction, reference)
        (stored,) = self.read(transaction, [reference])
        if stored is None:
            raise UnreadableError(f"{reference.hex()} has no record")
        return stored

    def _forget(self, transaction: Transaction, key: bytes, kind: bytes) -> Record | Tombstone:
        """Delete the article that has this key in ``expiry``."""
        reference = layout.decode_row_key(key)[1]
        article: Record | Tombstone
        if kind == TOMBSTONE_KIND:
            article = layout.decode_tombstone(reference, transaction.pop(reference, db=self._databases["tombstones"]))
        else:
            row_key = self._row_keys(transaction, [reference]).get(reference, key)
            article = layout.decode_record(reference, transaction.pop(row_key, db=self._databases["records"]) or b"")
            transaction.delete(row_key, db=self._databases["verdicts"])
            transaction.delete(row_key, db=self._databases["bodies"])
            transaction.delete(reference, db=self._databases["releases"])
            transaction.delete(layout.place_key(reference), db=self._databases["timeline"])
        transaction.delete(layout.timeline_key(article.arrival), db=self._databases["timeline"])
        return article


def _seek_before(cursor: Cursor, bound: bytes) -> bool:
    """Move a cursor to the last key before ``bound``; return whether there is one."""
    return bool(cursor.prev() if cursor.set_range(bound) else cursor.last())


def _ends_at(timeline: Cursor, timeline_key: bytes) -> Arrival | None:
    """Return the arrival of the id's next version or tombstone after this one, or None if there is none."""
    timeline.set_key(timeline_key)
    if not timeline.next():
        return None
    key = timeline.key()
    is_followed = key.startswith(timeline_key[:ID_HASH_BYTES]) and not layout.is_place(key)
    return layout.decode_arrival(key) if is_followed else None


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
