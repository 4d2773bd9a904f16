"""librdkafka's settings for each kind of client, built from a URL and the options of a run.

The names are librdkafka's (its CONFIGURATION.md). The user's settings override these where ``client_properties`` allows
it: settings on which dupwatch's promises depend are refused or bounded.
"""

import re
import uuid
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

from consumer.kafka.client_properties import checked_properties
from consumer.model.errors import ConfigError
from consumer.pipeline.dead_letter_policy import PoisonLimit
from consumer.text.redaction import with_secrets

URL_PATTERN: Final = r"kafka://(?P<brokers>[^/\s@]+)/(?P<names>[A-Za-z0-9._-]+(?:,[A-Za-z0-9._-]+)*)"
TRANSACTION_TIMEOUT_MS: Final = 30_000
FETCH_BOUNDS: Final[Mapping[str, Any]] = {
    # Responses must be small, because the client decompresses a whole response before it returns a message, and one
    # compressed byte can become a thousand. A larger batch of messages is still sent, but alone; only max.message.bytes
    # of its topic limits it. docs/contributing/load_tests.md says how much memory this takes.
    "fetch.max.bytes": 256 << 10,
    "max.partition.fetch.bytes": 256 << 10,
    # This counts decompressed messages. The last response can exceed it.
    "queued.max.messages.kbytes": 16_384,
}
"""The limits on the memory of the client itself."""
_CLASSIC: Final[Mapping[str, Any]] = {
    "partition.assignment.strategy": "cooperative-sticky",
    "session.timeout.ms": 45_000,
}
Settings = Mapping[str, str | int | float | bool]
NO_SETTINGS: Final[Settings] = {}


class TopicsAddress(NamedTuple):
    """Brokers as "host:port,host:port", and the names of topics, or one prefix."""

    brokers: str
    names: tuple[str, ...]


class PrefixAddress(NamedTuple):
    """Brokers as "host:port,host:port", and the prefix that the names of a sink's topics begin with."""

    brokers: str
    prefix: str


class KafkaOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of Kafka clients: ``client`` for all of them, ``consumer`` and ``producer`` for one kind.

    ``secret_files`` maps settings to the files that contain their values.
    """

    group: str = "dupwatch"
    instance_id: str | None = None
    group_protocol: Literal["classic", "consumer"] = "classic"
    client: Settings = {}
    consumer: Settings = {}
    producer: Settings = {}
    secret_files: Mapping[str, str] = {}


class SourceOptions(NamedTuple):
    """The options for reading topics.

    ``start``: where a partition without a committed offset begins. ``on_gap``: what happens if records were deleted
    before they were read. ``linger_s``: how long the first record of a batch waits for more if no records were
    buffered. ``revoke_s``: how long a revoked partition waits for the current batch. Up to ``batches_ahead_max``
    batches are read ahead; if the buffer stays full for ``pause_after_s``, fetching is paused. With ``transactional``,
    the sink commits the offsets, and ``note_committed`` is called instead of ``commit``.
    """

    start: Literal["earliest", "latest"] = "earliest"
    on_gap: Literal["stop", "continue"] = "stop"
    linger_s: float = 0.002
    revoke_s: float = 30.0
    batches_ahead_max: int = 2
    pause_after_s: float = 5.0
    transactional: bool = False


class TopicsOptions(NamedTuple):
    """The options of ``kafka://`` URLs.

    When the run is stopped, a batch gets ``drain_s`` to finish, and the supervisor waits ``grace_s``. The time of a
    record may be ``ahead_ms_max`` ahead of the clock, and ``behind_ms_max`` behind the highest arrival in its
    partition. A partition with more bad records than ``limit`` is held. ``unique``, ``near_misses`` and
    ``bank_matches`` turn on the topics of these names, ``cloud_events`` the headers of CloudEvents.
    """

    clients: KafkaOptions = KafkaOptions()
    reading: SourceOptions = SourceOptions()
    drain_s: float = 20.0
    grace_s: float = 60.0
    ahead_ms_max: int = 300_000
    behind_ms_max: int = 60_000
    limit: PoisonLimit = PoisonLimit(0.5, 1_000)
    unique: bool = False
    near_misses: bool = False
    bank_matches: bool = False
    cloud_events: bool = False


def parse_kafka(url: str) -> TopicsAddress:
    """Parse ``kafka://HOST:PORT[,HOST:PORT]/NAME[,NAME]``. Raises ``ConfigError`` for anything else."""
    parts = re.fullmatch(URL_PATTERN, url)
    if parts is None:
        raise ConfigError(
            f"{url!r} does not name a topic: write kafka://HOST:PORT[,HOST:PORT]/TOPIC[,TOPIC], and for a sink "
            "kafka://HOST:PORT[,HOST:PORT]/PREFIX"
        )
    return TopicsAddress(parts["brokers"], tuple(parts["names"].split(",")))


