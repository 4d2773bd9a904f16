"""Makes the entries with which the command, the service and the console change banks.

Also decides which changes need an admin.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from consumer.banks.bank import Bank, BankError, BankItem, Banks, check_entry, explained

_Kind = TypeVar("_Kind", Bank, BankItem)


def new_entry(values: Mapping[str, object], kind: type[_Kind]) -> _Kind:
    """Return an entry with these members. Raises ``BankError`` for invalid members."""
    try:
        entry = msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise BankError(explained(error)) from None
    check_entry(entry)
    return entry


def keep_if_same(before: _Kind | None, entry: _Kind) -> _Kind:
    """Return ``before`` if the entry differs from it only in author and time. Return the entry if it differs more."""
    if before is None:
        return entry
    return before if msgspec.structs.replace(before, by=entry.by, at=entry.at) == entry else entry


def replacement(banks: Banks, entry: BankItem) -> BankItem:
    """Return the entry with which to add or replace an item.

    A replaced item stays confirmed if ``stays_confirmed`` allows it, or if ``entry`` confirms it and the text is the
    same. An entry for a new item is returned unchanged.
    """
    before = banks.items.get(entry.key)
    if before is None:
        return entry
    confirmed = stays_confirmed(before, entry, banks.banks[entry.bank])
    return msgspec.structs.replace(entry, confirmed=confirmed or (entry.confirmed and entry.text == before.text))


def stays_confirmed(before: BankItem, after: BankItem, bank: Bank) -> bool:
    """Return whether a change leaves an item confirmed. It does not if the text changes or the similarity is lowered.

    Without this rule, people who are not admins could make a confirmed item match nearly everything.
    """
    had, has = (item.similarity or bank.item_similarity for item in (before, after))
    return before.confirmed and after.text == before.text and has >= had


def items_need_admin(bank: Bank) -> bool:
    """Return whether only admins may change a bank's items. ``allow`` affects verdicts, ``deny`` only reports."""
    return bank.action == "allow"


def state_of(entry: Bank | BankItem) -> str:
    """Return the state of an entry, as messages and audit records name it."""
    state = "enabled" if entry.enabled else "disabled"
    return f"{state}, confirmed" if isinstance(entry, BankItem) and entry.confirmed else state
