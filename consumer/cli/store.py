"""``dupwatch store``: how much a store holds, and whether it holds together."""

import sys

import msgspec
import typer
from rich.console import Console
from rich.progress import Progress

from consumer.app import lexicon_of, opened_store, stored_settings
from consumer.cli import render, store_init, store_pack
from consumer.cli.options import ConfigOption, JsonOption, SetOption, StoreOption, configured
from consumer.cli.results import results
from consumer.errors import StoreBroken
from consumer.inspection import Findings
from consumer.inspection import verify as verify_store
from storage.interface import Stats

app = typer.Typer(no_args_is_help=True, help="Look into a store.")
app.command("init")(store_init.init)
app.command("pack")(store_pack.pack)
app.command("unpack")(store_pack.unpack)

WRONG_SHOWN_MAX = 50
_MIB = 1 << 20


@app.command()
def stats(
    store: StoreOption = None, json: JsonOption = False, config: ConfigOption = None, settings: SetOption = None
) -> None:
    """Count what a store holds."""
    chosen = configured(config, settings, store__url=store)
    with opened_store(chosen, readonly=True) as opened:
        held = opened.stats()
        bound = opened.settings()
    with results():
        if json:
            found = held._asdict() | {"settings": None if bound is None else msgspec.json.decode(bound)}
            sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
        else:
            _print_stats(chosen.store.url, held)


def _print_stats(url: str, held: Stats) -> None:
    table = render.pairs(url)
    table.add_row("versions", f"{held.versions:,}")
    table.add_row("pending", f"{held.versions - held.verdicts:,}")
    table.add_row("tombstones", f"{held.tombstones:,}")
    table.add_row("postings", f"{held.postings:,}")
    table.add_row("posting rows", f"{held.rows:,}")
    if held.size_bytes is not None:
        table.add_row("size", f"{held.size_bytes / _MIB:,.1f} MiB")
        table.add_row("bytes a version", f"{held.size_bytes / max(held.versions, 1):,.0f}")
    render.console().print(table)


@app.command()
def verify(
    store: StoreOption = None, json: JsonOption = False, config: ConfigOption = None, settings: SetOption = None
) -> None:
    """Check what a store promises: kept versions are found and not near each other, duplicates lead to kept ones.

    Ends with exit code 5 when something is wrong.
    """
    chosen = configured(config, settings, store__url=store)
    findings = Findings()
    errors = Console(stderr=True)
    with opened_store(chosen, readonly=True) as opened, Progress(console=errors, disable=not errors.is_terminal) as bar:
        task = bar.add_task("checking", total=opened.stats().versions)
        for findings in verify_store(opened, stored_settings(opened, lexicon_of(chosen))):
            bar.update(task, completed=findings.versions)
    with results():
        if json:
            sys.stdout.buffer.write(msgspec.json.encode(findings) + b"\n")
        else:
            _print_findings(findings)
    if findings.wrong:
        raise typer.Exit(StoreBroken.exit_code)


def _print_findings(findings: Findings) -> None:
    console = render.console()
    table = render.pairs("Checked")
    for name in ("versions", "kept", "duplicates", "pending", "tombstones"):
        table.add_row(name, f"{getattr(findings, name):,}")
    table.add_row("wrong", f"{len(findings.wrong):,}")
    console.print(table)
    for sentence in findings.wrong[:WRONG_SHOWN_MAX]:
        console.print(render.plain(sentence))
    if len(findings.wrong) > WRONG_SHOWN_MAX:
        console.print(f"... and {len(findings.wrong) - WRONG_SHOWN_MAX} more; --json has them all")
