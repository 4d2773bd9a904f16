"""The ``Store`` port on LMDB: each call is one transaction, and all calls of a batch share one."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter, itemgetter
from pathlib import Path
from secrets import token_bytes
from typing import Final, Self

import numpy as np
from typing_extensions import override

from storage.bodies import pack_body
from storage.interface import Answer, Stats, Store
from storage.lmdb import layout
from storage.lmdb.articles import Articles, EncodedVersion, SeenTexts
from storage.lmdb.batch import CommitReports
from storage.lmdb.contents import Contents
from storage.lmdb.environment import Environment, Transaction
from storage.lmdb.options import LmdbOptions
from storage.lmdb.posting_rows import PostingRows
from storage.postings import DEFAULT_LAYOUT, KeyedCode, PostingRow, common_layout, postings_of
from storage.records import (
    CapacityPlan,
    Record,
    Release,
    StoredVersion,
    Tombstone,
    Version,
    encode_planned,
    encode_record,
)
from storage.seen import TEXT_DIGEST_BYTES, SeenChange, SeenTimes
from storage.watched import StoreReport

_SCAN_PAGE: Final = 256
"""How many entries a scan reads in one transaction: enough to be worth one, but few enough to keep it short."""


class LmdbStore(Store):
    """A store in a directory, for any number of processes and threads of this machine."""

    def __init__(self, environment: Environment, options: LmdbOptions, report: StoreReport | None = None) -> None:
        self._environment = environment
        self._commits = None if report is None else CommitReports(report)
        self._options = options
        self._articles = Articles(environment.databases)
        self._postings = PostingRows(environment.databases, options.row_postings_max)
        self._seen_texts = SeenTexts(environment.databases)
        # A random start: processes that run only briefly would otherwise all look at the same first entries.
        self._forgotten_to = token_bytes(TEXT_DIGEST_BYTES)

    @classmethod
    def open(cls, path: Path | str, options: LmdbOptions | None = None, report: StoreReport | None = None) -> Self:
        """Open the store in the directory ``path``, or create it there. Commits are reported to ``report``.

        Raises ``StoreRefused`` if something else is in the directory, or this process already has the store open.
        """
        options = options or LmdbOptions()
        return cls(Environment.open(Path(path), options), options, report)

    @override
    def create(self, versions: Sequence[Version]) -> list[StoredVersion]:
        now_ms = self._options.clock()
        encoded = [self._encode(version) for version in versions]
        # In the order of the references, so that each page is found once.
        encoded.sort(key=attrgetter("reference"))
        stored = self._environment.write(lambda transaction: self._articles.create(transaction, encoded, now_ms))
        return [stored[version.record.reference] for version in versions]

    @override
    def retract(self, tombstones: Sequence[Tombstone]) -> list[Tombstone]:
        now_ms = self._options.clock()
        return self._environment.write(lambda transaction: self._articles.retract(transaction, tombstones, now_ms))

    @override
    def read(self, references: Sequence[bytes]) -> list[StoredVersion | None]:
        return self._environment.read(lambda transaction: self._articles.read(transaction, references))

    @override
    def sketches(self, references: Sequence[bytes]) -> list[bytes]:
        return self._environment.read(lambda transaction: self._articles.sketches(transaction, references))

    @override
    def latest(self, id_hashes: Sequence[bytes]) -> list[StoredVersion | Tombstone | None]:
        return self._environment.read(lambda transaction: self._articles.latest(transaction, id_hashes))

    @override
    def history(self, id_hash: bytes) -> list[StoredVersion | Tombstone]:
        return self._environment.read(lambda transaction: self._articles.history(transaction, id_hash))

    @override
    def bodies(self, references: Sequence[bytes]) -> list[str | None]:
        packed = self._environment.read(lambda transaction: self._articles.bodies(transaction, references))
        # Unpacked outside the transaction, to keep that short.
        with self._environment.reading():
            return [
                None if body is None else layout.decode_body(reference, body)
                for reference, body in zip(references, packed, strict=True)
            ]

    @override
    def add(self, records: Sequence[Record]) -> None:
        postings = _sorted_postings(records)
        if not postings:
            return

        def work(transaction: Transaction) -> None:
            stored = self._postings.layout(transaction)
            layout = common_layout(records, stored, f"The store {self._environment.path}")
            if layout is not None and stored is None:
                self._postings.bind(transaction, layout)
            self._postings.add(transaction, postings)

        self._environment.write(work)

    @override
    def look_up(self, keys: Sequence[bytes], bytes_max: int | None = None) -> list[PostingRow]:
        def work(transaction: Transaction) -> list[PostingRow]:
            # Not cached: a batch may be rolled back, and then another process may store another layout.
            layout = self._postings.layout(transaction) or DEFAULT_LAYOUT
            return self._postings.look_up(transaction, keys, layout, bytes_max)

        return self._environment.read(work)

    @override
    def seek(self, codes: Sequence[KeyedCode], postings_max: int) -> list[PostingRow]:
        def work(transaction: Transaction) -> list[PostingRow]:
            layout = self._postings.layout(transaction) or DEFAULT_LAYOUT
            return self._postings.seek(transaction, codes, postings_max, layout)

        return self._environment.read(work)

    @override
    def remove(self, records: Sequence[Record]) -> None:
        postings = _sorted_postings(records)
        if not postings:
            return
        self._environment.write(lambda transaction: self._postings.delete(transaction, postings))

    @override
    def settle(self, verdicts: Sequence[tuple[bytes, bytes]], removing: Sequence[Record] = ()) -> list[bool]:
        postings = _sorted_postings(removing)

        def work(transaction: Transaction) -> list[bool]:
            self._postings.delete(transaction, postings)
            return self._articles.settle(transaction, verdicts)

        return self._environment.write(work)

    @override
    def release(self, releases: Sequence[Release]) -> list[bytes | None]:
        return self._environment.write(lambda transaction: self._articles.release(transaction, releases))

    @override
    def seen(self, digests: Sequence[bytes]) -> list[SeenTimes | None]:
        return self._environment.read(lambda transaction: self._seen_texts.read(transaction, digests))

    @override
    def change_seen(self, changes: Sequence[SeenChange]) -> list[bool]:
        if not changes:
            return []
        now_ms = self._options.clock()
        return self._environment.write(lambda transaction: self._seen_texts.change(transaction, changes, now_ms))

    @override
    def forget_seen(self, before_ms: int, texts_max: int) -> int:
        """Look for expired entries without the write lock, which is taken only if there are any."""
        read_page = partial(self._seen_texts.page, after=self._forgotten_to, count_max=texts_max)
        page = self._environment.read(read_page)
        # After the last entry, the next call begins with the first one.
        self._forgotten_to = page[-1][0] if page and len(page) == texts_max else b""
        if not any(_is_due(written_ms, seen, before_ms) for _, written_ms, seen in page):
            return 0

        def work(transaction: Transaction) -> int:
            # Read again: another process may have changed an entry in between.
            entries = read_page(transaction)
            due = [digest for digest, written_ms, seen in entries if _is_due(written_ms, seen, before_ms)]
            self._seen_texts.forget(transaction, due)
            return len(due)

        return self._environment.write(work)

    @override
    def scan_seen(self) -> Iterator[tuple[bytes, SeenTimes]]:
        """Read page by page, as ``scan`` does."""
        after = b""
        while page := self._environment.read(partial(self._seen_texts.page, after=after, count_max=_SCAN_PAGE)):
            yield from ((digest, seen) for digest, _, seen in page)
            after = page[-1][0]

    @override
    def agree(self, settings: bytes) -> bytes:
        def work(transaction: Transaction) -> bytes:
            database = self._environment.databases["meta"]
            transaction.put(layout.SETTINGS_KEY, settings, overwrite=False, db=database)
            stored: bytes = transaction.get(layout.SETTINGS_KEY, db=database)
            return stored

        return self._environment.write(work)

    @override
    def settings(self) -> bytes | None:
        def work(transaction: Transaction) -> bytes | None:
            stored: bytes | None = transaction.get(layout.SETTINGS_KEY, db=self._environment.databases["meta"])
            return stored

        return self._environment.read(work)

    @override
    def planned(self) -> CapacityPlan | None:
        return self._environment.read(self._planned)

    def plan_for(self, planned: CapacityPlan) -> CapacityPlan:
        """Store the capacity plan and return the stored one: its articles may change, its block plan may not."""

        def work(transaction: Transaction) -> CapacityPlan:
            stored = self._planned(transaction)
            if stored is not None and stored.plan != planned.plan:
                return stored
            transaction.put(layout.PLAN_KEY, encode_planned(planned), db=self._environment.databases["meta"])
            return planned

        return self._environment.write(work)

    @override
    def together(self, work: Callable[[], Answer]) -> Answer:
        """Hold the write lock from the first call to the last: other processes write before or after the batch."""
        if self._commits is None or self._environment.in_batch:
            return self._environment.together(work)
        return self._commits.timed(self._environment.together, work)

    @override
    def sweep(self, before_ms: int, versions_max: int) -> int:
        """Sweep in one transaction: ``versions_max`` bounds how long other writers wait."""

        def work(transaction: Transaction) -> int:
            count, records = self._articles.sweep(transaction, before_ms, versions_max)
            for record in records:
                self._postings.delete(transaction, postings_of(record))
            return count

        return self._environment.write(work)

    @override
    def newest_ms(self, before_ms: int) -> int | None:
        return self._environment.read(lambda transaction: self._articles.newest_ms(transaction, before_ms))

    @override
    def scan(self) -> Iterator[StoredVersion | Tombstone]:
        """Read page by page, so that no transaction is open while the caller works."""
        after = b""
        while True:
            page = self._environment.read(partial(self._articles.page, after=after, count_max=_SCAN_PAGE))
            if not page:
                return
            for after, article in page:  # noqa: B007  # the next page begins after the last key of this one
                yield article

    @override
    def check(self) -> None:
        """Check the pages first, since LMDB may crash on damaged ones; then all entries, some per transaction."""
        self._environment.check_pages()
        contents = Contents(self._environment.databases, self._postings)
        for name in contents.names:
            after = None
            while (
                after := self._environment.read(partial(contents.check, name=name, after=after, count_max=_SCAN_PAGE))
            ) is not None:
                pass

    @override
    def stats(self) -> Stats:
        """Count the rows one by one, which takes about a second for some million rows."""

        def work(transaction: Transaction) -> Stats:
            databases = self._environment.databases
            entries = {name: transaction.stat(database)["entries"] for name, database in databases.items()}
            widths = self._postings.widths(transaction)
            return Stats(
                versions=entries["records"],
                verdicts=entries["verdicts"],
                tombstones=entries["tombstones"],
                postings=entries["postings"],
                rows=len(widths),
                size_bytes=self._environment.size_bytes(),
                crowded_rows=int(np.count_nonzero(widths > self._options.row_postings_max)),
                widest_row=int(widths.max(initial=0)),
                seen_texts=entries.get("seen", 0),
            )

        return self._environment.read(work)

    @override
    def close(self) -> None:
        self._environment.close()

    def _planned(self, transaction: Transaction) -> CapacityPlan | None:
        stored: bytes | None = transaction.get(layout.PLAN_KEY, db=self._environment.databases["meta"])
        return None if stored is None else layout.read_planned(stored)

    def _encode(self, version: Version) -> EncodedVersion:
        record, body = version.record, version.body
        packed = pack_body(body) if self._options.keep_bodies and body is not None else None
        timeline_key = layout.timeline_key(record.arrival)
        return EncodedVersion(record.reference, record, encode_record(record), timeline_key, packed)


def _is_due(written_ms: int, seen: SeenTimes, before_ms: int) -> bool:
    return max(written_ms, seen.last_ms) < before_ms


def _sorted_postings(records: Sequence[Record]) -> list[tuple[bytes, bytes]]:
    """Return the postings of these records, sorted by key, so that LMDB finds each page once."""
    postings = [posting for record in records for posting in postings_of(record)]
    postings.sort(key=itemgetter(0))
    return postings
