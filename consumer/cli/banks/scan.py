"""``dupwatch bank scan``: find the articles of an archive or a store that repeat items of banks, and act on them."""

from typing import Annotated

import typer

from consumer.banks.bank import Banks
from consumer.cli.banks.archive_scan import scan_archive
from consumer.cli.banks.options import BanksOption, chosen_items
from consumer.cli.banks.retroaction import release_allowed, send_denied
from consumer.cli.banks.store_scan import compare_versions, show_counts
from consumer.cli.banks.views import match_fields
from consumer.cli.options import ConfigOption, LastingStoreOption, SetOption, command_config
from consumer.cli.prompts import check_terminal
from consumer.cli.results import results, write_json
from consumer.config.config import Config
from consumer.decode.codecs import formats_for_help
from consumer.model.errors import ConfigError
from consumer.store_tools.bank_scan import ScanCounts
from consumer.wiring.banks import read_banks
from consumer.wiring.comparable_store import bound_store
from storage.records import ALLOW, DENY


def scan(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE|-",
            help=f"An archive: {formats_for_help()}; - for standard input. Default: all of the store.",
        ),
    ] = None,
    bank: Annotated[str | None, typer.Option("--bank", help="Only the items of this bank.", metavar="BANK")] = None,
    item: Annotated[str | None, typer.Option("--item", help="Only this item of the bank.", metavar="ID")] = None,
    release: Annotated[
        bool, typer.Option("--release", help="Release the flagged articles that repeat an item of an allow bank.")
    ] = False,
    send: Annotated[
        bool,
        typer.Option(
            "--send",
            help="Send an event to the topics for each item of a deny bank that an article repeats, unless the "
            "article's verdict names the item.",
        ),
    ] = False,
    by: Annotated[
        str | None, typer.Option("--by", help="With --release: who releases the articles.", metavar="NAME")
    ] = None,
    reason: Annotated[str | None, typer.Option(help="With --release: why; default: the item.", metavar="TEXT")] = None,
    sink: Annotated[
        str | None,
        typer.Option(help="Send events to the topics of this sink: kafka://HOST:PORT/PREFIX.", metavar="PREFIX"),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    store: LastingStoreOption = None,
    banks: BanksOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Compare all articles of an archive or a store with banks; write a line of JSON for each that repeats an item.

    The texts of a store are read, so items within longer articles are found too. With --release or --send, the command
    first counts the events and asks for confirmation, and then writes the events to standard output and to the sink's
    topics, if it has any. You can run it again: --send then sends the same events, and --release repeats the events of
    its earlier releases with the same --by and --reason.
    """
    _check_options(source, store, by, release=release, send=send, yes=yes)
    chosen = command_config(config, overrides, store__url=store, sink__url=sink, banks__url=banks)
    items = chosen_items(read_banks(chosen), bank, item)
    target = "/".join(filter(None, (bank, item))) or "all banks"
    if source is not None:
        scan_archive(chosen, items, source)
    elif release:
        release_allowed(chosen, _with_action(items, ALLOW), by or "", reason, yes=yes)
    elif send:
        send_denied(chosen, _with_action(items, DENY), target, yes=yes)
    else:
        _show(chosen, items)


def _check_options(
    source: str | None, store: str | None, by: str | None, *, release: bool, send: bool, yes: bool
) -> None:
    if source is not None and (store is not None or release or send):
        raise ConfigError("an archive has no flags and no verdicts: leave out FILE, or --store, --release and --send")
    if release and send:
        raise ConfigError("--release is for allow banks, and --send is for deny banks; use one of them")
    if release and not by:
        raise ConfigError("--release needs --by NAME: events name the person who is responsible for a release")
    if (release or send) and not yes:
        check_terminal()


def _with_action(items: Banks, action: str) -> Banks:
    """Return the banks with this action. Raises ``ConfigError`` if there are none."""
    names = [name for name, bank in items.banks.items() if bank.action == action]
    if not names:
        option = "--release" if action == ALLOW else "--send"
        raise ConfigError(
            f"{option} is for items of {action} banks, but no chosen bank has this action; choose one with --bank"
        )
    return Banks(
        {name: items.banks[name] for name in names},
        {key: each for key, each in items.items.items() if key[0] in names},
    )


def _show(config: Config, items: Banks) -> None:
    """Write the stored articles that repeat items."""
    counts = ScanCounts()
    with bound_store(config) as opened, results():
        for compared in compare_versions(opened, items, counts):
            for match in compared.stored_matches():
                write_json(match_fields(match))
    show_counts(counts)
