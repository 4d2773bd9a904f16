"""The ``Store`` port on HBase, for any number of processes on any number of machines."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, Self, TypeVar

from typing_extensions import override

from storage.errors import StoreRefused, StoreUnavailable, other_layout, read_only
from storage.hbase.articles import Articles
from storage.hbase.calls import Calls, Gateways
from storage.hbase.cells import CellCache
from storage.hbase.connection import GatewayConnection
from storage.hbase.failures import damage_error
from storage.hbase.meta import CODE_BYTES_ROW, LAYOUT_ROW, Meta
from storage.hbase.options import HbaseOptions, StoreAddress
from storage.hbase.packing import Packer
from storage.hbase.posting_rows import PostingRows
from storage.hbase.schema import PLAN_ROW, SETTINGS_ROW, DescribedFamily, Schema, check, schema_of
from storage.hbase.seen_texts import SeenTexts
from storage.hbase.tables import table_states
from storage.hbase.waits import Tell
from storage.interface import Stats, Store
from storage.layouts import LAYOUTS, layout_needed, raised
from storage.postings import DEFAULT_LAYOUT, POSTING_LAYOUTS, KeyedCode, PostingLayout, PostingRow, common_layout
from storage.records import CapacityPlan, Record, Release, StoredVersion, Tombstone, Version, decode_planned
from storage.seen import SeenChange, SeenTimes
from storage.watched import Operation, StoreReport

_Article = TypeVar("_Article", StoredVersion, Tombstone)
_SWEPT_BY_HBASE: Final = 0
_SHOWN_BYTES: Final = 32


class HbaseStore(Store):
    """A store in the tables of an HBase namespace, reached through Thrift gateways."""

    def __init__(self, gateways: Gateways) -> None:
        namespace = gateways.place.namespace.encode()
        self._gateways = gateways
        self._articles = Articles(namespace + b":articles", gateways)
        self._postings = PostingRows(namespace + b":postings", namespace + b":meta", gateways)
        self._meta = Meta(namespace + b":meta")
        self._seen_texts = SeenTexts(namespace + b":seen")
        self._sketches = CellCache(gateways.options.sketches_max)
        # None until this process has read the store's width of codes, which never changes.
        self._posting_layout: PostingLayout | None = None

    @classmethod
    def open(
        cls,
        place: StoreAddress,
        options: HbaseOptions | None = None,
        report: StoreReport | None = None,
        tell_wait: Tell | None = None,
    ) -> Self:
        """Open the store in the tables of ``place``, which must exist.

        ``report`` receives ``StoreConnected`` and, if a run's call repeats a request, ``StoreRepeated``. ``tell_wait``
        is called when an answer takes more than two seconds.

        Raises ``StoreRefused`` if TLS cannot be set up, tables are missing, disabled or differ from the schema, or the
        layout is unknown. Raises ``StoreUnavailable`` if no gateway answers.
        """
        try:
            gateways = Gateways(place, options or HbaseOptions(), report, tell_wait)
        except (OSError, ValueError) as error:
            raise StoreRefused(f"TLS to {place} cannot be set up: {error}.") from error
        store = cls(gateways)
        try:
            calls = gateways.calls()
            check_tables(calls)
            check_layout(calls, store._meta)
        except BaseException:
            gateways.close()
            raise
        return store

    @override
    def create(self, versions: Sequence[Version]) -> list[StoredVersion]:
        """Write versions and their bodies at the same time; each version is one cell."""
        created = self._articles.create(self._writing("create"), versions)
        return [_present(stored, version.record) for stored, version in zip(created, versions, strict=True)]

    @override
    def retract(self, tombstones: Sequence[Tombstone]) -> list[Tombstone]:
        retracted = self._articles.retract(self._writing("retract"), tombstones)
        return [_present(stored, tombstone) for stored, tombstone in zip(retracted, tombstones, strict=True)]

    @override
    def read(self, references: Sequence[bytes]) -> list[StoredVersion | None]:
        """Read whole rows, with all versions of each id; remember the sketches of the requested ones."""
        versions = self._articles.read(self._gateways.calls("read"), references)
        for version in versions:
            if version is not None and version.record.sketch:
                self._sketches.remember(version.record.reference, version.record.sketch)
        return versions

    @override
    def sketches(self, references: Sequence[bytes]) -> list[bytes]:
        """Return the sketches of versions that this process has read.

        Reading only the sketch of a row would cost as much as reading the row.
        """
        return self._sketches.read(references)

    @override
    def latest(self, id_hashes: Sequence[bytes]) -> list[StoredVersion | Tombstone | None]:
        histories = self._articles.histories(self._gateways.calls("latest"), id_hashes)
        return [history[-1] if history else None for history in histories]

    @override
    def history(self, id_hash: bytes) -> list[StoredVersion | Tombstone]:
        return self._articles.histories(self._gateways.calls(), [id_hash])[0]

    @override
    def bodies(self, references: Sequence[bytes]) -> list[str | None]:
        return self._articles.bodies(self._gateways.calls("bodies"), references)

    @override
    def add(self, records: Sequence[Record]) -> None:
        calls = self._writing("add")
        layout = common_layout(records, self._stored_posting_layout(calls), f"The store {self._gateways.place}")
        if layout is not None and layout != self._posting_layout:
            width = self._meta.agree(calls, CODE_BYTES_ROW, str(layout.code_bytes).encode())
            self._posting_layout = _posting_layout_of(width)
            # Another process may have stored another width first.
            common_layout(records, self._posting_layout, f"The store {self._gateways.place}")
        self._postings.add(calls, records)

    @override
    def look_up(self, keys: Sequence[bytes], bytes_max: int | None = None) -> list[PostingRow]:
        calls = self._gateways.calls("look_up")
        return self._postings.look_up(calls, keys, self._stored_posting_layout(calls) or DEFAULT_LAYOUT, bytes_max)

    @override
    def seek(self, codes: Sequence[KeyedCode], postings_max: int) -> list[PostingRow]:
        """Search all fresh postings of each row, but only its first posting sets."""
        calls = self._gateways.calls("seek")
        return self._postings.seek(calls, codes, postings_max, self._stored_posting_layout(calls) or DEFAULT_LAYOUT)

    @override
    def remove(self, records: Sequence[Record]) -> None:
        """Delete fresh postings; a posting in a set stays until the set expires."""
        self._postings.remove(self._writing("remove"), records)

    @override
    def settle(self, verdicts: Sequence[tuple[bytes, bytes]], removing: Sequence[Record] = ()) -> list[bool]:
        """Write verdicts and delete postings at the same time."""
        calls = self._writing("settle")
        settle = partial(self._articles.settle, calls, verdicts)
        if not removing:
            return settle()
        settled, _ = self._gateways.side_by_side(settle, partial(self._postings.remove, calls, removing))
        return settled

    @override
    def release(self, releases: Sequence[Release]) -> list[bytes | None]:
        return self._articles.release(self._writing(), releases)

    @override
    def seen(self, digests: Sequence[bytes]) -> list[SeenTimes | None]:
        return self._seen_texts.read(self._gateways.calls("seen"), digests)

    @override
    def change_seen(self, changes: Sequence[SeenChange]) -> list[bool]:
        return self._seen_texts.change(self._writing("change_seen"), changes)

    @override
    def forget_seen(self, before_ms: int, texts_max: int) -> int:
        """Do nothing, because HBase expires cells."""
        del before_ms, texts_max
        return _SWEPT_BY_HBASE

    @override
    def scan_seen(self) -> Iterator[tuple[bytes, SeenTimes]]:
        calls = self._gateways.calls()
        if self._seen_texts.table_exists(calls):
            yield from self._seen_texts.scan(calls)

    @override
    def agree(self, settings: bytes) -> bytes:
        return self._meta.agree(self._writing("agree"), SETTINGS_ROW, settings)

    @override
    def settings(self) -> bytes | None:
        return self._meta.read(self._gateways.calls(), SETTINGS_ROW)

    @override
    def planned(self) -> CapacityPlan | None:
        value = self._meta.read(self._gateways.calls(), PLAN_ROW)
        try:
            return None if value is None else decode_planned(value)
        except ValueError as error:
            raise damage_error(f"The row {PLAN_ROW.decode()} of meta", error) from error

    @override
    def sweep(self, before_ms: int, versions_max: int) -> int:
        """Do nothing, because HBase expires cells."""
        del before_ms, versions_max
        return _SWEPT_BY_HBASE

    @override
    def newest_ms(self, before_ms: int) -> int | None:
        """Return None, because HBase, not a run, decides what expires."""
        del before_ms
        return None

    @override
    def scan(self) -> Iterator[StoredVersion | Tombstone]:
        for _, row in self._articles.scan():
            yield from row.history()

    @override
    def stats(self) -> Stats:
        """Count by reading all rows. The size on disk is unknown, since gateways do not report it."""
        versions = verdicts = tombstones = 0
        for _, row in self._articles.scan():
            versions += len(row.versions)
            verdicts += sum(version.verdict is not None for version in row.versions.values())
            tombstones += len(row.tombstones)
        counts = self._postings.count()
        return Stats(
            versions,
            verdicts,
            tombstones,
            counts.postings,
            counts.rows,
            size_bytes=None,
            crowded_rows=counts.crowded,
            widest_row=counts.widest,
            seen_texts=sum(1 for _ in self.scan_seen()),
        )

    def packer(self) -> Packer:
        """Return the packer of this store's postings.

        Raises ``StoreRefused`` if the store was opened for reading only.
        """
        self._writing()
        return Packer(self._gateways)

    @override
    def close(self) -> None:
        self._gateways.close()

    def _writing(self, operation: Operation | None = None) -> Calls:
        if self._gateways.options.readonly:
            raise read_only(self._gateways.place)
        return self._gateways.calls(operation)

    def _stored_posting_layout(self, calls: Calls) -> PostingLayout | None:
        if self._posting_layout is None:
            width = self._meta.read(calls, CODE_BYTES_ROW)
            self._posting_layout = None if width is None else _posting_layout_of(width)
        return self._posting_layout


def _posting_layout_of(width: bytes) -> PostingLayout:
    """Return the layout of postings whose codes have this width, which ``meta`` holds as decimal digits."""
    try:
        return POSTING_LAYOUTS[int(width)]
    except (ValueError, KeyError) as error:
        where = f"The row {CODE_BYTES_ROW.decode()} of meta"
        raise damage_error(
            where, f"it should hold the width of a posting's code, but holds {width[:_SHOWN_BYTES]!r}"
        ) from error


def _present(stored: _Article | None, written: Record | Tombstone) -> _Article:
    if stored is None:
        raise StoreUnavailable(f"{written.reference.hex()} was deleted while it was being written.")
    return stored


def check_tables(calls: Calls) -> None:
    """Raise ``StoreRefused`` if tables are missing, disabled or differ from the schema, as far as a gateway shows."""
    gateways = calls.gateways
    try:
        options = gateways.options
        schema = schema_of(gateways.place.namespace, options.ttl_min_s, seen_ttl_s=options.seen_ttl_s)
    except ValueError as error:
        raise StoreRefused(f"{error}.") from error
    problems = calls.ask(lambda connection: _schema_problems(connection, schema, gateways.place))
    if problems:
        raise StoreRefused(" ".join(problems))


def check_layout(calls: Calls, meta: Meta) -> None:
    """Raise ``StoreRefused`` for a store with an unknown layout. Set or raise the layout as the options require.

    Does not write if the store is open for reading only.
    """
    options = calls.gateways.options
    layout = meta.read(calls, LAYOUT_ROW)
    needed = layout_needed(parts=options.parts, banks=options.banks)
    if layout is None and not options.readonly:
        layout = meta.agree(calls, LAYOUT_ROW, needed)
    # Another process may raise the layout in the meantime; none lowers it.
    while layout is not None:
        if layout not in LAYOUTS:
            raise other_layout(calls.gateways.place, layout, LAYOUTS)
        if options.readonly or raised(layout, needed) == layout:
            return
        meta.replace(calls, LAYOUT_ROW, layout, needed)
        layout = meta.read(calls, LAYOUT_ROW)


def _schema_problems(connection: GatewayConnection, schema: Schema, place: StoreAddress) -> list[str]:
    states = table_states(connection, schema)
    described = {name: _described(connection, name) for name in states.existing}
    return check(schema, place, described, states.disabled)


def _described(connection: GatewayConnection, table: str) -> list[DescribedFamily]:
    return [
        DescribedFamily(
            name=name.decode(),
            max_versions=family.maxVersions,
            compression=family.compression.decode(),
            in_memory=family.inMemory,
            bloom_filter=family.bloomFilterType.decode(),
            block_cache=family.blockCacheEnabled,
            ttl_s=family.timeToLive,
        )
        for name, family in connection.families(table.encode()).items()
    ]
