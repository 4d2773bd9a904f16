"""Opens topics as sources and sinks of runs, and checks their settings and the topics themselves.

Each delivery guarantee has a journal. Neither journal counts verdicts or dead letters, because a later run needs only
the group's offsets.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, Final

from typing_extensions import override

from consumer.kafka.bank_topic import BankTopic
from consumer.kafka.client_log import silent_log
from consumer.kafka.client_settings import (
    TopicsOptions,
    admin_settings,
    consumer_settings,
    parse_kafka,
    parse_prefix,
    producer_settings,
)
from consumer.kafka.clients import new_consumer, new_producer
from consumer.kafka.groups import FILLING_NOTE, ConsumerGroup
from consumer.kafka.message import offsets_in
from consumer.kafka.offset_metadata import Ledger, encode_note
from consumer.kafka.sink.event_headers import (
    event_headers,
    side_headers,
)
from consumer.kafka.sink.outbox import AtLeastOnceOutbox
from consumer.kafka.sink.record_times import RecordTimes
from consumer.kafka.sink.topic_letters import TopicLetterReader
from consumer.kafka.sink.topic_sink import KafkaSink, MessageRouting
from consumer.kafka.sink.transactions import TransactionalOutbox
from consumer.kafka.source.arrivals import LiveArrivals, TopicArrivals
from consumer.kafka.source.group_source import KafkaSource
from consumer.kafka.source.holds import PartitionGate
from consumer.kafka.time_limits import check_limits
from consumer.kafka.topics import SinkTopics, missing_topics
from consumer.model.dead_letter import DeadLetter
from consumer.model.errors import ConfigError, OutcomeUnknown, SinkError, SourceError
from consumer.model.hooks import Hooks
from consumer.model.record import End
from consumer.model.verdict import Verdict
from consumer.pipeline.feed_kind import FeedArguments, OpenedSink, OpenedSource, Outputs, SinkArguments, SourceArguments
from consumer.pipeline.journal import Journal
from storage.clock import now_ms

log = logging.getLogger("dupwatch")

_FILLING_S: Final = 5.0
"""The time limit for asking the brokers whether the store is being filled."""
_NO_BROKERS: Final = "127.0.0.1:1"
"""The address for clients that only check settings. Clients connect when created, but these must reach no broker."""


class KafkaJournal(Journal):
    """The journal for at-least-once delivery: the source commits offsets some time after the sink was flushed.

    Messages of an abandoned batch are sent anyway; the consumer that judges the batch later sends them again.
    """

    def __init__(self, source: KafkaSource, ledger: Ledger) -> None:
        self._source = source
        self._ledger = ledger

    @override
    def begin(self, end: End) -> None:
        self._ledger.begin(self._source.begin(offsets_in(end)))

    @override
    def abandon(self) -> None:
        self._source.abandon()

    @override
    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        self._source.commit(offsets_in(end), self._ledger.notes)


class TransactionalJournal(Journal):
    """The journal for exactly-once delivery: the sink's transaction includes the offsets."""

    def __init__(self, source: KafkaSource, sink: TransactionalOutbox, ledger: Ledger) -> None:
        self._source = source
        self._sink = sink
        self._ledger = ledger
        self._unknown = False

    @override
    def begin(self, end: End) -> None:
        self._unknown = False
        self._ledger.begin(self._source.begin(offsets_in(end)))

    @override
    def abandon(self) -> None:
        # The sink comes first, because the source asks the brokers for the committed offsets.
        self._sink.abort()
        if self._unknown:
            self._source.reset_positions()
        else:
            self._source.abandon()

    @override
    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        offsets, notes = offsets_in(end), self._ledger.notes
        metadata = {partition: encode_note(note) for partition, note in notes.items()}
        try:
            self._sink.commit(offsets.next, self._source.group_metadata(), metadata)
        except OutcomeUnknown:
            self._unknown = True
            raise
        self._source.note_committed(offsets, notes)


def open_source(url: str, opening: SourceArguments) -> OpenedSource[KafkaSource]:
    """Open topics as a member of the group. The client connects when the first batch is requested."""
    options, address = opening.own_options(TopicsOptions), parse_kafka(url)
    settings = consumer_settings(address.brokers, options.clients)
    source = KafkaSource(settings, address.names, opening.limits, options.reading, opening.hooks, opening.stopped)
    ledger = Ledger()

    def journal(outputs: Outputs) -> Journal:
        if isinstance(outputs.transactions, TransactionalOutbox):
            return TransactionalJournal(source, outputs.transactions, ledger)
        return KafkaJournal(source, ledger)

    return OpenedSource(
        source=source,
        name=source.name,
        arrivals=LiveArrivals(topic_arrivals(options, opening.hooks), ledger, options.behind_ms_max, opening.hooks),
        gate=PartitionGate(options.limit, ledger, source.hold),
        journal=journal,
        check=source.check,
    )


def topic_arrivals(options: TopicsOptions, hooks: Hooks) -> TopicArrivals:
    """Return the arrivals of messages: their timestamps, unless missing or too far ahead of the clock."""
    return TopicArrivals(now_ms, options.ahead_ms_max, hooks)


