"""``dupwatch backfill``: fill a store from an archive, without sending anything."""

import time
from pathlib import Path
from typing import Annotated

import typer

from consumer.cli import render
from consumer.cli.options import (
    ConfigOption,
    LastingStoreOption,
    SchemeOption,
    SetOption,
    WorkersOption,
    command_config,
)
from consumer.cli.results import standard_error, standard_output
from consumer.cli.runs.feed_report import FeedReport, show_blank_lines, show_report
from consumer.cli.runs.run import run_feed
from consumer.config.config import Config
from consumer.decode.codecs import formats_for_help
from consumer.files.backfill_state import BackfillState, default_state, named_state
from consumer.files.checkpoint import checkpoint_path
from consumer.files.letters import dead_letters_path
from consumer.files.source import STREAM
from consumer.lifecycle.stopping import SIGNAL_EXIT_BASE, StopSignal
from consumer.model.errors import ConfigError
from consumer.model.hooks import Hooks
from consumer.pipeline.feed_kind import Streams
from consumer.wiring.file_run import prepared_run
from consumer.wiring.stores import STORE_EXAMPLES, is_empty, outlives_run
from storage.kinds import store_identity


def backfill(
    archive: Annotated[str, typer.Argument(metavar="FILE", help=f"Articles as {formats_for_help()}.")],
    store: LastingStoreOption = None,
    state: Annotated[
        str | None,
        typer.Option(
            help="File for progress; dead letters go next to it. Default: a file next to the archive, one for each "
            "store.",
            metavar="FILE",
        ),
    ] = None,
    scheme: SchemeOption = None,
    workers: WorkersOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Fill a store from an archive: judge each article as of its time of publication, and send nothing.

    Later articles are then compared with the archive. Use the settings of the consumers, which may run at the same time
    on the same store. Start an interrupted backfill again and it resumes where it stopped. Invalid records become dead
    letters next to the state file.
    """
    if archive == STREAM:
        raise ConfigError("backfill may have to read the archive again, so it cannot read standard input; name a file")
    chosen = command_config(
        config,
        overrides,
        source__url=archive,
        sink__emit="none",
        store__url=store,
        workers=workers,
        fingerprint__scheme=scheme,
    )
    if not outlives_run(chosen):
        raise ConfigError(
            f"a {chosen.store.url} store is lost when the command ends; name the store to fill: {STORE_EXAMPLES}"
        )
    console = render.console(stderr=True)
    state_file, notice = _state(chosen, state)
    chosen = chosen.model_copy(update={"sink": chosen.sink.model_copy(update={"url": str(state_file)})})
    stopping = StopSignal()
    report = FeedReport()
    hooks = Hooks(report)
    streams = Streams(standard_output(), standard_error())
    began_s = time.monotonic()
    with stopping.handle_signals(), prepared_run(chosen, streams, hooks, stopping, archive=True) as ready:
        if notice is not None:
            console.print(render.plain(notice))
        console.print(f"Progress is saved in {render.plain(str(checkpoint_path(state_file)))}")
        if ready.resumed_at.line:
            console.print(f"Resuming after line {ready.resumed_at.line} of {render.plain(archive)}.")
        refusal = run_feed(ready, hooks, console)
        console.print(render.summary(ready.tally, report.dead_letters, time.monotonic() - began_s, ready.engine))
        show_report(console, report)
        show_blank_lines(console, ready.source)
    if report.replaced_times:
        console.print(
            f"Articles judged as of now, without a time of publication or with a future one: {report.replaced_times:,}"
        )
    if report.dead_letters:
        console.print(f"Dead letters: {render.plain(str(dead_letters_path(state_file)))}")
    if refusal is not None:
        raise refusal
    if stopping.requested_by is not None:
        console.print("Stopped; rerun to resume.")
        raise typer.Exit(SIGNAL_EXIT_BASE + stopping.requested_by)


def _state(config: Config, file: str | None) -> BackfillState:
    store = store_identity(config.store.url)
    if file is not None:
        return named_state(Path(file), store)
    return default_state(Path(config.source.url), store, lambda: is_empty(config))
