"""``dupwatch replay``: judge a range of a topic again, and report what would change."""

import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from consumer.cli import render
from consumer.cli.options import ConfigOption, JsonOption, SchemeOption, SetOption, command_config
from consumer.cli.results import answer
from consumer.cli.runs.feed_report import FeedReport
from consumer.config.config import Config
from consumer.judge.tally import Tally
from consumer.kafka.offset_range import OffsetRange, parse_bound
from consumer.lifecycle.stopping import SIGNAL_EXIT_BASE, StopSignal
from consumer.model.errors import ConfigError
from consumer.model.hooks import Hooks
from consumer.model.verdict import Verdict
from consumer.pipeline.batches import BatchCommitted
from consumer.store_tools.compare_stores import CHANGES, StoreComparison, VerdictChange, compare_stores
from consumer.text.counts import counted
from consumer.text.timestamps import TIME_HELP
from consumer.wiring.replay_run import ReplayRun, prepared_replay
from consumer.wiring.stores import opened_store, outlives_run
from storage.kinds import same_store


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
    overrides: SetOption = None,
) -> None:
    """Judge a range of a topic again with these settings, into a separate store.

    The replay joins no group and commits no offsets. Articles are judged in order of message time across all
    partitions. Times are RFC 3339, such as 2026-03-02T09:00:00Z; without a zone they are UTC. With --against, the
    verdicts are compared version by version with those of the consumers' store, which is only read.
    """
    # The configuration file may be the consumers' file: a replay must not use their sink or their store.
    consumers_config = command_config(config, overrides, source__url=source)
    chosen = command_config(
        config, overrides,
        source__url=source, sink__url=sink or "-", store__url=store, kafka__delivery="at-least-once",
        fingerprint__scheme=scheme,
    )  # fmt: skip
    _check_stores_and_sink(chosen, consumers_config, against)
    offsets = OffsetRange(parse_bound("--from", since), None if until is None else parse_bound("--until", until))
    console = render.console(stderr=True)
    stopping = StopSignal(interrupts=False)
    feed = FeedReport()
    hooks = Hooks(feed)
    began_s = time.monotonic()
    with (
        stopping.handle_signals(),
        prepared_replay(chosen, offsets, hooks, stopping, against) as ready,
    ):
        with render.progress(console) as progress:
            hooks.on(BatchCommitted, render.follow(progress, "judging again", ready.source.progress))
            ready.pipeline.run()
        console.print(render.summary(ready.tally, feed.dead_letters, time.monotonic() - began_s, ready.engine))
        if feed.replaced_times:
            console.print(f"Messages judged as of now, without a time or with a future one: {feed.replaced_times:,}")
        if stopping.requested_by is None:
            _report(ready, consumers_config, against, examples, json=json, dead_letters=feed.dead_letters)
    if stopping.requested_by is not None:
        console.print("Stopped. A rerun starts from the beginning; judged articles keep their verdicts.")
        raise typer.Exit(SIGNAL_EXIT_BASE + stopping.requested_by)


def _check_stores_and_sink(chosen: Config, consumers_config: Config, against: str | None) -> None:
    if not outlives_run(chosen) and against is None:
        raise ConfigError(
            f"a replay into {chosen.store.url} leaves no result; name a persistent store with --store, or add --against"
        )
    for other in (against, consumers_config.store.url):
        if other is not None and same_store(chosen.store.url, other):
            raise ConfigError(f"{chosen.store.url} is the consumers' store; name a different, empty one with --store")
    if chosen.sink.url != "-" and chosen.sink.url == consumers_config.sink.url:
        raise ConfigError(f"{chosen.sink.url} is the consumers' sink; name a different prefix with --sink")


def _report(
    ready: ReplayRun, consumers_config: Config, against: str | None, examples: int, *, json: bool, dead_letters: int
) -> None:
    if against is None:
        report = None
    else:
        compared = consumers_config.model_copy(
            update={"store": consumers_config.store.model_copy(update={"url": against})}
        )
        with opened_store(compared, readonly=True) as before:
            report = compare_stores(ready.store, before, examples)
    lines = [_json_fields(ready.tally, dead_letters, report)]
    answer(json=json, lines=lines, text=() if report is None else _text(report))


def _json_fields(tally: Tally, dead_letters: int, report: StoreComparison | None) -> dict[str, Any]:
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


def _text(report: StoreComparison) -> Iterator[RenderableType]:
    rows = {words: report.counts[kind] for kind, words in CHANGES.items()}
    yield render.value_table("Versions, compared with the consumers' store", rows.items())
    yield from map(_example_text, report.examples)


def _example_text(example: VerdictChange) -> Text:
    before = "no verdict" if example.before is None else _verdict_text(example.before)
    return Text.assemble(
        (render.plain(example.now.id), "bold"), f": {CHANGES[example.change]}\n",
        f"  now     {_verdict_text(example.now)}\n  before  {before}",
    )  # fmt: skip


def _verdict_text(verdict: Verdict) -> str:
    if verdict.outcome != "duplicate":
        return verdict.outcome
    return (
        f"duplicate of {render.plain(verdict.duplicate_of or '')}, distance {counted(verdict.distance or 0, 'bit')}, "
        f"{render.similarity_text(verdict.similarity)}"
    )
