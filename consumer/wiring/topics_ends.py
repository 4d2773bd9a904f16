"""The two ends of a run over topics: where its messages come from, and where verdicts and offsets go."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from consumer.config.config import Config
from consumer.kafka.client_settings import consumer_settings, parse_kafka, producer_settings
from consumer.kafka.letter_headers import letter_headers
from consumer.lifecycle.starting import Starting
from consumer.lifecycle.stopping import Stopping
from consumer.model.hooks import Hooks
from consumer.model.ports import Sink
from consumer.pipeline.arrivals import LiveFeed
from consumer.pipeline.bad_record_limit import PoisonGate, PoisonLimit
from consumer.pipeline.journal import Journal
from consumer.pipeline.offsets import KafkaJournal, TransactionalJournal
from consumer.pipeline.partition_notes import Ledger
from consumer.sinks.file import StreamSink
from consumer.sinks.kafka import KafkaSink
from consumer.sinks.kafka_messages import Messages
from consumer.sinks.transactions import TransactionalSink
from consumer.sources.kafka import KafkaSource, SourceOptions
from consumer.wiring import parts
from consumer.wiring.kafka_parts import check_topics, headers_of, record_times, sink_topics, topic_feed
from storage.clock import MS_PER_S


class Intake(NamedTuple):
    """What a run reads, and the notes of its partitions for the current batch."""

    source: KafkaSource
    ledger: Ledger


def build_intake(config: Config, hooks: Hooks, stopping: Stopping) -> Intake:
    """Build the source. It connects from now on, and the caller closes it."""
    section, place = config.kafka, parse_kafka(config.source.url)
    options = SourceOptions(
        start=section.start,
        on_gap=section.on_gap,
        linger_s=section.linger_s,
        revoke_s=section.revoke_s,
        transactional=section.delivery == "exactly-once",
    )
    settings = consumer_settings(place.brokers, parts.kafka_options(config))
    source = KafkaSource(settings, place.names, parts.read_limits(config), options, hooks, stopping.asked)
    return Intake(source, Ledger())


def build_feed(config: Config, ledger: Ledger, hooks: Hooks) -> LiveFeed:
    """Build what gives messages their arrivals."""
    return LiveFeed(topic_feed(config, hooks), ledger, int(config.kafka.behind_s_max * MS_PER_S), hooks)


def build_gate(config: Config, intake: Intake) -> PoisonGate:
    """Build what holds a partition with too many bad records."""
    limit = PoisonLimit(config.kafka.poison_share_max, config.kafka.poison_records_min)
    return PoisonGate(limit, intake.ledger, intake.source.hold)


def build_delivery(
    config: Config,
    streams: parts.Streams,
    intake: Intake,
    hooks: Hooks,
    check: Callable[[], None],
    starting: Starting,
) -> tuple[Sink, Journal]:
    """Build the sink, which the caller closes, and what commits the offsets, as ``kafka.delivery`` says."""
    if config.sink.url == parts.STREAM and config.kafka.delivery == "at-least-once":
        return StreamSink(streams.out, streams.err, emit=config.sink.emit), KafkaJournal(*intake)
    place, topics = parse_kafka(config.sink.url), sink_topics(config)
    starting.call(partial(check_topics, config, place.brokers, topics))
    exactly_once = config.kafka.delivery == "exactly-once"
    settings = producer_settings(place.brokers, parts.kafka_options(config), transactional=exactly_once)
    messages = Messages(topics, headers_of(config, intake.source.name), letter_headers)
    times = record_times(config, hooks)
    if exactly_once:
        sink = TransactionalSink(settings, messages, times, hooks, check)
        return sink, TransactionalJournal(intake.source, sink, intake.ledger)
    return KafkaSink(settings, messages, times, hooks, check), KafkaJournal(*intake)
