"""Creates Kafka clients, and turns their errors into dupwatch's.

``refusal`` checks one property. A new client also checks whether its properties fit together, and the files that they
name. Most properties come from the user, so a refusal is a ``ConfigError``.
"""

import logging
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaException, Producer, libversion
from confluent_kafka.admin import AdminClient

from consumer.kafka.client_log import client_log
from consumer.kafka.errors import failure_message
from consumer.model.errors import ConfigError, Fatal, SourceError
from storage.clock import NOTICE_S

Client = TypeVar("Client")
_REFERENCE: Final = "https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md"
_NO_SUCH: Final = "No such configuration property"
_UNKNOWN: Final = "not a property"
_RANGE: Final = re.compile(r"allowed range (-?[0-9]+)\.\.(-?[0-9]+)")

log = logging.getLogger("dupwatch")

_PROBE_S: Final = 1.0
_ADDRESS: Final = re.compile(r"(?:[A-Za-z_]+://)?\[?(?P<host>[^\]/]+?)\]?(?::(?P<port>[0-9]{1,5}))?")
_DEFAULT_PORT: Final = 9092
"""The port that clients use for an address without one."""


def refusal(name: str, value: object) -> str | None:
    """Return why librdkafka refuses this property, and what to do; None if it accepts name and value.

    The check adds an unknown property at the end, so that no client is created. The client's error shows which of the
    two properties it refuses. The returned text does not repeat the value, which may be a secret.
    """
    try:
        Producer({name: value, _UNKNOWN: ""})
    except KafkaException as error:
        message = error.args[0].str()
    except (TypeError, ValueError):
        # The Python binding checks this property against others, and does so again when the client is created.
        return None
    if message == f'{_NO_SUCH}: "{_UNKNOWN}"':
        return None
    if message.startswith(_NO_SUCH):
        return f"librdkafka {libversion()[0]} has no such property; correct the name, or remove it ({_REFERENCE})"
    limits = _RANGE.search(message)
    remedy = f"write one from {limits[1]} to {limits[2]}" if limits else f"correct it ({_REFERENCE})"
    return f"librdkafka does not accept the value; {remedy}"


def new_consumer(settings: Mapping[str, Any], log: logging.Logger = client_log) -> Consumer:
    """Create a consumer, which connects immediately; ``settings`` may include callbacks. Raises ``ConfigError``."""
    return _create(Consumer, settings, log, "[kafka.client] or [kafka.consumer]")


def new_producer(settings: Mapping[str, Any], log: logging.Logger = client_log) -> Producer:
    """Create a producer, which connects immediately; ``settings`` may include callbacks. Raises ``ConfigError``."""
    return _create(Producer, settings, log, "[kafka.client] or [kafka.producer]")


def new_admin(settings: Mapping[str, Any], log: logging.Logger = client_log) -> AdminClient:
    """Create a client that queries brokers and creates topics. Raises ``ConfigError``."""
    return _create(AdminClient, settings, log, "[kafka.client]")


@contextmanager
def broker_request(brokers: str, failure: str, error_type: type[Fatal] = SourceError) -> Iterator[None]:
    """Log a long wait for the brokers, and replace a ``KafkaException`` with ``error_type``.

    ``brokers`` is a list "host:port,host:port"; ``failure`` begins the message if they refuse the request.
    """
    try:
        with waiting_for_brokers(brokers):
            yield
    except KafkaException as error:
        raise error_type(failure_message(brokers, error.args[0], failure)) from error


def _create(
    create: Callable[[dict[str, Any]], Client], settings: Mapping[str, Any], log: logging.Logger, sections: str
) -> Client:
    try:
        return create({**settings, "logger": log})
    except (KafkaException, ValueError, TypeError) as error:
        why = error.args[0].str() if isinstance(error, KafkaException) else str(error)
        raise ConfigError(f"kafka: the client rejects its settings: {why.strip()}; correct {sections}") from error


@contextmanager
def waiting_for_brokers(brokers: str) -> Iterator[None]:
    """Log once which brokers do not answer, and why, if the block takes more than two seconds.

    ``brokers`` is a list "host:port,host:port", as clients take it.
    """
    ended = threading.Event()
    watch = threading.Thread(target=_log_long_wait, args=(brokers, ended), name="waiting", daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()


def _log_long_wait(brokers: str, ended: threading.Event) -> None:
    if ended.wait(NOTICE_S):
        return
    # The clients do not say why they get no answer, so each address is tried with a plain connection.
    states = "; ".join(_state(address) for address in brokers.split(","))
    if not ended.is_set():
        log.warning("Waiting for the brokers: %s", states)


def _state(address: str) -> str:
    """Return an address, with the default port if it has none, and the result of connecting to it."""
    parts = _ADDRESS.fullmatch(address.strip())
    if parts is None:
        return f"{address}: no answer yet"
    if parts["port"] is None:
        return f"{address} (port {_DEFAULT_PORT}): {_try_connection(parts['host'], _DEFAULT_PORT)}"
    return f"{address}: {_try_connection(parts['host'], int(parts['port']))}"


def _try_connection(host: str, port: int) -> str:
    try:
        socket.create_connection((host, port), timeout=_PROBE_S).close()
    except TimeoutError:
        return "no connection yet"
    except (OSError, OverflowError) as error:
        return getattr(error, "strerror", None) or str(error)
    return "it accepts connections, but has not answered completely yet"
