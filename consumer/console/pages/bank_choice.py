"""The form on the page of a flag that adds a text to a bank, and the line that says what was just added."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple

from consumer.banks.bank import ITEM_ID, Bank, BankItem
from consumer.banks.changes import items_need_admin
from consumer.console.faults import N_
from consumer.console.pages.bank_forms import item_path, may_change_items
from consumer.console.visit import SignedInVisit

_BANK: Final = "to_bank"
_ITEM: Final = "item"
_DONE: Final = "banked"
"""The fields of a query that say what was just added to which bank."""
_NAME: Final = re.compile(ITEM_ID)
_SAID: Final[Mapping[str, str]] = {
    "added": N_("The text is added to the bank %(bank)s. Consumers find it within two seconds."),
    "known": N_("The bank %(bank)s has this text already, and nothing was changed."),
}


class BankChoice(NamedTuple):
    """The banks that the page of a flag offers.

    ``banks`` are those that the person may add to, None where the banks were not read yet. ``said`` and ``href`` are
    about what was just added, "" where nothing was.
    """

    banks: tuple[Bank, ...] | None
    chosen: str
    said: str
    href: str


def bank_choice(asked: SignedInVisit) -> BankChoice | None:
    """Return what a flag's page shows of banks, None where the console has none.

    It shows them as they were last read, and does not wait for them.
    """
    if asked.desk.banks is None:
        return None
    latest, banks = asked.desk.banks.latest, None
    if latest is not None:
        banks = tuple(sorted(filter(partial(may_change_items, asked.person), latest.banks.values()), key=_order))
    bank, item = asked.query.text(_BANK), asked.query.text(_ITEM)
    said = _SAID.get(asked.query.text(_DONE))
    if said is None or not _NAME.fullmatch(bank) or not _NAME.fullmatch(item):
        return BankChoice(banks, "", "", "")
    return BankChoice(banks, bank, asked.language.gettext(said, bank=bank), item_path(bank, item))


def _order(bank: Bank) -> tuple[bool, str]:
    """Return where a bank is offered: one that allows is chosen deliberately, and not because it comes first."""
    return items_need_admin(bank), bank.bank


def choice_fields(item: BankItem, *, is_new: bool) -> dict[str, str]:
    """Return the query that makes the page say what was added."""
    return {_BANK: item.bank, _ITEM: item.item, _DONE: "added" if is_new else "known"}
