"""What metrics cost: the same articles judged with and without them, ``python -m benchmarks.metrics_cost``.

The loop of a run, from bytes to verdicts, over a store in memory: the faster the store, the more metrics weigh. *With*
is all that a consumer measures; *without* nothing is observed, the store is not watched, and the distributions that the
detector keeps take nothing in. The two take turns in one process on one core, and processor time is what counts, so
that what else the machine does counts less. What a scrape takes is told beside it.
"""

import io
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from prometheus_client import generate_latest

from benchmarks.speed.harness import Contender, Timing, ratios, spread, take_turns
from benchmarks.speed.machine import keep_to_one_core, single_threaded
from benchmarks.speed.report import OUT, Row, publish
from consumer.config.config import Config
from consumer.config.loading import load_config
from consumer.files.lines import Position
from consumer.files.sinks import StreamDeadLetters, StreamSink
from consumer.fingerprint import Lexicon
from consumer.judge.binding import Binding
from consumer.judge.detector import Detector
from consumer.judge.expiry import Expiry
from consumer.judge.settings import JudgeSettings
from consumer.judge.tally import Tally
from consumer.lifecycle.stopping import StopSignal
from consumer.model.histogram import Histogram
from consumer.model.hooks import Hooks
from consumer.model.record import RawBatch, RawRecord
from consumer.pipeline.arrivals import FileArrivals
from consumer.pipeline.dead_letter_policy import DeadLetterPolicy
from consumer.pipeline.journal import NoJournal
from consumer.pipeline.loop import Pipeline
from consumer.stress.made_texts import make_feed
from consumer.telemetry.health import Health
from consumer.telemetry.metrics import Bounds, Metrics
from consumer.wiring import components
from consumer.workers.pool import Fingerprinting
from storage.clock import now_ms
from storage.interface import Store
from storage.memory import MemoryStore
from storage.watched import WatchedStore

PART: Final = "metrics_cost"
WITH: Final = "with metrics"
WITHOUT: Final = "without"
_SOURCES: Final = 80


class Given:
    """A source of batches that are there already."""

    def __init__(self, batches: Sequence[RawBatch]) -> None:
        self._batches = batches

    def batches(self) -> Iterator[RawBatch]:
        """All of them."""
        return iter(self._batches)

    def close(self) -> None:
        """There is nothing to let go of."""


class Blind(Histogram):
    """Takes nothing in."""

    __slots__ = ()

    def add(self, values: Iterable[float]) -> None:
        """Nothing."""


class Judging:
    """Judges the same batches again and again, each time into a new store; what is measured goes to one ``Metrics``."""

    def __init__(self, batches: Sequence[RawBatch], config: Config, lexicon: Lexicon) -> None:
        self._batches = batches
        self._config = config
        self._settings: JudgeSettings = components.judge_settings(config, lexicon)
        self._fingerprinting: Fingerprinting = components.fingerprinting(config, Binding(self._settings), lexicon)
        self._decode = components.file_decoder(config)
        self._metrics = Metrics(bounds=Bounds(components.read_limits(config), config.http.sources_max))
        self._hooks = Hooks(self._metrics, Health())

    def bare(self, number: int) -> int:
        """Without metrics; returns how many records that were."""
        del number
        nothing = Blind(())
        tally = Tally(candidates=nothing, suspects=nothing, verifications=nothing, similarities=nothing)
        return self._judge(Hooks(), MemoryStore(), tally)

    def measured(self, number: int) -> int:
        """With them."""
        del number
        return self._judge(self._hooks, WatchedStore(MemoryStore(), self._hooks.report), Tally())

    def scrape_ms(self, times: int) -> list[float]:
        """What it takes to tell all metrics of a run that has judged, in milliseconds."""
        self._metrics.watch(Tally())
        took_ms = []
        for _ in range(times):
            began_s = time.process_time()
            generate_latest(self._metrics.registry)
            took_ms.append(1000 * (time.process_time() - began_s))
        return took_ms

    def _judge(self, hooks: Hooks, store: Store, tally: Tally) -> int:
        judge = Detector(store, self._settings, now_ms, tally=tally)
        Pipeline(
            source=Given(self._batches),
            decode=self._decode,
            fingerprinting=self._fingerprinting,
            builder=components.version_builder(Binding(self._settings)),
            arrivals=FileArrivals(now_ms(), b"given", "feed"),
            detector=judge,
            sink=StreamSink(io.BytesIO(), emit="all"),
            dead_letters=DeadLetterPolicy("given", StreamDeadLetters(io.BytesIO())),
            journal=NoJournal(),
            hooks=hooks,
            stopping=StopSignal(),
            expiry=Expiry(judge, now_ms, self._settings.window_ms, self._settings.window_ms),
            postings_watch=self._config.judge.postings_watch,
        ).run()
        return sum(len(batch.records) for batch in self._batches)


def cut(articles: int, chars: int, records: int) -> list[RawBatch]:
    """A feed of this many articles from some sources, in batches of this many records."""
    lines = [
        msgspec.json.encode({"id": text.id, "body": text.body, "source": f"source {number % _SOURCES}"})
        for number, text in enumerate(make_feed(articles, chars))
    ]
    return in_batches(lines, records)


def in_batches(lines: Sequence[bytes], records: int) -> list[RawBatch]:
    """These lines in batches of this many records."""
    whole = [
        RawRecord(number, 0, line, len(line), None, None, Position(number, 0)) for number, line in enumerate(lines, 1)
    ]
    parts = [tuple(whole[start : start + records]) for start in range(0, len(whole), records)]
    return [RawBatch(part, part[-1].end) for part in parts]


def row(chars: int, records: int, without: Timing, measured: Timing, scrape_ms: Sequence[float]) -> Row:
    """One line of the table; the cost is the share of the throughput that metrics take."""
    kept = ratios(measured, without)
    return {
        "characters": chars,
        "records a batch": records,
        "articles/s without": without.rate,
        "articles/s with": measured.rate,
        "cost %": spread([100 * (1 - share) for share in (kept.low, kept.median, kept.high)]),
        "cost %, best rounds": 100 * (1 - measured.rate.high / without.rate.high),
        "µs an article": measured.microseconds.median - without.microseconds.median,
        "ms a scrape": spread(scrape_ms),
    }


def main(
    articles: Annotated[int, typer.Option(min=1)] = 256,
    rounds: Annotated[int, typer.Option(min=1)] = 61,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Measure what metrics cost."""
    single_threaded()
    keep_to_one_core()
    config = load_config(None, {})
    lexicon = components.lexicon_of(config)
    rows = []
    for chars, records in ((500, 256), (500, 16), (2_000, 256)):
        judging = Judging(cut(articles, chars, records), config, lexicon)
        contenders = [Contender(WITHOUT, judging.bare), Contender(WITH, judging.measured)]
        without, measured = take_turns(contenders, rounds, clock=time.process_time)
        rows.append(row(chars, records, without, measured, judging.scrape_ms(rounds)))
    publish(PART, "What metrics cost, one core, a store in memory", rows, out=out, articles=articles, rounds=rounds)


if __name__ == "__main__":
    typer.run(main)
