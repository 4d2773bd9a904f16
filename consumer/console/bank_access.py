"""The banks of the console: read and changed by one request at a time, and shown as they were last read.

What holds the banks may be slow or away. So everything about banks is answered by a thread of its own, and pages that
only name banks show them as they were last read.
"""

import threading
from typing import TypeVar

from consumer.banks.bank import Banks, BanksMissing
from consumer.banks.bank_log import BankLog
from consumer.banks.current_banks import BankChange, CurrentBanks
from consumer.config.sections.console import ConsoleSection
from consumer.web.request_threads import Workers

_Answer = TypeVar("_Answer")


class BankAccess:
    """Banks, and the ``workers`` that answer requests about them. Used by several threads."""

    def __init__(self, log: BankLog, section: ConsoleSection) -> None:
        self._current = CurrentBanks(log)
        self._lock = threading.Lock()
        self._latest: Banks | None = None
        self.workers = Workers(1, section.requests_max, section.answer_s)

    @property
    def latest(self) -> Banks | None:
        """The banks as they were last read, None before that. It waits for nothing."""
        return self._latest

    def read(self) -> Banks:
        """Return the banks as they are now; none where they were not created yet. Raises ``BankError``."""
        with self._lock:
            try:
                self._latest = self._current.read()
            except BanksMissing:
                self._latest = Banks.of(())
            return self._latest

    def change(self, change: BankChange[_Answer]) -> _Answer:
        """Make a change, and return its answer. Raises ``BankError``, ``ChangeRefused`` and what ``change`` raises."""
        with self._lock:
            return self._current.change(change)

    def close(self) -> None:
        """Take on no further requests, and wait for the current one."""
        self.workers.close()
