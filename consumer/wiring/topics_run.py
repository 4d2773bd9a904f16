"""A run over topics, built and wired: articles from Kafka, verdicts to Kafka, until it is stopped."""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from consumer.config.config import Config
from consumer.config.time_limits import check_limits
from consumer.judge.detector import Detector
from consumer.judge.settings import JudgeSettings
from consumer.judge.tally import Tally
from consumer.kafka.client_settings import admin_settings, consumer_settings, is_kafka, parse_kafka, producer_settings
from consumer.kafka.groups import Group
from consumer.kafka.letter_headers import letter_headers
from consumer.lifecycle.heap_trim import trimming
from consumer.lifecycle.retry import Backoff, Drain
from consumer.lifecycle.starting import Starting
from consumer.lifecycle.stopping import Stopping
from consumer.lifecycle.turns import Turns, WorkerTurned
from consumer.model.errors import ConfigError, SourceError
from consumer.model.hooks import Hooks
from consumer.model.ports import Sink
from consumer.pages.health_pages import health_pages
from consumer.pages.latest_flags import LatestFlags
from consumer.pipeline.arrivals import LiveFeed, TopicFeed
from consumer.pipeline.bad_record_limit import PoisonGate, PoisonLimit
from consumer.pipeline.interruptible_store import InterruptibleStore
from consumer.pipeline.journal import Journal
from consumer.pipeline.loop import Pipeline
from consumer.pipeline.offsets import KafkaJournal, TransactionalJournal
from consumer.pipeline.partition_notes import Ledger
from consumer.sinks.file import StreamSink
from consumer.sinks.kafka import KafkaSink
from consumer.sinks.kafka_messages import Messages
from consumer.sinks.transactions import TransactionalSink
from consumer.sources.kafka import KafkaSource, SourceOptions
from consumer.telemetry.batch_log import BatchLog
from consumer.telemetry.health import Health
from consumer.telemetry.metrics import RequestFailed
from consumer.telemetry.store_probe import ANSWER_S, StoreProbe
from consumer.telemetry.tracing import traced
from consumer.wiring import parts, stores
from consumer.wiring.kafka_parts import burier, check_topics, dress_of, record_decoder, record_times, sink_topics
from consumer.wiring.page_server import consumer_metrics, flag_pages, served
from consumer.wiring.registry_outages import waiting_for_registry
from storage.clock import MS_PER_S, now_ms
from storage.interface import Store

log = logging.getLogger("dupwatch")

_FILLED_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class StreamRun:
    """A run over topics that is ready to go, and what can be told of it while it does."""

    pipeline: Pipeline
    store: Store
    tally: Tally
    health: Health
    address: str | None


@contextmanager
def prepared_stream(config: Config, streams: parts.Streams, hooks: Hooks, stopping: Stopping) -> Iterator[StreamRun]:
    """Build a run over topics from its configuration; what it holds is let go of afterwards.

    Raises ``NotBegun`` where it is asked to stop while it still waits for its store or its brokers.

    The health pages are there first: they say what is waited for. ``hooks`` has the caller's listeners.
    """
    check_places(config)
    _check_limits(config)
    with ExitStack() as held:
        held.enter_context(trimming())
        lexicon = parts.lexicon_of(config)
        settings = parts.judge_settings(config, lexicon)
        metrics = consumer_metrics(config, settings)
        health = Health(config.http.stuck_s)
        request_failed = partial(hooks.report, RequestFailed())
        latest = LatestFlags(config.http.flags, now_ms(), request_failed)
        for listener in (metrics, health, latest, BatchLog()):
            listener.listen(hooks)
        turns = Turns(hooks)
        decode = record_decoder(config, waiting_for_registry(hooks, stopping))
        address = served(config, held, health_pages(health, metrics) | flag_pages(config, latest), request_failed)
        # Workers are there before any client is: they start from nothing, and know of none.
        drain = Drain(stopping, config.kafka.drain_s)

        def turn() -> None:
            turns.turn()
            drain.check()

        fingerprinting = parts.fingerprinting(config, settings, lexicon, turn, partial(hooks.report, WorkerTurned()))
        held.callback(fingerprinting.close)
        fingerprinting.submit([""], [""]).result()
        held.enter_context(traced(config, hooks))
        starting = Starting(stopping, turns.turn)
        starting.call(partial(_check_filled, config))
        source = _source(config, hooks, stopping)

        def check() -> None:
            drain.check()
            source.check()

        def turn_and_check() -> None:
            turns.turn()
            check()

        if stores.is_remote(config):
            held.enter_context(
                StoreProbe(
                    partial(stores.opened_store, config, readonly=True, quiet=True, answer_s=ANSWER_S),
                    hooks,
                )
            )
        store = held.enter_context(_store(config, settings, starting, hooks))
        latest.read_from(store)
        held.callback(latest.close)
        ledger = Ledger()
        sink, journal = _delivery(config, streams, _Intake(source, ledger), hooks, turn_and_check, starting)
        # Closed in this order: the source last, when nothing is left to be committed.
        held.callback(source.close)
        held.callback(sink.close)
        detector = Detector(InterruptibleStore(store, turn_and_check), settings, now_ms)
        metrics.watch(detector.tally)
        pipeline = Pipeline(
            source=source,
            decode=decode,
            bury=burier(source.name),
            fingerprinting=fingerprinting,
            builder=parts.version_builder(settings),
            feed=_feed(config, ledger, hooks),
            detector=detector,
            sink=sink,
            journal=journal,
            hooks=hooks,
            stopping=stopping,
            keep_ms=config.lifetime_s * MS_PER_S,
            postings_watch=config.judge.postings_watch,
            patience=Backoff(turn_and_check, hooks),
            turn=turn,
            check=check,
            poison=PoisonGate(
                PoisonLimit(config.kafka.poison_share_max, config.kafka.poison_records_min), ledger, source.hold
            ),
        )
        # Whatever was waited for until now: from here on records are.
        turns.rest()
        yield StreamRun(pipeline, store, detector.tally, health, address)


