"""The form that adds a text to a bank, on the pages of flags, reports and stories, and the notice that follows."""

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
"""Query fields that say what was just added to which bank."""
_NAME: Final = re.compile(ITEM_ID)
_NOTICES: Final[Mapping[str, str]] = {
    "added": N_("Text added to the bank %(bank)s. Consumers find it within two seconds."),
    "known": N_("The bank %(bank)s already has this text. Nothing was changed."),
}


class BankChoice(NamedTuple):
    """The banks that a page offers.

    ``banks`` are the banks that the person may add to, or None if the banks have not been read yet. ``chosen`` is the
    bank in the form that was just sent, ``notice`` says what was done, and ``href`` is the path of the item. They are
    "" if no such form was sent.
    """

    banks: tuple[Bank, ...] | None
    chosen: str
    notice: str
    href: str


def bank_choice(visit: SignedInVisit) -> BankChoice | None:
    """Return the banks for a page as last read, without waiting; None if the console has no banks."""
    if visit.context.banks is None:
        return None
    latest, banks = visit.context.banks.latest, None
    if latest is not None:
        banks = tuple(sorted(filter(partial(may_change_items, visit.person), latest.banks.values()), key=_order))
    bank, item = visit.query.text(_BANK), visit.query.text(_ITEM)
    notice = _NOTICES.get(visit.query.text(_DONE))
    if notice is None or not _NAME.fullmatch(bank) or not _NAME.fullmatch(item):
        return BankChoice(banks, "", "", "")
    return BankChoice(banks, bank, visit.language.gettext(notice, bank=bank), item_path(bank, item))


def _order(bank: Bank) -> tuple[bool, str]:
    """Return the sort key of a bank: allow banks come last, so that nobody chooses one by accident."""
    return items_need_admin(bank), bank.bank


def choice_fields(item: BankItem, *, is_new: bool) -> dict[str, str]:
    """Return the query fields that make the page say what was added."""
    return {_BANK: item.bank, _ITEM: item.item, _DONE: "added" if is_new else "known"}
