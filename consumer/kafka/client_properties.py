"""Every setting of librdkafka, and whether a user may set it: refused, bounded or free, and why.

A setting is refused where dupwatch sets it itself, where any other value breaks a promise, or where it has no effect
here. It is bounded where some values break a promise. A name that is not in this table is refused too: a newer library
may have a setting that breaks a promise, so each has to be reviewed first. A test compares names, sides and aliases
with those of the installed library. ``docs/client_settings.md`` is generated from this table.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

Side = Literal["consumer", "producer", "both"]
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Refused:
    """No value is accepted."""

    why: str


@dataclass(frozen=True, slots=True)
class Between:
    """A whole number from ``low`` to ``high``."""

    low: int
    high: int
    why: str


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of these words, in upper or lower case."""

    values: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Matching:
    """A text that matches a whole pattern."""

    pattern: str
    why: str


@dataclass(frozen=True, slots=True)
class Free:
    """Any value that librdkafka accepts."""

    why: str


Rule = Refused | Between | OneOf | Matching | Free


@dataclass(frozen=True, slots=True)
class Property:
    """A setting under the name that dupwatch uses, which clients have it, and what is allowed."""

    name: str
    side: Side
    rule: Rule


ALIASES: Final[Mapping[str, str]] = {
    "metadata.broker.list": "bootstrap.servers",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "queue.buffering.max.ms": "linger.ms",
    "message.send.max.retries": "retries",
    "compression.codec": "compression.type",
    "request.required.acks": "acks",
    "delivery.timeout.ms": "message.timeout.ms",
    "auto.commit.enable": "enable.auto.commit",
}
"""Other names of a setting, and its name in the table."""

_URL: Final = "dupwatch sets it from source.url and sink.url"
_CALLBACK: Final = "it takes a function or an object, which no configuration file can contain"
_NO_EFFECT: Final = "librdkafka ignores it, or nothing here uses it"
_ANCIENT: Final = "it makes the client talk to brokers that are too old for dupwatch"
_OFFSETS: Final = "dupwatch commits offsets after the verdicts are acknowledged; anything else loses articles"
_LOADS_CODE: Final = "it loads code into this process"
_SHARE_GROUPS: Final = "it belongs to share groups, which dupwatch does not use"
_WAITS: Final = "dupwatch waits for brokers that are down; a limit would end the run or drop the batch"

