"""The banks of a log as they are now, for a process that shows and changes them."""

from collections.abc import Sequence

from consumer.banks.bank import BankError, Banks, Entry
from consumer.banks.bank_log import BankLog, Change


class CurrentBanks:
    """The banks of a log, brought up to date before each answer; for one thread.

    It holds the text of every item from the first call of ``read`` on.
    """

    def __init__(self, log: BankLog) -> None:
        self._log = log
        self._banks = Banks.of(())

    def read(self) -> Banks:
        """Return the banks. Raises ``BankError`` if the log cannot be read, or contradicts itself."""
        try:
            found = self._log.read()
            if found.is_whole:
                self._banks = Banks.of(found.entries)
            elif found.entries:
                self._banks = self._banks.after(found.entries)
        except BankError:
            # The next read begins again, or entries that were read but not applied would be lost.
            self._log.close()
            raise
        return self._banks

    def change(self, change: Change) -> Sequence[Entry]:
        """Append the entries that ``change`` returns for the banks as they are. Raises ``BankError``."""
        return self._log.change(change)
