"""The banks of the console: read and changed by one request at a time, and shown as they were last read.

What holds the banks may be slow or away. So everything about banks is answered by a thread of its own, and pages that
only name banks show them as they were last read.
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
"""How long a request waits while the banks are being read for all."""
_WITHOUT_END: Final = -1.0

_Answer = TypeVar("_Answer")


class BankAccess:
    """Banks, and the ``workers`` that answer requests about them. Used by several threads.

    One thread calls ``follow`` every few seconds. While that takes long, or gets no answer, requests are refused and do
    not wait as well.
    """

    def __init__(self, log: BankLog, section: ConsoleSection) -> None:
        self._current = CurrentBanks(log)
        self._lock = threading.Lock()
        self._latest: Banks | None = None
        self._away: BanksUnreachable | None = None
        self.workers = Workers(1, section.requests_max, section.answer_s)

    @property
    def latest(self) -> Banks | None:
        """The banks as they were last read, None before that. It waits for nothing."""
        return self._latest

    def follow(self) -> None:
        """Bring ``latest`` up to date. Raises ``BankError``."""
        away = None
        with self._alone():
            try:
                self._read()
            except BanksUnreachable as error:
                away = error
                raise
            finally:
                self._away = away

    def read(self) -> Banks:
        """Return the banks as they are now; none where they were not created yet. Raises ``BankError``."""
        with self._of_request():
            return self._read()

    def change(self, change: BankChange[_Answer]) -> _Answer:
        """Make a change, and return its answer. Raises ``BankError``, ``ChangeRefused`` and what ``change`` raises."""
        with self._of_request():
            return self._current.change(change)

    def close(self) -> None:
        """Take on no further requests, and wait for the current one."""
        self.workers.close()

    def _read(self) -> Banks:
        try:
            self._latest = self._current.read()
        except BanksMissing:
            self._latest = Banks.of(())
        return self._latest

    @contextmanager
    def _of_request(self) -> Iterator[None]:
        if self._away is not None:
            raise BanksUnreachable(f"{self._away}")
        with self._alone(WAIT_S):
            yield

    @contextmanager
    def _alone(self, wait_s: float = _WITHOUT_END) -> Iterator[None]:
        if not self._lock.acquire(timeout=wait_s):
            raise BanksUnreachable(f"they are still being read after {wait_s:g} s")
        try:
            yield
        finally:
            self._lock.release()