_REFUSED: Final[tuple[tuple[Side, str, str], ...]] = (
    ("both", _URL, "bootstrap.servers"),
    ("consumer", "dupwatch sets it from kafka.group", "group.id"),
    ("consumer", "dupwatch sets it from kafka.instance_id", "group.instance.id"),
    ("consumer", "dupwatch sets it from kafka.group_protocol", "group.protocol"),
    ("consumer", "a member of another type cannot join the group", "group.protocol.type"),
    (
        "consumer",
        "dupwatch uses cooperative-sticky, so that a rebalance revokes only partitions that move",
        "partition.assignment.strategy",
    ),
    ("consumer", _OFFSETS, "enable.auto.commit auto.commit.interval.ms enable.auto.offset.store"),
    ("consumer", _OFFSETS, "offset.store.method offset.store.path offset.store.sync.interval.ms"),
    (
        "consumer",
        "dupwatch must notice offsets that are out of range; use kafka.start and kafka.on_gap",
        "auto.offset.reset",
    ),
    ("consumer", "messages of aborted transactions are not articles; dupwatch reads committed ones", "isolation.level"),
    ("consumer", "dupwatch sets it: it needs the end of each partition to know its lag", "enable.partition.eof"),
    ("consumer", _NO_EFFECT, "consume.callback.max.messages"),
    ("consumer", _SHARE_GROUPS, "max.poll.records share.acknowledgement.mode"),
    ("producer", "dupwatch sets it: each event is written once and in order", "enable.idempotence"),
    ("producer", "dupwatch waits for all in-sync replicas, or a broker's failure would lose verdicts", "acks"),
    ("producer", "dupwatch sets it from kafka.delivery, kafka.group and kafka.instance_id", "transactional.id"),
    ("producer", _WAITS, "message.timeout.ms retries"),
    ("producer", "it is experimental, and ends the producer where dupwatch would wait", "enable.gapless.guarantee"),
    ("producer", "dupwatch counts acknowledgements, so it needs every report", "delivery.report.only.error"),
    ("producer", "lifo would send events out of order", "queuing.strategy"),
    ("producer", _NO_EFFECT, "produce.offset.report"),
    ("both", "source.url names the topics of articles; one listed here would never be read", "topic.blacklist"),
    ("both", _LOADS_CODE, "plugin.library.paths ssl.engine.location ssl.engine.id"),
    (
        "both",
        "it runs a shell command; renew the ticket outside, and leave sasl.kerberos.min.time.before.relogin at 0",
        "sasl.kerberos.kinit.cmd",
    ),
    ("both", "it describes the library and cannot be changed", "builtin.features"),
    ("both", "dupwatch reads events through callbacks, which it would silence", "enabled_events"),
    ("both", "dupwatch collects librdkafka's log through this queue", "log.queue"),
    ("both", "dupwatch needs the thread's name to limit repeated log lines", "log.thread.name"),
    ("both", "nothing reads the statistics; see /metrics", "statistics.interval.ms"),
    ("both", "the signal could end or disturb this process", "internal.termination.signal"),
    ("both", _ANCIENT, "api.version.request api.version.fallback.ms broker.version.fallback"),
    ("both", _NO_EFFECT, "socket.blocking.max.ms reconnect.backoff.jitter.ms topic.metadata.refresh.fast.cnt"),
    ("both", _CALLBACK, "error_cb throttle_cb stats_cb log_cb background_event_cb socket_cb connect_cb closesocket_cb"),
    ("both", _CALLBACK, "open_cb resolve_cb opaque default_topic_conf oauthbearer_token_refresh_cb interceptors"),
    ("both", _CALLBACK, "ssl_key ssl_certificate ssl_ca ssl_engine_callback_data ssl.certificate.verify_cb"),
    ("consumer", _CALLBACK, "consume_cb rebalance_cb offset_commit_cb"),
    ("producer", _CALLBACK, "dr_cb dr_msg_cb partitioner_cb msg_order_cmp"),
)

_LARGEST: Final = "a record has up to 8 MiB, and headers; one that does not fit would stop the run"
_MEMORY: Final = "it limits memory: librdkafka holds what it fetches ahead"
_BACK: Final = "too long, it delays recovery from an outage; too short, the client retries without a pause"
_NOTICE: Final = "too short, slow brokers always look dead; too long, dead ones are not noticed"
_KERBEROS: Final = "librdkafka puts it into a shell command"

