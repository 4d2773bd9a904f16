"""Opens topics as sources and sinks of runs, and checks their settings, and what the brokers have.

There is one journal for each delivery guarantee. Neither counts verdicts or dead letters: a later run needs only the
offsets of the group.
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
from consumer.kafka.groups import FILLING, ConsumerGroup
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
from consumer.kafka.topics import SinkTopics, missing
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
"""How long to ask the brokers whether the store is being filled."""
_NOBODY: Final = "127.0.0.1:1"
"""In place of the brokers: a client connects as soon as it is created, and one that is tried must reach nobody."""


class KafkaJournal(Journal):
    """At least once: the source commits offsets some time after the sink was flushed.

    What the sink has of an abandoned batch is sent anyway; the consumer that judges the batch later sends it again.
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
    """Exactly once: the transaction of the sink includes the offsets."""

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
        # The sink first: the source asks the brokers what was committed.
        self._sink.abort()
        if self._unknown:
            self._source.reread()
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
        self._source.done(offsets, notes)


def open_source(url: str, opening: SourceArguments) -> OpenedSource[KafkaSource]:
    """Open topics as a member of the group. It connects once batches are requested."""
    options, place = opening.own_options(TopicsOptions), parse_kafka(url)
    settings = consumer_settings(place.brokers, options.clients)
    source = KafkaSource(settings, place.names, opening.limits, options.reading, opening.hooks, opening.stopped)
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
    """Return what gives messages their arrivals: their timestamps, unless missing or too far ahead of the clock."""
    return TopicArrivals(now_ms, options.ahead_ms_max, hooks)


def check_source(url: str, opening: SourceArguments, *, create: bool) -> None:
    """Raise ``ConfigError`` for settings that dupwatch refuses, or with ``create`` the client does; asks nobody."""
    reading, _ = _checked_settings(opening)
    parse_kafka(url)
    if create:
        new_consumer(reading, silent_log).close()


def check_not_filling(url: str, opening: SourceArguments) -> None:
    """Refuse to start while ``dupwatch migrate`` fills the store: messages that were judged would be judged again."""
    clients, place = opening.own_options(TopicsOptions).clients, parse_kafka(url)
    with closing(ConsumerGroup(admin_settings(place.brokers, clients), clients.group)) as group:
        try:
            found = group.committed(group.partitions(place.names, _FILLING_S), patience_s=_FILLING_S)
        except SourceError as error:
            # The run itself waits for brokers that are away, and for topics that do not exist yet.
            log.warning("%s", error)
            return
    if any(committed.note.migrate == FILLING.migrate for committed in found.values()):
        raise ConfigError(
            f"the store of the group {clients.group} is being filled: wait until dupwatch migrate ends, then"
            " start its consumers"
        )


def topic_sink(url: str, opening: SinkArguments) -> KafkaSink:
    """Open the topics of a prefix, with or without transactions. Its client connects at once."""
    options, brokers = opening.own_options(TopicsOptions), parse_prefix(url).brokers
    settings = producer_settings(brokers, options.clients, transactional=opening.transactional)
    times = RecordTimes(now_ms, options.ahead_ms_max, opening.hooks)
    outbox = TransactionalOutbox if opening.transactional else AtLeastOnceOutbox
    return KafkaSink(
        outbox(settings, times, opening.hooks, opening.proceed), messages_of(topics_of(url, opening), opening)
    )


def messages_of(topics: SinkTopics, opening: SinkArguments) -> MessageRouting:
    """Return which topic gets what, with headers as configured."""
    source = opening.feed if opening.own_options(TopicsOptions).cloud_events else None
    return MessageRouting(topics, partial(event_headers, source=source), partial(side_headers, source=source))


def open_sink(url: str, opening: SinkArguments) -> OpenedSink:
    """Open the topics of a prefix. Dead letters share the client of the verdicts, and so its transactions."""
    sink = topic_sink(url, opening)
    return OpenedSink(sink, sink.dead_letters, sink.outbox if opening.transactional else None)


def topics_of(url: str, opening: SinkArguments) -> SinkTopics:
    """Return the topics that verdicts go to; ConfigError where the sink names more than one prefix."""
    options = opening.own_options(TopicsOptions)
    return SinkTopics(
        parse_prefix(url).prefix,
        unique=options.unique,
        verdicts=opening.emit == "all",
        near_misses=options.near_misses,
        bank_matches=options.bank_matches,
    )


def open_banks(url: str, opening: SinkArguments) -> BankTopic:
    """Open the topic of banks of a prefix. Asks nobody yet; ConfigError where the URL names several prefixes."""
    address = parse_prefix(url)
    topic = SinkTopics(address.prefix).banks_topic
    return BankTopic(address.brokers, topic, opening.own_options(TopicsOptions).clients)


def check_sink(url: str, opening: SinkArguments, *, create: bool) -> None:
    """Raise ``ConfigError`` for settings that dupwatch refuses, or with ``create`` the client does; asks nobody."""
    _, writing = _checked_settings(opening)
    parse_prefix(url)
    if create:
        new_producer(writing, silent_log)


def check_topics(url: str, opening: SinkArguments) -> None:
    """Refuse a sink whose topics are missing, with ConfigError, before the first verdict would wait for them."""
    brokers, clients = parse_prefix(url).brokers, opening.own_options(TopicsOptions).clients
    try:
        gone = missing(admin_settings(brokers, clients), topics_of(url, opening).written)
    except SinkError as error:
        # The run itself waits for brokers that are away.
        log.warning("The topics of the sink could not be checked: %s", error)
        return
    if gone:
        raise ConfigError(f"there is no topic {', '.join(gone)}: create it with dupwatch topics init --sink {url}")


@contextmanager
def open_letters(url: str, opening: SinkArguments) -> Iterator[TopicLetterReader]:
    """Open the dead letters of a prefix."""
    brokers, prefix = parse_prefix(url)
    with TopicLetterReader(
        brokers, SinkTopics(prefix).dead_letters_topic, opening.own_options(TopicsOptions).clients
    ) as found:
        yield found


def _checked_settings(opening: FeedArguments) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of consumer and producer; ConfigError where they, or time limits, break a promise."""
    options = opening.own_options(TopicsOptions)
    reading = consumer_settings(_NOBODY, options.clients)
    writing = producer_settings(_NOBODY, options.clients, transactional=options.reading.transactional)
    check_limits(options, reading, writing)
    return reading, writing
