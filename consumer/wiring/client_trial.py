"""Whether Kafka's client accepts the settings of a run over topics, which it checks only when it is created."""

from typing import Final

from consumer.config.config import Config
from consumer.config.time_limits import check_limits
from consumer.kafka.client_log import silent_log
from consumer.kafka.client_settings import consumer_settings, is_kafka, parse_kafka, producer_settings
from consumer.kafka.clients import new_consumer, new_producer
from consumer.wiring import components

_NOWHERE: Final = "127.0.0.1:1"
"""In place of the brokers: a client connects as soon as it is created, and this one must reach nobody."""


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
