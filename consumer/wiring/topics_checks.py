"""What is refused before a run over topics begins."""

import logging
from contextlib import closing
from typing import Final

from consumer.config.config import Config
from consumer.config.time_limits import check_limits
from consumer.kafka.client_log import silent_log
from consumer.kafka.client_settings import admin_settings, consumer_settings, is_kafka, parse_kafka, producer_settings
from consumer.kafka.clients import new_consumer, new_producer
from consumer.kafka.groups import FILLING, Group
from consumer.model.errors import ConfigError, SourceError
from consumer.wiring import components
from consumer.wiring.kafka_parts import sink_topics

log = logging.getLogger("dupwatch")

_FILLING_S: Final = 5.0
"""How long to ask the brokers whether the store is being filled."""
_NOWHERE: Final = "127.0.0.1:1"
"""In place of the brokers: a client connects as soon as it is created, and one that is tried must reach nobody."""


def check_topic_ends(config: Config) -> None:
    """Refuse a source and a sink that cannot be used together, with ConfigError."""
    if is_kafka(config.sink.url):
        sink_topics(config)
    elif config.sink.url != components.STREAM:
        raise ConfigError(
            "a run over topics writes to topics or to standard output: set sink.url to kafka://HOST:PORT/PREFIX or -"
        )
    elif config.kafka.delivery == "exactly-once":
        raise ConfigError('delivery = "exactly-once" needs a kafka:// sink: its transactions hold the offsets')


def check_time_limits(config: Config) -> None:
    """Refuse time limits that break a promise, before anything waits for a store or a broker."""
    options = components.kafka_options(config)
    transactional = config.kafka.delivery == "exactly-once"
    writing = producer_settings("", options, transactional=transactional)
    check_limits(config.kafka, consumer_settings("", options), writing)


def check_not_filling(config: Config) -> None:
    """Refuse to start while ``dupwatch migrate`` fills the store: messages that were judged would be judged again."""
    place = parse_kafka(config.source.url)
    with closing(Group(admin_settings(place.brokers, components.kafka_options(config)), config.kafka.group)) as group:
        try:
            found = group.committed(group.partitions(place.names, _FILLING_S), patience_s=_FILLING_S)
        except SourceError as error:
            # The run itself waits for brokers that are away, and for topics that do not exist yet.
            log.warning("%s", error)
            return
    if any(committed.note.migrate == FILLING.migrate for committed in found.values()):
        raise ConfigError(
            f"the store of the group {config.kafka.group} is being filled: wait until dupwatch migrate ends, then"
            " start its consumers"
        )


def try_clients(config: Config, *, create: bool = True) -> None:
    """Raise ConfigError for settings that the clients of source and sink would refuse.

    The clients are created and closed, and ask no broker for anything. Without ``create`` only settings that dupwatch
    itself refuses are found: a client reads the files that its settings name.
    """
    options, exactly_once = components.kafka_options(config), config.kafka.delivery == "exactly-once"
    reads, writes = is_kafka(config.source.url), is_kafka(config.sink.url)
    if not reads and not writes:
        return
    reading = consumer_settings(_NOWHERE, options)
    writing = producer_settings(_NOWHERE, options, transactional=exactly_once)
    check_limits(config.kafka, reading, writing)
    if reads:
        parse_kafka(config.source.url)
        if create:
            new_consumer(reading, silent_log).close()
    if writes:
        parse_kafka(config.sink.url)
        if create:
            new_producer(writing, silent_log)
