"""The database ``postings``: a row for each key, with its postings in order.

Every call works within the caller's transaction.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby, islice, takewhile
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from storage.lmdb.environment import Cursor, Transaction
from storage.lmdb.layout import CODE_BYTES_KEY, DatabaseName, decode_code_bytes
from storage.postings import KeyedCode, PostingLayout, PostingRow, rows_within, truncated_to

_ROWS_AT_ONCE: Final = 16
_FEW_POSTINGS: Final = 4
"""Up to this many are read one by one, which is faster than finding their row again."""


class PostingRows:
    """Reads and writes rows of postings; ``row_postings_max`` is the width up to which a row is read whole."""

    def __init__(self, databases: Mapping[DatabaseName, Any], row_postings_max: int) -> None:
        self._databases = databases
        self._postings_max = row_postings_max

    def layout(self, transaction: Transaction) -> PostingLayout | None:
        """Return the layout of the stored postings, or None while there are none. Raises ``UnreadableError``."""
        code_bytes = transaction.get(CODE_BYTES_KEY, db=self._databases["meta"])
        return None if code_bytes is None else decode_code_bytes(code_bytes)

    def bind(self, transaction: Transaction, layout: PostingLayout) -> None:
        """Store the layout of the first postings: all that follow must have the same."""
        transaction.put(CODE_BYTES_KEY, str(layout.code_bytes).encode(), db=self._databases["meta"])

    def add(self, transaction: Transaction, postings: Sequence[tuple[bytes, bytes]]) -> None:
        """Write (key, posting) pairs. Sorted pairs are faster: each page is found once."""
        transaction.cursor(self._databases["postings"]).putmulti(postings)

    def delete(self, transaction: Transaction, postings: Iterable[tuple[bytes, bytes]]) -> None:
        """Delete (key, posting) pairs, as far as they are stored."""
        for key, posting in postings:
            transaction.delete(key, posting, db=self._databases["postings"])

    def look_up(
        self, transaction: Transaction, keys: Sequence[bytes], layout: PostingLayout, bytes_max: int | None
    ) -> list[PostingRow]:
        """Read the rows of these keys; a truncated one holds the lowest codes, since postings are in order."""
        cursor = transaction.cursor(self._databases["postings"])
        rows = (row for some in _of_one_width(keys) for row in self._read(cursor, some, layout))
        return rows_within(rows, bytes_max)

    def seek(
        self, transaction: Transaction, codes: Sequence[KeyedCode], postings_max: int, layout: PostingLayout
    ) -> list[PostingRow]:
        """Read the postings with just these codes: within a row they lie side by side."""
        cursor = transaction.cursor(self._databases["postings"])
        return [_with_code(cursor, keyed, layout, postings_max) for keyed in codes]

    def widths(self, transaction: Transaction) -> NDArray[np.int64]:
        """Return the width of every row, in postings. Rows are counted one by one: a second for some millions."""
        cursor = transaction.cursor(self._databases["postings"])
        return np.fromiter((cursor.count() for _ in cursor.iternext_nodup(keys=True, values=False)), np.int64)

    def _read(self, cursor: Cursor, keys: Sequence[bytes], layout: PostingLayout) -> list[PostingRow]:
        """Read rows whose keys have one width. Rows of many postings are fetched with one call and cut up here."""
        rows: list[PostingRow] = []
        many, widths = [], []
        for place, key in enumerate(keys):
            packed = cursor.get(key, b"")
            width = cursor.count() if packed else 0
            is_cut = width > self._postings_max
            if is_cut:
                packed = b"".join(islice(cursor.iternext_dup(), truncated_to(self._postings_max)))
            elif width > _FEW_POSTINGS:
                many.append(place)
                widths.append(width)
            elif width > 1:
                packed = b"".join(cursor.iternext_dup())
            rows.append(PostingRow(packed, is_cut, layout))
        fetched = _fetched(cursor, [keys[place] for place in many], layout.posting_bytes)
        start = 0
        for place, width in zip(many, widths, strict=True):
            end = start + width * layout.posting_bytes
            rows[place] = PostingRow(fetched[start:end], truncated=False, layout=layout)
            start = end
        return rows


def _fetched(cursor: Cursor, keys: Sequence[bytes], posting_bytes: int) -> bytes:
    """Return all postings under these keys, which have one width."""
    if not keys:
        return b""
    fetched = cursor.getmulti(keys, dupdata=True, dupfixed_bytes=posting_bytes, keyfixed=True)
    # LMDB's binding puts the key before each posting; it is dropped here.
    return np.frombuffer(fetched, _keyed(len(keys[0]), posting_bytes))["posting"].tobytes()


def _with_code(cursor: Cursor, keyed: KeyedCode, layout: PostingLayout, postings_max: int) -> PostingRow:
    """Read the postings with one code: one step down the tree to the first, then one after the other."""
    lowest = keyed.code.ljust(layout.posting_bytes, b"\0")
    if not cursor.set_range_dup(keyed.key, lowest):
        return PostingRow(b"", truncated=False, layout=layout)
    matching = takewhile(lambda posting: posting.startswith(keyed.code), cursor.iternext_dup())
    found = list(islice(matching, postings_max + 1))
    return PostingRow(b"".join(found[:postings_max]), len(found) > postings_max, layout)


def _of_one_width(keys: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Group the keys in order, a few of one width at a time: that many rows fit into a processor's cache."""
    for _, same in groupby(keys, len):
        while some := list(islice(same, _ROWS_AT_ONCE)):
            yield some


@cache
def _keyed(key_bytes: int, posting_bytes: int) -> np.dtype[np.void]:
    """Return the dtype of a posting behind its key; there are as many as block plans."""
    return np.dtype([("key", f"V{key_bytes}"), ("posting", f"V{posting_bytes}")])
