"""The database ``seen``: what is remembered of texts beyond the window, by their digests.

Every call works within the caller's transaction. A store that an earlier version created, opened for reading only, has
no such database; it remembers nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from storage.lmdb import layout
from storage.lmdb.environment import Transaction
from storage.lmdb.layout import DatabaseName
from storage.seen import Seen, SeenChange


class SeenTexts:
    """Reads, changes and forgets entries."""

    def __init__(self, databases: Mapping[DatabaseName, Any]) -> None:
        self._databases = databases

    def read(self, transaction: Transaction, digests: Iterable[bytes]) -> list[Seen | None]:
        """Read what is remembered of these texts; None where that is nothing."""
        database = self._databases.get("seen")
        if database is None:
            return [None for _ in digests]
        return [_seen_in(digest, transaction.get(digest, db=database)) for digest in digests]

    def change(self, transaction: Transaction, changes: Sequence[SeenChange], now_ms: int) -> list[bool]:
        """Carry out each compare-and-set; return where ``after`` is stored now."""
        database = self._databases["seen"]
        stored = self.read(transaction, [change.digest for change in changes])
        for change, found in zip(changes, stored, strict=True):
            if found == change.before:
                entry = layout.encode_seen_entry(now_ms, change.after)
                transaction.put(change.digest, entry, db=database)
        return [found in (change.before, change.after) for change, found in zip(changes, stored, strict=True)]

    def page(self, transaction: Transaction, after: bytes, count_max: int) -> list[tuple[bytes, int, Seen]]:
        """Read entries behind this digest: each with its digest and the time of its writing."""
        database = self._databases.get("seen")
        cursor = None if database is None else transaction.cursor(database)
        if cursor is None or not cursor.set_range(after + b"\0" if after else b""):
            return []
        found = list(islice(cursor.iternext(), max(count_max, 0)))
        return [(digest, *layout.decode_seen_entry(digest, value)) for digest, value in found]

    def forget(self, transaction: Transaction, digests: Iterable[bytes]) -> None:
        """Delete these entries."""
        for digest in digests:
            transaction.delete(digest, db=self._databases["seen"])


def _seen_in(digest: bytes, value: bytes | None) -> Seen | None:
    return None if value is None else layout.decode_seen_entry(digest, value)[1]