def check_source(url: str, opening: SourceArguments, *, create: bool) -> None:
    """Raise ``ConfigError`` for settings that dupwatch refuses.

    With ``create``, also for settings that the client refuses. Contacts no broker.
    """
    consumer, _ = _checked_settings(opening)
    parse_kafka(url)
    if create:
        new_consumer(consumer, silent_log).close()


def check_not_filling(url: str, opening: SourceArguments) -> None:
    """Raise ``ConfigError`` while ``dupwatch migrate`` fills the store; a run would judge messages a second time.

    If the brokers do not answer, only log a warning.
    """
    clients, address = opening.own_options(TopicsOptions).clients, parse_kafka(url)
    with closing(ConsumerGroup(admin_settings(address.brokers, clients), clients.group)) as group:
        try:
            committed = group.committed(group.partitions(address.names, _FILLING_S), wait_s=_FILLING_S)
        except SourceError as error:
            # The run itself waits for unreachable brokers, and for topics that do not exist yet.
            log.warning("%s", error)
            return
    if any(place.note.migrate == FILLING_NOTE.migrate for place in committed.values()):
        raise ConfigError(
            f"the store of the group {clients.group} is being filled: wait until dupwatch migrate ends, then"
            " start the consumers of the group"
        )


def topic_sink(url: str, opening: SinkArguments) -> KafkaSink:
    """Open the topics of a prefix, with or without transactions. The client connects immediately."""
    options, brokers = opening.own_options(TopicsOptions), parse_prefix(url).brokers
    settings = producer_settings(brokers, options.clients, transactional=opening.transactional)
    times = RecordTimes(now_ms, options.ahead_ms_max, opening.hooks)
    outbox = TransactionalOutbox if opening.transactional else AtLeastOnceOutbox
    return KafkaSink(
        outbox(settings, times, opening.hooks, opening.proceed), message_routing(topics_of(url, opening), opening)
    )


def message_routing(topics: SinkTopics, opening: SinkArguments) -> MessageRouting:
    """Return the routing of messages to these topics, with the configured headers."""
    source = opening.feed if opening.own_options(TopicsOptions).cloud_events else None
    return MessageRouting(topics, partial(event_headers, source=source), partial(side_headers, source=source))


def open_sink(url: str, opening: SinkArguments) -> OpenedSink:
    """Open the topics of a prefix. Dead letters share the client and the transactions of the verdicts."""
    sink = topic_sink(url, opening)
    return OpenedSink(sink, sink.dead_letters, sink.outbox if opening.transactional else None)


def topics_of(url: str, opening: SinkArguments) -> SinkTopics:
    """Return the topics of the sink. Raises ``ConfigError`` unless ``url`` names one prefix."""
    options = opening.own_options(TopicsOptions)
    return SinkTopics(
        parse_prefix(url).prefix,
        unique=options.unique,
        verdicts=opening.emit == "all",
        near_misses=options.near_misses,
        bank_matches=options.bank_matches,
    )


def open_banks(url: str, opening: SinkArguments) -> BankTopic:
    """Open a prefix's topic of banks, without connecting. Raises ``ConfigError`` unless ``url`` names one prefix."""
    address = parse_prefix(url)
    topic = SinkTopics(address.prefix).banks_topic
    return BankTopic(address.brokers, topic, opening.own_options(TopicsOptions).clients)


def check_sink(url: str, opening: SinkArguments, *, create: bool) -> None:
    """Raise ``ConfigError`` for settings that dupwatch refuses.

    With ``create``, also for settings that the client refuses. Contacts no broker.
    """
    _, producer = _checked_settings(opening)
    parse_prefix(url)
    if create:
        new_producer(producer, silent_log)


def check_topics(url: str, opening: SinkArguments) -> None:
    """Raise ``ConfigError`` if topics of the sink are missing, before a verdict has to wait for them.

    If the brokers do not answer, only log a warning.
    """
    brokers, clients = parse_prefix(url).brokers, opening.own_options(TopicsOptions).clients
    try:
        missing = missing_topics(admin_settings(brokers, clients), topics_of(url, opening).written_topics)
    except SinkError as error:
        # The run itself waits for unreachable brokers.
        log.warning("The topics of the sink could not be checked: %s", error)
        return
    if missing:
        raise ConfigError(f"there is no topic {', '.join(missing)}: create it with dupwatch topics init --sink {url}")


@contextmanager
def open_letters(url: str, opening: SinkArguments) -> Iterator[TopicLetterReader]:
    """Open the dead letters of a prefix. Raises ``ConfigError`` and ``SourceError``."""
    brokers, prefix = parse_prefix(url)
    with TopicLetterReader(
        brokers, SinkTopics(prefix).dead_letters_topic, opening.own_options(TopicsOptions).clients
    ) as reader:
        yield reader


def _checked_settings(opening: FeedArguments) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of the consumer and the producer.

    Raises ``ConfigError`` if they are wrong, or inconsistent with each other or with the time limits.
    """
    options = opening.own_options(TopicsOptions)
    consumer = consumer_settings(_NO_BROKERS, options.clients)
    producer = producer_settings(_NO_BROKERS, options.clients, transactional=options.reading.transactional)
    check_limits(options, consumer, producer)
    return consumer, producer
