"""The port of what holds banks: a log of entries, of which the last one about a bank or an item counts."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol

from consumer.banks.bank import BankError, Banks, Entry

READ_S: Final = 30.0
"""How long a log may be silent while it is read."""

BankLogChange = Callable[[Banks], Sequence[Entry]]
"""Returns the entries to append, given the banks as they are."""


class NewEntries(NamedTuple):
    """Entries of a log. ``is_whole`` says that they are all that it has, and not only those since the last read.

    ``invalid`` counts those that were left out because they are not valid; where one writer keeps a log, that is an
    error instead.
    """

    entries: list[Entry]
    is_whole: bool
    invalid: int = 0


class BankLog(Protocol):
    """A log of entries; for one thread at a time. Its methods raise ``BankError``."""

    def read(self) -> NewEntries:
        """Return all entries, or from the second call on usually those that are new.

        Raises ``BanksMissing`` for a log that was not created yet.
        """
        ...

    def change(self, change: BankLogChange) -> Sequence[Entry]:
        """Append the entries that ``change`` returns, and return them. Where it raises, nothing is changed.

        Entries that contradict the banks are refused. Several processes may change a log.
        """
        ...

    def close(self) -> None:
        """Release the log; a second call does nothing. A later ``read`` opens it again, and returns all entries."""
        ...


@contextmanager
def news(log: BankLog) -> Iterator[NewEntries]:
    """Read a log, to apply the entries in the context. Raises ``BankError`` where they cannot be read or applied.

    Then the next read begins again, or entries that were read but not applied would be lost.
    """
    try:
        yield log.read()
    except BankError:
        log.close()
        raise
