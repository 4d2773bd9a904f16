"""What of the store repeats an item: looked up for pages, one request at a time and within a limit of time."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final, NamedTuple

from consumer.banks.bank import Banks
from consumer.banks.known_texts import KnownTexts
from consumer.console.faults import N_, PageError
from consumer.judge.settings import JudgeSettings
from consumer.model.errors import StoreMismatch
from consumer.store_tools.bank_matches import BankLookUp, ComparableStore, StoredMatches, compare

log = logging.getLogger("dupwatch")

MATCHES_MAX: Final = 100
"""Articles that a page lists."""
COMPARED_MAX: Final = 500
"""Flagged articles that are compared with an item, and that one decision releases."""
LOOK_UP_S: Final = 10.0
"""How long the store may take for one page."""
WAIT_S: Final = 5.0
"""How long a request waits for the one before it."""
_VERSIONS_AT_ONCE: Final = 64


class KeptMatches(NamedTuple):
    """The kept articles that repeat an item, and the settings of the store."""

    matches: StoredMatches
    settings: JudgeSettings


class MatchSearch:
    """Finds stored articles that repeat an item. Used by several threads.

    Its methods raise ``PageError`` when they take too long or find no way to compare, and what ``access`` and the
    store raise.
    """

    def __init__(
        self,
        access: Callable[[], ComparableStore],
        now_ms: Callable[[], int],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._access = access
        self._now_ms = now_ms
        self._now_s = now_s
        self._lock = threading.Lock()

    def kept(self, banks: Banks) -> KeptMatches:
        """Return the kept articles of the window that repeat the items of these banks."""
        with self._alone() as (opened, proceed):
            return KeptMatches(BankLookUp(opened, self._now_ms, proceed).find(banks, MATCHES_MAX), opened.settings)

    def repeating(self, banks: Banks, references: Sequence[bytes]) -> frozenset[bytes]:
        """Return which of some versions are in force and repeat an item of these banks."""
        with self._alone() as (opened, proceed):
            known = KnownTexts(opened.engine, opened.settings, self._now_ms)
            known.replace([*banks.banks.values(), *banks.items_at(self._now_ms())])
            found: set[bytes] = set()
            for start in range(0, len(references), _VERSIONS_AT_ONCE):
                proceed()
                read = opened.store.read(references[start : start + _VERSIONS_AT_ONCE])
                current = [stored for stored in read if stored is not None and stored.ends_at is None]
                found.update(match.stored.record.reference for match in compare(opened.store, known, current).found())
            return frozenset(found)

    def _opened(self) -> ComparableStore:
        try:
            return self._access()
        except StoreMismatch as error:
            # It answers, so trying again does not help.
            log.warning("The store cannot be searched for items of banks: %s", error)
            message = N_("The store cannot be searched for items of banks; the log of the console says why.")
            raise PageError(HTTPStatus.CONFLICT, message) from error

    @contextmanager
    def _alone(self) -> Iterator[tuple[ComparableStore, Callable[[], None]]]:
        """Wait for the request before this one; return the store, and what ends this one after ``LOOK_UP_S``."""
        if not self._lock.acquire(timeout=WAIT_S):
            message = N_("The store is still being searched for somebody else. Try again in some seconds.")
            raise PageError(HTTPStatus.SERVICE_UNAVAILABLE, message, retry_s=round(WAIT_S))
        try:
            until_s = self._now_s() + LOOK_UP_S
            opened = self._opened()
            if not opened.settings.sketched:
                message = N_("The store has no sketches, so nothing can be compared with items of banks.")
                raise PageError(HTTPStatus.CONFLICT, message)

            def proceed() -> None:
                if self._now_s() > until_s:
                    raise _too_slow()

            yield opened, proceed
        finally:
            self._lock.release()


def _too_slow() -> PageError:
    message = N_(
        "The store was searched for %(seconds)s s, and the search was ended. Try again, or use dupwatch bank matches, "
        "which has no such limit."
    )
    return PageError(HTTPStatus.SERVICE_UNAVAILABLE, message, seconds=f"{LOOK_UP_S:g}", retry_s=round(WAIT_S))