_BOUNDED: Final[tuple[Property, ...]] = (
    Property("message.max.bytes", "both", Between(10 * _MIB, 1_000_000_000, _LARGEST)),
    Property("receive.message.max.bytes", "both", Between(10 * _MIB + 512, (1 << 31) - 1, _LARGEST)),
    Property(
        "queue.buffering.max.kbytes",
        "producer",
        Between(16 << 10, 1 << 20, f"{_LARGEST}; beyond the upper limit, memory is not bounded"),
    ),
    Property("queued.max.messages.kbytes", "consumer", Between(1, 256 << 10, _MEMORY)),
    Property("max.partition.fetch.bytes", "consumer", Between(1, 64 * _MIB, _MEMORY)),
    Property("fetch.max.bytes", "consumer", Between(1, 64 * _MIB, _MEMORY)),
    Property(
        "fetch.wait.max.ms",
        "consumer",
        Between(0, 10_000, "an article is delayed that long while fetch.min.bytes are not there"),
    ),
    Property(
        "max.in.flight.requests.per.connection",
        "both",
        Between(1, 5, "an idempotent producer keeps the order of at most five requests"),
    ),
    Property(
        "max.poll.interval.ms",
        "consumer",
        Between(
            10_000,
            3_600_000,
            "it must be longer than kafka.revoke_s, and a consumer that hangs keeps its partitions that long",
        ),
    ),
    Property(
        "session.timeout.ms",
        "consumer",
        Between(6_000, 1_800_000, "brokers refuse other values, and a dead consumer keeps its partitions that long"),
    ),
    Property(
        "heartbeat.interval.ms",
        "consumer",
        Between(100, 60_000, "three must fit into a session, or one late heartbeat loses the partitions"),
    ),
    Property(
        "transaction.timeout.ms",
        "producer",
        Between(5_000, 900_000, "a batch must be written within it, and readers wait that long after a crash"),
    ),
    Property("socket.timeout.ms", "both", Between(5_000, 300_000, _NOTICE)),
    Property("socket.connection.setup.timeout.ms", "both", Between(1_000, 300_000, _NOTICE)),
    Property("request.timeout.ms", "producer", Between(5_000, 300_000, _NOTICE)),
    Property("api.version.request.timeout.ms", "both", Between(1_000, 300_000, _NOTICE)),
    Property("reconnect.backoff.ms", "both", Between(10, 60_000, _BACK)),
    Property("reconnect.backoff.max.ms", "both", Between(10, 60_000, _BACK)),
    Property("retry.backoff.ms", "both", Between(1, 60_000, _BACK)),
    Property("retry.backoff.max.ms", "both", Between(1, 60_000, _BACK)),
    Property("fetch.error.backoff.ms", "consumer", Between(0, 60_000, _BACK)),
    Property("fetch.queue.backoff.ms", "consumer", Between(0, 60_000, _BACK)),
    Property("coordinator.query.interval.ms", "consumer", Between(1_000, 600_000, _BACK)),
    Property(
        "topic.metadata.refresh.interval.ms",
        "both",
        Between(1_000, 3_600_000, "it finds new partitions and moved leaders"),
    ),
    Property(
        "metadata.max.age.ms",
        "both",
        Between(10_000, 86_400_000, "topics disappear if metadata expires before it is refreshed"),
    ),
    Property(
        "topic.metadata.propagation.max.ms",
        "both",
        Between(30_000, 3_600_000, "a starting broker knows no topics for a while, which must not end the run"),
    ),
    Property(
        "metadata.recovery.strategy",
        "both",
        OneOf(("rebootstrap",), "with none, a consumer never finds brokers that have all moved"),
    ),
    Property(
        "allow.auto.create.topics",
        "both",
        OneOf(("false",), "an automatically created topic may delete articles and verdicts too early"),
    ),
    Property(
        "partitioner",
        "producer",
        OneOf(
            ("consistent", "consistent_random", "murmur2", "murmur2_random", "fnv1a", "fnv1a_random"),
            "all events of an id must be in one partition, for their order and for compaction",
        ),
    ),
    Property(
        "enable.ssl.certificate.verification",
        "both",
        OneOf(
            ("true",),
            "without it, anybody on the network could read passwords and change articles; name the authority instead",
        ),
    ),
    Property("sasl.kerberos.principal", "both", Matching(r"[\w.@/-]+", _KERBEROS)),
    Property("sasl.kerberos.keytab", "both", Matching(r"[\w.@/-]+", _KERBEROS)),
    Property("sasl.kerberos.service.name", "both", Matching(r"[\w.@/-]+", _KERBEROS)),
)

