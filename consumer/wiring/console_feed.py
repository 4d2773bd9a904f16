"""The feed of the console's flags: the sink of the consumers, or for a rebuild their store.

A sink is topics or a file. Near misses are only in topics; ``console_side_topics`` reads the topics of entries other
than flags.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol

import msgspec
from typing_extensions import override

from consumer.config.config import Config
from consumer.console.intake.event_file import EventFile
from consumer.console.intake.event_reading import place_in_topic
from consumer.console.intake.intake import EventSource, Intake
from consumer.console.intake.setup_checks import FlagTopic
from consumer.console.intake.store_reading import entry_verdicts
from consumer.decode.codecs import GZIP
from consumer.files.kind import FILE, NOWHERE_URL
from consumer.files.source import STREAM
from consumer.kafka.client_settings import (
    KafkaOptions,
    SourceOptions,
    admin_settings,
    consumer_settings,
    parse_prefix,
    producer_settings,
)
from consumer.kafka.clients import broker_request, new_consumer
from consumer.kafka.errors import REQUEST_TIMEOUT_S, UNKNOWN_TOPICS, describe
from consumer.kafka.groups import CommittedOffset, ConsumerGroup, GroupTopics
from consumer.kafka.message import offsets_in
from consumer.kafka.source.group_source import KafkaSource
from consumer.lifecycle.thread_progress import ThreadProgress
from consumer.model.errors import ConfigError, SourceError
from consumer.model.hooks import Hooks, Outage
from consumer.model.limits import ReadLimits
from consumer.model.record import End, RawBatch, RawRecord
from consumer.reviews.database import Connection, Database
from consumer.wiring import components
from consumer.wiring.console_store import StoreAccess
from consumer.wiring.feeds import is_followed
from consumer.wiring.kafka_parts import sink_topics

log = logging.getLogger("dupwatch")

Rebuild = Literal["sink", "store"]
LIMITS: Final = ReadLimits(record_bytes_max=1 << 20, batch_records_max=2_000)
"""Batches are large, since events are small (ids and keywords, no texts) and a batch is one transaction."""

_FILE: Final = "file"
CONSOLE_SUFFIX: Final = ".console.jsonl"
"""The suffix of the console's own file, which is next to the file of the sink."""
_REFUSED: Final = {
    STREAM: "standard output, which no other program can read",
    NOWHERE_URL: "which keeps nothing",
}


def check_sink(config: Config) -> None:
    """Raise ``ConfigError`` if the console cannot follow the configured sink, or settings of its clients are wrong."""
    url = config.sink.url
    if is_followed(config):
        subscription = flag_subscription(config)
        _settings(config, subscription)
        producer_settings(parse_prefix(url).brokers, _options(config, subscription.group), transactional=False)
        return
    if not FILE.matches(url):
        raise ConfigError(
            f"the console reads flags from the sink of a run, but sink.url is {url}, "
            f"{_REFUSED.get(url, 'which is not a file')}. "
            "Let the run write to a file, and name it here too: --sink FILE; or topics: --sink kafka://HOST:PORT/PREFIX"
        )
    if Path(url).suffix.lower() == GZIP.suffix:
        raise ConfigError(
            f"{url}: the console cannot read a compressed file while it grows. Let the run write to a file whose name "
            f"does not end with {GZIP.suffix}, and name that file here"
        )


def console_file(config: Config) -> Path | None:
    """Return the file that the console writes releases to; None if they go to topics."""
    return None if is_followed(config) else Path(config.sink.url + CONSOLE_SUFFIX)


class TopicSubscription(NamedTuple):
    """A topic that the console reads, and the consumer group for it."""

    topic: str
    group: str


def flag_subscription(config: Config) -> TopicSubscription:
    """Return the subscription to the topic of flags."""
    return TopicSubscription(sink_topics(config).duplicates_topic, config.console.group)


