"""Where the console's flags come from: the topic of the consumers' sink, or the store, to begin again."""

from collections.abc import Callable
from contextlib import closing
from typing import Final, Literal

import msgspec

from consumer.config.config import Config
from consumer.console.intake import Intake
from consumer.console.store_flags import flags_in
from consumer.kafka.client_settings import (
    KafkaOptions,
    admin_settings,
    consumer_settings,
    is_kafka,
    parse_prefix,
    producer_settings,
)
from consumer.kafka.groups import Committed, Group, Topics
from consumer.model.errors import ConfigError
from consumer.model.hooks import Hooks
from consumer.model.limits import ReadLimits
from consumer.sources.kafka import KafkaSource, SourceOptions
from consumer.wiring import parts
from consumer.wiring.console_store import StoreAccess
from consumer.wiring.kafka_parts import sink_topics

Rebuild = Literal["topic", "store"]
LIMITS: Final = ReadLimits(record_bytes_max=1 << 20, batch_records_max=500)
"""Events are small: ids and keywords, and no texts."""


def check_sink(config: Config) -> None:
    """Raise ``ConfigError`` where the configured sink is no topic, or clients have wrong settings."""
    if not is_kafka(config.sink.url):
        raise ConfigError(
            f"the console reads flags from the topics that consumers write to, and sink.url is {config.sink.url}: name "
            "them with --sink kafka://HOST:PORT/PREFIX"
        )
    brokers = parse_prefix(config.sink.url).brokers
    consumer_settings(brokers, _options(config))
    producer_settings(brokers, _options(config), transactional=False)


def flag_source(config: Config, hooks: Hooks, stopped: Callable[[], bool]) -> KafkaSource:
    """Return the topic of flags, read from where the console's group was."""
    settings = consumer_settings(parse_prefix(config.sink.url).brokers, _options(config))
    # What was deleted unread can only be read from the store; the rest must not wait for that.
    options = SourceOptions(start="earliest", on_gap="continue", revoke_s=config.kafka.revoke_s)
    return KafkaSource(settings, [sink_topics(config).duplicates_topic], LIMITS, options, hooks, stopped)


def begin_topic_again(config: Config) -> int:
    """Set the group back to the beginning of the topic of flags, and return how many offsets are to be read.

    Raises ``ConfigError`` where a console of this group runs, and ``SourceError``.
    """
    settings = admin_settings(parse_prefix(config.sink.url).brokers, _options(config))
    topic = sink_topics(config).duplicates_topic
    with closing(Topics(settings, [topic])) as topics, closing(Group(settings, config.console.group)) as group:
        marks = topics.marks()
        group.commit({partition: Committed(low) for partition, (low, _) in marks.items()})
    return sum(high - low for low, high in marks.values())


def add_from_store(intake: Intake, access: StoreAccess) -> int:
    """Take in all flags and releases of the store; return how many there are. Raises ``StoreError`` and ``Stopped``."""
    count = 0
    for events in flags_in(access()):
        intake.add(events, intake.proceed)
        count += len(events)
    return count


def _options(config: Config) -> KafkaOptions:
    # An instance id names one consumer, which this is not.
    return msgspec.structs.replace(parts.kafka_options(config), group=config.console.group, instance_id=None)
