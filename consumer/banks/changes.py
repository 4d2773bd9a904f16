"""Entries that change banks, as the command, the HTTP service and the console make them, and who may make them."""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from consumer.banks.bank import Bank, BankError, BankItem, Banks, check_entry, explained

_Kind = TypeVar("_Kind", Bank, BankItem)


def new_entry(values: Mapping[str, object], kind: type[_Kind]) -> _Kind:
    """Return an entry with these members. Raises ``BankError`` where they are not valid."""
    try:
        entry = msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise BankError(explained(error)) from None
    check_entry(entry)
    return entry


def unless_same(before: _Kind | None, entry: _Kind) -> _Kind:
    """Return what there was ``before`` if the entry differs only in who made it, and when; otherwise the entry."""
    if before is None:
        return entry
    return before if msgspec.structs.replace(before, by=entry.by, at=entry.at) == entry else entry


def replacement(banks: Banks, entry: BankItem) -> BankItem:
    """Return an entry that adds an item or replaces it, with what remains of a confirmation."""
    before = banks.items.get(entry.key)
    if before is None:
        return entry
    confirmed = stays_confirmed(before, entry, banks.banks[entry.bank])
    return msgspec.structs.replace(entry, confirmed=confirmed or (entry.confirmed and entry.text == before.text))


def stays_confirmed(before: BankItem, after: BankItem, bank: Bank) -> bool:
    """Return whether a confirmation outlasts a change: of the same text, which has to be as similar as before.

    Otherwise somebody who is no admin could let a confirmed item match nearly everything.
    """
    had, has = (item.similarity or bank.item_similarity for item in (before, after))
    return before.confirmed and after.text == before.text and has >= had


def items_need_admin(bank: Bank) -> bool:
    """Return whether only an admin changes the items of a bank: what allows decides, and what denies informs."""
    return bank.action == "allow"


def state_of(entry: Bank | BankItem) -> str:
    """Return the state of an entry, as messages and records of changes name it."""
    state = "enabled" if entry.enabled else "disabled"
    return f"{state}, confirmed" if isinstance(entry, BankItem) and entry.confirmed else state
