"""Creates Kafka's clients, and turns their errors into ours: the one place for the wording of both.

A client checks its settings only when it is created. Most of them come from the user, so what it refuses is a
``ConfigError``.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from consumer.kafka.broker_wait import waiting_for_brokers
from consumer.kafka.client_log import client_log
from consumer.kafka.errors import no_answer
from consumer.model.errors import ConfigError, Fatal, SourceError

Client = TypeVar("Client")


def new_consumer(settings: Mapping[str, Any], log: logging.Logger = client_log) -> Consumer:
    """Create a consumer, which connects at once; ``settings`` may have callbacks. Raises ``ConfigError``."""
    return _created(Consumer, settings, log)


def new_producer(settings: Mapping[str, Any], log: logging.Logger = client_log) -> Producer:
    """Create a producer, which connects at once; ``settings`` may have callbacks. Raises ``ConfigError``."""
    return _created(Producer, settings, log)


def new_admin(settings: Mapping[str, Any], log: logging.Logger = client_log) -> AdminClient:
    """Create a client that queries brokers and creates topics. Raises ``ConfigError``."""
    return _created(AdminClient, settings, log)


@contextmanager
def asking(brokers: str, refused: str, raised: type[Fatal] = SourceError) -> Iterator[None]:
    """Log a long wait for brokers inside, and raise ``raised`` in place of a ``KafkaException``.

    ``brokers`` is a list "host:port,host:port"; ``refused`` begins the message of a request that they refused.
    """
    try:
        with waiting_for_brokers(brokers):
            yield
    except KafkaException as error:
        raise raised(no_answer(brokers, error.args[0], refused)) from error


def _created(create: Callable[[dict[str, Any]], Client], settings: Mapping[str, Any], log: logging.Logger) -> Client:
    try:
        return create({**settings, "logger": log})
    except (KafkaException, ValueError, TypeError) as error:
        why = error.args[0].str() if isinstance(error, KafkaException) else str(error)
        raise ConfigError(f"kafka: the client rejects its settings: {why}") from error
