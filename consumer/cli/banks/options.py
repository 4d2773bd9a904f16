"""Options and functions that the bank commands share."""

from collections.abc import Sequence
from typing import Annotated

import typer

from consumer.banks.bank import Bank, BankError, BankItem, Banks, Entry
from consumer.banks.bank_log import BankLogChange
from consumer.cli import render
from consumer.cli.results import results
from consumer.config.config import Config
from consumer.text.counts import counted
from consumer.text.timestamps import rfc3339
from consumer.wiring.audit import current_user, opened_audit_log, record_change
from consumer.wiring.banks import opened_banks
from storage.clock import now_ms

BanksOption = Annotated[
    str | None,
    typer.Option(
        "--banks", help="A file, or kafka://HOST:PORT/PREFIX; default: the setting banks.url.", metavar="BANKS"
    ),
]
BankArgument = Annotated[str, typer.Argument(metavar="BANK", help="The bank's name.")]
ByOption = Annotated[
    str | None, typer.Option("--by", help="Who makes the change; default: the user of this process.", metavar="WHO")
]
NoteOption = Annotated[str, typer.Option(help="A note for others.", metavar="TEXT")]
LabelOption = Annotated[list[str] | None, typer.Option("--label", help="A label of your own. May be repeated.")]
SimilarityOption = Annotated[
    float | None,
    typer.Option(
        help="How similar an article must be, 0.5 to 1; default: 0.7, or 0.9 for an allow bank.", metavar="SHARE"
    ),
]


def change_banks(config: Config, action: str, target: str, change: BankLogChange) -> Sequence[Entry]:
    """Change the configured banks, and record the change in the audit log. Return the written entries.

    Raises ``BankError``.
    """
    with opened_audit_log(config) as audit_log, opened_banks(config) as banks:
        entries = banks.change(change)
        if entries:
            record_change(audit_log, f"banks.{action}", target, counted(len(entries), "change"))
    return entries


def stamp(by: str | None) -> dict[str, str]:
    """Return the author and the time of a change, as members of an entry. The default author is the current user."""
    return {"by": current_user() if by is None else by, "at": rfc3339(now_ms())}


def existing_bank(banks: Banks, name: str) -> Bank:
    """Return a bank. Raises ``BankError`` if it does not exist."""
    bank = banks.banks.get(name)
    if bank is None:
        names = ", ".join(sorted(banks.banks))
        others = f"the banks are {names}" if names else "create one with dupwatch bank create"
        raise BankError(f"the bank {name!r} does not exist; {others}")
    return bank


def existing_item(banks: Banks, bank: str, item: str) -> BankItem:
    """Return an item of a bank. Raises ``BankError`` if the item or the bank does not exist."""
    existing_bank(banks, bank)
    found = banks.items.get((bank, item))
    if found is None:
        raise BankError(f"the bank {bank!r} has no item {item!r}; dupwatch bank show {bank} lists its items")
    return found


def chosen_items(banks: Banks, bank: str | None, item: str | None) -> Banks:
    """Return the banks with only the chosen items: all, the items of one bank, or one item.

    Raises ``BankError`` for an item without a bank, for names that do not exist, and if no item is active.
    """
    if bank is None and item is not None:
        raise BankError(f"--item {item} needs its bank: add --bank BANK")
    if bank is not None and item is None:
        existing_bank(banks, bank)
    elif bank is not None and item is not None:
        existing_item(banks, bank, item)
    found = banks.only(bank, item)
    if not found.items_at(now_ms()):
        name = "/".join(filter(None, (bank, item))) or "the banks"
        raise BankError(
            f"no active item in {name}: all are disabled or have ended, or there is none; add or enable one"
        )
    return found


def say(sentence: str) -> None:
    """Print a sentence about what was done."""
    with results():
        render.console().print(render.plain(sentence))