class TopicEventSource(EventSource):
    """A topic, read by a member of a consumer group. The brokers store the offsets of the group."""

    def __init__(self, source: KafkaSource) -> None:
        self._source = source

    @override
    def batches(self) -> Iterator[RawBatch]:
        return self._source.batches()

    @override
    def place_of(self, record: RawRecord) -> str:
        return place_in_topic(record)

    @override
    def begin(self, end: End) -> None:
        self._source.begin(offsets_in(end))

    @override
    def check(self) -> None:
        self._source.check()

    @override
    def note(self, connection: Connection, end: End) -> None:
        """Store nothing, because the brokers have the offsets."""

    @override
    def commit(self, end: End) -> None:
        self._source.commit(offsets_in(end), {})

    @override
    def abandon(self) -> None:
        self._source.abandon()

    def close(self) -> None:
        """Leave the group."""
        self._source.close()


def source_of(
    config: Config, subscription: TopicSubscription, hooks: Hooks, stopped: Callable[[], bool]
) -> TopicEventSource:
    """Return a topic as a source. It continues at the offsets of its group, or begins with the earliest record."""
    # Events that were deleted before they were read are only in the store, and must not hold up the others.
    options = SourceOptions(start="earliest", on_gap="continue", revoke_s=config.kafka.revoke_s)
    return TopicEventSource(
        KafkaSource(_settings(config, subscription), [subscription.topic], LIMITS, options, hooks, stopped)
    )


def begin_again(config: Config, subscription: TopicSubscription) -> int:
    """Reset the group to the beginning of its topic, and return the number of offsets to read.

    Raises ``ConfigError`` if a console of this group is running, and ``SourceError``.
    """
    settings = admin_settings(parse_prefix(config.sink.url).brokers, _options(config, subscription.group))
    with (
        closing(GroupTopics(settings, [subscription.topic])) as topics,
        closing(ConsumerGroup(settings, subscription.group)) as group,
    ):
        marks = topics.watermarks()
        group.commit({partition: CommittedOffset(low) for partition, (low, _) in marks.items()})
    return sum(high - low for low, high in marks.values())


def has_read_events(config: Config, subscription: TopicSubscription) -> bool:
    """Return whether the group has committed offsets of events that are still in the topic. Raises ``SourceError``."""
    settings = admin_settings(parse_prefix(config.sink.url).brokers, _options(config, subscription.group))
    with (
        closing(GroupTopics(settings, [subscription.topic])) as topics,
        closing(ConsumerGroup(settings, subscription.group)) as group,
    ):
        marks = topics.watermarks()
        committed = group.committed([*marks])
    return any(place.offset > marks[partition][0] for partition, place in committed.items())


def flag_sink(config: Config) -> FlagTopic | Path:
    """Return the topic or the file of flags, for the checks of the console's setup."""
    if not is_followed(config):
        return Path(config.sink.url)
    subscription = flag_subscription(config)
    return FlagTopic(subscription.topic, subscription.group, partial(has_read_events, config, subscription))


def topic_exists(config: Config, subscription: TopicSubscription) -> bool:
    """Return whether a topic exists, without creating it. Raises ``SourceError`` if brokers refuse or do not answer."""
    settings = _settings(config, subscription)
    brokers = str(settings["bootstrap.servers"])
    with (
        closing(new_consumer({**settings, "log_level": 2})) as consumer,
        broker_request(brokers, f"the request was refused by {brokers}"),
    ):
        metadata = consumer.list_topics(subscription.topic, timeout=REQUEST_TIMEOUT_S).topics[subscription.topic]
    if metadata.error is None:
        return True
    if metadata.error.code() in UNKNOWN_TOPICS:
        return False
    raise SourceError(
        f"{subscription.topic} cannot be read: {describe(metadata.error)}. Allow the console to read it, as the group "
        f"{subscription.group}"
    )


class FlagFeed(Protocol):
    """The feed of flags."""

    def take_all(self, intake: Intake) -> None:
        """Take in all existing flags, and from a topic also new flags until the console ends.

        Raises ``SourceError``.
        """
        ...

    def begin_again(self) -> None:
        """Restart at the beginning, and log that. Raises ``ConfigError`` and ``SourceError``."""
        ...


