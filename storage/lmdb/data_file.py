"""Checks a data file before LMDB maps it.

Access past the end of a mapped file raises SIGBUS, which ends the process without a message. LMDB does not compare the
file's size with its meta pages, so truncated files are detected here. A file that is truncated while it is open cannot
be detected: no program is notified in time.

The layout is that of LMDB 0.9 with 64-bit words in the machine's byte order: ``MDB_page``, ``MDB_meta``, ``MDB_db`` and
``MDB_node`` in its ``mdb.c``. "Actually the file may be shorter if the freeDB lists the final pages", says the comment
on ``mm_last_pg`` there: pages that one transaction both allocates and frees are never written.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from storage.errors import StoreDamaged

DATA_FILE: Final = "data.mdb"
DAMAGED: Final = "The store {path} is damaged: {why}. Restore the directory from a backup, or name another store."
_MAGIC: Final = 0xBEEFC0DE
_VERSION: Final = 1
PAGE: Final = struct.Struct("=QHHHH")
"""Page number, padding, flags, and the bounds of the free space."""
_META: Final = struct.Struct("=II16x I36xQ 40xQ QQ")
"""Magic, version; page size and root of the free list; root of the main database; last page, transaction."""
NODE: Final = struct.Struct("=HHHH")
"""Low and high half of the data's size, flags, size of the key. In a branch, the first three hold a page number."""
WORD: Final = struct.Struct("=Q")
BRANCH: Final = 0x01
_META_PAGE: Final = 0x08
BIG_DATA: Final = 0x01
NO_PAGE: Final = (1 << 64) - 1
_PAGE_BYTES: Final = frozenset(1 << bits for bits in range(8, 16))
"""The possible sizes of a page, up to LMDB's ``MAX_PAGESIZE``."""
_READS_MAX: Final = 16
"""The maximum number of reads of the free list while another process keeps changing it."""


class _Meta(NamedTuple):
    page_bytes: int
    free_root: int
    last_page: int
    transaction: int


class _OutOfFileError(Exception):
    """A page of the free list is missing from the file, or is listed twice."""


def check_data_file(path: Path) -> None:
    """Raise ``StoreDamaged`` if the file is empty or truncated.

    Files that are not from LMDB 0.9 are left to LMDB, which refuses them.
    """
    with (path / DATA_FILE).open("rb", buffering=0) as file:
        if not _size(file):
            raise StoreDamaged(_damage(path, f"{DATA_FILE} is empty"))
        meta = _newest_meta(file, path)
        for _ in range(_READS_MAX):
            # The size is read after the meta page: a growing file is never shorter than an older meta page says.
            if meta is None or _has_all_pages(file, meta):
                return
            before, meta = meta, _newest_meta(file, path)
            if meta == before:
                break
        size = _size(file)
    raise StoreDamaged(_damage(path, f"{DATA_FILE} was truncated to {size:,} bytes, but later pages are in use"))


def _damage(path: Path, why: str) -> str:
    return DAMAGED.format(path=path, why=why)


def _newest_meta(file: BinaryIO, path: Path) -> _Meta | None:
    """Return the meta page of the last transaction, or None for a file whose fault LMDB itself reports.

    Raises ``StoreDamaged`` if the file ends within its first two pages.
    """
    first = _meta_at(file, 0)
    if first is None or first.page_bytes not in _PAGE_BYTES:
        return None
    second = _meta_at(file, first.page_bytes)
    if second is None:
        if _size(file) < 2 * first.page_bytes:
            raise StoreDamaged(_damage(path, f"{DATA_FILE} was truncated within its first two pages"))
        return None
    return max(first, second, key=lambda meta: meta.transaction)


def _meta_at(file: BinaryIO, offset: int) -> _Meta | None:
    data = os.pread(file.fileno(), PAGE.size + _META.size, offset)
    if len(data) < PAGE.size + _META.size:
        return None
    _, _, flags, _, _ = PAGE.unpack_from(data)
    magic, version, page_bytes, free_root, _, last_page, transaction = _META.unpack_from(data, PAGE.size)
    if not flags & _META_PAGE or magic != _MAGIC or version != _VERSION:
        return None
    return _Meta(page_bytes, free_root, last_page, transaction)


def _has_all_pages(file: BinaryIO, meta: _Meta) -> bool:
    """Return whether the file has every page in use; free pages may be missing at its end."""
    missing_from = _size(file) // meta.page_bytes
    if missing_from > meta.last_page:
        return True
    try:
        free = {page for page in _free_pages(file, meta) if missing_from <= page <= meta.last_page}
    except (_OutOfFileError, struct.error):
        return False
    return len(free) == meta.last_page - missing_from + 1


def _free_pages(file: BinaryIO, meta: _Meta) -> Iterator[int]:
    waiting = [] if meta.free_root == NO_PAGE else [meta.free_root]
    seen = set()
    while waiting:
        number = waiting.pop()
        if number in seen:
            raise _OutOfFileError
        seen.add(number)
        page = _read(file, number * meta.page_bytes, meta.page_bytes)
        _, _, flags, lower, _ = PAGE.unpack_from(page)
        for (place,) in struct.iter_unpack("=H", page[PAGE.size : lower]):
            low, high, node_flags, key_bytes = NODE.unpack_from(page, place)
            if flags & BRANCH:
                waiting.append(low | high << 16 | node_flags << 32)
                continue
            data_bytes = low | high << 16
            data = page[place + NODE.size + key_bytes :]
            if node_flags & BIG_DATA:
                (overflow,) = WORD.unpack_from(data)
                data = _read(file, overflow * meta.page_bytes + PAGE.size, data_bytes)
            # A list of page numbers, their count first.
            (count,) = WORD.unpack_from(data)
            yield from struct.unpack_from(f"={count}Q", data, WORD.size)


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _read(file: BinaryIO, offset: int, size: int) -> bytes:
    data = os.pread(file.fileno(), size, offset)
    if len(data) < size:
        raise _OutOfFileError
    return data
