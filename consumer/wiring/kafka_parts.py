"""Builds what runs over topics have in common."""

import logging
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial

from consumer.config.config import Config
from consumer.decode.message import decode_message
from consumer.kafka.client_settings import admin_settings, is_kafka, parse_kafka, parse_prefix
from consumer.kafka.groups import Group, Topics
from consumer.kafka.held_partitions import HeldPartitions
from consumer.kafka.sink.event_headers import (
    cloud_event_headers,
    cloud_near_miss_headers,
    event_headers,
    near_miss_headers,
)
from consumer.kafka.sink.record_times import RecordTimes
from consumer.kafka.sink.topic_sink import Messages
from consumer.kafka.source.arrivals import TopicArrivals
from consumer.kafka.topics import SinkTopics, missing
from consumer.lifecycle.retry import Patience
from consumer.model.article import Article
from consumer.model.errors import ConfigError, SinkError
from consumer.model.hooks import Hooks
from consumer.model.limits import DecodeLimits
from consumer.model.record import RawRecord
from consumer.wiring import components
from storage.clock import MS_PER_S, now_ms

log = logging.getLogger("dupwatch")


def sink_topics(config: Config) -> SinkTopics:
    """Return the topics that verdicts go to; ConfigError where the sink names more than one prefix."""
    prefix = parse_prefix(config.sink.url).prefix
    return SinkTopics(
        prefix,
        unique=config.kafka.unique,
        verdicts=config.sink.emit == "all",
        near_misses=config.kafka.near_miss_share > 0,
    )


def message_decoder(config: Config, patience: Patience | None = None) -> Callable[[RawRecord], Article]:
    """Return what decodes messages as configured; it raises BadRecord. ``patience`` is that of ``value_decoder``."""
    decode_value = components.value_decoder(config, patience)
    id_bytes_max = DecodeLimits().id_bytes_max
    id_from = config.kafka.id_from
    return partial(decode_message, decode_value=decode_value, id_from=id_from, id_bytes_max=id_bytes_max)


def topic_arrivals(config: Config, hooks: Hooks) -> TopicArrivals:
    """Return what gives messages their arrivals: their timestamps, unless missing or too far ahead of the clock."""
    return TopicArrivals(now_ms, int(config.kafka.ahead_s_max * MS_PER_S), hooks)


def check_topics(config: Config, brokers: str, topics: SinkTopics) -> None:
    """Refuse a sink whose topics are missing, with ConfigError, before the first verdict would wait for them."""
    try:
        gone = missing(admin_settings(brokers, components.kafka_options(config)), topics.written)
    except SinkError as error:
        # The run itself waits for brokers that are away.
        log.warning("The topics of the sink could not be checked: %s", error)
        return
    if gone:
        raise ConfigError(
            f"there is no topic {', '.join(gone)}: create it with dupwatch topics init --sink {config.sink.url}"
        )


@contextmanager
def held_partitions(config: Config) -> Iterator[HeldPartitions]:
    """Open the held partitions of the configured group and topics."""
    if not is_kafka(config.source.url):
        raise ConfigError("only topics have partitions: name them with --source kafka://HOST:PORT/TOPIC")
    place = parse_kafka(config.source.url)
    settings = admin_settings(place.brokers, components.kafka_options(config))
    with closing(Topics(settings, place.names)) as topics, closing(Group(settings, config.kafka.group)) as group:
        yield HeldPartitions(group, topics)


def record_times(config: Config, hooks: Hooks) -> RecordTimes:
    """Return the timestamps of records sent to the sink: arrivals, as far as the topics accept them."""
    return RecordTimes(now_ms, int(config.kafka.ahead_s_max * MS_PER_S), hooks)


def messages_of(config: Config, topics: SinkTopics, source: str) -> Messages:
    """Return which topic gets what, with headers as configured; ``source`` is what events call the feed."""
    if config.kafka.events == "cloudevents":
        return Messages(topics, cloud_event_headers(source), cloud_near_miss_headers(source))
    return Messages(topics, event_headers, near_miss_headers)
