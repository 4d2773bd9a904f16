"""Articles a second through Kafka, against the same articles from a file: ``python -m benchmarks.kafka.throughput``.

Both judge into an LMDB store of their own, with the defaults, all verdicts emitted, in this process; a real broker runs
on the same machine. The topic is filled before. Time runs from the first batch that is begun to the last that is
committed, so that starting and joining the group do not count. The two take turns, round by round.
"""

import io
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated, Final

import typer

from benchmarks.kafka.broker import articles, broker, make_topics, send
from benchmarks.speed.harness import Spread, spread
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.config.config import Config
from consumer.config.loading import load_config
from consumer.lifecycle.stopping import StopSignal
from consumer.model.hooks import Hooks
from consumer.pipeline.batches import BatchCommitted, BatchStarted
from consumer.pipeline.feed_kind import Streams
from consumer.wiring.file_run import prepared_run
from consumer.wiring.lasting_run import prepared_lasting_run

PART: Final = "kafka_throughput"
ARTICLES: Final = 4_000
ROUNDS: Final = 5


class Clocked:
    """Notes when the first batch was begun and the last one done; asks the run to stop when all have come."""

    def __init__(self, wanted: int, stopping: StopSignal) -> None:
        self.began_s: float | None = None
        self.ended_s = 0.0
        self._left = wanted
        self._stopping = stopping

    def listen(self, hooks: Hooks) -> None:
        """Follow the batches of a run."""
        hooks.on(BatchStarted, self._begun)
        hooks.on(BatchCommitted, self._committed)

    def _begun(self, _: BatchStarted) -> None:
        if self.began_s is None:
            self.began_s = time.perf_counter()

    def _committed(self, batch: BatchCommitted) -> None:
        self.ended_s = time.perf_counter()
        self._left -= len(batch.verdicts) + len(batch.letters)
        if self._left <= 0:
            self._stopping.requested_by, self._stopping.requested_at_s = 15, time.monotonic()

    @property
    def took_s(self) -> float:
        """Between the two."""
        if self.began_s is None:
            raise RuntimeError("nothing was judged")
        return self.ended_s - self.began_s


def from_file(feed: Path, folder: Path, wanted: int, workers: int) -> float:
    """Judge a file; seconds."""
    stopping = StopSignal()
    clocked = Clocked(wanted, stopping)
    config = configured(str(feed), str(folder / "verdicts.jsonl"), folder, workers)
    with prepared_run(config, Streams(io.BytesIO(), io.BytesIO()), Hooks(clocked), stopping) as run:
        run.pipeline.run()
    return clocked.took_s


def from_topic(source: str, sink: str, folder: Path, wanted: int, workers: int, delivery: str) -> float:
    """Judge a topic; seconds."""
    stopping = StopSignal(interrupts=False)
    clocked = Clocked(wanted, stopping)
    config = configured(source, sink, folder, workers, delivery)
    with prepared_lasting_run(config, Streams(io.BytesIO(), io.BytesIO()), Hooks(clocked), stopping) as run:
        run.pipeline.run()
    return clocked.took_s


def configured(source: str, sink: str, folder: Path, workers: int, delivery: str = "at-least-once") -> Config:
    """The defaults, from here to there."""
    overrides = {
        "source": {"url": source},
        "sink": {"url": sink, "emit": "all"},
        "store": {"url": f"lmdb:{folder / 'store'}"},
        "http": {"listen": ""},
        "kafka": {"delivery": delivery, "group": folder.name},
        "workers": workers,
    }
    return load_config(None, overrides)


def main(
    count_of: Annotated[int, typer.Option("--articles", min=100)] = ARTICLES,
    chars: Annotated[int, typer.Option(min=50)] = 2_000,
    workers: Annotated[int, typer.Option(min=0)] = 0,
    rounds: Annotated[int, typer.Option(min=1)] = ROUNDS,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Measure a file, and a topic in both ways of delivery."""
    records = articles(count_of, chars, 1)
    numbers = count()
    with broker() as running, tempfile.TemporaryDirectory() as name:
        feed = Path(name) / "feed.jsonl"
        feed.write_bytes(b"".join(record.value + b"\n" for record in records))
        source, _ = make_topics(running.address, "feed")
        send(running.address, "feed", records)

        def folder() -> Path:
            created = Path(name) / f"round-{next(numbers)}"
            created.mkdir()
            return created

        def topic(delivery: str) -> float:
            place = folder()
            _, sink = make_topics(running.address, place.name)
            return from_topic(source, sink, place, count_of, workers, delivery)

        ways: dict[str, Callable[[], float]] = {
            "a file": lambda: from_file(feed, folder(), count_of, workers),
            "Kafka, at least once": partial(topic, "at-least-once"),
            "Kafka, exactly once": partial(topic, "exactly-once"),
        }
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(rounds + 1):
            for way, judge in ways.items():
                took_s = judge()
                if number:
                    seconds[way].append(took_s)
            tell(f"round {number} of {rounds} done")
    publish(PART, _title(count_of, chars, workers), _rows(seconds, count_of), out=out, chars=chars, workers=workers)


def _title(count_of: int, chars: int, workers: int) -> str:
    return f"{count_of:,} articles of {chars:,} characters into LMDB, {workers} workers"


def _rows(seconds: dict[str, list[float]], count_of: int) -> list[Row]:
    file_s = seconds["a file"]
    return [
        {
            "from": way,
            "articles a second": spread([count_of / seconds for seconds in took]),
            "of the file's": _share(file_s, took),
        }
        for way, took in seconds.items()
    ]


def _share(file_s: Sequence[float], took_s: Sequence[float]) -> Spread:
    return spread([before / after for before, after in zip(file_s, took_s, strict=True)])


if __name__ == "__main__":
    typer.run(main)
