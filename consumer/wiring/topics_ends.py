"""The two ends of a run over topics: where its messages come from, and where verdicts and offsets go."""

from functools import partial
from typing import NamedTuple

from consumer.config.config import Config
from consumer.files.sinks import StreamSink
from consumer.kafka.client_settings import consumer_settings, parse_kafka, parse_prefix, producer_settings
from consumer.kafka.journals import KafkaJournal, TransactionalJournal
from consumer.kafka.offset_metadata import Ledger
from consumer.kafka.sink.at_least_once import AtLeastOnceOutbox
from consumer.kafka.sink.outbox import Outbox
from consumer.kafka.sink.topic_sink import KafkaSink
from consumer.kafka.sink.transactions import TransactionalOutbox
from consumer.kafka.source.arrivals import LiveArrivals
from consumer.kafka.source.group_source import KafkaSource, SourceOptions
from consumer.kafka.source.partition_gate import PartitionGate
from consumer.lifecycle.background import Starting
from consumer.lifecycle.interruption import Interruption
from consumer.lifecycle.stopping import Stopping
from consumer.model.hooks import Hooks
from consumer.model.ports import DeadLetterSink, Sink
from consumer.pipeline.journal import Journal
from consumer.pipeline.poison_limit import PoisonLimit
from consumer.wiring import components
from consumer.wiring.dead_letters import dead_letter_sink
from consumer.wiring.kafka_parts import check_topics, messages_of, record_times, sink_topics, topic_arrivals
from consumer.wiring.outputs import StreamOutput, TopicOutput
from storage.clock import MS_PER_S


class Intake(NamedTuple):
    """What a run reads, and the notes of its partitions for the current batch."""

    source: KafkaSource
    ledger: Ledger


class Delivery(NamedTuple):
    """Where verdicts and dead letters go, and what commits the offsets once both are there."""

    sink: Sink
    dead_letters: DeadLetterSink
    journal: Journal


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
    settings = consumer_settings(place.brokers, components.kafka_options(config))
    source = KafkaSource(settings, place.names, components.read_limits(config), options, hooks, stopping.asked)
    return Intake(source, Ledger())


def build_arrivals(config: Config, ledger: Ledger, hooks: Hooks) -> LiveArrivals:
    """Build what gives messages their arrivals."""
    return LiveArrivals(topic_arrivals(config, hooks), ledger, int(config.kafka.behind_s_max * MS_PER_S), hooks)


def build_gate(config: Config, intake: Intake) -> PartitionGate:
    """Build what holds a partition with too many bad records."""
    limit = PoisonLimit(config.kafka.poison_share_max, config.kafka.poison_records_min)
    return PartitionGate(limit, intake.ledger, intake.source.hold)


def build_delivery(
    config: Config,
    streams: components.Streams,
    intake: Intake,
    hooks: Hooks,
    interruption: Interruption,
    starting: Starting,
) -> Delivery:
    """Build the sinks, which the caller closes, and what commits the offsets, as ``kafka.delivery`` says."""
    if config.sink.url == components.STREAM and config.kafka.delivery == "at-least-once":
        stream = StreamSink(streams.out, emit=config.sink.emit)
        return Delivery(stream, dead_letter_sink(config, StreamOutput(streams)), KafkaJournal(*intake))
    brokers, topics = parse_prefix(config.sink.url).brokers, sink_topics(config)
    starting.call(partial(check_topics, config, brokers, topics))
    exactly_once = config.kafka.delivery == "exactly-once"
    settings = producer_settings(brokers, components.kafka_options(config), transactional=exactly_once)
    messages, times = messages_of(config, topics, intake.source.name), record_times(config, hooks)
    outbox: Outbox
    journal: Journal
    if exactly_once:
        outbox = transactional = TransactionalOutbox(settings, times, hooks, interruption.while_judging)
        journal = TransactionalJournal(intake.source, transactional, intake.ledger)
    else:
        outbox = AtLeastOnceOutbox(settings, times, hooks, interruption.while_judging)
        journal = KafkaJournal(*intake)
    dead_letters = dead_letter_sink(config, TopicOutput(topics, outbox))
    return Delivery(KafkaSink(outbox, messages), dead_letters, journal)