class TopicFeed(FlagFeed):
    """The topic of flags."""

    def __init__(self, config: Config, hooks: Hooks, stopped: Callable[[], bool]) -> None:
        self._config = config
        self._subscription = flag_subscription(config)
        self._hooks = hooks
        self._stopped = stopped

    @override
    def take_all(self, intake: Intake) -> None:
        with closing(source_of(self._config, self._subscription, self._hooks, self._stopped)) as source:
            intake.take_all(source)

    @override
    def begin_again(self) -> None:
        log.info("Reading %d offsets of the topic of flags again", begin_again(self._config, self._subscription))


class FileFeed(FlagFeed):
    """The file of a run, and the console's file next to it, whose releases are read back as from a topic."""

    def __init__(self, sink: EventFile, own: EventFile, hooks: Hooks) -> None:
        self._sink = sink
        self._own = own
        self._hooks = hooks
        self._has_warned_missing = False

    @override
    def take_all(self, intake: Intake) -> None:
        try:
            intake.take_all(self._sink)
        except FileNotFoundError:
            self._report_missing()
        else:
            self._hooks.report(Outage("source", _FILE, None))
            self._has_warned_missing = False
        try:
            intake.take_all(self._own)
        except FileNotFoundError:
            # No article has been released yet.
            return

    @override
    def begin_again(self) -> None:
        for file in (self._sink, self._own):
            file.begin_again()
        log.info("Reading %s again from its beginning", self._sink.path)

    def _report_missing(self) -> None:
        why = f"{self._sink.path} does not exist yet: no run has begun to write it"
        self._hooks.report(Outage("source", _FILE, why))
        if not self._has_warned_missing:
            log.warning("%s. Flags appear once it exists.", why)
        self._has_warned_missing = True


def flag_feed(config: Config, database: Database, hooks: Hooks, stopped: Callable[[], bool]) -> FlagFeed:
    """Return the feed of the configured sink's flags."""
    own = console_file(config)
    if own is None:
        return TopicFeed(config, hooks, stopped)
    sink = EventFile(Path(config.sink.url), database, LIMITS, stopped)
    return FileFeed(sink, EventFile(own, database, LIMITS, stopped), hooks)


class FlagIntakeWork:
    """The work of the intake's thread: takes in the flags of the sink.

    With ``rebuild``, the first call takes in all flags again, from the sink or from the store.
    """

    def __init__(
        self, feed: FlagFeed, intake: Intake, access: StoreAccess, hooks: Hooks, rebuild: Rebuild | None
    ) -> None:
        self._feed = feed
        self._intake = intake
        self._access = access
        self._progress = ThreadProgress(hooks)
        self._rebuild = rebuild

    def work(self) -> bool:
        """Take in flags; return False.

        Raises ``SourceError``, ``StoreError`` and ``DatabaseUnavailable``, and the errors of ``begin_again``.
        """
        if self._rebuild == "store":
            with self._progress.at_work():
                count = add_from_store(self._intake, self._access)
            log.info(
                "Read %d verdicts from the store. It has no near misses; --rebuild sink reads those of topics",
                count,
            )
        elif self._rebuild == "sink":
            self._feed.begin_again()
        self._rebuild = None
        self._feed.take_all(self._intake)
        return False


def add_from_store(intake: Intake, access: StoreAccess) -> int:
    """Take in the store's verdicts that become entries; return their number.

    Raises ``StoreError`` and ``ConsoleStopped``.
    """
    count = 0
    for events in entry_verdicts(access()):
        intake.take_in_all(events, intake.proceed)
        count += len(events)
    return count


def _settings(config: Config, subscription: TopicSubscription) -> dict[str, Any]:
    return consumer_settings(parse_prefix(config.sink.url).brokers, _options(config, subscription.group))


def _options(config: Config, group: str) -> KafkaOptions:
    # An instance id belongs to one consumer, and the console is not that consumer.
    return msgspec.structs.replace(components.kafka_options(config), group=group, instance_id=None)
