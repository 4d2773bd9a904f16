"""librdkafka's settings for each kind of client, from a URL and the options of a run.

The names are librdkafka's (its CONFIGURATION.md). A user's settings override these, as far as ``client_properties``
allows: those on which the promises depend are refused or bounded.
"""

import re
import uuid
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

from consumer.kafka.client_properties import checked
from consumer.model.errors import ConfigError
from consumer.pipeline.dead_letter_policy import PoisonLimit
from consumer.text.redaction import with_secrets

URL_PATTERN: Final = r"kafka://(?P<brokers>[^/\s@]+)/(?P<names>[A-Za-z0-9._-]+(?:,[A-Za-z0-9._-]+)*)"
TRANSACTION_TIMEOUT_MS: Final = 30_000
FETCH_BOUNDS: Final[Mapping[str, Any]] = {
    # The client decompresses a whole response before it returns a message, and a compressed byte can become a thousand:
    # so responses are small. A larger batch of messages is still sent, alone; only max.message.bytes of its topic
    # limits that. docs/contributing/load_tests.md has the memory that this takes.
    "fetch.max.bytes": 256 << 10,
    "max.partition.fetch.bytes": 256 << 10,
    # Of decompressed messages; one response may come on top.
    "queued.max.messages.kbytes": 16_384,
}
"""What limits the memory of the client itself."""
_CLASSIC: Final[Mapping[str, Any]] = {
    "partition.assignment.strategy": "cooperative-sticky",
    "session.timeout.ms": 45_000,
}
Settings = Mapping[str, str | int | float | bool]
NO_SETTINGS: Final[Settings] = {}


class TopicsAddress(NamedTuple):
    """Brokers as "host:port,host:port", and topics, or one prefix of topics."""

    brokers: str
    names: tuple[str, ...]


class PrefixAddress(NamedTuple):
    """Brokers as "host:port,host:port", and the prefix that the names of a sink's topics begin with."""

    brokers: str
    prefix: str


class KafkaOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How topics are read and written; ``client`` is for consumer and producer, the other two are for one of them.

    ``secret_files`` are settings whose value is in a file.
    """

    group: str = "dupwatch"
    instance_id: str | None = None
    group_protocol: Literal["classic", "consumer"] = "classic"
    client: Settings = {}
    consumer: Settings = {}
    producer: Settings = {}
    secret_files: Mapping[str, str] = {}


class SourceOptions(NamedTuple):
    """How a topic is read.

    ``start`` is where a partition without a committed offset begins. ``on_gap`` is what happens where records were
    deleted before they were read. ``linger_s`` is how long the first record waits for more when nothing is judged,
    ``revoke_s`` how long a revoked partition waits for the batch that was begun. Up to ``batches_ahead_max`` batches
    are read ahead; if none is taken for ``pause_after_s``, fetching is paused. With ``transactional``, the sink commits
    offsets, and ``done`` is called instead of ``commit``.
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

    ``clients`` are settings of clients, ``reading`` says how topics are read. A batch gets ``drain_s`` to finish when
    the run is stopped, and the supervisor waits for ``grace_s``. A time of a record may be ``ahead_ms_max`` ahead of
    the clock, and ``behind_ms_max`` behind its partition. ``limit`` holds partitions. ``unique``, ``near_misses``
    and ``bank_matches`` say whether these topics are written, ``cloud_events`` which headers events have.
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
    """Parse ``kafka://HOST:PORT[,HOST:PORT]/NAME[,NAME]``; raises ``ConfigError`` for anything else."""
    found = re.fullmatch(URL_PATTERN, url)
    if found is None:
        raise ConfigError(
            f"{url!r} does not name a topic: write kafka://HOST:PORT[,HOST:PORT]/TOPIC[,TOPIC], and for a sink "
            "kafka://HOST:PORT[,HOST:PORT]/PREFIX"
        )
    return TopicsAddress(found["brokers"], tuple(found["names"].split(",")))


def parse_prefix(url: str) -> PrefixAddress:
    """Parse ``kafka://HOST:PORT[,HOST:PORT]/PREFIX``; raises ``ConfigError`` for anything else."""
    place = parse_kafka(url)
    if len(place.names) != 1:
        raise ConfigError(f"{url} names several prefixes; name one")
    return PrefixAddress(place.brokers, place.names[0])


def consumer_settings(brokers: str, options: KafkaOptions) -> dict[str, Any]:
    """Return the settings of a consumer that commits explicitly, and gets an error for offsets out of range."""
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
        # "earliest" would silently skip what was deleted.
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        # For sending. The client accepts no lower fetch.max.bytes, and would refuse ours with the producer's value.
        "message.max.bytes": 64 << 10,
    }
    if options.instance_id is not None:
        settings["group.instance.id"] = options.instance_id
    return settings


def producer_settings(
    brokers: str, options: KafkaOptions, *, transactional: bool, defaults: Settings = NO_SETTINGS
) -> dict[str, Any]:
    """Return the settings of a producer that writes each event once, in order, to all in-sync replicas.

    ``defaults`` override those of a consumer's producer; the user's settings override both.
    """
    settings: dict[str, Any] = {
        "linger.ms": 2,
        "compression.type": "lz4",
        # A record has up to 8 MiB and is sent unchanged; the topic limits how much it accepts.
        "message.max.bytes": 16 << 20,
        "queue.buffering.max.kbytes": 64 << 10,
        # The default of 10 s would be added to every outage.
        "reconnect.backoff.max.ms": 1_000,
    }
    if transactional:
        # The coordinator may still be ending a transaction when the next one begins. A batch without messages adds its
        # offsets at once, is refused, and would wait for the default of 100 ms. (With messages it is 20 ms.)
        settings |= {"retry.backoff.ms": 10, "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS}
    else:
        # A batch waits for its verdicts to be written, however long the brokers are down.
        settings["message.timeout.ms"] = 0
    settings |= {**defaults, **_given(options, "producer")}
    settings |= {"bootstrap.servers": brokers, "enable.idempotence": True, "acks": "all"}
    if transactional:
        member = options.instance_id or uuid.uuid4().hex
        settings["transactional.id"] = f"{options.group}-{member}"
    return settings


def admin_settings(brokers: str, options: KafkaOptions) -> dict[str, Any]:
    """Return the settings of a client that queries brokers and creates topics."""
    return _given(options, "admin") | {"bootstrap.servers": brokers}


def _given(options: KafkaOptions, side: Literal["consumer", "producer", "admin"]) -> dict[str, Any]:
    """Return the user's settings for this kind of client; raises ``ConfigError`` for a wrong one."""
    # Both sections are checked for every client, so that a mistake is found at once.
    own = {"consumer": checked(options.consumer, "consumer"), "producer": checked(options.producer, "producer")}
    everywhere = checked(options.client, "client")
    secret = checked(with_secrets({}, options.secret_files, "kafka.secret_files"), "secret_files")
    return {**everywhere, **own.get(side, {}), **secret}
