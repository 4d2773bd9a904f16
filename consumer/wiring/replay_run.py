"""A replay, built and wired: a stretch of topics judged again, into a store of its own."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from consumer.config.config import Config
from consumer.judge.detector import Detector
from consumer.judge.tally import Tally
from consumer.kafka.client_settings import consumer_settings, is_kafka, parse_kafka, producer_settings
from consumer.kafka.letter_headers import letter_headers
from consumer.kafka.offset_range import Stretch
from consumer.lifecycle.retry import Drain
from consumer.lifecycle.stopping import Stopping
from consumer.model.errors import ConfigError, SinkError
from consumer.model.hooks import Hooks
from consumer.model.ports import Sink
from consumer.pipeline.arrivals import TopicFeed
from consumer.pipeline.interruptible_store import InterruptibleStore
from consumer.pipeline.journal import NoJournal
from consumer.pipeline.loop import Pipeline
from consumer.sinks.kafka import KafkaSink
from consumer.sinks.kafka_messages import Messages
from consumer.sinks.nowhere import Nowhere
from consumer.sources.stretch import StretchSource
from consumer.wiring import parts, stores
from consumer.wiring.kafka_parts import burier, dress_of, record_decoder, record_times, sink_topics
from consumer.wiring.parts import kafka_options
from storage.clock import MS_PER_S, now_ms
from storage.interface import Store


@dataclass(frozen=True, slots=True)
class Replay:
    """A replay that is ready to go, and what can be told of it while it does."""

    pipeline: Pipeline
    source: StretchSource
    store: Store
    tally: Tally


@contextmanager
def prepared_replay(
    config: Config,
    stretch: Stretch,
    hooks: Hooks,
    stopping: Stopping,
) -> Iterator[Replay]:
    """Build a replay from its configuration: verdicts go to a prefix of topics, or nowhere. It joins no group."""
    if not is_kafka(config.source.url):
        raise ConfigError("a replay reads topics: name them with --source kafka://HOST:PORT/TOPIC")
    with ExitStack() as held:
        lexicon = parts.lexicon_of(config)
        settings = parts.judge_settings(config, lexicon)
        fingerprinting = parts.fingerprinting(config, settings, lexicon)
        held.callback(fingerprinting.close)
        place = parse_kafka(config.source.url)
        source = StretchSource(
            consumer_settings(place.brokers, kafka_options(config)),
            place.names,
            parts.read_limits(config),
            stretch,
            stopping.asked,
        )
        held.callback(source.close)
        # Behind the source: where there is none, no store is made for it.
        store = held.enter_context(stores.opened_store(config))
        stores.bind(store, settings)
        sink = _sink(config, source.name, stopping, hooks)
        held.callback(sink.close)
        check = Drain(stopping, config.kafka.drain_s).check
        detector = Detector(InterruptibleStore(store, check), settings, now_ms)
        pipeline = Pipeline(
            source=source,
            decode=record_decoder(config),
            bury=burier(source.name),
            fingerprinting=fingerprinting,
            builder=parts.version_builder(settings),
            feed=TopicFeed(now_ms, int(config.kafka.ahead_s_max * MS_PER_S), hooks),
            detector=detector,
            sink=sink,
            journal=NoJournal(),
            hooks=hooks,
            stopping=stopping,
            keep_ms=config.lifetime_s * MS_PER_S,
            postings_watch=config.judge.postings_watch,
            turn=check,
            check=check,
        )
        yield Replay(pipeline, source, store, detector.tally)


def _sink(config: Config, source: str, stopping: Stopping, hooks: Hooks) -> Sink:
    if not is_kafka(config.sink.url):
        return Nowhere()

    def check() -> None:
        asked_s = stopping.asked_at_s
        if asked_s is not None and time.monotonic() - asked_s > config.kafka.drain_s:
            raise SinkError("the verdicts of the last batch could not be sent before the run was to end")

    place = parse_kafka(config.sink.url)
    settings = producer_settings(place.brokers, kafka_options(config), transactional=False)
    messages = Messages(sink_topics(config), dress_of(config, source), letter_headers)
    return KafkaSink(settings, messages, record_times(config, hooks), hooks, check)