def parse_prefix(url: str) -> PrefixAddress:
    """Parse ``kafka://HOST:PORT[,HOST:PORT]/PREFIX``. Raises ``ConfigError`` for anything else."""
    address = parse_kafka(url)
    if len(address.names) != 1:
        raise ConfigError(f"{url} names several prefixes; name one")
    return PrefixAddress(address.brokers, address.names[0])


def consumer_settings(brokers: str, options: KafkaOptions) -> dict[str, Any]:
    """Return the settings of a consumer that commits explicitly and reports offsets that are out of range.

    Raises ``ConfigError`` for an invalid setting of the user.
    """
    settings: dict[str, Any] = {
        "fetch.wait.max.ms": 100,
        **FETCH_BOUNDS,
        "max.poll.interval.ms": 300_000,
    }
    if options.group_protocol == "classic":
        settings |= _CLASSIC
    settings |= _user_settings(options, "consumer")
    settings |= {
        "bootstrap.servers": brokers,
        "group.id": options.group,
        "group.protocol": options.group_protocol,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        # "earliest" would silently skip deleted records.
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        # This limits only sending, but must not exceed fetch.max.bytes. The producer's value would.
        "message.max.bytes": 64 << 10,
    }
    if options.instance_id is not None:
        settings["group.instance.id"] = options.instance_id
    return settings


def producer_settings(
    brokers: str, options: KafkaOptions, *, transactional: bool, defaults: Settings = NO_SETTINGS
) -> dict[str, Any]:
    """Return the settings of a producer that writes each event once, in order, to all in-sync replicas.

    ``defaults`` override the defaults set here; the user's settings override both. Raises ``ConfigError`` for an
    invalid setting of the user.
    """
    settings: dict[str, Any] = {
        "linger.ms": 2,
        "compression.type": "lz4",
        # A record can have 8 MiB and is sent unchanged; the topic has its own limit.
        "message.max.bytes": 16 << 20,
        "queue.buffering.max.kbytes": 64 << 10,
        # The default of 10 s would be added to every outage.
        "reconnect.backoff.max.ms": 1_000,
    }
    if transactional:
        # The coordinator may still be ending a transaction when the next one begins. It then refuses the offsets of a
        # batch without messages, and the client would retry after the default of 100 ms. (With messages, it retries
        # after 20 ms.)
        settings |= {"retry.backoff.ms": 10, "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS}
    else:
        # No time limit: a batch waits until its verdicts are written, however long the brokers are unreachable.
        settings["message.timeout.ms"] = 0
    settings |= {**defaults, **_user_settings(options, "producer")}
    settings |= {"bootstrap.servers": brokers, "enable.idempotence": True, "acks": "all"}
    if transactional:
        member = options.instance_id or uuid.uuid4().hex
        settings["transactional.id"] = f"{options.group}-{member}"
    return settings


def admin_settings(brokers: str, options: KafkaOptions) -> dict[str, Any]:
    """Return the settings of a client that queries brokers and creates topics. Raises ``ConfigError``."""
    return _user_settings(options, "admin") | {"bootstrap.servers": brokers}


def _user_settings(options: KafkaOptions, client: Literal["consumer", "producer", "admin"]) -> dict[str, Any]:
    """Return the user's settings for this kind of client. Raises ``ConfigError`` for an invalid one."""
    # Both sections are checked for every client, so that a mistake is found at the start.
    specific = {
        "consumer": checked_properties(options.consumer, "consumer"),
        "producer": checked_properties(options.producer, "producer"),
    }
    shared = checked_properties(options.client, "client")
    secret = checked_properties(with_secrets({}, options.secret_files, "kafka.secret_files"), "secret_files")
    return {**shared, **specific.get(client, {}), **secret}
