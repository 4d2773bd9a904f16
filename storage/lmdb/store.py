"""The ``Store`` contract on LMDB: one transaction a call."""

from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import groupby, islice, takewhile
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from storage.bodies import pack_body
from storage.interface import Stats
from storage.lmdb import layout
from storage.lmdb.environment import Environment, Transaction
from storage.lmdb.layout import CODE_BYTES_KEY, TOMBSTONE_KIND, VERSION_KIND, UnreadableError
from storage.lmdb.options import LmdbOptions
from storage.postings import POSTING_LAYOUTS, KeyedCode, PostingLayout, Row, common_layout, cut_of, postings_of
from storage.records import ID_HASH_BYTES, Arrival, Record, Release, Stored, Tombstone, Version, encode_record

_ROWS_AT_ONCE: Final = 16
_SCAN_PAGE: Final = 256
"""How many are read in one transaction of a scan: enough to pay for it, few enough to hold while it lasts."""

Cursor = Any
"""``lmdb.Cursor``, whose type is generic in the stubs only."""


class LmdbStore:
    """A store in a directory of this machine, for any number of its processes and threads."""

    def __init__(self, environment: Environment, options: LmdbOptions) -> None:
        self._environment = environment
        self._databases = environment.databases
        self._options = options
        # None until this process has seen a posting's width in the store, which never changes then.
        self._layout: PostingLayout | None = None

    @classmethod
    def open(cls, path: Path | str, options: LmdbOptions | None = None) -> Self:
        """Open the store at ``path``, a directory, which is made where there is none.

        Raises ``StoreRefused`` where something else lies there or the store is open in this process already.
        """
        chosen = options or LmdbOptions()
        return cls(Environment.open(Path(path), chosen), chosen)

    def create(self, versions: Sequence[Version]) -> list[Stored]:
        """See ``Records.create``. Record, timeline, expiry and body of a version are written together."""
        now_ms = self._options.clock()
        packed = [(version.record, encode_record(version.record), self._pack(version.body)) for version in versions]
        # In the order of the references, so that each page is found once.
        packed.sort(key=lambda one: one[0].reference)

        def work(transaction: Transaction) -> dict[bytes, Stored]:
            new = set()
            for record, value, body in packed:
                if transaction.put(record.reference, value, overwrite=False, db=self._databases["records"]):
                    new.add(record.reference)
                    self._place(transaction, record, VERSION_KIND, now_ms)
                    if body is not None:
                        transaction.put(record.reference, body, db=self._databases["bodies"])
            timeline = transaction.cursor(self._databases["timeline"])
            return {
                record.reference: Stored(record, None, self._ends_at(timeline, record))
                if record.reference in new
                else self._stored(transaction, timeline, record.reference)
                for record, _, _ in packed
            }

        stored = self._environment.write(work)
        return [stored[version.record.reference] for version in versions]

    def retract(self, tombstones: Sequence[Tombstone]) -> list[Tombstone]:
        """See ``Records.retract``."""
        now_ms = self._options.clock()

        def work(transaction: Transaction) -> list[Tombstone]:
            database = self._databases["tombstones"]
            for tombstone in tombstones:
                if transaction.put(
                    tombstone.reference, layout.encode_tombstone(tombstone), overwrite=False, db=database
                ):
                    self._place(transaction, tombstone, TOMBSTONE_KIND, now_ms)
            references = [tombstone.reference for tombstone in tombstones]
            return [layout.decode_tombstone(one, transaction.get(one, db=database)) for one in references]

        return self._environment.write(work)

    def read(self, references: Sequence[bytes]) -> list[Stored | None]:
        """See ``Records.read``."""

        def work(transaction: Transaction) -> list[Stored | None]:
            timeline = transaction.cursor(self._databases["timeline"])
            return [self._find(transaction, timeline, reference) for reference in references]

        return self._environment.read(work)

    def history(self, id_hash: bytes) -> list[Stored | Tombstone]:
        """See ``Records.history``."""

        def work(transaction: Transaction) -> list[Stored | Tombstone]:
            timeline = transaction.cursor(self._databases["timeline"])
            if not timeline.set_range(id_hash):
                return []
            whole = []
            for key, kind in timeline.iternext():
                if key[:ID_HASH_BYTES] != id_hash:
                    break
                whole.append((layout.arrival_at(key).reference, kind))
            return [self._whole(transaction, reference, kind) for reference, kind in whole]

        return self._environment.read(work)

    def bodies(self, references: Sequence[bytes]) -> list[str | None]:
        """See ``Records.bodies``."""

        def work(transaction: Transaction) -> list[bytes | None]:
            return [transaction.get(reference, db=self._databases["bodies"]) for reference in references]

        # Outside of the transaction, which is not to be held while texts are unpacked.
        packed = zip(references, self._environment.read(work), strict=True)
        with self._environment.reading():
            return [None if body is None else layout.decode_body(reference, body) for reference, body in packed]

    def add(self, records: Sequence[Record]) -> None:
        """See ``Postings.add``."""
        # In the order of the keys, so that each page is found once.
        postings = sorted(posting for record in records for posting in postings_of(record))
        if not postings:
            return

        def work(transaction: Transaction) -> PostingLayout | None:
            layout = common_layout(records, self._stored_layout(transaction), f"The store {self._environment.path}")
            if layout is not None and layout != self._layout:
                width = str(layout.code_bytes).encode()
                transaction.put(CODE_BYTES_KEY, width, db=self._databases["meta"])
            transaction.cursor(self._databases["postings"]).putmulti(postings)
            return layout

        self._layout = self._environment.write(work)

    def look_up(self, keys: Sequence[bytes]) -> list[Row]:
        """See ``Postings.look_up``. The postings of a row are in order, so a truncated one holds the lowest codes."""

        def work(transaction: Transaction) -> list[Row]:
            if self._layout is None:
                self._layout = self._stored_layout(transaction)
            layout = self._layout or POSTING_LAYOUTS[8]
            cursor = transaction.cursor(self._databases["postings"])
            return [row for some in _alike(keys) for row in self._read_rows(cursor, some, layout)]

        return self._environment.read(work)

    def seek(self, places: Sequence[KeyedCode], postings_max: int) -> list[Row]:
        """See ``Postings.seek``. A row's postings are in order: those with a code lie side by side."""

        def work(transaction: Transaction) -> list[Row]:
            layout = self._stored_layout(transaction) or POSTING_LAYOUTS[8]
            cursor = transaction.cursor(self._databases["postings"])
            return [_with_code(cursor, place, layout, postings_max) for place in places]

        return self._environment.read(work)

    def remove(self, records: Sequence[Record]) -> None:
        """See ``Postings.remove``."""
        postings = sorted(posting for record in records for posting in postings_of(record))
        if not postings:
            return
        self._environment.write(lambda transaction: self._delete_postings(transaction, postings))

    def settle(self, verdicts: Sequence[tuple[bytes, bytes]]) -> list[bool]:
        """See ``Verdicts.settle``. One transaction decides all of the call."""

        def work(transaction: Transaction) -> list[bool]:
            records = transaction.cursor(self._databases["records"])
            database = self._databases["verdicts"]
            return [
                records.set_key(reference)
                and (
                    transaction.put(reference, verdict, overwrite=False, db=database)
                    or self._standing(transaction, reference)[0] == verdict
                )
                for reference, verdict in verdicts
            ]

        return self._environment.write(work)

    def release(self, releases: Sequence[Release]) -> list[bytes | None]:
        """See ``Verdicts.release``. One transaction decides all of the call."""

        def work(transaction: Transaction) -> list[bytes | None]:
            verdicts = transaction.cursor(self._databases["verdicts"])
            events: list[bytes | None] = []
            for one in releases:
                is_settled = verdicts.set_key(one.reference)
                if is_settled:
                    value = layout.encode_release(one)
                    transaction.put(one.reference, value, overwrite=False, db=self._databases["releases"])
                events.append(self._standing(transaction, one.reference)[0] if is_settled else None)
            return events

        return self._environment.write(work)

    def agree(self, settings: bytes) -> bytes:
        """See ``Binding.agree``."""

        def work(transaction: Transaction) -> bytes:
            database = self._databases["meta"]
            transaction.put(layout.SETTINGS_KEY, settings, overwrite=False, db=database)
            stored: bytes = transaction.get(layout.SETTINGS_KEY, db=database)
            return stored

        return self._environment.write(work)

    def settings(self) -> bytes | None:
        """See ``Binding.settings``."""

        def work(transaction: Transaction) -> bytes | None:
            stored: bytes | None = transaction.get(layout.SETTINGS_KEY, db=self._databases["meta"])
            return stored

        return self._environment.read(work)

    def sweep(self, before_ms: int, versions_max: int) -> int:
        """See ``Upkeep.sweep``. One transaction sweeps all of the call: ``versions_max`` bounds what it holds up."""

        def work(transaction: Transaction) -> int:
            due = self._due(transaction, before_ms, versions_max)
            for key, kind in due:
                self._forget(transaction, layout.expiry_at(key)[1], kind)
                transaction.delete(key, db=self._databases["expiry"])
            return len(due)

        return self._environment.write(work)

    def scan(self) -> Iterator[Stored | Tombstone]:
        """See ``Upkeep.scan``. No transaction is open while the caller has the turn, however long it takes."""
        after = b""
        while True:
            page = self._environment.read(partial(self._page, after))
            if not page:
                return
            for after, whole in page:  # noqa: B007  # the last key of the page is where the next one begins
                yield whole

    def stats(self) -> Stats:
        """See ``Upkeep.stats``. Rows are counted one by one: a second for some millions of them."""

        def work(transaction: Transaction) -> Stats:
            held = {name: transaction.stat(database)["entries"] for name, database in self._databases.items()}
            cursor = transaction.cursor(self._databases["postings"])
            widths = np.fromiter((cursor.count() for _ in cursor.iternext_nodup(keys=True, values=False)), np.int64)
            return Stats(
                versions=held["records"],
                verdicts=held["verdicts"],
                tombstones=held["tombstones"],
                postings=held["postings"],
                rows=len(widths),
                size_bytes=self._environment.size_bytes(),
                crowded_rows=int(np.count_nonzero(widths > self._options.row_postings_max)),
                widest_row=int(widths.max(initial=0)),
            )

        return self._environment.read(work)

    def close(self) -> None:
        """See ``Upkeep.close``."""
        self._environment.close()

    def _pack(self, body: str | None) -> bytes | None:
        return pack_body(body) if self._options.keep_bodies and body is not None else None

    def _place(self, transaction: Transaction, what: Record | Tombstone, kind: bytes, now_ms: int) -> None:
        """Note when something came, and when it may be swept."""
        transaction.put(layout.timeline_key(what.arrival), kind, db=self._databases["timeline"])
        expiry = layout.expiry_key(max(what.time_ms, now_ms), what.reference)
        transaction.put(expiry, kind, db=self._databases["expiry"])

    def _find(self, transaction: Transaction, timeline: Cursor, reference: bytes) -> Stored | None:
        value = transaction.get(reference, db=self._databases["records"])
        if value is None:
            return None
        record = layout.decode_record(reference, value)
        verdict, released_from = self._standing(transaction, reference)
        return Stored(record, verdict, self._ends_at(timeline, record), released_from)

    def _standing(self, transaction: Transaction, reference: bytes) -> tuple[bytes | None, bytes | None]:
        """The verdict that counts, and where a release made it what it was flagged against."""
        database = self._databases.get("releases")
        value = None if database is None else transaction.get(reference, db=database)
        if value is None:
            return transaction.get(reference, db=self._databases["verdicts"]), None
        release = layout.release_at(reference, value)
        return release.event, release.of

    @staticmethod
    def _ends_at(timeline: Cursor, record: Record) -> Arrival | None:
        """When the id's next version or tombstone came."""
        timeline.set_key(layout.timeline_key(record.arrival))
        is_followed = timeline.next() and timeline.key()[:ID_HASH_BYTES] == record.id_hash
        return layout.arrival_at(timeline.key()) if is_followed else None

    def _stored(self, transaction: Transaction, timeline: Cursor, reference: bytes) -> Stored:
        stored = self._find(transaction, timeline, reference)
        if stored is None:
            raise UnreadableError(f"{reference.hex()} has no record")
        return stored

    def _whole(self, transaction: Transaction, reference: bytes, kind: bytes) -> Stored | Tombstone:
        if kind == TOMBSTONE_KIND:
            return layout.decode_tombstone(reference, transaction.get(reference, db=self._databases["tombstones"]))
        return self._stored(transaction, transaction.cursor(self._databases["timeline"]), reference)

    def _stored_layout(self, transaction: Transaction) -> PostingLayout | None:
        code_bytes = transaction.get(CODE_BYTES_KEY, db=self._databases["meta"])
        return None if code_bytes is None else layout.decode_code_bytes(code_bytes)

    def _read_rows(self, cursor: Cursor, keys: Sequence[bytes], layout: PostingLayout) -> Iterator[Row]:
        """Rows of a few keys of one width: what is not over the cap is fetched at once, and cut up here."""
        cap, posting_bytes = self._options.row_postings_max, layout.posting_bytes
        widths = [cursor.count() if cursor.set_key(key) else 0 for key in keys]
        whole = [key for key, width in zip(keys, widths, strict=True) if width <= cap]
        fetched = cursor.getmulti(whole, dupdata=True, dupfixed_bytes=posting_bytes, keyfixed=True)
        # LMDB's binding puts the key before each posting: here they are left out.
        packed = np.frombuffer(fetched, _keyed(len(keys[0]), posting_bytes))["posting"].tobytes()
        start = 0
        for key, width in zip(keys, widths, strict=True):
            if width > cap:
                cursor.set_key(key)
                row = b"".join(islice(cursor.iternext_dup(), cut_of(cap)))
            else:
                end = start + width * posting_bytes
                row = packed[start:end]
                start = end
            yield Row(row, width > cap, layout)

    def _due(self, transaction: Transaction, before_ms: int, versions_max: int) -> list[tuple[bytes, bytes]]:
        due = []
        for key, kind in islice(transaction.cursor(self._databases["expiry"]).iternext(), max(versions_max, 0)):
            if layout.expiry_at(key)[0] >= before_ms:
                break
            due.append((key, kind))
        return due

    def _forget(self, transaction: Transaction, reference: bytes, kind: bytes) -> None:
        what: Record | Tombstone
        if kind == TOMBSTONE_KIND:
            what = layout.decode_tombstone(reference, transaction.pop(reference, db=self._databases["tombstones"]))
        else:
            what = layout.decode_record(reference, transaction.pop(reference, db=self._databases["records"]) or b"")
            transaction.delete(reference, db=self._databases["verdicts"])
            transaction.delete(reference, db=self._databases["releases"])
            transaction.delete(reference, db=self._databases["bodies"])
            self._delete_postings(transaction, postings_of(what))
        transaction.delete(layout.timeline_key(what.arrival), db=self._databases["timeline"])

    def _delete_postings(self, transaction: Transaction, postings: Sequence[tuple[bytes, bytes]]) -> None:
        for key, posting in postings:
            transaction.delete(key, posting, db=self._databases["postings"])

    def _page(self, after: bytes, transaction: Transaction) -> list[tuple[bytes, Stored | Tombstone]]:
        timeline = transaction.cursor(self._databases["timeline"])
        if not timeline.set_range(after + b"\0" if after else b""):
            return []
        places = list(islice(timeline.iternext(), _SCAN_PAGE))
        return [(key, self._whole(transaction, layout.arrival_at(key).reference, kind)) for key, kind in places]


def _with_code(cursor: Cursor, place: KeyedCode, layout: PostingLayout, postings_max: int) -> Row:
    """The postings at a place: one step down the tree to the first, then one after the other."""
    lowest = place.code.ljust(layout.posting_bytes, b"\0")
    if not cursor.set_range_dup(place.key, lowest):
        return Row(b"", truncated=False, layout=layout)
    alike = takewhile(lambda posting: posting.startswith(place.code), cursor.iternext_dup())
    found = list(islice(alike, postings_max + 1))
    return Row(b"".join(found[:postings_max]), len(found) > postings_max, layout)


def _alike(keys: Sequence[bytes]) -> Iterator[list[bytes]]:
    """The keys in their order, a few of one width at a time: so many rows fit into a processor's cache."""
    for _, same in groupby(keys, len):
        while some := list(islice(same, _ROWS_AT_ONCE)):
            yield some


@cache
def _keyed(key_bytes: int, posting_bytes: int) -> np.dtype[np.void]:
    """A posting behind its key, for keys and postings of these widths; there are as many as block plans."""
    return np.dtype([("key", f"V{key_bytes}"), ("posting", f"V{posting_bytes}")])
