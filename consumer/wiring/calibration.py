"""Measures this machine: runs the pipeline of ``dupwatch run`` over a file, into a temporary store."""

import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from consumer.config.config import Config
from consumer.config.sections.banks import BanksSection
from consumer.config.sections.feed import SourceSection
from consumer.judge.decision import VersionState, state_of
from consumer.lifecycle.stopping import StopSignal
from consumer.model.errors import ConfigError
from consumer.model.hooks import Hooks
from consumer.pipeline.batches import BatchCommitted, BatchMeasured, Stage, StageEnded
from consumer.pipeline.feed_kind import Streams
from consumer.store_tools.made_articles import ArticleMaker
from consumer.store_tools.speeds import Speed
from consumer.store_tools.text_sizes import SampledArticle, TextSizes, measured_sizes
from consumer.wiring.file_run import prepared_run
from consumer.wiring.stores import opened_store
from storage.interface import Store
from storage.records import StoredVersion

Clock = Callable[[], float]
ROUND_ARTICLES: Final = 2_560
"""The number of articles that are generated and judged in one round."""
_SAMPLE_MAX: Final = 2_000
"""The maximum number of articles whose sizes are measured."""
_PAGE: Final = 100


class Calibration(NamedTuple):
    """The result: the number of articles, the seconds for judging them, the speed, and the sizes of a sample."""

    articles: int
    seconds: float
    speed: Speed
    sizes: TextSizes


@dataclass(slots=True)
class _Measurement:
    """A listener that adds up the reports of runs.

    It stops the current run after the first batch that ends once the time is up.
    """

    clock: Clock
    ends_s: float
    stopping: StopSignal = field(default_factory=StopSignal)
    articles: int = 0
    records: int = 0
    record_bytes: int = 0
    seconds: float = 0.0
    stages: Counter[Stage] = field(default_factory=Counter)

    def listen(self, hooks: Hooks) -> None:
        """Register with a run."""
        hooks.on(StageEnded, self._stage)
        hooks.on(BatchMeasured, self._measured)
        hooks.on(BatchCommitted, self._committed)

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self.clock() >= self.ends_s

    def reset(self) -> None:
        """Discard the reports so far; the first articles of a process are slower."""
        self.articles = self.records = self.record_bytes = 0
        self.seconds = 0.0
        self.stages.clear()

    def _stage(self, ended: StageEnded) -> None:
        self.stages[ended.stage] += ended.seconds  # type: ignore[assignment]  # a counter of seconds

    def _measured(self, batch: BatchMeasured) -> None:
        self.records += batch.records
        self.record_bytes += batch.size_bytes

    def _committed(self, batch: BatchCommitted) -> None:
        self.articles += len(batch.verdicts)
        if self.is_over:
            self.stopping.requested_by = signal.SIGALRM

    def calibration(self, config: Config, option: str) -> Calibration:
        """Return the result. Sizes are those of stored articles. Raises ``ConfigError`` if no text was judged."""
        with opened_store(config, readonly=True) as store:
            stored = list(islice(stored_articles(store), _SAMPLE_MAX))
        if not stored or not self.seconds:
            raise ConfigError(f"{option}: no article with a text was judged; name a file that dupwatch run judges")
        judge_s = self.stages["look_up"] + self.stages["settle"]
        speed = Speed(
            fingerprint_us=1e6 * self.stages["fingerprint"] / self.articles,
            judge_us=1e6 * judge_s / self.articles,
            articles_a_s=self.articles / self.seconds,
        )
        return Calibration(self.articles, self.seconds, speed, measured_sizes(stored, self.record_bytes / self.records))


def calibrate_on_sample(
    config: Config, sample: str, scratch: Path, seconds: float, clock: Clock = time.monotonic
) -> Calibration:
    """Judge the articles of a file, until it ends or the time is up. Raises ``ConfigError`` if no text was judged."""
    chosen = config.model_copy(update={"source": config.source.model_copy(update={"url": sample})})
    measurement = _Measurement(clock, clock() + seconds)
    isolated = _isolated_config(chosen, scratch, 0)
    _judge(isolated, measurement)
    return measurement.calibration(isolated, f"--sample {sample}")


def calibrate(
    config: Config,
    maker: ArticleMaker,
    scratch: Path,
    seconds: float,
    clock: Clock = time.monotonic,
    round_articles: int = ROUND_ARTICLES,
) -> Calibration:
    """Judge generated articles in rounds, into one store, until the time is up.

    The first round counts only if it is the only one. Raises ``ConfigError`` if no text was judged.
    """
    measurement, source = _Measurement(clock, clock() + seconds), scratch / "articles.jsonl"
    chosen = config.model_copy(update={"source": SourceSection(url=str(source))})
    for number in count():
        isolated = _isolated_config(chosen, scratch, number)
        _write_articles(source, number, maker.bodies(round_articles))
        _judge(isolated, measurement)
        if measurement.is_over:
            return measurement.calibration(isolated, "--calibrate")
        if number == 0:
            measurement.reset()
    raise AssertionError("the rounds do not end")


def _isolated_config(config: Config, scratch: Path, number: int) -> Config:
    """Return the configuration with sink, store and banks replaced, so that a run writes only to ``scratch``."""
    sink = {"url": str(scratch / f"verdicts-{number}.jsonl"), "emit": "duplicates"}
    return config.model_copy(
        update={
            "sink": config.sink.model_copy(update=sink),
            "store": config.store.model_copy(update={"url": f"lmdb:{scratch / 'store'}"}),
            "banks": BanksSection(),
        }
    )


def _judge(config: Config, measurement: _Measurement) -> None:
    streams = Streams(sys.stdout.buffer, sys.stderr.buffer)
    with prepared_run(config, streams, Hooks(measurement), measurement.stopping) as ready:
        began_s = measurement.clock()
        ready.pipeline.run()
        measurement.seconds += measurement.clock() - began_s


def stored_articles(store: Store) -> Iterator[SampledArticle]:
    """Yield the judged versions of a store with their texts; versions without a text are left out."""
    versions = (stored for stored in store.scan() if isinstance(stored, StoredVersion) and stored.verdict is not None)
    for page in iter(lambda: list(islice(versions, _PAGE)), []):
        bodies = store.bodies([stored.record.reference for stored in page])
        for stored, body in zip(page, bodies, strict=True):
            if body is not None and stored.verdict is not None:
                yield SampledArticle(stored.record, stored.verdict, body, state_of(stored) is not VersionState.KEPT)


def _write_articles(path: Path, number: int, bodies: Iterable[str]) -> None:
    encoder = msgspec.json.Encoder()
    with path.open("wb") as lines:
        lines.writelines(
            encoder.encode({"id": f"{number}-{place}", "body": body}) + b"\n" for place, body in enumerate(bodies)
        )
