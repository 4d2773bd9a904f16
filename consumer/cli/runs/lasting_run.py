"""``dupwatch run`` over a source without an end, such as topics, and therefore without a progress bar."""

import logging
import time

from rich.console import Console

from consumer.cli import render
from consumer.cli.results import standard_error, standard_output
from consumer.cli.runs.feed_report import FeedReport, show_flags, show_report
from consumer.config.config import Config
from consumer.kafka.time_limits import ENDING_S
from consumer.lifecycle.stopping import StopSignal
from consumer.model.hooks import Hooks
from consumer.model.program_version import program_version
from consumer.pipeline.batches import BatchCommitted
from consumer.pipeline.feed_kind import Streams
from consumer.telemetry import logs
from consumer.telemetry.health import enforce_stop
from consumer.wiring.lasting_run import LastingRun, prepared_lasting_run

log = logging.getLogger("dupwatch")


def run_lasting(config: Config, *, show: bool) -> None:
    """Judge until SIGTERM or SIGINT. Then finish the work in progress and return, so that the exit code is 0."""
    console = render.console(stderr=True)
    logs.set_up(config.log.format, config.log.level, is_service=True)
    stopping = StopSignal(interrupts=False)
    report = FeedReport()
    began_s = time.monotonic()

    hooks = Hooks(report)
    streams = Streams(standard_output(), standard_error())
    with stopping.handle_signals(), prepared_lasting_run(config, streams, hooks, stopping) as ready:
        if show:
            hooks.on(BatchCommitted, lambda batch: show_flags(console, ready.store, batch.verdicts))
        enforce_stop(stopping, ready.health.note_stopping, config.kafka.drain_s + ENDING_S)
        _show_start(console, config, ready)
        ready.pipeline.run()
    _show_end(console, ready, report, time.monotonic() - began_s)


def _show_start(console: Console, config: Config, ready: LastingRun) -> None:
    if logs.tells_people():
        where = f", {ready.address}/" if ready.address else ""
        console.print(f"Judging {render.plain(config.source.url)} into {render.plain(config.sink.url)}{where}")
        return
    log.info(
        "Judging",
        extra={
            "version": program_version(),
            "source": config.source.url,
            "sink": config.sink.url,
            "store": config.store.url,
            "pages": ready.address,
            "engine": ready.engine.description,
        },
    )


def _show_end(console: Console, ready: LastingRun, report: FeedReport, seconds: float) -> None:
    tally = ready.tally
    if logs.tells_people():
        console.print(render.summary(tally, report.dead_letters, seconds, ready.engine))
        show_report(console, report)
        return
    log.info(
        "The run has ended",
        extra={
            "articles": tally.versions,
            "unique": tally.kept,
            "duplicates": tally.duplicates,
            "retractions": tally.retractions,
            "dead_letters": report.dead_letters,
            "published_at_unread": report.time_faults.total(),
            "without_text": report.without_text,
            "seconds": round(seconds, 1),
        },
    )
