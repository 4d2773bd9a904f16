"""The configured topics, for the console and for commands about topics."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from consumer.config.config import Config
from consumer.feeds.kinds import sink_of, source_of
from consumer.kafka.client_settings import admin_settings, parse_kafka, parse_prefix
from consumer.kafka.groups import ConsumerGroup, GroupTopics, HeldPartitions
from consumer.kafka.opening import topics_of
from consumer.kafka.topics import SinkTopics
from consumer.model.errors import ConfigError
from consumer.wiring import components
from consumer.wiring.feeds import sink_opening


def sink_topics(config: Config) -> SinkTopics:
    """Return the topics of the sink. Raises ``ConfigError`` if ``sink.url`` names more than one prefix."""
    return topics_of(config.sink.url, sink_opening(config))


def letters_topic(config: Config) -> tuple[str, str]:
    """Return the brokers and the topic of dead letters. Raises ``ConfigError`` if the sink is not a single prefix."""
    if not sink_of(config.sink.url).is_followed:
        raise ConfigError(f"{config.sink.url} is not a topic; name one with --sink kafka://HOST:PORT/PREFIX")
    brokers, prefix = parse_prefix(config.sink.url)
    return brokers, SinkTopics(prefix).dead_letters_topic


@contextmanager
def held_partitions(config: Config) -> Iterator[HeldPartitions]:
    """Open the held partitions of the configured group and topics.

    Raises ``ConfigError`` if the source is not topics.
    """
    if not source_of(config.source.url).is_shared:
        raise ConfigError("only topics have partitions: name them with --source kafka://HOST:PORT/TOPIC")
    address = parse_kafka(config.source.url)
    settings = admin_settings(address.brokers, components.kafka_options(config))
    with (
        closing(GroupTopics(settings, address.names)) as topics,
        closing(ConsumerGroup(settings, config.kafka.group)) as group,
    ):
        yield HeldPartitions(group, topics)
