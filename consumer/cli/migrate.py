"""``dupwatch migrate``: to another scheme, plan, settings or store without a gap."""

import time
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table

from consumer.cli import render
from consumer.cli.options import ConfigOption, JsonOption, SchemeOption, SetOption, configured
from consumer.cli.results import results, write_json
from consumer.lifecycle.stopping import SIGNALLED, Stopping
from consumer.migration.building import prepared_migration
from consumer.migration.migration import CaughtUp, Migration, Moves, WindowGap
from consumer.model.errors import ConfigError
from consumer.model.hooks import Hooks
from consumer.pipeline.batches import BatchCommitted

SAY_S: Final = 30.0
"""How often a log is told."""


class Told:
    """Shows how far the fill is, all the time on a terminal and now and then in a log; says what is to be done."""

    def __init__(self, console: Console, progress: Progress, from_group: str) -> None:
        self._console = console
        self._progress = progress
        self._from_group = from_group
        self._task: TaskID | None = None
        self._run: Migration | None = None
        self._said_s = time.monotonic()
        self.dead_letters = 0
        self.gaps: list[str] = []

    def watch(self, run: Migration) -> None:
        """Follow this migration from now on."""
        self._run = run
        self._task = self._progress.add_task("filling", total=None)

    def listen(self, hooks: Hooks) -> None:
        """Follow what is reported from now on."""
        hooks.on(BatchCommitted, self._committed)
        hooks.on(CaughtUp, self._caught_up)
        hooks.on(WindowGap, self._gap)

    def _committed(self, batch: BatchCommitted) -> None:
        verdicts = batch.verdicts
        self.dead_letters += len(batch.letters)
        if self._run is None or self._task is None:
            return
        done, total = self._run.progress()
        self._progress.update(self._task, completed=done, total=total)
        if self._progress.disable and time.monotonic() - self._said_s >= SAY_S:
            self._said_s = time.monotonic()
            until = f", until {max(one.arrived_at for one in verdicts)}" if verdicts else ""
            self._console.print(f"{done:,} of {total:,} messages filled{until}.")

    def _caught_up(self, _: CaughtUp) -> None:
        """Say what is to be done."""
        self._console.print(
            f"The new store is where {render.plain(self._from_group)} is, and follows it. Stop the consumers of"
            f" {render.plain(self._from_group)} now; the switch is made when the last one is gone."
        )

    def _gap(self, gap: WindowGap) -> None:
        """Say it now, and in the report."""
        self.gaps.append(gap.sentence)
        self._console.print(render.plain(gap.sentence))


def migrate(
    from_group: Annotated[
        str, typer.Option("--from-group", help="The group of the consumers in force.", metavar="GROUP")
    ],
    from_store: Annotated[
        str | None, typer.Option("--from-store", help="Their store; it is only read.", metavar="STORE")
    ] = None,
    anew: Annotated[
        bool,
        typer.Option("--anew", help="Judge the window by the new settings instead: their store is lost, or is wrong."),
    ] = False,
    source: Annotated[
        str | None, typer.Option("--source", help="kafka://HOST:PORT/TOPIC[,TOPIC].", metavar="TOPIC")
    ] = None,
    store: Annotated[str | None, typer.Option("--store", help="The new store, an empty one.", metavar="STORE")] = None,
    group: Annotated[str | None, typer.Option("--group", help="The group of the new consumers.")] = None,
    allow_gap: Annotated[
        bool, typer.Option("--allow-gap", help="Go on where the topic has less than the window.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option("--workers", help="Processes that make fingerprints; 0 (default): none beside this.")
    ] = None,
    scheme: SchemeOption = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Move to another scheme, plan, settings or store without a gap, while articles come.

    Give it the configuration of the new consumers, with a group and a store of their own. The consumers in force go on
    meanwhile. It fills the new store with the window that they have judged, and their verdicts, and follows them. When
    it says so, stop them with SIGTERM. As soon as the last one is gone it lets the new group begin just where they
    stopped, and ends with 0: start the new consumers.

    It sends nothing. It may be stopped, or killed, and started again: it goes on where it was.
    """
    if (from_store is None) is not anew:
        raise ConfigError("name the store of the consumers in force with --from-store, or have it judged --anew")
    chosen = configured(
        config, settings, source__url=source, store__url=store, kafka__group=group, workers=workers,
        fingerprint__scheme=scheme,
    )  # fmt: skip
    console = render.console(stderr=True)
    progress = render.progress(console)
    stopping = Stopping(interrupts=False)
    watcher = Told(console, progress, from_group)
    moves = Moves(from_group, from_store, allow_gap)
    began_s = time.monotonic()
    with stopping.listening(), prepared_migration(chosen, moves, Hooks(watcher), stopping) as ready:
        console.print(
            f"Filling {render.plain(chosen.store.url)} for the group {render.plain(chosen.kafka.group)}, beside"
            f" {render.plain(from_group)}."
        )
        with progress:
            watcher.watch(ready)
            switched = ready.run()
        _report(console, ready, watcher, time.monotonic() - began_s, json=json, switched=switched)
    if switched:
        console.print(f"Switched: start the consumers of {render.plain(chosen.kafka.group)}, with the new store.")
        return
    console.print("Stopped when asked, before the switch; start it again to go on.")
    raise typer.Exit(SIGNALLED + (stopping.asked_by or 0))


def _report(console: Console, run: Migration, watcher: Told, seconds: float, *, json: bool, switched: bool) -> None:
    if json:
        with results():
            write_json(_plain(run, watcher, switched=switched))
    else:
        console.print(table(run, watcher, seconds))


def _plain(run: Migration, watcher: Told, *, switched: bool) -> dict[str, Any]:
    tally, adopted = run.tally, run.adopted
    return {
        "switched": switched,
        "filled": {
            "articles": tally.versions,
            "kept": tally.kept,
            "duplicates": tally.duplicates,
            "filled_before": tally.replays,
            "retractions": tally.retractions,
            "dead_letters": watcher.dead_letters,
        },
        "taken_over": {
            "kept": adopted.kept,
            "duplicates": adopted.duplicates,
            "not_committed": run.ahead,
            "would_be_flagged": adopted.flagged_now,
            "would_be_kept": adopted.kept_now,
        },
        "gaps": watcher.gaps,
    }


def table(run: Migration, watcher: Told, seconds: float) -> Table:
    """The report, for people."""
    tally, adopted = run.tally, run.adopted
    rows = {
        "articles filled": tally.versions,
        "  verdict taken over": adopted.kept + adopted.duplicates,
        "    unique": adopted.kept,
        "      the new settings would flag": adopted.flagged_now,
        "    duplicate": adopted.duplicates,
        "      the new settings would keep": adopted.kept_now,
        "    settled and not committed": run.ahead,
        "  filled before": tally.replays,
        "  judged, without a verdict in force": (tally.versions - tally.replays - adopted.kept - adopted.duplicates),
        "retractions": tally.retractions,
        "dead letters, sent by others": watcher.dead_letters,
    }
    shown = render.pairs("Filled")
    for name, count in rows.items():
        shown.add_row(name, f"{count:,}")
    shown.add_row("articles a second", f"{tally.versions / max(seconds, 1e-9):,.0f}")
    for sentence in watcher.gaps:
        shown.add_row("gap", render.plain(sentence))
    return shown
