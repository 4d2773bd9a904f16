"""Where the console's flags and near misses come from: topics of the consumers' sink, or the store, to begin again."""

from collections.abc import Callable
from contextlib import closing
from typing import Any, Final, Literal, NamedTuple

import msgspec

from consumer.config.config import Config
from consumer.console.intake.intake import Intake
from consumer.console.intake.store_reading import flags_in
from consumer.kafka.client_settings import (
    KafkaOptions,
    SourceOptions,
    admin_settings,
    consumer_settings,
    parse_prefix,
    producer_settings,
)
from consumer.kafka.clients import asking, new_consumer
from consumer.kafka.errors import ASK_S, UNKNOWN_TOPICS, describe
from consumer.kafka.groups import Committed, Group, Topics
from consumer.kafka.source.group_source import KafkaSource
from consumer.model.errors import ConfigError, SourceError
from consumer.model.hooks import Hooks
from consumer.model.limits import ReadLimits
from consumer.wiring import components
from consumer.wiring.console_store import StoreAccess
from consumer.wiring.feeds import is_followed
from consumer.wiring.kafka_parts import sink_topics

Rebuild = Literal["topic", "store"]
LIMITS: Final = ReadLimits(record_bytes_max=1 << 20, batch_records_max=2_000)
"""Events are small: ids and keywords, and no texts. A batch is one transaction, so large ones write fewer pages."""
NEAR_MISSES_ENDING: Final = "-near-misses"
"""What follows on ``console.group`` in the name of the group that reads near misses."""


def check_sink(config: Config) -> None:
    """Raise ``ConfigError`` where the configured sink is no topic, or clients have wrong settings."""
    if not is_followed(config):
        raise ConfigError(
            f"the console reads flags from the topics that consumers write to, and sink.url is {config.sink.url}: name "
            "them with --sink kafka://HOST:PORT/PREFIX"
        )
    read = flags_read(config)
    _settings(config, read)
    producer_settings(parse_prefix(config.sink.url).brokers, _options(config, read.group), transactional=False)


class TopicRead(NamedTuple):
    """A topic that the console reads, and the group as which it does."""

    topic: str
    group: str


def flags_read(config: Config) -> TopicRead:
    """Return the topic of flags."""
    return TopicRead(sink_topics(config).duplicates_topic, config.console.group)


def near_misses_read(config: Config) -> TopicRead:
    """Return the topic of near misses. Its group is its own, so that flags never wait for what happens to that one."""
    return TopicRead(sink_topics(config).near_misses_topic, f"{config.console.group}{NEAR_MISSES_ENDING}")


def source_of(config: Config, read: TopicRead, hooks: Hooks, stopped: Callable[[], bool]) -> KafkaSource:
    """Return a topic, read from where its group was."""
    # What was deleted unread can only be read from the store; the rest must not wait for that.
    options = SourceOptions(start="earliest", on_gap="continue", revoke_s=config.kafka.revoke_s)
    return KafkaSource(_settings(config, read), [read.topic], LIMITS, options, hooks, stopped)


def begin_again(config: Config, read: TopicRead) -> int:
    """Set the group back to the beginning of its topic, and return how many offsets are to be read.

    Raises ``ConfigError`` where a console of this group runs, and ``SourceError``.
    """
    settings = admin_settings(parse_prefix(config.sink.url).brokers, _options(config, read.group))
    with closing(Topics(settings, [read.topic])) as topics, closing(Group(settings, read.group)) as group:
        marks = topics.marks()
        group.commit({partition: Committed(low) for partition, (low, _) in marks.items()})
    return sum(high - low for low, high in marks.values())


def has_been_read(config: Config, read: TopicRead) -> bool:
    """Return whether the group has read events that are still in its topic. Raises ``SourceError``."""
    settings = admin_settings(parse_prefix(config.sink.url).brokers, _options(config, read.group))
    with closing(Topics(settings, [read.topic])) as topics, closing(Group(settings, read.group)) as group:
        marks = topics.marks()
        committed = group.committed([*marks])
    return any(place.offset > marks[partition][0] for partition, place in committed.items())


def is_there(config: Config, read: TopicRead) -> bool:
    """Return whether a topic exists, which is not created by that. Raises ``SourceError``: refused, or no answer."""
    settings = _settings(config, read)
    brokers = str(settings["bootstrap.servers"])
    with (
        closing(new_consumer({**settings, "log_level": 2})) as consumer,
        asking(brokers, f"the request was refused by {brokers}"),
    ):
        found = consumer.list_topics(read.topic, timeout=ASK_S).topics[read.topic]
    if found.error is None:
        return True
    if found.error.code() in UNKNOWN_TOPICS:
        return False
    raise SourceError(
        f"{read.topic} cannot be read: {describe(found.error)}. Allow the console to read it, as the group {read.group}"
    )


def add_from_store(intake: Intake, access: StoreAccess) -> int:
    """Take in all flags and releases of the store; return how many there are. Raises ``StoreError`` and ``Stopped``."""
    count = 0
    for events in flags_in(access()):
        intake.take_in(events, intake.proceed)
        count += len(events)
    return count


def _settings(config: Config, read: TopicRead) -> dict[str, Any]:
    return consumer_settings(parse_prefix(config.sink.url).brokers, _options(config, read.group))


def _options(config: Config, group: str) -> KafkaOptions:
    # An instance id names one consumer, which this is not.
    return msgspec.structs.replace(components.kafka_options(config), group=group, instance_id=None)
