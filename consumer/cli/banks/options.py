"""What the commands about banks have in common."""

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
    str | None, typer.Option("--by", help="Who does this; default: the user of this process.", metavar="WHO")
]
NoteOption = Annotated[str, typer.Option(help="A note for others.", metavar="TEXT")]
LabelOption = Annotated[list[str] | None, typer.Option("--label", help="A label of your own. May be repeated.")]
SimilarityOption = Annotated[
    float | None,
    typer.Option(
        help="How similar an article must be, 0.5 to 1; default: 0.7, or 0.9 where the bank allows.", metavar="SHARE"
    ),
]


def change_banks(config: Config, action: str, target: str, change: BankLogChange) -> Sequence[Entry]:
    """Change the configured banks, and record that in the audit log. Raises ``BankError``."""
    with opened_audit_log(config) as audit_log, opened_banks(config) as banks:
        entries = banks.change(change)
        if entries:
            record_change(audit_log, f"banks.{action}", target, counted(len(entries), "change"))
    return entries


def stamp(by: str | None) -> dict[str, str]:
    """Return who makes a change now, and when, as members of an entry."""
    return {"by": current_user() if by is None else by, "at": rfc3339(now_ms())}


def existing_bank(banks: Banks, name: str) -> Bank:
    """Return a bank. Raises ``BankError`` if there is none of that name."""
    bank = banks.banks.get(name)
    if bank is None:
        others = ", ".join(sorted(banks.banks)) or "none; dupwatch bank create makes one"
        raise BankError(f"there is no bank {name!r}; banks: {others}")
    return bank


def existing_item(banks: Banks, bank: str, item: str) -> BankItem:
    """Return an item of a bank. Raises ``BankError`` if there is none."""
    existing_bank(banks, bank)
    found = banks.items.get((bank, item))
    if found is None:
        raise BankError(f"there is no item {item!r} in the bank {bank!r}; dupwatch bank show {bank} lists them")
    return found


def chosen_items(banks: Banks, bank: str | None, item: str | None) -> Banks:
    """Return the items of all banks, of one bank, or one item. Raises ``BankError`` for names that there are not."""
    if bank is None and item is not None:
        raise BankError(f"--item {item} needs its bank: add --bank BANK")
    if bank is not None and item is None:
        existing_bank(banks, bank)
    elif bank is not None and item is not None:
        existing_item(banks, bank, item)
    found = banks.only(bank, item)
    if not found.items_at(now_ms()):
        name = "/".join(filter(None, (bank, item))) or "the banks"
        raise BankError(f"nothing counts in {name}: there is no item, or all are disabled or have ended")
    return found


def say(sentence: str) -> None:
    """Print what was done."""
    with results():
        render.console().print(render.plain(sentence))
