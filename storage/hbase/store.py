"""The ``Store`` contract on HBase: any number of processes on any number of machines."""

from collections.abc import Iterator, Sequence
from typing import Final, Self, TypeVar

from storage.errors import StoreRefused, StoreUnavailable
from storage.hbase.articles import Articles
from storage.hbase.calls import Calls, Gateways
from storage.hbase.failures import damaged
from storage.hbase.meta import CODE_BYTES_ROW, SETTINGS_ROW, Meta
from storage.hbase.opening import check_layout, check_tables
from storage.hbase.options import HbaseOptions, Place
from storage.hbase.packing import Packer
from storage.hbase.posting_rows import PostingRows
from storage.hbase.waits import Tell
from storage.interface import Stats
from storage.postings import POSTING_LAYOUTS, KeyedCode, PostingLayout, Row, common_layout
from storage.records import Record, Release, Stored, Tombstone, Version
from storage.watched import StoreReport
from storage.wrapped import Operation

_What = TypeVar("_What", Stored, Tombstone)
_SWEPT_BY_HBASE: Final = 0
_SHOWN_BYTES: Final = 32


class HbaseStore:
    """A store in three tables of an HBase, reached through its Thrift gateways. For any number of threads."""

    def __init__(self, gateways: Gateways) -> None:
        namespace = gateways.place.namespace.encode()
        self._gateways = gateways
        self._articles = Articles(namespace + b":articles", gateways)
        self._postings = PostingRows(namespace + b":postings", namespace + b":meta", gateways)
        self._meta = Meta(namespace + b":meta")
        # None until this process has seen a posting's width in the store, which never changes then.
        self._layout: PostingLayout | None = None

    @classmethod
    def open(
        cls,
        place: Place,
        options: HbaseOptions | None = None,
        report: StoreReport | None = None,
        tell_wait: Tell | None = None,
    ) -> Self:
        """Open the store in the tables of ``place``, which have to be there.

        ``report`` takes what happens to its connections and which calls of a run repeat a question; ``tell_wait`` is
        called when an answer takes more than two seconds.

        Raises ``StoreRefused`` where they are not, or are not as they have to be; ``StoreUnavailable`` where no gateway
        answers.
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

    def create(self, versions: Sequence[Version]) -> list[Stored]:
        """See ``Records.create``. A version is one cell; its body is written before it."""
        calls = self._writing("create")
        stored = self._articles.create(calls, versions)
        return [_there(one, version.record) for one, version in zip(stored, versions, strict=True)]

    def retract(self, tombstones: Sequence[Tombstone]) -> list[Tombstone]:
        """See ``Records.retract``."""
        stored = self._articles.retract(self._writing("retract"), tombstones)
        return [_there(one, given) for one, given in zip(stored, tombstones, strict=True)]

    def read(self, references: Sequence[bytes]) -> list[Stored | None]:
        """See ``Records.read``. All versions of an id are read with each."""
        return self._articles.read(self._gateways.calls("read"), references)

    def history(self, id_hash: bytes) -> list[Stored | Tombstone]:
        """See ``Records.history``."""
        return self._articles.history(self._gateways.calls(), id_hash)

    def bodies(self, references: Sequence[bytes]) -> list[str | None]:
        """See ``Records.bodies``."""
        return self._articles.bodies(self._gateways.calls("bodies"), references)

    def add(self, records: Sequence[Record]) -> None:
        """See ``Postings.add``."""
        calls = self._writing("add")
        layout = common_layout(records, self._stored_layout(calls), f"The store {self._gateways.place}")
        if layout is not None and layout != self._layout:
            width = self._meta.agree(calls, CODE_BYTES_ROW, str(layout.code_bytes).encode())
            self._layout = _layout(width)
            # Another process may have been faster, with another width.
            common_layout(records, self._layout, f"The store {self._gateways.place}")
        self._postings.add(calls, records)

    def look_up(self, keys: Sequence[bytes]) -> list[Row]:
        """See ``Postings.look_up``. A truncated row holds the lowest codes."""
        calls = self._gateways.calls("look_up")
        return self._postings.look_up(calls, keys, self._stored_layout(calls) or POSTING_LAYOUTS[8])

    def seek(self, places: Sequence[KeyedCode], postings_max: int) -> list[Row]:
        """See ``Postings.seek``. Of what was packed, the first sets of a row only are looked into."""
        calls = self._gateways.calls("seek")
        return self._postings.seek(calls, places, postings_max, self._stored_layout(calls) or POSTING_LAYOUTS[8])

    def remove(self, records: Sequence[Record]) -> None:
        """See ``Postings.remove``. What was packed into a set stays there until it expires."""
        self._postings.remove(self._writing("remove"), records)

    def settle(self, verdicts: Sequence[tuple[bytes, bytes]]) -> list[bool]:
        """See ``Verdicts.settle``."""
        return self._articles.settle(self._writing("settle"), verdicts)

    def release(self, releases: Sequence[Release]) -> list[bytes | None]:
        """See ``Verdicts.release``. The release is in its version's cell, and lives as long."""
        return self._articles.release(self._writing(), releases)

    def agree(self, settings: bytes) -> bytes:
        """See ``Binding.agree``."""
        return self._meta.agree(self._writing("agree"), SETTINGS_ROW, settings)

    def settings(self) -> bytes | None:
        """See ``Binding.settings``."""
        return self._meta.read(self._gateways.calls(), SETTINGS_ROW)

    def sweep(self, before_ms: int, versions_max: int) -> int:
        """See ``Upkeep.sweep``. HBase expires its cells by itself."""
        del before_ms, versions_max
        return _SWEPT_BY_HBASE

    def scan(self) -> Iterator[Stored | Tombstone]:
        """See ``Upkeep.scan``."""
        for _, row in self._articles.scan():
            yield from row.history()

    def stats(self) -> Stats:
        """See ``Upkeep.stats``. Everything is read to be counted; what it takes on disk a gateway does not tell."""
        versions = verdicts = tombstones = 0
        for _, row in self._articles.scan():
            versions += len(row.versions)
            verdicts += sum(one.verdict is not None for one in row.versions.values())
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
        )

    def packer(self) -> Packer:
        """What packs and unpacks this store's postings; ``StoreRefused`` where it was opened for reading only."""
        self._writing()
        return Packer(self._gateways)

    def close(self) -> None:
        """See ``Upkeep.close``."""
        self._gateways.close()

    def _writing(self, operation: Operation | None = None) -> Calls:
        if self._gateways.options.readonly:
            raise StoreRefused(f"The store {self._gateways.place} was opened for reading only.")
        return self._gateways.calls(operation)

    def _stored_layout(self, calls: Calls) -> PostingLayout | None:
        if self._layout is None:
            width = self._meta.read(calls, CODE_BYTES_ROW)
            self._layout = None if width is None else _layout(width)
        return self._layout


def _layout(width: bytes) -> PostingLayout:
    """The layout of postings whose codes have this many bytes, which ``meta`` says in digits."""
    try:
        return POSTING_LAYOUTS[int(width)]
    except (ValueError, KeyError) as error:
        where = f"The row {CODE_BYTES_ROW.decode()} of meta"
        raise damaged(
            where, f"it should have the width of a posting's code, and has {width[:_SHOWN_BYTES]!r}"
        ) from error


def _there(stored: _What | None, written: Record | Tombstone) -> _What:
    if stored is None:
        raise StoreUnavailable(f"{written.reference.hex()} was deleted while it was written.")
    return stored
