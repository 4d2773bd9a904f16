"""``dupwatch store``: count, verify, export and maintain a store."""

from collections.abc import Iterator
from typing import Annotated

import msgspec
import typer
from rich.console import RenderableType
from rich.progress import Progress
from rich.table import Table

from consumer.cli import render
from consumer.cli.operations import store_init, store_pack, store_secret
from consumer.cli.options import ConfigOption, JsonOption, LastingStoreOption, SetOption, command_config
from consumer.cli.results import answer, results, write
from consumer.config.config import Config
from consumer.judge.binding import settings_in
from consumer.model.errors import StoreBroken, StoreMismatch
from consumer.store_tools import inspection
from consumer.store_tools.export import export_lines
from consumer.store_tools.inspection import VerificationReport
from consumer.store_tools.requested_settings import check_unchanged
from consumer.text.counts import counted
from consumer.wiring.components import lexicon_of
from consumer.wiring.stores import opened_store, stored_binding
from storage.clock import MS_PER_S, now_ms
from storage.interface import Stats

app = typer.Typer(no_args_is_help=True, help="Inspect, export or maintain a store.")
app.command("init")(store_init.init)
app.command("pack")(store_pack.pack)
app.command("unpack")(store_pack.unpack)
app.add_typer(store_secret.app, name="secret")

WRONG_SHOWN_MAX = 50
_MIB = 1 << 20
PENDING_S = 3600
"""Seconds after which an article without a verdict is no longer just pending.

By then its batch has ended, or a source that is read again has delivered the article again.
"""


@app.command()
def stats(
    store: LastingStoreOption = None, json: JsonOption = False, config: ConfigOption = None, overrides: SetOption = None
) -> None:
    """Count the versions, postings and remembered texts of a store."""
    chosen = command_config(config, overrides, store__url=store)
    with opened_store(chosen, readonly=True) as opened:
        stats = opened.stats()
        bound = opened.settings()
    answer(json=json, lines=_plain_stats(stats, bound), text=[_stats_table(chosen.store.url, stats)])


def _plain_stats(stats: Stats, bound: bytes | None) -> Iterator[object]:
    try:
        yield stats._asdict() | {"settings": None if bound is None else msgspec.json.decode(settings_in(bound))}
    except (msgspec.DecodeError, ValueError) as error:
        raise StoreMismatch(
            f"the store is damaged: its settings cannot be read ({error}). Restore it from a copy, or name another "
            "store."
        ) from error


def _stats_table(url: str, stats: Stats) -> Table:
    rows: dict[str, str | int] = {
        "versions": stats.versions,
        "pending": stats.versions - stats.verdicts,
        "tombstones": stats.tombstones,
        "postings": stats.postings,
        "posting rows": stats.rows,
        "widest row": counted(stats.widest_row, "posting"),
        "rows over the cap": stats.crowded_rows,
        "texts remembered": stats.seen_texts,
    }
    if stats.size_bytes is not None:
        rows["size"] = f"{stats.size_bytes / _MIB:,.1f} MiB"
        rows["bytes per version"] = f"{stats.size_bytes / max(stats.versions, 1):,.0f}"
    return render.value_table(url, rows.items())


@app.command()
def verify(
    store: LastingStoreOption = None,
    json: JsonOption = False,
    dangling: Annotated[
        bool,
        typer.Option(
            "--dangling",
            help="Only write the flags that name an article without a verdict, as events, one per line.",
        ),
    ] = False,
    pending_s: Annotated[
        int, typer.Option(min=0, help="With --dangling: minimum age, in seconds, of the article without a verdict.")
    ] = PENDING_S,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Verify a store: kept versions can be found and are not near each other, and each duplicate leads to a kept one.

    The command reads the whole store. It exits with 5 if something is wrong, and with 4 if the store is damaged.
    """
    chosen = command_config(config, overrides, store__url=store)
    if dangling:
        _write_dangling(chosen, pending_s)
        return
    findings = VerificationReport()
    errors = render.console(stderr=True)
    with opened_store(chosen, readonly=True) as opened, Progress(console=errors, disable=not errors.is_terminal) as bar:
        opened.check()
        stored_settings = stored_binding(opened, lexicon_of(chosen)).settings
        check_unchanged(chosen, stored_settings)
        task = bar.add_task("checking", total=opened.stats().versions)
        for findings in inspection.verify(opened, stored_settings):
            bar.update(task, completed=findings.versions)
    answer(json=json, lines=[findings], text=_findings_text(findings))
    if findings.wrong:
        raise typer.Exit(StoreBroken.exit_code)


def _write_dangling(config: Config, pending_s: int) -> None:
    written = 0
    with opened_store(config, readonly=True) as opened, results():
        for flag in inspection.dangling_flags(opened, now_ms() - MS_PER_S * pending_s):
            write((flag.verdict or b"") + b"\n")
            written += 1
    if written:
        raise typer.Exit(StoreBroken.exit_code)
    render.console(stderr=True).print(
        f"No dangling flags: no flag names an article that has been pending for more than {pending_s} s."
    )


def _findings_text(findings: VerificationReport) -> Iterator[RenderableType]:
    counts = [(name, getattr(findings, name)) for name in ("versions", "kept", "duplicates", "pending", "tombstones")]
    yield render.value_table("Checked", [*counts, ("wrong", len(findings.wrong))])
    yield from map(render.plain, findings.wrong[:WRONG_SHOWN_MAX])
    if len(findings.wrong) > WRONG_SHOWN_MAX:
        yield f"... and {len(findings.wrong) - WRONG_SHOWN_MAX} more; use --json for all"


@app.command()
def export(
    store: LastingStoreOption = None,
    bodies: Annotated[
        bool, typer.Option("--bodies/--no-bodies", help="Include the texts of articles, if the store keeps them.")
    ] = True,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Write the contents of a store to standard output as JSON lines: versions with their verdicts, and tombstones.

    Consumers may be running; versions that they write during the export may be missing from it.
    """
    chosen = command_config(config, overrides, store__url=store)
    with opened_store(chosen, readonly=True) as opened, render.progress(render.console(stderr=True)) as bar, results():
        task = bar.add_task("exporting", total=None)
        for line in export_lines(opened, bodies=bodies):
            write(line + b"\n")
            bar.advance(task)
