"""Reads the entries of the databases, even those that no other call reads, to find damage."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from storage.lmdb import layout
from storage.lmdb.environment import Transaction
from storage.lmdb.layout import PLAN_KEY, TOMBSTONE_KIND, VERSION_KIND, DatabaseName, UnreadableError
from storage.lmdb.posting_rows import PostingRows
from storage.postings import DEFAULT_LAYOUT
from storage.records import Record, Tombstone
from storage.seen import TEXT_DIGEST_BYTES

_Check = Callable[[Transaction, bytes, bytes], object]


class Contents:
    """A check of the databases' entries, and of whether the entries that they refer to exist.

    Every call works within the caller's transaction, and raises ``UnreadableError``.
    """

    def __init__(self, databases: Mapping[DatabaseName, Any], postings: PostingRows) -> None:
        self._databases = databases
        self._postings = postings
        checks: dict[DatabaseName, _Check] = {
            "postings": self._check_row,
            "records": self._check_record,
            "tombstones": self._check_tombstone,
            "releases": lambda _, key, value: layout.decode_release(key, value),
            "timeline": self._check_timeline,
            "expiry": lambda transaction, key, kind: self._check_article(
                transaction, layout.decode_row_key(key)[1], kind
            ),
            "bodies": lambda _, key, value: layout.decode_body(layout.reference_in(key), value),
            "seen": lambda _, key, value: _check_seen(key, value),
            "meta": lambda _, key, value: layout.read_planned(value) if key == PLAN_KEY else None,
        }
        self._checks: Final = {name: check for name, check in checks.items() if name in databases}

    @property
    def names(self) -> tuple[DatabaseName, ...]:
        """The databases whose entries can be checked; not verdicts, because a store does not know their format."""
        return tuple(self._checks)

    def check(self, transaction: Transaction, name: DatabaseName, after: bytes | None, count_max: int) -> bytes | None:
        """Check up to ``count_max`` entries after the key ``after``; return the last key read, None at the end."""
        cursor = transaction.cursor(self._databases[name])
        if not (cursor.first() if after is None else cursor.set_range(after + b"\0")):
            return None
        last = None
        for key, value in islice(_entries(cursor, name), count_max):
            self._checks[name](transaction, key, value)
            last = key
        return last

    def _check_row(self, transaction: Transaction, key: bytes, posting: bytes) -> None:
        expected_bytes = (self._postings.layout(transaction) or DEFAULT_LAYOUT).posting_bytes
        if len(posting) != expected_bytes:
            raise UnreadableError(
                f"the postings under {key.hex()} have {len(posting)} bytes instead of {expected_bytes}"
            )

    def _check_record(self, transaction: Transaction, key: bytes, value: bytes) -> None:
        reference = layout.reference_in(key)
        self._check_arrival(transaction, layout.decode_record(reference, value), VERSION_KIND)
        if self._row_key(transaction, reference) != key:
            raise UnreadableError(f"the record of {reference.hex()} is in another place than its timeline says")

    def _check_tombstone(self, transaction: Transaction, reference: bytes, value: bytes) -> None:
        self._check_arrival(transaction, layout.decode_tombstone(reference, value), TOMBSTONE_KIND)

    def _check_arrival(self, transaction: Transaction, article: Record | Tombstone, kind: bytes) -> None:
        key = layout.timeline_key(article.arrival)
        if transaction.get(key, db=self._databases["timeline"]) != kind:
            raise UnreadableError(f"{article.reference.hex()} has no arrival")

    def _check_timeline(self, transaction: Transaction, key: bytes, value: bytes) -> None:
        if layout.is_place(key):
            self._check_article(transaction, layout.placed_reference(key), VERSION_KIND)
        else:
            self._check_article(transaction, layout.decode_arrival(key).reference, value)

    def _check_article(self, transaction: Transaction, reference: bytes, kind: bytes) -> None:
        """Raise ``UnreadableError`` unless the version or tombstone with this reference is stored."""
        if kind not in (VERSION_KIND, TOMBSTONE_KIND):
            raise UnreadableError(f"{reference.hex()} is neither a version nor a retraction")
        name: DatabaseName = "records" if kind == VERSION_KIND else "tombstones"
        key = self._row_key(transaction, reference) if kind == VERSION_KIND else reference
        if transaction.get(key, db=self._databases[name]) is None:
            raise UnreadableError(f"{reference.hex()} has no record")

    def _row_key(self, transaction: Transaction, reference: bytes) -> bytes:
        """Return the key of a version's rows. Earlier layouts have no places, and the reference is the key."""
        place: bytes | None = transaction.get(layout.place_key(reference), db=self._databases["timeline"])
        return (place or b"") + reference


def _check_seen(digest: bytes, value: bytes) -> None:
    if len(digest) != TEXT_DIGEST_BYTES:
        raise UnreadableError(f"the digest of a text has {len(digest)} bytes instead of {TEXT_DIGEST_BYTES}")
    layout.decode_seen_entry(digest, value)


def _entries(cursor: Any, name: DatabaseName) -> Iterator[tuple[bytes, bytes]]:  # noqa: ANN401  # a cursor
    """Iterate over the entries; of a row of postings, only the first one."""
    entries: Iterator[tuple[bytes, bytes]] = (
        cursor.iternext_nodup(values=True) if name == "postings" else cursor.iternext()
    )
    return entries
