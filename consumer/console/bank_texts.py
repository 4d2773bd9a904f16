"""Prepares the items of all banks for comparison with pasted texts.

A thread computes their shingles when somebody first tries a text, since most consoles never need them. A page waits
for that thread for at most ``PREPARE_S``.
"""

import threading
from collections.abc import Callable
from functools import partial
from typing import Final, Literal, NamedTuple

from consumer.banks.bank import Banks
from consumer.banks.known_texts import KnownTexts
from consumer.fingerprint import Engine
from consumer.lifecycle.background import Call
from consumer.store_tools.bank_matches import ComparableStore

BANK_ITEMS_MAX: Final = 100_000
"""The maximum number of bank items that a pasted text is compared with. Each takes 1.2 kB of memory."""
PREPARE_S: Final = 2.0
"""How long a page waits for items to be prepared."""

BankComparisonState = Literal["compared", "no banks", "unread", "preparing", "too many", "no sketches"]
"""Whether a text was compared with the banks, or why not."""


class KnownItems(NamedTuple):
    """The prepared items, or None if a text cannot be compared with them; ``state`` says why."""

    known: KnownTexts | None
    state: BankComparisonState


class _PreparedItems(NamedTuple):
    engine: Engine
    banks: Banks
    known: KnownTexts
    call: Call[None]


class BankTexts:
    """The prepared items of the banks. Used by several threads."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._prepared: _PreparedItems | None = None

    def known(self, opened: ComparableStore, banks: Banks | None, *, has_banks: bool) -> KnownItems:
        """Return the items of these banks; ``banks`` is None if they have not been read yet.

        ``has_banks`` says whether the console has banks. Raises the error of a failed preparation.
        """
        if not has_banks:
            return KnownItems(None, "no banks")
        if banks is None:
            return KnownItems(None, "unread")
        if not opened.settings.sketched:
            return KnownItems(None, "no sketches")
        if len(banks.items) > BANK_ITEMS_MAX:
            return KnownItems(None, "too many")
        prepared = self._current(opened, banks)
        if not prepared.call.wait(PREPARE_S) or prepared.banks is not banks:
            return KnownItems(None, "preparing")
        prepared.call.result()
        return KnownItems(prepared.known, "compared")

    def _current(self, opened: ComparableStore, banks: Banks) -> _PreparedItems:
        """Return the preparation of the items of these banks, and begin it if necessary.

        While an earlier preparation is still running, return that one instead.
        """
        with self._lock:
            before = self._prepared
            if before is not None and before.engine is opened.engine and before.banks is banks:
                return before
            if before is not None and not before.call.wait(0):
                return before
            # Unchanged items are not computed again.
            known = before.known if before is not None and before.engine is opened.engine else None
            known = known or KnownTexts(opened.engine, opened.settings, self._now_ms)
            call = Call(partial(known.replace, banks.entries()))
            self._prepared = _PreparedItems(opened.engine, banks, known, call)
            return self._prepared
