"""What is refused before a run over topics begins."""

import logging
from contextlib import closing
from typing import Final

from consumer.config.config import Config
from consumer.config.time_limits import check_limits
from consumer.kafka.client_settings import admin_settings, consumer_settings, is_kafka, parse_kafka, producer_settings
from consumer.kafka.groups import FILLING, Group
from consumer.model.errors import ConfigError, SourceError
from consumer.wiring import components
from consumer.wiring.kafka_parts import sink_topics

log = logging.getLogger("dupwatch")

_FILLING_S: Final = 5.0
"""How long to ask the brokers whether the store is being filled."""


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
