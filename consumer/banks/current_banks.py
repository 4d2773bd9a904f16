"""The banks of a log as they are now, for a process that shows and changes them."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from consumer.banks.bank import BankError, Banks, Entry
from consumer.banks.bank_log import BankLog, news
from consumer.model.errors import DupwatchError

_Answer = TypeVar("_Answer")
BankChange = Callable[[Banks], tuple[Sequence[Entry], _Answer]]
"""Returns the entries to append to the banks as they are, and what to answer."""


class ChangeRefused(DupwatchError):  # noqa: N818  # what was done with the change
    """A change contradicts the banks, and nothing was changed. The caller is at fault, not what holds the banks."""


class CurrentBanks:
    """The banks of a log, brought up to date before each answer; for one thread at a time.

    It holds the text of every item from the first call of ``read`` on.
    """

    def __init__(self, log: BankLog) -> None:
        self._log = log
        self._banks = Banks.of(())

    def read(self) -> Banks:
        """Return the banks. Raises ``BankError`` if the log cannot be read, or contradicts itself."""
        with news(self._log) as found:
            if found.is_whole:
                self._banks = Banks.of(found.entries)
            elif found.entries:
                self._banks = self._banks.after(found.entries)
        return self._banks

    def change(self, change: BankChange[_Answer]) -> _Answer:
        """Append the entries that ``change`` returns for the banks as they are, and return its answer.

        Raises ``BankError`` if the log cannot be changed, ``ChangeRefused`` if the entries contradict the banks, and
        what ``change`` raises.
        """
        answers: list[_Answer] = []

        def checked(banks: Banks) -> Sequence[Entry]:
            entries, answer = change(banks)
            try:
                banks.after(entries)
            except BankError as error:
                raise ChangeRefused(str(error)) from error
            answers.append(answer)
            return entries

        self._log.change(checked)
        return answers[0]
