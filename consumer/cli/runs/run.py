"""``dupwatch run``: judge a feed."""

import shutil
import sys
import time
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from consumer.cli import render
from consumer.cli.options import ConfigOption, SchemeOption, SetOption, StoreOption, WorkersOption, command_config
from consumer.cli.results import standard_error, standard_output
from consumer.cli.runs.feed_report import FeedReport, show_blank_lines, show_flags, show_report
from consumer.config.config import Config
from consumer.decode.codecs import formats_for_help
from consumer.files.kind import FILE
from consumer.files.letters import dead_letters_path
from consumer.files.source import STREAM
from consumer.lifecycle.stopping import SIGNAL_EXIT_BASE, StopSignal
from consumer.model.article import Reason
from consumer.model.errors import ConfigError, TooManyDeadLetters
from consumer.model.hooks import Hooks
from consumer.pipeline.batches import BatchCommitted
from consumer.pipeline.feed_kind import Streams
from consumer.wiring.feeds import source_side
from consumer.wiring.file_run import FileRun, prepared_run
from consumer.wiring.stores import outlives_run

_OTHER_ENCODING: Final = (
    "Records with invalid_utf8 are in another encoding: set source.encoding for CSV or TSV, convert anything else to "
    "UTF-8, and judge the feed again, into another sink."
)


def run(
    source: Annotated[
        str | None,
        typer.Option(
            help=f"Articles: a file of {formats_for_help()}, - for standard input, or kafka://HOST:PORT/TOPIC.",
            metavar="FILE|-|TOPIC",
        ),
    ] = None,
    sink: Annotated[
        str | None,
        typer.Option(
            help="Where verdicts go, and dead letters next to them: a file, - for standard output, or "
            "kafka://HOST:PORT/PREFIX.",
            metavar="FILE|-|PREFIX",
        ),
    ] = None,
    store: StoreOption = None,
    emit: Annotated[
        str | None, typer.Option(help="Which verdicts to write: duplicates (default), all or none.", metavar="WHICH")
    ] = None,
    workers: WorkersOption = None,
    scheme: SchemeOption = None,
    filter_: Annotated[
        bool,
        typer.Option(
            "--filter",
            help="Write the unique articles to standard output, unchanged. Verdicts go to the file that --sink names, "
            "or nowhere.",
        ),
    ] = False,
    show: Annotated[bool, typer.Option("--show", help="Print every flag on standard error, with titles.")] = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Judge a feed: write one verdict for each article and one dead letter for each invalid record.

    An interrupted run from a file into a file, with an lmdb: or hbase:// store, resumes where it stopped when you start
    it again. A run over topics continues until it is stopped, and shares the partitions with the other consumers of its
    group.

    Ctrl-C and SIGTERM stop a run; a run over topics then exits with 0, a run over a file with 130 or 143.
    """
    chosen = command_config(
        config,
        overrides,
        source__url=source,
        sink__url=sink,
        sink__emit=emit,
        store__url=store,
        workers=workers,
        fingerprint__scheme=scheme,
    )
    if filter_:
        chosen = _filter_config(chosen, emit)
    if source_side(chosen).is_lasting:
        from consumer.cli.runs import lasting_run  # noqa: PLC0415  # loading Kafka clients takes 0.1 s

        lasting_run.run_lasting(chosen, show=show)
    else:
        _run_to_end(chosen, show=show, filters=filter_)


def _run_to_end(chosen: Config, *, show: bool, filters: bool) -> None:
    """Judge a file or a stream, and print the summary."""
    console = render.console(stderr=True)
    stopping = StopSignal()
    report = FeedReport()
    hooks = Hooks(report)
    streams = Streams(standard_output(), standard_error())
    began_s = time.monotonic()
    with stopping.handle_signals(), prepared_run(chosen, streams, hooks, stopping, filters=filters) as ready:
        if ready.resumed_at.line:
            console.print(f"Resuming after line {ready.resumed_at.line} of {render.plain(chosen.source.url)}.")
        if show:
            hooks.on(BatchCommitted, lambda batch: show_flags(console, ready.store, batch.verdicts))
        refusal = run_feed(ready, hooks, console)
        console.print(render.summary(ready.tally, report.dead_letters, time.monotonic() - began_s, ready.engine))
        show_report(console, report)
        show_blank_lines(console, ready.source)
    _show_paths(console, chosen, report.dead_letters, judged=bool(ready.tally.versions))
    if report.reasons[Reason.INVALID_UTF8]:
        console.print(_OTHER_ENCODING)
    if refusal is not None:
        raise refusal
    if stopping.requested_by is not None:
        console.print(f"Stopped{'; rerun to resume' if ready.resumable else ''}.")
        raise typer.Exit(SIGNAL_EXIT_BASE + stopping.requested_by)


def run_feed(ready: FileRun, hooks: Hooks, console: Console) -> TooManyDeadLetters | None:
    """Run to the end, with a progress bar. Return the error if the feed is refused; the caller raises it later."""
    with render.progress(console) as progress:
        hooks.on(BatchCommitted, render.follow(progress, "judging", ready.source.progress))
        try:
            ready.pipeline.run()
        except TooManyDeadLetters as refusal:
            return refusal
    return None


def _filter_config(config: Config, emit: str | None) -> Config:
    """Return the configuration of a run with --filter. Raises ``ConfigError`` if such a run is not possible."""
    if source_side(config).is_lasting:
        raise ConfigError(
            "--filter reads a file or standard input; for topics set kafka.unique = true, which writes the unique "
            "articles to PREFIX.unique"
        )
    if config.sink.url != STREAM:
        return config
    if emit is not None:
        raise ConfigError("with --filter, articles go to standard output; name a file for the verdicts with --sink")
    return config.model_copy(update={"sink": config.sink.model_copy(update={"emit": "none"})})


def _show_paths(console: Console, config: Config, dead_letters: int, *, judged: bool) -> None:
    if FILE.matches(config.sink.url):
        path = Path(config.sink.url)
        console.print(f"Verdicts ({config.sink.emit}): {render.plain(str(path))}")
        if dead_letters:
            console.print(f"Dead letters: {render.plain(str(dead_letters_path(path)))}")
    if judged and outlives_run(config):
        command = "dupwatch" if shutil.which("dupwatch") else sys.argv[0]
        console.print(f"Look up an article: {render.plain(command)} show ID --store {render.plain(config.store.url)}")
