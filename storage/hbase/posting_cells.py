"""The columns and cells of the table ``postings``, as described in ``docs/row_keys.md``.

A fresh posting is a cell of its own, whose qualifier is the posting. A posting set is one cell with many postings; what
is in it is described in ``storage.hbase.sets``.
"""

from typing import Final

from storage.errors import StoreDamaged
from storage.hbase import sets
from storage.hbase.connection import Change
from storage.hbase.failures import damaged
from storage.hbase.sets import DamagedSetError
from storage.postings import PostingLayout

FRESH_FAMILY: Final = b"p"
SET_FAMILY: Final = b"s"
FRESH: Final = FRESH_FAMILY + b":"
PACKED: Final = SET_FAMILY + b":"


def fresh_cell(key: bytes, posting: bytes) -> Change:
    """Return a posting as a cell. The whole posting is the qualifier, so that adding it again changes nothing."""
    return Change(key, FRESH + posting, b"")


def set_postings(key: bytes, column: bytes, value: bytes, layout: PostingLayout) -> bytes:
    """Return the postings of a set, in order. Raises ``StoreDamaged``, also for postings of another layout."""
    try:
        postings, found = sets.decode_set(value)
    except DamagedSetError as error:
        raise damaged_set(key, column, error) from error
    if found != layout:
        why = f"its codes have {found.code_bytes} bytes, those of the store {layout.code_bytes}"
        raise damaged_set(key, column, why)
    return postings


def damaged_set(key: bytes, column: bytes, why: object) -> StoreDamaged:
    """Return the error for a posting set that is damaged, with its row and qualifier."""
    return damaged(f"The posting set {column[len(PACKED) :].hex()} in the row {key.hex()} of postings", why)
