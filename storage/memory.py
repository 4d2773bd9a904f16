"""A store in memory: the reference implementation, and the store of runs that keep nothing.

A lock makes it thread-safe. Nothing survives the process.
"""

import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from threading import Lock
from typing import Final, NamedTuple

from typing_extensions import override

from storage.clock import Clock, now_ms
from storage.interface import Stats, Store
from storage.kind import StoreArguments, StoreKind, no_files
from storage.postings import (
    DEFAULT_LAYOUT,
    KeyedCode,
    PostingLayout,
    PostingRow,
    common_layout,
    postings_of,
    rows_within,
    truncated_to,
)
from storage.records import Arrival, CapacityPlan, Record, Release, StoredVersion, Tombstone, Version
from storage.seen import SeenChange, SeenEntries, SeenTimes

ROW_POSTINGS_MAX: Final = 10_000


class _Expiry(NamedTuple):
    """A version or tombstone that may be swept after ``at_ms``; tuples sort in the order of the sweep."""

    at_ms: int
    reference: bytes
    is_tombstone: bool


class MemoryStore(Store):
    """A store made of dictionaries.

    ``clock`` gives the time of writing; ``row_postings_max`` is the width up to which a row is read whole.
    """

    def __init__(self, *, clock: Clock = now_ms, row_postings_max: int = ROW_POSTINGS_MAX) -> None:
        self._clock = clock
        self._row_postings_max = row_postings_max
        self._lock = Lock()
        self._versions: dict[bytes, Version] = {}
        self._tombstones: dict[bytes, Tombstone] = {}
        self._verdicts: dict[bytes, bytes] = {}
        self._releases: dict[bytes, Release] = {}
        self._timelines: dict[bytes, list[Arrival]] = {}
        # Rows are replaced, never changed in place, so readers need no copy.
        self._rows: dict[bytes, bytes] = {}
        self._layout: PostingLayout | None = None
        self._expiries: list[_Expiry] = []
        self._settings: bytes | None = None
        self._seen = SeenEntries()

    @override
    def create(self, versions: Sequence[Version]) -> list[StoredVersion]:
        with self._lock:
            for version in versions:
                reference = version.record.reference
                if reference not in self._versions:
                    self._versions[reference] = version
                    self._note_arrival(version.record, is_tombstone=False)
                elif reference not in self._verdicts and self._versions[reference].body is None:
                    self._versions[reference] = self._versions[reference]._replace(body=version.body)
            return [self._stored(version.record.reference) for version in versions]

    @override
    def retract(self, tombstones: Sequence[Tombstone]) -> list[Tombstone]:
        with self._lock:
            for tombstone in tombstones:
                if tombstone.reference not in self._tombstones:
                    self._tombstones[tombstone.reference] = tombstone
                    self._note_arrival(tombstone, is_tombstone=True)
            return [self._tombstones[tombstone.reference] for tombstone in tombstones]

    @override
    def read(self, references: Sequence[bytes]) -> list[StoredVersion | None]:
        with self._lock:
            return [self._stored(reference) if reference in self._versions else None for reference in references]

    @override
    def sketches(self, references: Sequence[bytes]) -> list[bytes]:
        with self._lock:
            versions = [self._versions.get(reference) for reference in references]
            return [b"" if version is None else version.record.sketch for version in versions]

    @override
    def latest(self, id_hashes: Sequence[bytes]) -> list[StoredVersion | Tombstone | None]:
        with self._lock:
            timelines = [self._timelines.get(id_hash) for id_hash in id_hashes]
            return [None if timeline is None else self._article(timeline[-1].reference) for timeline in timelines]

    @override
    def history(self, id_hash: bytes) -> list[StoredVersion | Tombstone]:
        with self._lock:
            return [self._article(arrival.reference) for arrival in self._timelines.get(id_hash, ())]

    @override
    def bodies(self, references: Sequence[bytes]) -> list[str | None]:
        with self._lock:
            versions = [self._versions.get(reference) for reference in references]
            return [None if version is None else version.body for version in versions]

    @override
    def add(self, records: Sequence[Record]) -> None:
        with self._lock:
            self._layout = common_layout(records, self._layout, "This store")
            # In the order of the keys, so that each row is replaced once.
            postings = sorted({posting for record in records for posting in postings_of(record)})
            for key, group in groupby(postings, itemgetter(0)):
                row = self._rows.get(key, b"")
                self._rows[key] = _merged(row, [posting for _, posting in group])

    @override
    def look_up(self, keys: Sequence[bytes], bytes_max: int | None = None) -> list[PostingRow]:
        with self._lock:
            layout = self._layout or DEFAULT_LAYOUT
            rows = [self._rows.get(key, b"") for key in keys]
        cap_bytes, truncated_bytes = (
            count * layout.posting_bytes for count in (self._row_postings_max, truncated_to(self._row_postings_max))
        )
        posting_rows = (
            PostingRow(row[:truncated_bytes], truncated=True, layout=layout)
            if len(row) > cap_bytes
            else PostingRow(row, truncated=False, layout=layout)
            for row in rows
        )
        return rows_within(posting_rows, bytes_max)

    @override
    def seek(self, codes: Sequence[KeyedCode], postings_max: int) -> list[PostingRow]:
        with self._lock:
            layout = self._layout or DEFAULT_LAYOUT
            rows = [self._rows.get(keyed.key, b"") for keyed in codes]
        return [_with_code(row, keyed.code, layout, postings_max) for row, keyed in zip(rows, codes, strict=True)]

    @override
    def remove(self, records: Sequence[Record]) -> None:
        with self._lock:
            for record in records:
                self._remove_postings(record)

    @override
    def settle(self, verdicts: Sequence[tuple[bytes, bytes]], removing: Sequence[Record] = ()) -> list[bool]:
        with self._lock:
            for record in removing:
                self._remove_postings(record)
            return [
                reference in self._versions and self._settle(reference, verdict) == verdict
                for reference, verdict in verdicts
            ]

    @override
    def release(self, releases: Sequence[Release]) -> list[bytes | None]:
        with self._lock:
            return [
                self._releases.setdefault(release.reference, release).event
                if release.reference in self._verdicts
                else None
                for release in releases
            ]

    @override
    def seen(self, digests: Sequence[bytes]) -> list[SeenTimes | None]:
        with self._lock:
            return self._seen.read(digests)

    @override
    def change_seen(self, changes: Sequence[SeenChange]) -> list[bool]:
        with self._lock:
            return self._seen.change(changes, self._clock())

    @override
    def forget_seen(self, before_ms: int, texts_max: int) -> int:
        with self._lock:
            return self._seen.forget(before_ms, texts_max)

    @override
    def scan_seen(self) -> Iterator[tuple[bytes, SeenTimes]]:
        with self._lock:
            entries = self._seen.items()
        yield from entries

    @override
    def agree(self, settings: bytes) -> bytes:
        with self._lock:
            if self._settings is None:
                self._settings = settings
            return self._settings

    @override
    def settings(self) -> bytes | None:
        with self._lock:
            return self._settings

    @override
    def planned(self) -> CapacityPlan | None:
        """Return None, because a store that ends with its run has no capacity plan."""
        return None

    @override
    def sweep(self, before_ms: int, versions_max: int) -> int:
        swept = 0
        with self._lock:
            while swept < versions_max and self._expiries and self._expiries[0].at_ms < before_ms:
                self._forget(heapq.heappop(self._expiries))
                swept += 1
        return swept

    @override
    def newest_ms(self, before_ms: int) -> int | None:
        with self._lock:
            return max((expiry.at_ms for expiry in self._expiries if expiry.at_ms < before_ms), default=None)

    @override
    def scan(self) -> Iterator[StoredVersion | Tombstone]:
        """Iterate over everything stored at the start, except what is swept in the meantime."""
        with self._lock:
            references = [*self._versions, *self._tombstones]
        for reference in references:
            with self._lock:
                if reference not in self._versions and reference not in self._tombstones:
                    continue
                article = self._article(reference)
            yield article

    @override
    def stats(self) -> Stats:
        """Count everything; the memory that Python's objects take is unknown."""
        with self._lock:
            posting_bytes = (self._layout or DEFAULT_LAYOUT).posting_bytes
            widths = [len(row) // posting_bytes for row in self._rows.values()]
            return Stats(
                versions=len(self._versions),
                verdicts=len(self._verdicts),
                tombstones=len(self._tombstones),
                postings=sum(widths),
                rows=len(widths),
                size_bytes=None,
                crowded_rows=sum(width > self._row_postings_max for width in widths),
                widest_row=max(widths, default=0),
                seen_texts=len(self._seen),
            )

    @override
    def close(self) -> None:
        pass

    def _note_arrival(self, article: Record | Tombstone, *, is_tombstone: bool) -> None:
        insort(self._timelines.setdefault(article.id_hash, []), article.arrival)
        heapq.heappush(self._expiries, _Expiry(max(article.time_ms, self._clock()), article.reference, is_tombstone))

    def _settle(self, reference: bytes, verdict: bytes) -> bytes:
        """Store the verdict unless there is one, and return the effective one."""
        first = self._verdicts.setdefault(reference, verdict)
        release = self._releases.get(reference)
        return first if release is None else release.event

    def _stored(self, reference: bytes) -> StoredVersion:
        record = self._versions[reference].record
        timeline = self._timelines[record.id_hash]
        following = bisect_right(timeline, record.arrival)
        ends_at = timeline[following] if following < len(timeline) else None
        release = self._releases.get(reference)
        if release is not None:
            return StoredVersion(record, release.event, ends_at, release.released_from)
        return StoredVersion(record, self._verdicts.get(reference), ends_at)

    def _article(self, reference: bytes) -> StoredVersion | Tombstone:
        return self._tombstones[reference] if reference in self._tombstones else self._stored(reference)

    def _remove_postings(self, record: Record) -> None:
        for key, posting in postings_of(record):
            row = self._rows.get(key, b"")
            offset = _offset_in(row, posting)
            if row[offset : offset + len(posting)] != posting:
                continue
            if len(row) == len(posting):
                del self._rows[key]
            else:
                self._rows[key] = row[:offset] + row[offset + len(posting) :]

    def _forget(self, expiry: _Expiry) -> None:
        article: Record | Tombstone
        if expiry.is_tombstone:
            article = self._tombstones.pop(expiry.reference)
        else:
            article = self._versions.pop(expiry.reference).record
            self._verdicts.pop(expiry.reference, None)
            self._releases.pop(expiry.reference, None)
            self._remove_postings(article)
        timeline = self._timelines[article.id_hash]
        timeline.remove(article.arrival)
        if not timeline:
            del self._timelines[article.id_hash]


def _with_code(row: bytes, code: bytes, layout: PostingLayout, postings_max: int) -> PostingRow:
    matching = layout.with_code(row, code)
    bytes_max = layout.posting_bytes * postings_max
    return PostingRow(matching[:bytes_max], len(matching) > bytes_max, layout)


def _merged(row: bytes, postings: Sequence[bytes]) -> bytes:
    """Insert sorted postings into a sorted row, without repeating any that it already has."""
    pieces = []
    start = 0
    for posting in postings:
        offset = _offset_in(row, posting)
        if row[offset : offset + len(posting)] != posting:
            pieces += [row[start:offset], posting]
            start = offset
    return b"".join([*pieces, row[start:]])


def _offset_in(row: bytes, posting: bytes) -> int:
    """Return the byte offset of a posting in a sorted row, or the offset where it would be inserted."""
    width = len(posting)
    index = bisect_left(range(0, len(row), width), posting, key=lambda start: row[start : start + width])
    return index * width


def _open(_url: str, arguments: StoreArguments) -> MemoryStore:
    return MemoryStore(row_postings_max=arguments.row_postings_max or ROW_POSTINGS_MAX)


MEMORY: Final = StoreKind(
    name="memory",
    form="memory:",
    example="memory:",
    pattern=r"memory:",
    open=_open,
    on_disk=no_files,
    identity=lambda url: url,
    # Each run has a store of its own.
    same=lambda _url, _other_url: False,
    outlives_run=False,
)
