"""What the Kafka clients are told: from a URL and the options of a run to librdkafka's settings.

The names are librdkafka's (its CONFIGURATION.md). What a user sets goes before what stands here, as far as
``client_properties`` allows it: settings that the promises rest on are refused or bounded.
"""

import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from consumer.kafka.client_rules import allowed, of_side
from consumer.model.errors import ConfigError
from consumer.text.redaction import (
    remember,
)

URL_PATTERN: Final = r"kafka://(?P<brokers>[^/\s@]+)/(?P<names>[A-Za-z0-9._-]+(?:,[A-Za-z0-9._-]+)*)"
TRANSACTION_TIMEOUT_MS: Final = 30_000
FETCH_BOUNDS: Final[Mapping[str, Any]] = {
    # The client unpacks a whole answer before it gives out a message, and a packed byte can become a thousand: so
    # answers are small. A batch of messages that is larger is sent all the same, alone: only max.message.bytes of its
    # topic bounds that. docs/load_tests.md has what these come to.
    "fetch.max.bytes": 256 << 10,
    "max.partition.fetch.bytes": 256 << 10,
    # Of unpacked messages; there may be one answer more.
    "queued.max.messages.kbytes": 16_384,
}
"""What bounds the memory of the client itself."""
_CLASSIC: Final[Mapping[str, Any]] = {
    "partition.assignment.strategy": "cooperative-sticky",
    "session.timeout.ms": 45_000,
}
Settings = Mapping[str, str | int | float | bool]
NO_SETTINGS: Final[Settings] = {}


class KafkaPlace(NamedTuple):
    """Brokers as a client is told them, "host:port,host:port", and topics, or one prefix of topics."""

    brokers: str
    names: tuple[str, ...]


class KafkaOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the topics are read and written; ``client`` goes to consumer and producer, the other two to one of them.

    ``secret_files`` are settings whose value stands in a file.
    """

    group: str = "dupwatch"
    instance_id: str | None = None
    group_protocol: Literal["classic", "consumer"] = "classic"
    client: Settings = {}
    consumer: Settings = {}
    producer: Settings = {}
    secret_files: Mapping[str, str] = {}


def parse_kafka(url: str) -> KafkaPlace:
    """The place that ``kafka://HOST:PORT[,HOST:PORT]/NAME[,NAME]`` names; ConfigError where it names none."""
    found = re.fullmatch(URL_PATTERN, url)
    if found is None:
        raise ConfigError(f"{url!r} names no topic: write it as kafka://HOST:PORT[,HOST:PORT]/TOPIC[,TOPIC]")
    return KafkaPlace(found["brokers"], tuple(found["names"].split(",")))


def consumer_settings(brokers: str, options: KafkaOptions) -> dict[str, Any]:
    """Of a consumer whose offsets are committed by hand, and which is told where an offset is out of range."""
    settings: dict[str, Any] = {
        "fetch.wait.max.ms": 100,
        **FETCH_BOUNDS,
        "max.poll.interval.ms": 300_000,
    }
    if options.group_protocol == "classic":
        settings |= _CLASSIC
    settings |= _given(options, "consumer")
    settings |= {
        "bootstrap.servers": brokers,
        "group.id": options.group,
        "group.protocol": options.group_protocol,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        # "earliest" would jump over what was deleted, and say nothing.
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        # Of what is sent. The client takes no fetch.max.bytes below it, and would refuse what the producer is told.
        "message.max.bytes": 64 << 10,
    }
    if options.instance_id is not None:
        settings["group.instance.id"] = options.instance_id
    return settings


def producer_settings(
    brokers: str, options: KafkaOptions, *, transactional: bool, defaults: Settings = NO_SETTINGS
) -> dict[str, Any]:
    """Of a producer that writes each event once, in order, and waits for every replica in sync.

    ``defaults`` go before those of a consumer's producer; what the user sets goes before both.
    """
    settings: dict[str, Any] = {
        "linger.ms": 2,
        "compression.type": "lz4",
        # A record may have 8 MiB, and goes on as it came; how much a topic takes is the topic's to say.
        "message.max.bytes": 16 << 20,
        "queue.buffering.max.kbytes": 64 << 10,
        # The default of 10 s would be added to every outage.
        "reconnect.backoff.max.ms": 1_000,
    }
    if transactional:
        # The coordinator ends one transaction after the next has begun; a batch without messages, which asks to have
        # offsets in it at once, is refused, and would wait for the default of 100 ms. (With messages it is 20 ms.)
        settings |= {"retry.backoff.ms": 10, "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS}
    else:
        # A batch waits for its verdicts to be written however long the brokers are away.
        settings["message.timeout.ms"] = 0
    settings |= {**defaults, **_given(options, "producer")}
    settings |= {"bootstrap.servers": brokers, "enable.idempotence": True, "acks": "all"}
    if transactional:
        member = options.instance_id or uuid.uuid4().hex
        settings["transactional.id"] = f"{options.group}-{member}"
    return settings


def admin_settings(brokers: str, options: KafkaOptions) -> dict[str, Any]:
    """Of a client that only asks, and makes topics."""
    return _given(options, "admin") | {"bootstrap.servers": brokers}


def with_secrets(given: Settings, files: Mapping[str, str], where: str) -> dict[str, Any]:
    """The settings, and those whose value stands in a file; ConfigError where one cannot be read, naming ``where``."""
    settings: dict[str, Any] = {**given}
    for name, path in files.items():
        try:
            value = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{where}: the value of {name} cannot be read from {path}: {error}") from error
        remember(value)
        settings[name] = value
    return settings


def _given(options: KafkaOptions, side: Literal["consumer", "producer", "admin"]) -> dict[str, Any]:
    """What the user sets for a client of this kind; ConfigError where it may not be set."""
    # Both sections are checked whichever client is made, so that a mistake shows at once.
    own = {"consumer": allowed(options.consumer, "consumer"), "producer": allowed(options.producer, "producer")}
    everywhere = allowed(options.client, "client")
    secret = allowed(with_secrets({}, options.secret_files, "kafka.secret_files"), "client")
    return of_side({**everywhere, **own.get(side, {}), **secret}, side)


def is_kafka(url: str) -> bool:
    """Whether this names topics."""
    return url.startswith("kafka://")
