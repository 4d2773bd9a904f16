"""``dupwatch replay``: judge a range of a topic again, and report what would change."""

import time
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, TaskID
from rich.text import Text

from consumer.cli import render
from consumer.cli.options import ConfigOption, JsonOption, SchemeOption, SetOption, configured
from consumer.cli.results import results, write_json
from consumer.config.config import Config
from consumer.judge.tally import Tally
from consumer.kafka.offset_range import OffsetRange, parse_bound
from consumer.lifecycle.stopping import SIGNALLED, Stopping
from consumer.model.errors import ConfigError
from consumer.model.hooks import Hooks
from consumer.model.verdict import Verdict
from consumer.pipeline.arrivals import RecordTimeReplaced
from consumer.pipeline.batches import BatchCommitted
from consumer.store_tools.compare_stores import CHANGES, Changed, Report, compare_stores
from consumer.text.timestamps import TIME_HELP
from consumer.wiring.replay_run import ReplayRun, prepared_replay
from consumer.wiring.stores import opened_store, outlives_run
from storage.kinds import same_store


class _Watcher:
    """Shows the progress; counts dead letters and replaced times."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: TaskID | None = None
        self._run: ReplayRun | None = None
        self.dead_letters = 0
        self.undated = 0

    def watch(self, run: ReplayRun) -> None:
        """Show the progress of this run from now on."""
        self._run = run
        done, total = run.source.progress()
        self._task = self._progress.add_task("judging again", total=total, completed=done)

    def listen(self, hooks: Hooks) -> None:
        """Count what is reported from now on."""
        hooks.on(BatchCommitted, self._committed)
        hooks.on(RecordTimeReplaced, self._replaced)

    def _committed(self, batch: BatchCommitted) -> None:
        self.dead_letters += len(batch.letters)
        if self._run is not None and self._task is not None:
            self._progress.update(self._task, completed=self._run.source.progress()[0])

    def _replaced(self, _: RecordTimeReplaced) -> None:
        self.undated += 1


def replay(
    store: Annotated[str, typer.Option(help="Store for the replay; must differ from the consumers' store.")],
    since: Annotated[
        str,
        typer.Option(
            "--from", help=f"Start: an offset, used for every partition, or a time: {TIME_HELP}.", metavar="OFFSET|TIME"
        ),
    ],
    source: Annotated[str | None, typer.Option(help="kafka://HOST:PORT/TOPIC[,TOPIC].", metavar="TOPIC")] = None,
    until: Annotated[
        str | None,
        typer.Option(
            help="End, exclusive, in the same format as --from; default: the current end of the topic.",
            metavar="OFFSET|TIME",
        ),
    ] = None,
    sink: Annotated[
        str | None, typer.Option(help="Topics for the verdicts: kafka://HOST:PORT/PREFIX; default: none.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="The consumers' store: compare the verdicts with it.", metavar="STORE")
    ] = None,
    examples: Annotated[int, typer.Option(help="Show at most N examples of each change.", min=0, metavar="N")] = 5,
    scheme: SchemeOption = None,
    json: JsonOption = False,
    config: ConfigOption = None,
    settings: SetOption = None,
) -> None:
    """Judge a range of a topic again with these settings, into a separate store.

    It joins no group and commits no offsets. Articles are judged in order of message time across all partitions. Times
    are RFC 3339, such as 2026-03-02T09:00:00Z; without a zone they are UTC. With --against, the verdicts are compared
    version by version with those of the consumers' store, which is only read.
    """
    # The configuration file may be that of the consumers: a replay must not use their topics or their store.
    theirs = configured(config, settings, source__url=source)
    chosen = configured(
        config, settings,
        source__url=source, sink__url=sink or "-", store__url=store, kafka__delivery="at-least-once",
        fingerprint__scheme=scheme,
    )  # fmt: skip
    _check_stores_and_sink(chosen, theirs, against)
    offsets = OffsetRange(parse_bound("--from", since), None if until is None else parse_bound("--until", until))
    console = render.console(stderr=True)
    progress = render.progress(console)
    stopping = Stopping(interrupts=False)
    watcher = _Watcher(progress)
    began_s = time.monotonic()
    with (
        stopping.listening(),
        prepared_replay(chosen, offsets, Hooks(watcher), stopping, against) as ready,
    ):
        with progress:
            watcher.watch(ready)
            ready.pipeline.run()
        console.print(render.summary(ready.tally, watcher.dead_letters, time.monotonic() - began_s, ready.engine))
        if watcher.undated:
            console.print(f"Messages without a time, or with one in the future, judged as of now: {watcher.undated:,}")
        if stopping.asked_by is None:
            _report(ready, theirs, against, examples, json=json, dead_letters=watcher.dead_letters)
    if stopping.asked_by is not None:
        console.print("Stopped; a rerun starts from the beginning, and judged articles keep their verdicts.")
        raise typer.Exit(SIGNALLED + stopping.asked_by)


def _check_stores_and_sink(chosen: Config, theirs: Config, against: str | None) -> None:
    if not outlives_run(chosen) and against is None:
        raise ConfigError(
            f"a replay into {chosen.store.url} leaves no result; name a store with --store, or add --against"
        )
    for other in (against, theirs.store.url):
        if other is not None and same_store(chosen.store.url, other):
            raise ConfigError(f"{chosen.store.url} is the consumers' store; name a different, empty one with --store")
    if chosen.sink.url != "-" and chosen.sink.url == theirs.sink.url:
        raise ConfigError(f"{chosen.sink.url} is the consumers' sink; name a different prefix with --sink")


def _report(
    ready: ReplayRun, theirs: Config, against: str | None, examples: int, *, json: bool, dead_letters: int
) -> None:
    if against is None:
        report = None
    else:
        in_force = theirs.model_copy(update={"store": theirs.store.model_copy(update={"url": against})})
        with opened_store(in_force, readonly=True) as before:
            report = compare_stores(ready.store, before, examples)
    with results():
        if json:
            write_json(_plain(ready.tally, dead_letters, report))
        elif report is not None:
            _show(render.console(), report)


def _plain(tally: Tally, dead_letters: int, report: Report | None) -> dict[str, Any]:
    return {
        "judged": {
            "articles": tally.versions,
            "unique": tally.kept,
            "duplicates": tally.duplicates,
            "retractions": tally.retractions,
            "judged_before": tally.replays,
            "dead_letters": dead_letters,
        },
        "versions": None if report is None else {kind: report.counts[kind] for kind in CHANGES},
        "examples": None
        if report is None
        else [{"change": example.change, "now": example.now, "before": example.before} for example in report.examples],
    }


def _show(console: Console, report: Report) -> None:
    rows = {words: report.counts[kind] for kind, words in CHANGES.items()}
    console.print(render.pairs("Versions, compared with the consumers' store", rows.items()))
    for example in report.examples:
        console.print(_example_text(example))


def _example_text(example: Changed) -> Text:
    before = "no verdict" if example.before is None else _verdict_text(example.before)
    return Text.assemble(
        (render.plain(example.now.id), "bold"), f": {CHANGES[example.change]}\n",
        f"  now     {_verdict_text(example.now)}\n  before  {before}",
    )  # fmt: skip


def _verdict_text(verdict: Verdict) -> str:
    if verdict.outcome != "duplicate":
        return verdict.outcome
    return (
        f"duplicate of {render.plain(verdict.duplicate_of or '')}, distance {verdict.distance} bits, "
        f"{render.similarity_text(verdict.similarity)}"
    )
