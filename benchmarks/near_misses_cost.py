"""What near misses cost: the same articles judged with and without them, ``python -m benchmarks.near_misses_cost``.

The loop of a run with its metrics, from bytes to the messages for topics, over a store in memory; what Kafka's client
does with a message is left out. A fifth of the feed are copies, another fifth share four fifths of their text with an
earlier article, so that far more pairs than in a real feed are just under the threshold. The contenders take turns in
one process on one core, and processor time is what counts; the ratio is taken round by round.
"""

import io
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from typing_extensions import override

from benchmarks.metrics_cost import Given, in_batches
from benchmarks.speed.harness import Contender, Timing, ratios, take_turns
from benchmarks.speed.machine import keep_to_one_core, single_threaded
from benchmarks.speed.report import OUT, Row, publish
from consumer.config.config import Config
from consumer.config.loading import load_config
from consumer.files.sinks import StreamDeadLetters
from consumer.fingerprint import Lexicon
from consumer.judge.binding import Binding
from consumer.judge.detector import Detector
from consumer.judge.expiry import Expiry
from consumer.judge.near_misses import NearMisses
from consumer.kafka.sink.event_headers import event_headers
from consumer.kafka.sink.outbox import Outbox
from consumer.kafka.sink.outgoing import OutgoingMessage
from consumer.kafka.sink.topic_sink import KafkaSink, MessageRouting
from consumer.kafka.topics import SinkTopics
from consumer.lifecycle.stopping import StopSignal
from consumer.model.hooks import Hooks
from consumer.model.record import RawBatch
from consumer.pipeline.arrivals import FileArrivals
from consumer.pipeline.dead_letter_policy import DeadLetterPolicy
from consumer.pipeline.journal import NoJournal
from consumer.pipeline.loop import Pipeline
from consumer.stress.made_texts import make_feed
from consumer.telemetry.health import Health
from consumer.telemetry.metrics import Bounds, Metrics
from consumer.wiring import components
from storage.clock import now_ms
from storage.memory import MemoryStore
from storage.watched import WatchedStore

PART: Final = "near_misses_cost"
SHARES: Final = (0.01, 0.05, 1.0)
_TOPICS: Final = SinkTopics("given", unique=True, verdicts=True, near_misses=True)
_SHARED: Final = 0.8


class Counting(Outbox):
    """Counts what it is given, by topic, and sends nothing."""

    def __init__(self) -> None:
        self.sent: dict[str, int] = {}

    @override
    def send(self, message: OutgoingMessage) -> None:
        self.sent[message.topic] = self.sent.get(message.topic, 0) + 1

    @override
    def flush(self) -> None:
        """There is nothing to wait for."""

    @override
    def close(self) -> None:
        """There is nothing to let go of."""


class Judging:
    """Judges the same batches again and again, each time into a new store."""

    def __init__(self, batches: Sequence[RawBatch], config: Config, lexicon: Lexicon) -> None:
        self._batches = batches
        self._config = config
        self._settings = components.judge_settings(config, lexicon)
        self._fingerprinting = components.fingerprinting(config, Binding(self._settings), lexicon)
        self._decode = components.file_decoder(config)
        self._hooks = Hooks(Metrics(bounds=Bounds(components.read_limits(config), config.http.sources_max)), Health())

    def judge(self, share: float) -> Counting:
        """Judge the feed; this share of its articles is drawn, 0 for no near misses. Returns what was sent."""
        near_misses = NearMisses(self._settings, share, self._config.kafka.near_miss_margin) if share else None
        store, outbox = WatchedStore(MemoryStore(), self._hooks.report), Counting()
        judge = Detector(store, self._settings, now_ms, near_misses=near_misses)
        Pipeline(
            source=Given(self._batches),
            decode=self._decode,
            fingerprinting=self._fingerprinting,
            builder=components.version_builder(Binding(self._settings)),
            arrivals=FileArrivals(now_ms(), b"given", "feed"),
            detector=judge,
            sink=KafkaSink(outbox, MessageRouting(_TOPICS, event_headers)),
            dead_letters=DeadLetterPolicy("given", StreamDeadLetters(io.BytesIO())),
            journal=NoJournal(),
            hooks=self._hooks,
            stopping=StopSignal(),
            expiry=Expiry(judge, now_ms, self._settings.window_ms, self._settings.window_ms),
            postings_watch=self._config.judge.postings_watch,
        ).run()
        return outbox


def feed(articles: int, chars: int, records: int) -> list[RawBatch]:
    """A feed in batches; every fifth article has the beginning of an earlier one, and goes on otherwise."""
    texts = [text.body for text in make_feed(articles, chars)]
    for number in range(5, articles, 5):
        end = int(_SHARED * len(texts[number - 4]))
        texts[number] = texts[number - 4][:end] + texts[number][end:]
    lines = [
        msgspec.json.encode({"id": f"a{number}", "body": text, "source": f"source {number % 80}"})
        for number, text in enumerate(texts)
    ]
    return in_batches(lines, records)


def row(chars: int, share: float, near_misses: int, without: Timing, drawing: Timing) -> Row:
    """One line of the table."""
    return {
        "characters": chars,
        "share drawn": share,
        "near misses": near_misses,
        "articles/s without": without.rate,
        "articles/s with": drawing.rate,
        "processor time with / without": ratios(without, drawing),
    }


def main(
    articles: Annotated[int, typer.Option(min=10)] = 512,
    rounds: Annotated[int, typer.Option(min=1)] = 31,
    records: Annotated[int, typer.Option(min=1, help="Records in a batch.")] = 256,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Measure what near misses cost."""
    single_threaded()
    keep_to_one_core()
    config = load_config(None, {})
    lexicon = components.lexicon_of(config)
    rows = []
    for chars in (500, 2_000):
        judging = Judging(feed(articles, chars, records), config, lexicon)

        def contender(share: float, judging: Judging = judging) -> Contender:
            def work(number: int) -> int:
                del number
                judging.judge(share)
                return articles

            return Contender(f"share {share}", work)

        found = [judging.judge(share).sent.get(_TOPICS.near_misses_topic, 0) for share in SHARES]
        without, *drawing = take_turns(
            [contender(0.0), *(contender(share) for share in SHARES)], rounds, clock=time.process_time
        )
        rows += [
            row(chars, share, count, without, timing)
            for share, count, timing in zip(SHARES, found, drawing, strict=True)
        ]
    publish(PART, "What near misses cost, one core, a store in memory", rows, out=out, articles=articles, rounds=rounds)


if __name__ == "__main__":
    typer.run(main)
