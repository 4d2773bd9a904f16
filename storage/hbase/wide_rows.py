"""Which rows of postings are too wide to be asked for together with others.

A gateway answers with whole rows, so a row has to be known to be wide before it is read. A process remembers what it
has seen of a row or written into it, and leaves a mark in ``meta``, so that no other has to find out. A missing mark
costs one big answer, which ``GatewayConnection.rows`` gives up; one too many costs a scanner.
"""

import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Final

from storage.hbase.calls import Calls
from storage.hbase.connection import Change
from storage.records import Record

WIDE_CELLS: Final = 4_096
"""A row with more cells than this is read in pieces: so no answer is bigger than a few of them."""
MARKS_ROW: Final = b"wide"
_FAMILY: Final = b"m"
_KEYS_MAX: Final = 10_000
_REFRESH_S: Final = 30.0


class WideRows:
    """The keys of wide rows, those that were met longest ago are forgotten first. For any number of threads."""

    def __init__(self, meta: bytes, *, readonly: bool) -> None:
        self._meta = meta
        self._readonly = readonly
        self._keys: OrderedDict[bytes, None] = OrderedDict()
        self._added: OrderedDict[bytes, int] = OrderedDict()
        self._lock = Lock()
        self._refresh_at_s = 0.0

    def __contains__(self, key: bytes) -> bool:
        return key in self._keys

    def refresh(self, calls: Calls) -> None:
        """Learn what others have marked, at most twice a minute."""
        with self._lock:
            now_s = time.monotonic()
            if now_s < self._refresh_at_s:
                return
            self._refresh_at_s = now_s + _REFRESH_S
        marks = calls.rows(self._meta, [MARKS_ROW], [_FAMILY], 1).get(MARKS_ROW, {})
        self.keep(column.partition(b":")[2] for column in marks)

    def remember(self, calls: Calls, keys: Iterable[bytes]) -> None:
        """Note that these rows are wide, for every process."""
        new = [key for key in keys if key not in self._keys]
        if not new:
            return
        self.keep(new)
        if not self._readonly:
            calls.change(self._meta, [Change(MARKS_ROW, _FAMILY + b":" + key, b"") for key in new])

    def count(self, calls: Calls, records: Sequence[Record]) -> None:
        """Note what is written into rows: who fills one without ever looking it up knows its width all the same."""
        grown: list[bytes] = []
        with self._lock:
            for key in (key for record in records for key in record.keys):
                count = self._added[key] = self._added.get(key, 0) + 1
                self._added.move_to_end(key)
                if count == WIDE_CELLS:
                    grown.append(key)
            while len(self._added) > _KEYS_MAX:
                self._added.popitem(last=False)
        self.remember(calls, grown)

    def keep(self, keys: Iterable[bytes]) -> None:
        """Note that these rows are wide, for this process alone."""
        with self._lock:
            for key in keys:
                self._keys[key] = None
                self._keys.move_to_end(key)
            while len(self._keys) > _KEYS_MAX:
                self._keys.popitem(last=False)
