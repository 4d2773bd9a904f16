"""What tests of packing have in common: records that share rows, and what lies in the table itself."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from storage.hbase import HbaseOptions, parse_place
from storage.hbase.connection import CellChange, ScanSelection
from storage.hbase.packing import PackOptions
from storage.hbase.set_plans import PackTally
from storage.hbase.store import HbaseStore
from storage.postings import postings_of
from storage.records import Record
from tests.builders import make_key, make_record

BUCKET_MS = 50
KEYS = tuple(make_key(number, number=number) for number in range(4))
"""The rows that all records of these tests share."""

Cells = Mapping[bytes, Mapping[bytes, Any]]


def records(count: int, first: int = 0, keys: Sequence[bytes] = KEYS) -> list[Record]:
    """Records with postings under the same keys."""
    return [
        make_record(f"article {number}", b"%d" % number, keys=tuple(keys)) for number in range(first, first + count)
    ]


def opened(url: str) -> HbaseStore:
    """Open a store by its name."""
    return HbaseStore.open(parse_place(url), HbaseOptions())


def wait_until_old(bucket_ms: int = BUCKET_MS) -> None:
    """Let what was written become old enough to be packed."""
    time.sleep(2.2 * bucket_ms / 1000)


def pack(store: HbaseStore, bucket_ms: int = BUCKET_MS, row_postings_min: int = 1) -> PackTally:
    """Pack everything that is old enough."""
    tally = PackTally()
    for done in store.packer().pack(PackOptions(None, bucket_ms, row_postings_min)):
        tally = done.tally
    return tally


def unpack(store: HbaseStore) -> int:
    """Unpack everything; returns how many postings that were."""
    return [done.postings for done in store.packer().unpack()][-1]


def cells(store: HbaseStore) -> Cells:
    """What lies in the table of postings, row by row."""
    selection = ScanSelection(table_of(store), [b"p", b"s"], pieces_per_request=1000)
    found = store._gateways.calls().scan(selection, dict)
    return {row: dict(columns) for row, columns in found.items()}


def family(store: HbaseStore, name: bytes) -> list[tuple[bytes, bytes]]:
    """Row and column of all cells of a family."""
    return [(row, column) for row, columns in cells(store).items() for column in columns if column.startswith(name)]


def written_ms(store: HbaseStore, key: bytes) -> int:
    """When a cell of this row was written, by the server's clock."""
    written: int = next(iter(cells(store)[key].values())).timestamp
    return written


def put(store: HbaseStore, changes: Iterable[CellChange]) -> None:
    """Change the table behind the store's back."""
    store._gateways.calls().change(table_of(store), changes)


def table_of(store: HbaseStore) -> bytes:
    """The name of the table of postings."""
    return f"{store._gateways.place.namespace}:postings".encode()


def wanted(live: Iterable[Record]) -> dict[bytes, set[bytes]]:
    """The postings that have to be found, by key."""
    rows: dict[bytes, set[bytes]] = {}
    for record in live:
        for key, posting in postings_of(record):
            rows.setdefault(key, set()).add(posting)
    return rows


def found(store: HbaseStore, keys: Sequence[bytes] = KEYS) -> dict[bytes, set[bytes]]:
    """What the store finds under these keys; fails where it returns a posting twice."""
    rows = {}
    for key, row in zip(keys, store.look_up(keys), strict=True):
        width = row.layout.posting_bytes
        postings = Counter(row.packed[place : place + width] for place in range(0, len(row.packed), width))
        assert max(postings.values(), default=1) == 1, f"a posting came twice under {key.hex()}"
        assert not row.truncated
        rows[key] = set(postings)
    return rows
