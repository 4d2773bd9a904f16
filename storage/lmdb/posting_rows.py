"""The database ``postings``: a row for each key, with its postings in order.

Every call works within the caller's transaction.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby, islice, takewhile
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from storage.lmdb.environment import Cursor, Transaction
from storage.lmdb.layout import CODE_BYTES_KEY, DatabaseName, decode_code_bytes
from storage.postings import KeyedCode, PostingLayout, PostingRow, rows_within, truncated_to

_ROWS_AT_ONCE: Final = 16
"""Rows read in one call, so few that they fit into a processor's cache."""
_FEW_POSTINGS: Final = 4
"""Up to this many postings are read one by one, which is faster than finding their row again."""


class PostingRows:
    """The rows of postings. ``row_postings_max`` is the width up to which a row is read whole."""

    def __init__(self, databases: Mapping[DatabaseName, Any], row_postings_max: int) -> None:
        self._databases = databases
        self._postings_max = row_postings_max

    def layout(self, transaction: Transaction) -> PostingLayout | None:
        """Return the layout of the stored postings, None while there are none. Raises ``UnreadableError``."""
        code_bytes = transaction.get(CODE_BYTES_KEY, db=self._databases["meta"])
        return None if code_bytes is None else decode_code_bytes(code_bytes)

    def bind(self, transaction: Transaction, layout: PostingLayout) -> None:
        """Store the layout of the first postings, which all later ones must have too."""
        transaction.put(CODE_BYTES_KEY, str(layout.code_bytes).encode(), db=self._databases["meta"])

    def add(self, transaction: Transaction, postings: Sequence[tuple[bytes, bytes]]) -> None:
        """Write (key, posting) pairs. Sorted pairs are faster: each page is found once."""
        transaction.cursor(self._databases["postings"]).putmulti(postings)

    def delete(self, transaction: Transaction, postings: Iterable[tuple[bytes, bytes]]) -> None:
        """Delete (key, posting) pairs; missing ones are ignored."""
        for key, posting in postings:
            transaction.delete(key, posting, db=self._databases["postings"])

    def look_up(
        self, transaction: Transaction, keys: Sequence[bytes], layout: PostingLayout, bytes_max: int | None
    ) -> list[PostingRow]:
        """Read the rows of these keys, or only the first ones if they have more than ``bytes_max`` bytes.

        A truncated row holds the lowest codes, since postings are in order.
        """
        cursor = transaction.cursor(self._databases["postings"])
        groups = (keys[start : start + _ROWS_AT_ONCE] for start in range(0, len(keys), _ROWS_AT_ONCE))
        return rows_within((row for group in groups for row in self._read(cursor, group, layout)), bytes_max)

    def seek(
        self, transaction: Transaction, codes: Sequence[KeyedCode], postings_max: int, layout: PostingLayout
    ) -> list[PostingRow]:
        """Read up to ``postings_max`` postings with exactly each of these codes; they are adjacent within a row."""
        cursor = transaction.cursor(self._databases["postings"])
        return [_with_code(cursor, keyed, layout, postings_max) for keyed in codes]

    def widths(self, transaction: Transaction) -> NDArray[np.int64]:
        """Return the width of every row, in postings. Takes about a second for some million rows."""
        cursor = transaction.cursor(self._databases["postings"])
        return np.fromiter((cursor.count() for _ in cursor.iternext_nodup(keys=True, values=False)), np.int64)

    def _read(self, cursor: Cursor, keys: Sequence[bytes], layout: PostingLayout) -> list[PostingRow]:
        """Read the rows of a few keys. Rows with many postings are fetched in one call, and split here."""
        empty = PostingRow(b"", truncated=False, layout=layout)
        rows: list[PostingRow] = []
        wide_places, widths = [], []
        for place, key in enumerate(keys):
            packed = cursor.get(key)
            if packed is None:
                rows.append(empty)
                continue
            width = cursor.count()
            is_truncated = width > self._postings_max
            if is_truncated:
                packed = b"".join(islice(cursor.iternext_dup(), truncated_to(self._postings_max)))
            elif width > _FEW_POSTINGS:
                wide_places.append(place)
                widths.append(width)
            elif width > 1:
                packed = b"".join(cursor.iternext_dup())
            rows.append(PostingRow(packed, is_truncated, layout))
        fetched = _fetch(cursor, [keys[place] for place in wide_places], layout.posting_bytes)
        start = 0
        for place, width in zip(wide_places, widths, strict=True):
            end = start + width * layout.posting_bytes
            rows[place] = PostingRow(fetched[start:end], truncated=False, layout=layout)
            start = end
        return rows


def _fetch(cursor: Cursor, keys: Sequence[bytes], posting_bytes: int) -> bytes:
    """Return all postings under these keys, joined."""
    fetched = b""
    for key_bytes, same_width in groupby(keys, len):
        keyed = cursor.getmulti(list(same_width), dupdata=True, dupfixed_bytes=posting_bytes, keyfixed=True)
        # LMDB's binding puts the key before each posting; it is dropped here.
        fetched += np.frombuffer(keyed, _keyed_posting(key_bytes, posting_bytes))["posting"].tobytes()
    return fetched


def _with_code(cursor: Cursor, keyed: KeyedCode, layout: PostingLayout, postings_max: int) -> PostingRow:
    """Read the postings with one code: find the first, then read on."""
    lowest = keyed.code.ljust(layout.posting_bytes, b"\0")
    if not cursor.set_range_dup(keyed.key, lowest):
        return PostingRow(b"", truncated=False, layout=layout)
    matching = takewhile(lambda posting: posting.startswith(keyed.code), cursor.iternext_dup())
    found = list(islice(matching, postings_max + 1))
    return PostingRow(b"".join(found[:postings_max]), len(found) > postings_max, layout)


@cache
def _keyed_posting(key_bytes: int, posting_bytes: int) -> np.dtype[np.void]:
    """Return the dtype of a key with its posting. Cached, since a store has few such widths."""
    return np.dtype([("key", f"V{key_bytes}"), ("posting", f"V{posting_bytes}")])
