"""The port for the storage of banks: a log of entries, in which the last entry about a bank or an item counts."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol

from consumer.banks.bank import BankError, Banks, Entry

READ_S: Final = 30.0
"""How long a topic of banks waits for its next message, and for the brokers to accept an entry, in seconds."""

BankLogChange = Callable[[Banks], Sequence[Entry]]
"""Returns the entries to append, given the current banks."""


class NewEntries(NamedTuple):
    """Entries read from a log: all entries if ``is_whole``, or else only the entries added since the last read.

    ``invalid`` counts invalid entries, which are left out. Some logs raise ``BankError`` instead.
    """

    entries: list[Entry]
    is_whole: bool
    invalid: int = 0


class BankLog(Protocol):
    """A log of entries, for one thread at a time.

    ``read`` and ``change`` raise ``BankError`` if the storage fails. ``read`` may return entries that contradict each
    other; they raise ``BankError`` when they are applied.
    """

    def read(self) -> NewEntries:
        """Return all entries; from the second call on, usually only new entries.

        Raises ``BanksMissing`` for a log that has not been created yet.
        """
        ...

    def change(self, change: BankLogChange) -> Sequence[Entry]:
        """Append the entries that ``change`` returns, and return them. If ``change`` raises, nothing is changed.

        Raises ``BankError`` for entries that contradict the banks. Several processes may change a log.
        """
        ...

    def close(self) -> None:
        """Close the log. A second call does nothing. A later ``read`` reopens it and returns all entries."""
        ...


@contextmanager
def new_entries(log: BankLog) -> Iterator[NewEntries]:
    """Read a log, and yield the entries, which the block must apply. Raises ``BankError`` if the log cannot be read.

    If reading or the block raises ``BankError``, the next read starts over. So entries that were read but not applied
    are not lost.
    """
    try:
        yield log.read()
    except BankError:
        log.close()
        raise
