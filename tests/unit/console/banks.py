"""Banks of a console: a file as another process would write it, and what can go wrong with one."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from consumer.banks.bank import Bank, BankError, BankItem, Banks, Entry
from consumer.banks.bank_log import BankLog, BankLogChange, NewEntries
from consumer.files.bank_file import BankFile
from storage.files import WriteOptions

TEXT = "Win a ferry ticket now, only today, only here."


def bank_file(path: Path, *entries: Entry) -> BankFile:
    """Open a file of banks, after these entries were appended by somebody else."""
    if entries:
        BankFile(path, WriteOptions(durable=False)).change(lambda _: entries)
    return BankFile(path, WriteOptions(durable=False))


def banks_in(path: Path) -> Banks:
    """Return what a file of banks has, as another process reads it."""
    return Banks.of(bank_file(path).read().entries)


def bank(name: str, action: Any = "deny", **fields: Any) -> Bank:  # noqa: ANN401  # as the entry has them
    """Return a bank."""
    return Bank(bank=name, action=action, **fields)


def item(of_bank: str, name: str, text: str = TEXT, **fields: Any) -> BankItem:  # noqa: ANN401  # as the entry has them
    """Return an item."""
    return BankItem(bank=of_bank, item=name, text=text, **fields)


class FailingBanks(BankLog):
    """A log that is away while ``error`` is set, and waits while ``gate`` is closed; ``waits`` says that it does."""

    def __init__(self, banks: BankLog) -> None:
        self._banks = banks
        self.error: BankError | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.waits = threading.Event()

    @override
    def read(self) -> NewEntries:
        self._check()
        return self._banks.read()

    @override
    def change(self, change: BankLogChange) -> Sequence[Entry]:
        self._check()
        return self._banks.change(change)

    @override
    def close(self) -> None:
        self._banks.close()

    def _check(self) -> None:
        if not self.gate.is_set():
            self.waits.set()
        assert self.gate.wait(60)
        if self.error is not None:
            raise self.error
