"""Builds what runs over topics have in common."""

import logging
from collections.abc import Callable

from consumer.config.config import Config
from consumer.decode.message import decode_message
from consumer.kafka.client_settings import admin_settings, parse_kafka
from consumer.kafka.event_headers import cloud_event_headers, event_headers
from consumer.kafka.topics import SinkTopics, missing
from consumer.lifecycle.retry import Patience
from consumer.model.article import Article
from consumer.model.dead_letter import DeadLetter, LetterPosition, dead_letter
from consumer.model.errors import BadRecord, ConfigError, SinkError
from consumer.model.hooks import Hooks
from consumer.model.limits import DecodeLimits
from consumer.model.ports import Answer
from consumer.model.record import Headers, RawRecord
from consumer.sinks.record_times import RecordTimes
from consumer.wiring import parts
from storage.clock import MS_PER_S, now_ms


def sink_topics(config: Config) -> SinkTopics:
    """The topics that verdicts go to; ConfigError where the sink names more than one prefix."""
    place = parse_kafka(config.sink.url)
    if len(place.names) != 1:
        raise ConfigError(f"the sink {config.sink.url} names {len(place.names)} prefixes of topics; name one")
    return SinkTopics(place.names[0], unique=config.kafka.unique, verdicts=config.sink.emit == "all")


log = logging.getLogger("dupwatch")


def record_decoder(config: Config, patience: Patience | None = None) -> Callable[[RawRecord], Article]:
    """What decodes messages as configured; it raises BadRecord. ``patience`` is as in ``parts.value_decoder``."""
    decode_value = parts.value_decoder(config, patience)
    id_bytes_max = DecodeLimits().id_bytes_max
    return lambda record: decode_message(record, decode_value, config.kafka.id_from, id_bytes_max)


def check_topics(config: Config, brokers: str, topics: SinkTopics) -> None:
    """A topic that is missing is better told now than when the first verdict waits for it."""
    try:
        gone = missing(admin_settings(brokers, parts.kafka_options(config)), topics.written)
    except SinkError as error:
        # Brokers that are away are waited for, like everything else.
        log.warning("The topics of the sink could not be looked at: %s", error)
        return
    if gone:
        raise ConfigError(
            f"there is no topic {', '.join(gone)}: make it with dupwatch topics init --sink {config.sink.url}"
        )


def record_times(config: Config, hooks: Hooks) -> RecordTimes:
    """Which times the sink's topics are sent: those that count as arrivals, as far as the topics take them."""
    return RecordTimes(now_ms, int(config.kafka.ahead_s_max * MS_PER_S), hooks)


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
