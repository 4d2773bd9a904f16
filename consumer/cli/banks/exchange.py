"""``dupwatch bank import`` and ``dupwatch bank export``: read items from a file, and write banks to standard output."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from consumer.banks.bank import BankError, BankItem
from consumer.banks.changes import replacement
from consumer.banks.exchange import csv_of, items_of_csv, items_of_lines, lines_of
from consumer.cli.banks.options import BankArgument, BanksOption, ByOption, change_banks, existing_bank, say, stamp
from consumer.cli.options import ConfigOption, SetOption, command_config
from consumer.cli.results import results, write
from consumer.model.errors import ConfigError, SourceError
from consumer.text.counts import counted
from consumer.wiring.banks import read_banks


def import_(
    bank: BankArgument,
    source: Annotated[Path, typer.Argument(metavar="FILE", help="CSV (*.csv), or JSON lines.")],
    by: ByOption = None,
    banks: BanksOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Add the items of a file to a bank, all or none of them. Items with the same id are replaced."""
    chosen = command_config(config, overrides, banks__url=banks)
    try:
        content = source.read_bytes()
        is_csv = source.suffix.lower() == ".csv"
        items = (
            items_of_csv(bank, content.decode("utf-8-sig")) if is_csv else items_of_lines(bank, content.split(b"\n"))
        )
        change_stamp = stamp(by)
        entries = [msgspec.structs.replace(item, **change_stamp) for item in items]
    except OSError as error:
        raise SourceError(f"{source} cannot be read: {error.strerror}") from error
    except (BankError, UnicodeDecodeError) as error:
        raise BankError(f"{source}: {error}; nothing was changed") from None
    if not entries:
        raise SourceError(f"{source} has no items")
    change_banks(chosen, "import", bank, lambda found: [replacement(found, each) for each in entries])
    # Entries with the same id, such as equal texts without ids, count as one item.
    say(f"Added {counted(len({entry.item for entry in entries}), 'item')} to the bank {bank}.")


def export(
    bank: Annotated[str | None, typer.Argument(metavar="BANK", help="One bank; default: all.")] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Write CSV; needs a BANK.")] = False,
    banks: BanksOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Write banks and items as JSON lines, which can serve as a file of banks, or the items of one bank as CSV."""
    found = read_banks(command_config(config, overrides, banks__url=banks))
    if bank is not None:
        existing_bank(found, bank)
    elif csv:
        raise ConfigError("--csv writes the items of one bank; name the bank")
    entries = [entry for entry in found.entries() if bank in {None, entry.bank}]
    with results():
        if csv:
            write(csv_of([entry for entry in entries if isinstance(entry, BankItem)]).encode())
        else:
            write(lines_of(entries))
