"""``dupwatch migrate``: change scheme, plan, settings or store without a gap."""

import time
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table

from consumer.cli import render
from consumer.cli.options import ConfigOption, JsonOption, SchemeOption, SetOption, WorkersOption, command_config
from consumer.cli.results import results, write_json
from consumer.lifecycle.stopping import SIGNAL_EXIT_BASE, StopSignal
from consumer.migration.building import open_migration
from consumer.migration.migration import FillCaughtUp, Migration, MigrationPlan, TextsCopied, WindowGap
from consumer.model.errors import ConfigError
from consumer.model.hooks import Hooks
from consumer.pipeline.batches import BatchCommitted
from consumer.text.counts import counted

REPORT_EVERY_S: Final = 30.0
"""Seconds between progress messages if standard error is not a terminal."""


class Reporter:
    """The progress of the fill, as a bar on a terminal or as messages, and the instructions for the user."""

    def __init__(self, console: Console, progress: Progress, from_group: str) -> None:
        self._console = console
        self._progress = progress
        self._from_group = from_group
        self._task: TaskID | None = None
        self._run: Migration | None = None
        self._reported_s = time.monotonic()
        self.dead_letters = 0
        self.gaps: list[str] = []

    def watch(self, run: Migration) -> None:
        """Show the progress of this migration from now on."""
        self._run = run
        self._task = self._progress.add_task("filling", total=None)

    def listen(self, hooks: Hooks) -> None:
        """Show events from now on."""
        hooks.on(BatchCommitted, self._committed)
        hooks.on(TextsCopied, self._texts_copied)
        hooks.on(FillCaughtUp, self._caught_up)
        hooks.on(WindowGap, self._gap)

    def _committed(self, batch: BatchCommitted) -> None:
        verdicts = batch.verdicts
        self.dead_letters += len(batch.letters)
        if self._run is None or self._task is None:
            return
        done, total = self._run.progress()
        self._progress.update(self._task, completed=done, total=total)
        if self._progress.disable and time.monotonic() - self._reported_s >= REPORT_EVERY_S:
            self._reported_s = time.monotonic()
            until = f", up to {max(verdict.arrived_at for verdict in verdicts)}" if verdicts else ""
            self._console.print(f"Filled {done:,} of {total:,} messages{until}.")

    def _texts_copied(self, copied: TextsCopied) -> None:
        """Print how many texts were copied, if any."""
        if copied.texts:
            self._console.print(f"Copied from the old store: {counted(copied.texts, 'seen text')}.")

    def _caught_up(self, _: FillCaughtUp) -> None:
        """Ask the user to stop the old consumers."""
        self._console.print(
            f"The new store has caught up with the group {render.plain(self._from_group)} and follows it. Stop the"
            " consumers of that group now; the switch happens when the last one has left it."
        )

    def _gap(self, gap: WindowGap) -> None:
        """Print a gap, and keep it for the report."""
        self.gaps.append(gap.sentence)
        self._console.print(render.plain(gap.sentence))


