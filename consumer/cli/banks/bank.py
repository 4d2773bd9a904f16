"""``dupwatch bank``: create and change banks of known texts, and test what they find."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
import typer

from consumer.banks.bank import Action, Bank, BankItem, Banks, Entry
from consumer.banks.changes import new_entry
from consumer.banks.exchange import item_id
from consumer.cli import render
from consumer.cli.banks.additions import add_item, create_bank, option_text
from consumer.cli.banks.comparison import BankComparison
from consumer.cli.banks.exchange import export, import_
from consumer.cli.banks.matches import matches
from consumer.cli.banks.named_text import named_text
from consumer.cli.banks.options import (
    BankArgument,
    BanksOption,
    ByOption,
    LabelOption,
    NoteOption,
    SimilarityOption,
    change_banks,
    existing_bank,
    existing_item,
    say,
    stamp,
)
from consumer.cli.banks.scan import scan
from consumer.cli.banks.views import bank_fields, bank_table, item_table, item_view
from consumer.cli.options import ConfigOption, JsonOption, LastingStoreOption, SetOption, command_config
from consumer.cli.prompts import ask_confirmation, check_terminal
from consumer.cli.results import answer, results, write
from consumer.config.config import Config
from consumer.judge.events import mentions_of
from consumer.text.counts import counted
from consumer.text.timestamps import option_time_ms, rfc3339
from consumer.wiring.banks import read_banks

app = typer.Typer(no_args_is_help=True, help="Create and change banks of known texts, and test what they find.")

ItemArgument = Annotated[str | None, typer.Argument(metavar="ITEM", help="An item; without one, the whole bank.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


@app.command()
def create(
    bank: BankArgument,
    action: Annotated[Action, typer.Option(help="deny: report articles that repeat an item. allow: never flag them.")],
    label: LabelOption = None,
    note: NoteOption = "",
    similarity: SimilarityOption = None,
    by: ByOption = None,
    banks: BanksOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Create a bank, or replace the labels, note and similarity of a bank. The file is created if it does not exist."""
    chosen = command_config(config, overrides, banks__url=banks)
    values: dict[str, object] = {
        "bank": bank,
        "action": action,
        "labels": label or [],
        "note": note,
        "similarity": similarity,
    }
    for sentence in create_bank(chosen, new_entry(values | stamp(by), Bank), option_text({"--banks": banks})):
        say(sentence)


