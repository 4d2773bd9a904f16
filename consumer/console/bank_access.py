"""The console's banks: read and changed by one request at a time.

The storage of the banks may be slow or unreachable. So a separate thread answers requests about banks. Pages that only
name banks show the state that was last read.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from consumer.banks.bank import Banks, BanksMissing, BanksUnreachable
from consumer.banks.bank_log import BankLog
from consumer.banks.current_banks import BankChange, CurrentBanks
from consumer.config.sections.console import ConsoleSection
from consumer.web.request_threads import Workers

WAIT_S: Final = 5.0
"""The maximum time that a request waits while another one reads or changes the banks."""
_NO_TIMEOUT: Final = -1.0

_Answer = TypeVar("_Answer")


class BankAccess:
    """Banks, and the ``workers`` that answer requests about them. Used by several threads.

    One thread calls ``follow`` every few seconds. If a call finds the banks unreachable, requests are refused
    immediately until a later call reaches them. While a call runs, requests wait for at most ``WAIT_S``.
    """

    def __init__(self, log: BankLog, section: ConsoleSection) -> None:
        self._current = CurrentBanks(log)
        self._lock = threading.Lock()
        self._latest: Banks | None = None
        self._failure: BanksUnreachable | None = None
        self.workers = Workers(1, section.requests_max, section.answer_s)

    @property
    def latest(self) -> Banks | None:
        """The banks as they were last read, or None before the first read. Never waits."""
        return self._latest

    def follow(self) -> None:
        """Bring ``latest`` up to date. Raises ``BankError``."""
        failure = None
        with self._exclusive():
            try:
                self._read()
            except BanksUnreachable as error:
                failure = error
                raise
            finally:
                self._failure = failure

    def read(self) -> Banks:
        """Return the current banks; an empty collection if none were ever created. Raises ``BankError``."""
        with self._for_request():
            return self._read()

    def change(self, change: BankChange[_Answer]) -> _Answer:
        """Make a change and return its answer. Raises ``BankError``, ``ChangeRefused``, and errors of ``change``."""
        with self._for_request():
            return self._current.change(change)

    def close(self) -> None:
        """Refuse further requests, and wait for the current one."""
        self.workers.close()

    def _read(self) -> Banks:
        try:
            self._latest = self._current.read()
        except BanksMissing:
            self._latest = Banks.of(())
        return self._latest

    @contextmanager
    def _for_request(self) -> Iterator[None]:
        if self._failure is not None:
            raise BanksUnreachable(f"{self._failure}")
        with self._exclusive(WAIT_S):
            yield

    @contextmanager
    def _exclusive(self, wait_s: float = _NO_TIMEOUT) -> Iterator[None]:
        if not self._lock.acquire(timeout=wait_s):
            raise BanksUnreachable(f"they are still being read after {wait_s:g} s")
        try:
            yield
        finally:
            self._lock.release()
