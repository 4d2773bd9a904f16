"""The current banks of a log, for a process that shows and changes them."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from consumer.banks.bank import BankError, Banks, Entry
from consumer.banks.bank_log import BankLog, new_entries
from consumer.model.errors import DupwatchError

_Answer = TypeVar("_Answer")
BankChange = Callable[[Banks], tuple[Sequence[Entry], _Answer]]
"""Given the current banks, returns the entries to append and a result for the caller."""


class ChangeRefused(DupwatchError):  # noqa: N818  # named for the change
    """A change contradicts the banks, and nothing was changed. This is an error of the caller, not of the storage."""


class CurrentBanks:
    """The banks of a log, updated by each ``read``, for one thread at a time.

    After the first call of ``read``, all texts are in memory.
    """

    def __init__(self, log: BankLog) -> None:
        self._log = log
        self._banks = Banks.of(())

    def read(self) -> Banks:
        """Return the banks. Raises ``BankError`` if the log cannot be read, or contradicts itself."""
        with new_entries(self._log) as read:
            if read.is_whole:
                self._banks = Banks.of(read.entries)
            elif read.entries:
                self._banks = self._banks.after(read.entries)
        return self._banks

    def change(self, change: BankChange[_Answer]) -> _Answer:
        """Append the entries that ``change`` returns for the current banks, and return the result of ``change``.

        Raises ``BankError`` if the log cannot be changed, ``ChangeRefused`` if the entries contradict the banks, and
        what ``change`` raises.
        """
        answers: list[_Answer] = []

        def checked_entries(banks: Banks) -> Sequence[Entry]:
            entries, answer = change(banks)
            try:
                banks.after(entries)
            except BankError as error:
                raise ChangeRefused(str(error)) from error
            answers.append(answer)
            return entries

        self._log.change(checked_entries)
        return answers[0]
