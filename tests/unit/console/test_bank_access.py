"""The banks of a console while they are slow."""

import threading
from pathlib import Path

import pytest

from consumer.banks.bank import BankError, Banks, BanksUnreachable
from consumer.config.sections.console import ConsoleSection
from consumer.console import bank_access
from consumer.console.bank_access import BankAccess
from tests.unit.console.banks import FailingBanks, bank, bank_file


@pytest.fixture
def banks(tmp_path: Path) -> FailingBanks:
    """A log with a bank."""
    return FailingBanks(bank_file(tmp_path / "banks.jsonl", bank("spam")))


def test_requests_do_not_wait_for_what_follows_the_banks(banks: FailingBanks, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are refused, and the banks are shown as they were; what follows the banks waits for requests."""
    monkeypatch.setattr(bank_access, "WAIT_S", 0.05)
    access = BankAccess(banks, ConsoleSection())
    try:
        spam = access.read()
        banks.gate.clear()
        following = threading.Thread(target=access.follow)
        following.start()
        assert banks.waits.wait(60)
        with pytest.raises(BanksUnreachable, match="still being read"):
            access.read()
        with pytest.raises(BanksUnreachable, match="still being read"):
            access.change(lambda _: ([], None))
        assert access.latest is spam
        banks.gate.set()
        following.join(60)
        assert access.read() == Banks.of([bank("spam")])
    finally:
        banks.gate.set()
        access.close()


def test_requests_are_refused_while_what_follows_the_banks_gets_no_answer(banks: FailingBanks) -> None:
    """They need not find it out themselves; banks that are only wrong are read again each time."""
    access = BankAccess(banks, ConsoleSection())
    try:
        for error, refused in ((BankError("line 3"), False), (BanksUnreachable("no broker answers"), True)):
            banks.error = error
            with pytest.raises(BankError):
                access.follow()
            banks.error = None
            if refused:
                with pytest.raises(BanksUnreachable, match="no broker answers"):
                    access.read()
            else:
                assert set(access.read().banks) == {"spam"}
        access.follow()
        assert access.change(lambda found: ([], len(found.banks))) == 1
    finally:
        access.close()
