"""What can be learnt of a data file before LMDB maps it.

An access past the end of a mapped file is a SIGBUS, which ends the process without a word. LMDB does not compare the
file's size with what its meta pages say, so a file that was cut short is found out here. A file that is cut while it is
open cannot be found out: no program can be told of that in time.

The layout is that of LMDB 0.9 with 64-bit words in the machine's byte order: ``MDB_page``, ``MDB_meta``, ``MDB_db`` and
``MDB_node`` in its ``mdb.c``. "Actually the file may be shorter if the freeDB lists the final pages", says the comment
on ``mm_last_pg`` there: pages that were taken and given back within one transaction are never written.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from storage.errors import StoreDamaged

DATA_FILE: Final = "data.mdb"
_MAGIC: Final = 0xBEEFC0DE
_VERSION: Final = 1
_PAGE: Final = struct.Struct("=QHHHH")
"""Page number, a pad, flags, and the bounds of the free space."""
_META: Final = struct.Struct("=II16x I36xQ 40xQ QQ")
"""Magic, version; page size and root of the free list; root of the main database; last page, transaction."""
_NODE: Final = struct.Struct("=HHHH")
"""Size of the data (or number of the page below), low and high; flags (or its third part), size of the key."""
_WORD: Final = struct.Struct("=Q")
_BRANCH: Final = 0x01
_META_PAGE: Final = 0x08
_BIG_DATA: Final = 0x01
_NO_PAGE: Final = (1 << 64) - 1
_PAGE_BYTES: Final = frozenset(1 << bits for bits in range(8, 16))
"""Up to LMDB's ``MAX_PAGESIZE``."""
_LOOKS_MAX: Final = 16
"""How often a free list is read anew that another process changes meanwhile."""


class _Meta(NamedTuple):
    page_bytes: int
    free_root: int
    last_page: int
    transaction: int


class _OutOfFileError(Exception):
    """A page of the free list is not in the file, or is there twice."""


def check_data_file(path: Path) -> None:
    """Raise ``StoreDamaged`` where the file is empty or was cut short.

    What is no file of LMDB 0.9 is left to LMDB, which refuses it.
    """
    with (path / DATA_FILE).open("rb", buffering=0) as file:
        if not _size(file):
            raise StoreDamaged(_sentence(path, f"{DATA_FILE} is empty"))
        meta = _newest_meta(file, path)
        for _ in range(_LOOKS_MAX):
            # The size is read after the page that speaks of it: a file that grows is never too short for that.
            if meta is None or _has_all_pages(file, meta):
                return
            before, meta = meta, _newest_meta(file, path)
            if meta == before:
                break
        size = _size(file)
    raise StoreDamaged(
        _sentence(path, f"{DATA_FILE} was cut short to {size:,} bytes, and pages in use lay behind them")
    )


def _sentence(path: Path, what: str) -> str:
    return f"The store {path} is damaged: {what}. Restore the directory from a copy, or name another store."


def _newest_meta(file: BinaryIO, path: Path) -> _Meta | None:
    """The meta page of the last transaction; None where LMDB is to say what is wrong with the file."""
    first = _meta_at(file, 0)
    if first is None or first.page_bytes not in _PAGE_BYTES:
        return None
    second = _meta_at(file, first.page_bytes)
    if second is None:
        if _size(file) < 2 * first.page_bytes:
            raise StoreDamaged(_sentence(path, f"{DATA_FILE} was cut short within its first two pages"))
        return None
    return max(first, second, key=lambda meta: meta.transaction)


def _meta_at(file: BinaryIO, offset: int) -> _Meta | None:
    data = os.pread(file.fileno(), _PAGE.size + _META.size, offset)
    if len(data) < _PAGE.size + _META.size:
        return None
    _, _, flags, _, _ = _PAGE.unpack_from(data)
    magic, version, page_bytes, free_root, _, last_page, transaction = _META.unpack_from(data, _PAGE.size)
    if not flags & _META_PAGE or magic != _MAGIC or version != _VERSION:
        return None
    return _Meta(page_bytes, free_root, last_page, transaction)


def _has_all_pages(file: BinaryIO, meta: _Meta) -> bool:
    """Whether the file has every page up to the last, but for those at its end that are free."""
    missing_from = _size(file) // meta.page_bytes
    if missing_from > meta.last_page:
        return True
    try:
        free = {page for page in _free_pages(file, meta) if missing_from <= page <= meta.last_page}
    except (_OutOfFileError, struct.error):
        return False
    return len(free) == meta.last_page - missing_from + 1


def _free_pages(file: BinaryIO, meta: _Meta) -> Iterator[int]:
    waiting = [] if meta.free_root == _NO_PAGE else [meta.free_root]
    seen = set()
    while waiting:
        number = waiting.pop()
        if number in seen:
            raise _OutOfFileError
        seen.add(number)
        page = _read(file, number * meta.page_bytes, meta.page_bytes)
        _, _, flags, lower, _ = _PAGE.unpack_from(page)
        for (place,) in struct.iter_unpack("=H", page[_PAGE.size : lower]):
            low, high, node_flags, key_bytes = _NODE.unpack_from(page, place)
            if flags & _BRANCH:
                waiting.append(low | high << 16 | node_flags << 32)
                continue
            data_bytes = low | high << 16
            data = page[place + _NODE.size + key_bytes :]
            if node_flags & _BIG_DATA:
                (overflow,) = _WORD.unpack_from(data)
                data = _read(file, overflow * meta.page_bytes + _PAGE.size, data_bytes)
            # A list of page numbers, their count first.
            (count,) = _WORD.unpack_from(data)
            yield from struct.unpack_from(f"={count}Q", data, _WORD.size)


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _read(file: BinaryIO, offset: int, size: int) -> bytes:
    data = os.pread(file.fileno(), size, offset)
    if len(data) < size:
        raise _OutOfFileError
    return data
