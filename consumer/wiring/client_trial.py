"""Whether Kafka's client takes what a run over topics would tell it: it says so when it is made, and not before."""

from typing import Final

from confluent_kafka import Consumer, KafkaException, Producer

from consumer.config.config import Config
from consumer.config.time_limits import check_limits
from consumer.kafka.client_log import silent_log
from consumer.kafka.client_settings import consumer_settings, is_kafka, parse_kafka, producer_settings
from consumer.model.errors import ConfigError
from consumer.wiring import parts

_NOWHERE: Final = "127.0.0.1:1"
"""In place of the brokers: a client connects as soon as it is made, and nobody is to hear of this."""


def try_clients(config: Config, *, made: bool = True) -> None:
    """Refuse, with ConfigError, what the clients for the topics of source and sink would not be made with.

    They are made and let go, and ask no broker for anything. Without ``made`` only what dupwatch itself refuses is
    found: a client reads the files that its settings name.
    """
    options, exactly_once = parts.kafka_options(config), config.kafka.delivery == "exactly-once"
    reads, writes = is_kafka(config.source.url), is_kafka(config.sink.url)
    if not reads and not writes:
        return
    reading = consumer_settings(_NOWHERE, options)
    writing = producer_settings(_NOWHERE, options, transactional=exactly_once)
    check_limits(config.kafka, reading, writing)
    try:
        if reads:
            parse_kafka(config.source.url)
            if made:
                Consumer(reading, logger=silent_log).close()
        if writes:
            parse_kafka(config.sink.url)
            if made:
                Producer(writing, logger=silent_log)
    except (KafkaException, ValueError, TypeError) as error:
        said = error.args[0].str() if isinstance(error, KafkaException) else str(error)
        raise ConfigError(f"kafka: the client does not take its settings: {said}") from error