def migrate(
    from_group: Annotated[str, typer.Option("--from-group", help="Group of the old consumers.", metavar="GROUP")],
    from_store: Annotated[
        str | None, typer.Option("--from-store", help="Store of the old consumers; it is only read.", metavar="STORE")
    ] = None,
    without_old_store: Annotated[
        bool,
        typer.Option(
            "--without-old-store",
            "--anew",
            help="Judge the window again with the new settings, if the old store is lost or damaged.",
        ),
    ] = False,
    source: Annotated[
        str | None,
        typer.Option("--source", help="Topics of articles: kafka://HOST:PORT/TOPIC[,TOPIC].", metavar="TOPIC"),
    ] = None,
    store: Annotated[str | None, typer.Option("--store", help="New store; must be empty.", metavar="STORE")] = None,
    group: Annotated[str | None, typer.Option("--group", help="Group of the new consumers.", metavar="GROUP")] = None,
    allow_gap: Annotated[
        bool, typer.Option("--allow-gap", help="Continue even if the topic holds less than the window.")
    ] = False,
    workers: WorkersOption = None,
    scheme: SchemeOption = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Change scheme, plan, settings or store without a gap, while the feed keeps running.

    Run it with the configuration of the new consumers, which need a group and a store of their own. It fills the new
    store with the current window and the verdicts of the old consumers, and follows them while they keep judging. When
    it tells you to, stop the old consumers with SIGTERM. As soon as the last one has left, it commits their offsets for
    the new group and exits with 0. Then start the new consumers.

    It sends no messages. You can stop or kill it at any time; a rerun resumes where it stopped.
    """
    if (from_store is None) is not without_old_store:
        raise ConfigError(
            "name the store of the old consumers with --from-store, or judge the window again with --without-old-store"
        )
    chosen = command_config(
        config, overrides, source__url=source, store__url=store, kafka__group=group, workers=workers,
        fingerprint__scheme=scheme,
    )  # fmt: skip
    console = render.console(stderr=True)
    progress = render.progress(console)
    stopping = StopSignal(interrupts=False)
    reporter = Reporter(console, progress, from_group)
    plan = MigrationPlan(from_group, from_store, allow_gap)
    began_s = time.monotonic()
    with stopping.handle_signals(), open_migration(chosen, plan, Hooks(reporter), stopping) as ready:
        console.print(
            f"Filling {render.plain(chosen.store.url)} for the group {render.plain(chosen.kafka.group)}; the old group"
            f" is {render.plain(from_group)}."
        )
        with progress:
            reporter.watch(ready)
            switched = ready.run()
        if json:
            with results():
                write_json(_json_fields(ready, reporter, switched=switched))
        else:
            console.print(table(ready, reporter, time.monotonic() - began_s))
    if switched:
        console.print(f"Switched. Start the consumers of {render.plain(chosen.kafka.group)} with the new store.")
        return
    console.print("Stopped before the switch; rerun to resume.")
    raise typer.Exit(SIGNAL_EXIT_BASE + (stopping.requested_by or 0))


def _json_fields(run: Migration, reporter: Reporter, *, switched: bool) -> dict[str, Any]:
    tally, adopted = run.tally, run.adopted
    return {
        "switched": switched,
        "filled": {
            "articles": tally.versions,
            "kept": tally.kept,
            "duplicates": tally.duplicates,
            "filled_before": tally.replays,
            "retractions": tally.retractions,
            "dead_letters": reporter.dead_letters,
        },
        "taken_over": {
            "kept": adopted.kept,
            "duplicates": adopted.duplicates,
            "not_committed": run.adopted_ahead,
            "would_be_flagged": adopted.flagged_now,
            "would_be_kept": adopted.kept_now,
        },
        "gaps": reporter.gaps,
    }


def table(run: Migration, reporter: Reporter, seconds: float) -> Table:
    """Return the report as a table."""
    tally, adopted = run.tally, run.adopted
    rows = {
        "articles filled": tally.versions,
        "  with the old verdict": adopted.kept + adopted.duplicates,
        "    unique": adopted.kept,
        "      duplicate by the new settings": adopted.flagged_now,
        "    duplicate": adopted.duplicates,
        "      unique by the new settings": adopted.kept_now,
        "    judged but not committed by the old group": run.adopted_ahead,
        "  already filled": tally.replays,
        "  judged again, no old verdict": (tally.versions - tally.replays - adopted.kept - adopted.duplicates),
        "retractions": tally.retractions,
        "dead letters, sent by the old consumers": reporter.dead_letters,
    }
    rate = ("articles per second", f"{tally.versions / max(seconds, 1e-9):,.0f}")
    gaps = [("gap", render.plain(sentence)) for sentence in reporter.gaps]
    return render.value_table("Filled", [*rows.items(), rate, *gaps])