@app.command()
def add(
    bank: BankArgument,
    source: Annotated[
        str | None, typer.Argument(metavar="FILE", help="A text, or an article in JSON; - for standard input.")
    ] = None,
    text: Annotated[str | None, typer.Option(help="The text itself.", metavar="TEXT")] = None,
    article: Annotated[
        str | None, typer.Option(help="Copy the text of this article of the store.", metavar="ID")
    ] = None,
    item: Annotated[
        str | None, typer.Option(help="The item's id; default: a digest of the text.", metavar="ID")
    ] = None,
    title: Annotated[str, typer.Option(help="A title for people; it is not compared.", metavar="TEXT")] = "",
    until: Annotated[str | None, typer.Option(help="When the item ends; default: never.", metavar="TIME")] = None,
    label: LabelOption = None,
    note: NoteOption = "",
    similarity: SimilarityOption = None,
    by: ByOption = None,
    store: LastingStoreOption = None,
    banks: BanksOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Add a text to a bank, or replace an item with all its options. Running consumers use it within two seconds."""
    chosen = command_config(config, overrides, banks__url=banks, store__url=store)
    found = named_text(chosen, source, text, article)
    values: dict[str, object] = {
        "bank": bank,
        "item": item or item_id(found.body or ""),
        "text": found.body or "",
        "title": title or found.title,
        "lang": found.lang,
        "article": article,
        "labels": label or [],
        "note": note,
        "similarity": similarity,
        "until": None if until is None else rfc3339(option_time_ms("--until", until)),
    }
    entry = new_entry(values | stamp(by), BankItem)
    for sentence in add_item(chosen, entry, {"--store": store, "--banks": banks}):
        say(sentence)


@app.command("list")
def list_(
    json: JsonOption = False, banks: BanksOption = None, config: ConfigOption = None, overrides: SetOption = None
) -> None:
    """List all banks."""
    found = read_banks(command_config(config, overrides, banks__url=banks))
    counts = found.item_counts()
    lines = (bank_fields(bank, counts[bank.bank]) for bank in found.banks.values())
    answer(json=json, lines=lines, text=[bank_table(found)])


@app.command()
def show(
    bank: BankArgument,
    item: ItemArgument = None,
    json: JsonOption = False,
    banks: BanksOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Show the items of a bank, or one item with its whole text."""
    found = read_banks(command_config(config, overrides, banks__url=banks))
    existing_bank(found, bank)
    shown = (
        [each for each in found.items.values() if each.bank == bank]
        if item is None
        else [existing_item(found, bank, item)]
    )
    text = [item_table(shown)] if item is None else [item_view(shown[0])]
    answer(json=json, lines=(msgspec.to_builtins(each) for each in shown), text=text)


@app.command()
def disable(
    bank: BankArgument,
    item: ItemArgument = None,
    by: ByOption = None,
    banks: BanksOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Switch an item or a bank off, without removing it."""
    _switch(command_config(config, overrides, banks__url=banks), bank, item, by, enabled=False)


@app.command()
def enable(
    bank: BankArgument,
    item: ItemArgument = None,
    by: ByOption = None,
    banks: BanksOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Switch an item or a bank on again."""
    _switch(command_config(config, overrides, banks__url=banks), bank, item, by, enabled=True)


@app.command()
def confirm(
    bank: BankArgument,
    item: Annotated[str, typer.Argument(metavar="ITEM", help="The item.")],
    undo: Annotated[bool, typer.Option("--undo", help="Withdraw the confirmation.")] = False,
    by: ByOption = None,
    banks: BanksOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Confirm that an item may match any share of the feed: its bank matches are sent, and no alert fires.

    If the item gets another text or a lower similarity, confirm it again.
    """
    change_stamp, name = stamp(by), f"{bank}/{item}"

    def confirmation(found: Banks) -> Sequence[Entry]:
        entry = existing_item(found, bank, item)
        return [msgspec.structs.replace(entry, confirmed=not undo, **change_stamp)] if entry.confirmed is undo else []

    action, state = ("unconfirm", "not confirmed") if undo else ("confirm", "already confirmed")
    if change_banks(command_config(config, overrides, banks__url=banks), action, name, confirmation):
        say(f"{name} is {'no longer confirmed' if undo else 'confirmed'}.")
    else:
        say(f"{name} was {state}; nothing was changed.")


@app.command()
def remove(
    bank: BankArgument,
    item: ItemArgument = None,
    yes: YesOption = False,
    by: ByOption = None,
    banks: BanksOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Remove an item, or a bank with all its items. Verdicts that name them stay as they are.

    The exit code is 1 if the removal of a bank is not confirmed.
    """
    chosen = command_config(config, overrides, banks__url=banks)
    found = read_banks(chosen)
    existing_bank(found, bank)
    if item is not None and (bank, item) not in found.items:
        say(f"The bank {bank} has no item {item}; nothing was changed.")
        return
    if item is None:
        count = found.item_counts()[bank]
        if count and not yes:
            check_terminal()
            items = "its only item" if count == 1 else f"its {count:,} items"
            if not ask_confirmation(f"Remove the bank {bank} and {items}?"):
                raise typer.Exit(1)
        entries: Sequence[Entry] = [new_entry({"bank": bank, "removed": True} | stamp(by), Bank)]
    else:
        entries = [new_entry({"bank": bank, "item": item, "removed": True} | stamp(by), BankItem)]
    change_banks(chosen, "remove", bank if item is None else f"{bank}/{item}", lambda _: entries)
    say(f"Removed {f'the bank {bank}' if item is None else f'{item} from the bank {bank}'}.")


app.command("import")(import_)
app.command("export")(export)
app.command("matches")(matches)
app.command("scan")(scan)


@app.command("test")
def try_(
    source: Annotated[
        str | None, typer.Argument(metavar="FILE", help="A text, or an article in JSON; - for standard input.")
    ] = None,
    text: Annotated[str | None, typer.Option(help="The text itself.", metavar="TEXT")] = None,
    banks: BanksOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Print the items that a text repeats, one line of JSON each."""
    chosen = command_config(config, overrides, banks__url=banks)
    article = named_text(chosen, source, text, None)
    comparison = BankComparison(chosen, read_banks(chosen))
    (found,) = comparison.matches([article]).matches
    mentions = mentions_of(found)
    with results():
        write(b"".join(msgspec.json.encode(mention) + b"\n" for mention in mentions))
    if not mentions:
        render.console(stderr=True).print(f"The text repeats none of {counted(len(comparison), 'item')}.")


def _switch(config: Config, bank: str, item: str | None, by: str | None, *, enabled: bool) -> None:
    change_stamp = stamp(by)

    def switch_entry(banks: Banks) -> Sequence[Entry]:
        entry: Entry = existing_bank(banks, bank) if item is None else existing_item(banks, bank, item)
        return [] if entry.enabled is enabled else [msgspec.structs.replace(entry, enabled=enabled, **change_stamp)]

    name, state = bank if item is None else f"{bank}/{item}", "enabled" if enabled else "disabled"
    if change_banks(config, state.removesuffix("d"), name, switch_entry):
        say(f"{name} is {state}.")
    else:
        say(f"{name} was already {state}; nothing was changed.")