_FREE: Final[tuple[tuple[Side, str, str], ...]] = (
    ("both", "it names this client to the brokers", "client.id client.rack"),
    ("both", "it decides what is logged, through dupwatch's log", "debug log_level log.connection.close"),
    ("both", "it tunes connections", "socket.send.buffer.bytes socket.receive.buffer.bytes socket.keepalive.enable"),
    ("both", "it tunes connections", "socket.nagle.disable socket.max.fails connections.max.idle.ms"),
    ("both", "it tunes how brokers are found", "broker.address.ttl broker.address.family client.dns.lookup"),
    (
        "both",
        "it tunes how brokers are found",
        "metadata.recovery.rebootstrap.trigger.ms topic.metadata.refresh.sparse",
    ),
    ("both", "it tunes how brokers are found", "topic.metadata.refresh.fast.interval.ms"),
    ("both", "it does not change what is sent or read", "message.copy.max.bytes enable.random.seed"),
    ("both", "the brokers decide which metrics they request", "enable.metrics.push"),
    (
        "both",
        "the brokers decide what they accept",
        "security.protocol ssl.cipher.suites ssl.curves.list ssl.sigalgs.list",
    ),
    ("both", "it says who is trusted", "ssl.ca.location ssl.ca.pem ssl.ca.certificate.stores ssl.crl.location"),
    ("both", "it says who is trusted", "https.ca.location https.ca.pem ssl.endpoint.identification.algorithm"),
    ("both", "OpenSSL loads these from its own directory only, for FIPS", "ssl.providers"),
    ("both", "it says who this client is", "ssl.key.location ssl.key.password ssl.key.pem ssl.certificate.location"),
    ("both", "it says who this client is", "ssl.certificate.pem ssl.keystore.location ssl.keystore.password"),
    ("both", "it says who this client is", "sasl.mechanism sasl.username sasl.password"),
    ("both", "it says who this client is", "sasl.kerberos.min.time.before.relogin"),
    ("both", "it says who this client is", "sasl.oauthbearer.config enable.sasl.oauthbearer.unsecure.jwt"),
    ("both", "it says who this client is", "sasl.oauthbearer.method sasl.oauthbearer.client.id"),
    ("both", "it says who this client is", "sasl.oauthbearer.client.secret sasl.oauthbearer.scope"),
    ("both", "it says who this client is", "sasl.oauthbearer.extensions sasl.oauthbearer.token.endpoint.url"),
    ("both", "it says who this client is", "sasl.oauthbearer.sub.claim.name sasl.oauthbearer.grant.type"),
    ("both", "it says who this client is", "sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.file"),
    ("both", "it says who this client is", "sasl.oauthbearer.assertion.private.key.file"),
    ("both", "it says who this client is", "sasl.oauthbearer.assertion.private.key.passphrase"),
    ("both", "it says who this client is", "sasl.oauthbearer.assertion.private.key.pem"),
    ("both", "it says who this client is", "sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.iss"),
    ("both", "it says who this client is", "sasl.oauthbearer.assertion.claim.exp.seconds"),
    ("both", "it says who this client is", "sasl.oauthbearer.assertion.claim.nbf.seconds"),
    ("both", "it says who this client is", "sasl.oauthbearer.assertion.claim.jti.include"),
    ("both", "it says who this client is", "sasl.oauthbearer.assertion.claim.sub"),
    ("both", "it says who this client is", "sasl.oauthbearer.assertion.jwt.template.file"),
    ("both", "it says who this client is", "sasl.oauthbearer.metadata.authentication.type"),
    ("consumer", "any assignment keeps the promises", "group.remote.assignor"),
    ("consumer", "queued.max.messages.kbytes bounds what it asks for", "queued.min.messages"),
    ("consumer", "it trades latency for fewer requests", "fetch.min.bytes"),
    ("consumer", "it detects damage in transit, for some processor time", "check.crcs"),
    ("producer", "dupwatch waits while the queue is full", "queue.buffering.max.messages"),
    ("producer", "a flush ends the wait", "linger.ms sticky.partitioning.linger.ms"),
    (
        "producer",
        "it tunes how events are batched and compressed",
        "queue.buffering.backpressure.threshold batch.num.messages batch.size",
    ),
    ("producer", "it tunes how events are batched and compressed", "compression.type compression.level"),
)


def _rows() -> Iterator[Property]:
    for side, why, names in _REFUSED:
        yield from (Property(name, side, Refused(why)) for name in names.split())
    yield from _BOUNDED
    for side, why, names in _FREE:
        yield from (Property(name, side, Free(why)) for name in names.split())


PROPERTIES: Final[Mapping[str, Property]] = {row.name: row for row in _rows()}
"""The table, by name."""
