"""A run over topics, built and wired: articles from Kafka, verdicts to Kafka, until it is stopped."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from ssl import SSLContext
from typing import Final, NamedTuple

from consumer import app
from consumer.article import Article, DecodeLimits
from consumer.clients import admin_settings, consumer_settings, parse_kafka, producer_settings
from consumer.config import Config, is_kafka
from consumer.dead_letter import DeadLetter, LetterPosition, dead_letter
from consumer.delivery import KafkaJournal, TransactionalJournal
from consumer.detector import Detector, Tally
from consumer.errors import BadRecord, ConfigError, SinkError, SourceError
from consumer.feed import LiveFeed, TopicFeed
from consumer.heap_trim import trimming
from consumer.interruptible_store import InterruptibleStore
from consumer.journal import Journal
from consumer.ledger import Ledger
from consumer.letter_headers import letter_headers
from consumer.message_headers import Headers, cloud_event_headers, event_headers
from consumer.messages import decode_message
from consumer.migration.groups import Group
from consumer.pages.access import Access, Account, Address, check_exposure, parse_address, read_password
from consumer.pages.flags import FlagPages
from consumer.pages.health import health_pages
from consumer.pages.latest_flags import LatestFlags
from consumer.pages.server import HealthServer, Page, tls_context
from consumer.patience import Backoff, Drain
from consumer.pipeline import Entered, Measured, Observer, Patience, Pipeline, Summed
from consumer.poison import PoisonGate, PoisonLimit
from consumer.ports import Answer, RawBatch, RawRecord, Sink, SinkWatcher
from consumer.settings import JudgeSettings
from consumer.sinks.file import StreamSink
from consumer.sinks.kafka import KafkaSink
from consumer.sinks.messages import Messages
from consumer.sinks.record_times import RecordTimes
from consumer.sinks.transactions import TransactionalSink
from consumer.sources.kafka import KafkaSource, SourceOptions
from consumer.starting import Starting
from consumer.stopping import Stopping
from consumer.telemetry.batch_log import BatchLog
from consumer.telemetry.health import Health
from consumer.telemetry.metrics import Bounds, Build, Metrics
from consumer.telemetry.monitoring import Monitoring
from consumer.telemetry.store_probe import StoreProbe
from consumer.telemetry.tracing import traced
from consumer.time_limits import check_limits
from consumer.topics import SinkTopics, missing
from consumer.values.outages import waiting_for_registry
from consumer.verdict import Verdict
from storage.clock import now_ms
from storage.interface import Store

log = logging.getLogger("dupwatch")

_MS_PER_S: Final = 1000
_FILLED_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class StreamRun:
    """A run over topics that is ready to go, and what can be told of it while it does."""

    pipeline: Pipeline
    store: Store
    tally: Tally
    health: Health
    address: str | None


@dataclass(frozen=True, slots=True)
class Observers:
    """Several observers, told in turn."""

    all: Sequence[Observer]

    def begun(self, batch: RawBatch) -> None:
        """Tell all."""
        for one in self.all:
            one.begun(batch)

    @contextmanager
    def stage(self, stage: Entered) -> Iterator[None]:
        """Let all time it."""
        with ExitStack() as timed:
            for one in self.all:
                timed.enter_context(one.stage(stage))
            yield

    def spent(self, stage: Summed, seconds: float) -> None:
        """Tell all."""
        for one in self.all:
            one.spent(stage, seconds)

    def measured(self, batch: Measured) -> None:
        """Tell all."""
        for one in self.all:
            one.measured(batch)

    def judged(self, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """Tell all."""
        for one in self.all:
            one.judged(verdicts, letters)

    def abandoned(self) -> None:
        """Tell all."""
        for one in self.all:
            one.abandoned()


def sink_topics(config: Config) -> SinkTopics:
    """The topics that verdicts go to; ConfigError where the sink names more than one prefix."""
    place = parse_kafka(config.sink.url)
    if len(place.names) != 1:
        raise ConfigError(f"the sink {config.sink.url} names {len(place.names)} prefixes of topics; name one")
    return SinkTopics(place.names[0], unique=config.kafka.unique, verdicts=config.sink.emit == "all")


@contextmanager
def prepared_stream(
    config: Config, streams: app.Streams, stopping: Stopping, *onlookers: Callable[[Store], Observer]
) -> Iterator[StreamRun]:
    """Build a run over topics from its configuration; what it holds is let go of afterwards.

    Raises ``NotBegun`` where it is asked to stop while it still waits for its store or its brokers.

    The health pages are there first: they say what is waited for. ``onlookers`` make more observers, given the store.
    """
    check_places(config)
    _check_limits(config)
    with ExitStack() as held:
        held.enter_context(trimming())
        lexicon = app.lexicon_of(config)
        settings = app.judge_settings(config, lexicon)
        metrics = _metrics(config, settings)
        health = Health(config.http.stuck_s)
        monitoring = Monitoring(metrics, health)
        decode = record_decoder(config, waiting_for_registry(monitoring, stopping))
        latest = LatestFlags(config.http.flags, now_ms(), partial(metrics.error, "request"))
        address = _served(config, held, health_pages(health, metrics) | _flag_pages(config, latest), metrics)
        # Workers are there before any client is: they start from nothing, and know of none.
        drain = Drain(stopping, config.kafka.drain_s)

        def turn() -> None:
            monitoring.working()
            drain.check()

        fingerprinting = app.fingerprinting(config, settings, lexicon, turn, monitoring.helped)
        held.callback(fingerprinting.close)
        fingerprinting.submit([""], [""]).result()
        spans = held.enter_context(traced(config))
        starting = Starting(stopping, monitoring.working)
        starting.call(partial(_check_filled, config))
        source = _source(config, monitoring, stopping)

        def check() -> None:
            drain.check()
            source.check()

        def turn_and_check() -> None:
            monitoring.working()
            check()

        if app.is_remote(config):
            held.enter_context(
                StoreProbe(
                    partial(app.opened_store, app.impatient(config), readonly=True, quiet=True), monitoring.store_silent
                )
            )
        store = held.enter_context(_store(config, settings, starting, monitoring))
        latest.read_from(store)
        held.callback(latest.close)
        ledger = Ledger()
        sink, journal = _delivery(config, streams, _Intake(source, ledger), monitoring, turn_and_check, starting)
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
            builder=app.version_builder(settings),
            feed=_feed(config, ledger, metrics),
            detector=detector,
            sink=sink,
            journal=journal,
            observer=Observers([monitoring, latest, BatchLog(), *spans, *(make(store) for make in onlookers)]),
            stopping=stopping,
            keep_ms=settings.window_ms + config.store.slack_s * _MS_PER_S,
            postings_watch=config.judge.postings_watch,
            patience=Backoff(turn_and_check, monitoring),
            at_work=monitoring.at_work,
            turn=turn,
            check=check,
            poison=PoisonGate(
                PoisonLimit(config.kafka.poison_share_max, config.kafka.poison_records_min), ledger, source.hold
            ),
        )
        # Whatever was waited for until now: from here on records are.
        monitoring.resting()
        yield StreamRun(pipeline, store, detector.tally, health, address)


class Unwatched:
    """A watcher of a sink to whom nothing matters."""

    def sink_trouble(self, why: str | None) -> None:
        """Nothing."""

    def reconnected(self) -> None:
        """Nothing."""

    def time_moved(self) -> None:
        """Nothing."""


def record_decoder(config: Config, patience: Patience | None = None) -> Callable[[RawRecord], Article]:
    """What decodes messages as configured; it raises BadRecord. ``patience`` is as in ``app.value_decoder``."""
    decode_value = app.value_decoder(config, patience)
    id_bytes_max = DecodeLimits().id_bytes_max
    return lambda record: decode_message(record, decode_value, config.kafka.id_from, id_bytes_max)


def check_places(config: Config) -> None:
    """Refuse a source and a sink that do not go together, with ConfigError."""
    if is_kafka(config.sink.url):
        sink_topics(config)
    elif config.sink.url != app.STREAM:
        raise ConfigError("articles from kafka:// go to kafka://HOST:PORT/PREFIX, or to - for a look at them")
    elif config.kafka.delivery == "exactly-once":
        raise ConfigError('delivery = "exactly-once" needs a kafka:// sink: its transactions hold the offsets')


def _check_limits(config: Config) -> None:
    """Refuse limits that break a promise before anything waits for a store or a broker."""
    options = app.kafka_options(config)
    transactional = config.kafka.delivery == "exactly-once"
    writing = producer_settings("", options, transactional=transactional)
    check_limits(config.kafka, consumer_settings("", options), writing)


def _check_filled(config: Config) -> None:
    """A consumer that began before ``dupwatch migrate`` has switched would judge once more what was sent."""
    place = parse_kafka(config.source.url)
    with closing(Group(admin_settings(place.brokers, app.kafka_options(config)), config.kafka.group)) as group:
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


def _metrics(config: Config, settings: JudgeSettings) -> Metrics:
    build = Build(metadata.version("dupwatch"), settings.scheme.name, settings.plan.name, settings.digest())
    sources = tuple(config.rules)
    return Metrics(build, bounds=Bounds(app.read_limits(config), config.http.sources_max, sources, config.workers))


def _flag_pages(config: Config, latest: LatestFlags) -> dict[str, Page]:
    return FlagPages(latest).pages() if config.http.flags else {}


class Front(NamedTuple):
    """Where pages are served, to whom, and with what HTTPS is, if it is."""

    address: Address
    access: Access
    tls: SSLContext | None


def front_of(config: Config) -> Front | None:
    """How pages are served; None where there are none.

    Raises ConfigError where others could read along, and where a file that is named cannot be used.
    """
    section = config.http
    if not section.listen:
        return None
    address, access = parse_address(section.listen), Access(_account(config), section.names)
    check_exposure(address, access, is_open=section.open)
    tls = None if section.tls_certificate is None else tls_context(section.tls_certificate, section.tls_key)
    return Front(address, access, tls)


def _served(config: Config, held: ExitStack, pages: Mapping[str, Page], metrics: Metrics) -> str | None:
    front = front_of(config)
    if front is None:
        return None
    server = HealthServer(front.address, pages, partial(metrics.error, "request"), front.access, front.tls)
    held.callback(server.close)
    return server.url


def _account(config: Config) -> Account | None:
    section = config.http
    if section.user is None:
        return None
    if section.password_file is not None:
        return Account(section.user, read_password(section.password_file))
    return Account(section.user, section.password or "")


def _source(config: Config, monitoring: Monitoring, stopping: Stopping) -> KafkaSource:
    section, place = config.kafka, parse_kafka(config.source.url)
    options = SourceOptions(
        start=section.start,
        on_gap=section.on_gap,
        linger_s=section.linger_s,
        revoke_s=section.revoke_s,
        transactional=section.delivery == "exactly-once",
    )
    settings = consumer_settings(place.brokers, app.kafka_options(config))
    return KafkaSource(settings, place.names, app.read_limits(config), options, monitoring, stopping.asked)


def _feed(config: Config, ledger: Ledger, metrics: Metrics) -> LiveFeed:
    section = config.kafka
    topics = TopicFeed(now_ms, int(section.ahead_s_max * _MS_PER_S), partial(metrics.record_times_replaced, 1))
    return LiveFeed(topics, ledger, int(section.behind_s_max * _MS_PER_S), metrics.record_time_behind)


@contextmanager
def _store(config: Config, settings: JudgeSettings, starting: Starting, monitoring: Monitoring) -> Iterator[Store]:
    """The store, bound to the settings; waited for where it is out of reach."""
    with ExitStack() as opened:

        def bound() -> Store:
            store = opened.enter_context(app.opened_store(config, watcher=monitoring))
            app.bind(store, settings)
            return store

        yield Backoff(starting.check, monitoring).call(partial(starting.call, bound))


class _Intake(NamedTuple):
    """What a run reads, and the notes of the partitions at hand."""

    source: KafkaSource
    ledger: Ledger


def _delivery(
    config: Config,
    streams: app.Streams,
    intake: _Intake,
    monitoring: Monitoring,
    check: Callable[[], None],
    starting: Starting,
) -> tuple[Sink, Journal]:
    if config.sink.url == app.STREAM and config.kafka.delivery == "at-least-once":
        return StreamSink(streams.out, streams.err, emit=config.sink.emit), KafkaJournal(*intake)
    place, topics = parse_kafka(config.sink.url), sink_topics(config)
    starting.call(partial(check_topics, config, place.brokers, topics))
    exactly_once = config.kafka.delivery == "exactly-once"
    settings = producer_settings(place.brokers, app.kafka_options(config), transactional=exactly_once)
    messages = Messages(topics, dress_of(config, intake.source.name), letter_headers)
    times = record_times(config, monitoring)
    if exactly_once:
        sink = TransactionalSink(settings, messages, times, monitoring, check)
        return sink, TransactionalJournal(intake.source, sink, intake.ledger)
    return KafkaSink(settings, messages, times, monitoring, check), KafkaJournal(*intake)


def check_topics(config: Config, brokers: str, topics: SinkTopics) -> None:
    """A topic that is missing is better told now than when the first verdict waits for it."""
    try:
        gone = missing(admin_settings(brokers, app.kafka_options(config)), topics.written)
    except SinkError as error:
        # Brokers that are away are waited for, like everything else.
        log.warning("The topics of the sink could not be looked at: %s", error)
        return
    if gone:
        raise ConfigError(
            f"there is no topic {', '.join(gone)}: make it with dupwatch topics init --sink {config.sink.url}"
        )


def record_times(config: Config, watcher: SinkWatcher) -> RecordTimes:
    """Which times the sink's topics are sent: those that count as arrivals, as far as the topics take them."""
    return RecordTimes(now_ms, int(config.kafka.ahead_s_max * _MS_PER_S), watcher.time_moved)


def dress_of(config: Config, source: str) -> Callable[[Answer], Headers]:
    """What makes the headers of events, as configured."""
    return cloud_event_headers(source) if config.kafka.events == "cloudevents" else event_headers


def burier(source: str) -> Callable[[RawRecord, BadRecord], DeadLetter]:
    """What makes the dead letter of a message that cannot be judged."""

    def bury(record: RawRecord, fault: BadRecord) -> DeadLetter:
        message = record.message
        where = source if message is None else f"{message.topic}[{message.partition}]"
        position = LetterPosition(source=where, line=record.line, offset=record.start)
        return dead_letter(fault, position, record.data, size_bytes=record.size_bytes, sha256=record.sha256)

    return bury