def check_places(config: Config) -> None:
    """Refuse a source and a sink that do not go together, with ConfigError."""
    if is_kafka(config.sink.url):
        sink_topics(config)
    elif config.sink.url != parts.STREAM:
        raise ConfigError("articles from kafka:// go to kafka://HOST:PORT/PREFIX, or to - for a look at them")
    elif config.kafka.delivery == "exactly-once":
        raise ConfigError('delivery = "exactly-once" needs a kafka:// sink: its transactions hold the offsets')


def _check_limits(config: Config) -> None:
    """Refuse limits that break a promise before anything waits for a store or a broker."""
    options = parts.kafka_options(config)
    transactional = config.kafka.delivery == "exactly-once"
    writing = producer_settings("", options, transactional=transactional)
    check_limits(config.kafka, consumer_settings("", options), writing)


def _check_filled(config: Config) -> None:
    """A consumer that began before ``dupwatch migrate`` has switched would judge once more what was sent."""
    place = parse_kafka(config.source.url)
    with closing(Group(admin_settings(place.brokers, parts.kafka_options(config)), config.kafka.group)) as group:
        try:
            found = group.committed(group.partitions(place.names, _FILLED_S), patience_s=_FILLED_S)
        except SourceError as error:
            # Brokers that are away, and topics that are yet to be made, are waited for.
            log.warning("%s", error)
            return
    if any(one.note.migrate == "filling" for one in found.values()):
        raise ConfigError(
            f"the store of the group {config.kafka.group} is being filled: let dupwatch migrate end, and start its"
            " consumers then"
        )


def _source(config: Config, hooks: Hooks, stopping: Stopping) -> KafkaSource:
    section, place = config.kafka, parse_kafka(config.source.url)
    options = SourceOptions(
        start=section.start,
        on_gap=section.on_gap,
        linger_s=section.linger_s,
        revoke_s=section.revoke_s,
        transactional=section.delivery == "exactly-once",
    )
    settings = consumer_settings(place.brokers, parts.kafka_options(config))
    return KafkaSource(settings, place.names, parts.read_limits(config), options, hooks, stopping.asked)


def _feed(config: Config, ledger: Ledger, hooks: Hooks) -> LiveFeed:
    section = config.kafka
    topics = TopicFeed(now_ms, int(section.ahead_s_max * MS_PER_S), hooks)
    return LiveFeed(topics, ledger, int(section.behind_s_max * MS_PER_S), hooks)


@contextmanager
def _store(config: Config, settings: JudgeSettings, starting: Starting, hooks: Hooks) -> Iterator[Store]:
    """The store, bound to the settings; waited for where it is out of reach."""
    with ExitStack() as opened:

        def bound() -> Store:
            store = opened.enter_context(stores.opened_store(config, report=hooks.report))
            stores.bind(store, settings)
            return store

        yield Backoff(starting.check, hooks).call(partial(starting.call, bound))


class _Intake(NamedTuple):
    """What a run reads, and the notes of the partitions at hand."""

    source: KafkaSource
    ledger: Ledger


def _delivery(
    config: Config,
    streams: parts.Streams,
    intake: _Intake,
    hooks: Hooks,
    check: Callable[[], None],
    starting: Starting,
) -> tuple[Sink, Journal]:
    if config.sink.url == parts.STREAM and config.kafka.delivery == "at-least-once":
        return StreamSink(streams.out, streams.err, emit=config.sink.emit), KafkaJournal(*intake)
    place, topics = parse_kafka(config.sink.url), sink_topics(config)
    starting.call(partial(check_topics, config, place.brokers, topics))
    exactly_once = config.kafka.delivery == "exactly-once"
    settings = producer_settings(place.brokers, parts.kafka_options(config), transactional=exactly_once)
    messages = Messages(topics, dress_of(config, intake.source.name), letter_headers)
    times = record_times(config, hooks)
    if exactly_once:
        sink = TransactionalSink(settings, messages, times, hooks, check)
        return sink, TransactionalJournal(intake.source, sink, intake.ledger)
    return KafkaSink(settings, messages, times, hooks, check), KafkaJournal(*intake)
