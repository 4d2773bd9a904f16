"""Checks the librdkafka properties that a user sets against a table of refused and limited properties.

A property is refused if dupwatch sets it itself, or if setting it would break a promise. It has limits if only some
values would break a promise. librdkafka checks all other properties. ``docs/operate/client_settings.md`` contains this
table. A test compares the two, and checks that every property of the library has been reviewed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from consumer.model.errors import ConfigError

PropertySection = Literal["client", "consumer", "producer", "secret_files"]
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class RangeLimit:
    """A whole number from ``low`` to ``high``."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class ChoiceLimit:
    """One of these words, in upper or lower case."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PatternLimit:
    """A text that the pattern matches from beginning to end; ``description`` says in words what it allows."""

    pattern: str
    description: str


@dataclass(frozen=True, slots=True)
class PropertyRule:
    """Why a property is refused, or why it has limits."""

    reason: str
    limits: RangeLimit | ChoiceLimit | PatternLimit | None = None


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
"""Alternative names of a property, and the name that dupwatch uses. If both were set, their order would decide."""

_OFFSETS: Final = PropertyRule(
    "dupwatch commits offsets after the verdicts are acknowledged; anything else loses articles"
)
_WAITS: Final = PropertyRule("dupwatch waits for unreachable brokers; a limit would end the run or drop the batch")
_LOADS_CODE: Final = PropertyRule("it loads code into this process")
_LOG: Final = PropertyRule("dupwatch collects librdkafka's log, and limits repeated lines")
_OLD_BROKERS: Final = PropertyRule("it makes the client talk to brokers that are too old for dupwatch")
_OBJECT: Final = PropertyRule("it takes a function or an object, which no configuration file can contain")
_MOCK: Final = PropertyRule("it replaces the brokers with a cluster in memory, which loses all messages")
_RECORD_SIZE: Final = "a record can have 8 MiB and headers; one that does not fit would stop the run"
_MEMORY: Final = PropertyRule(
    "it limits memory: librdkafka buffers the messages that it prefetches", RangeLimit(1, 64 * _MIB)
)
_KERBEROS: Final = PropertyRule(
    "librdkafka puts it into a shell command", PatternLimit(r"[\w.@/-]+", "letters, digits, `_.@/-`")
)

RULES: Final[Mapping[str, PropertyRule]] = {
    "bootstrap.servers": PropertyRule("dupwatch sets it from source.url and sink.url"),
    "group.id": PropertyRule("dupwatch sets it from kafka.group"),
    "group.instance.id": PropertyRule("dupwatch sets it from kafka.instance_id"),
    "group.protocol": PropertyRule("dupwatch sets it from kafka.group_protocol"),
    "group.protocol.type": PropertyRule("a member of another type cannot join the group"),
    "partition.assignment.strategy": PropertyRule(
        "dupwatch uses cooperative-sticky, so that a rebalance revokes only partitions that move"
    ),
    "enable.auto.commit": _OFFSETS,
    "auto.commit.interval.ms": _OFFSETS,
    "enable.auto.offset.store": _OFFSETS,
    "offset.store.method": _OFFSETS,
    "offset.store.path": _OFFSETS,
    "offset.store.sync.interval.ms": _OFFSETS,
    "auto.offset.reset": PropertyRule(
        "dupwatch must notice offsets that are out of range; use kafka.start and kafka.on_gap"
    ),
    "isolation.level": PropertyRule("messages of aborted transactions are not articles; dupwatch reads committed ones"),
    "enable.partition.eof": PropertyRule("dupwatch sets it: it needs the end of each partition to know its lag"),
    "topic.blacklist": PropertyRule("source.url names the topics of articles; one listed here would never be read"),
    "enable.idempotence": PropertyRule("dupwatch sets it: each event is written once and in order"),
    "acks": PropertyRule("dupwatch waits for all in-sync replicas, or a broker's failure would lose verdicts"),
    "transactional.id": PropertyRule("dupwatch sets it from kafka.delivery, kafka.group and kafka.instance_id"),
    "message.timeout.ms": _WAITS,
    "retries": _WAITS,
    "enable.gapless.guarantee": PropertyRule("it is experimental, and ends the producer where dupwatch would wait"),
    "delivery.report.only.error": PropertyRule("dupwatch counts acknowledgements, so it needs every report"),
    "queuing.strategy": PropertyRule("lifo would send events out of order"),
    "plugin.library.paths": _LOADS_CODE,
    "ssl.engine.location": _LOADS_CODE,
    "ssl.engine.id": _LOADS_CODE,
    "sasl.kerberos.kinit.cmd": PropertyRule(
        "it runs a shell command; renew the ticket elsewhere, and leave sasl.kerberos.min.time.before.relogin at 0"
    ),
    "enabled_events": PropertyRule("dupwatch reads events through callbacks, which this property would silence"),
    "log.queue": _LOG,
    "log.thread.name": _LOG,
    "logger": _LOG,
    "statistics.interval.ms": PropertyRule("nothing reads the statistics; see /metrics"),
    "internal.termination.signal": PropertyRule("the signal could end or disturb this process"),
    "api.version.request": _OLD_BROKERS,
    "api.version.fallback.ms": _OLD_BROKERS,
    "broker.version.fallback": _OLD_BROKERS,
    "opaque": _OBJECT,
    "interceptors": _OBJECT,
    "default.topic.config": _OBJECT,
    "test.mock.num.brokers": _MOCK,
    "test.mock.broker.rtt": _MOCK,
    "message.max.bytes": PropertyRule(_RECORD_SIZE, RangeLimit(10 * _MIB, 1_000_000_000)),
    "receive.message.max.bytes": PropertyRule(_RECORD_SIZE, RangeLimit(10 * _MIB + 512, (1 << 31) - 1)),
    "queue.buffering.max.kbytes": PropertyRule(
        f"{_RECORD_SIZE}; beyond the upper limit, memory is not bounded", RangeLimit(16 << 10, 1 << 20)
    ),
    "queued.max.messages.kbytes": PropertyRule(_MEMORY.reason, RangeLimit(1, 256 << 10)),
    "max.partition.fetch.bytes": _MEMORY,
    "fetch.max.bytes": _MEMORY,
    "fetch.wait.max.ms": PropertyRule(
        "an article waits up to this long while fewer than fetch.min.bytes are available", RangeLimit(0, 10_000)
    ),
    "max.in.flight.requests.per.connection": PropertyRule(
        "an idempotent producer keeps the order of at most five requests", RangeLimit(1, 5)
    ),
    "max.poll.interval.ms": PropertyRule(
        "it must be longer than kafka.revoke_s, and a consumer that hangs keeps its partitions this long",
        RangeLimit(10_000, 3_600_000),
    ),
    "session.timeout.ms": PropertyRule(
        "brokers refuse other values, and a dead consumer keeps its partitions this long", RangeLimit(6_000, 1_800_000)
    ),
    "heartbeat.interval.ms": PropertyRule(
        "three must fit into session.timeout.ms, or one late heartbeat loses the partitions", RangeLimit(100, 60_000)
    ),
    "transaction.timeout.ms": PropertyRule(
        "a batch must be written within this time, and readers wait this long after a crash", RangeLimit(5_000, 900_000)
    ),
    "topic.metadata.refresh.interval.ms": PropertyRule(
        "it finds new partitions and moved leaders", RangeLimit(1_000, 3_600_000)
    ),
    "metadata.max.age.ms": PropertyRule(
        "topics disappear if metadata expires before it is refreshed", RangeLimit(10_000, 86_400_000)
    ),
    "topic.metadata.propagation.max.ms": PropertyRule(
        "a starting broker knows no topics for a while, which must not end the run", RangeLimit(30_000, 3_600_000)
    ),
    "metadata.recovery.strategy": PropertyRule(
        "with none, a consumer never finds its brokers again after all of them have moved",
        ChoiceLimit(("rebootstrap",)),
    ),
    "allow.auto.create.topics": PropertyRule(
        "an automatically created topic may delete articles and verdicts too early", ChoiceLimit(("false",))
    ),
    "partitioner": PropertyRule(
        "all events of an id must be in one partition, to keep their order and allow compaction",
        ChoiceLimit(("consistent", "consistent_random", "murmur2", "murmur2_random", "fnv1a", "fnv1a_random")),
    ),
    "enable.ssl.certificate.verification": PropertyRule(
        "without it, anybody on the network could read passwords and change articles; set ssl.ca.location instead",
        ChoiceLimit(("true",)),
    ),
    "sasl.kerberos.principal": _KERBEROS,
    "sasl.kerberos.keytab": _KERBEROS,
    "sasl.kerberos.service.name": _KERBEROS,
}
"""The table, by the names that dupwatch uses."""

_PAGE: Final = "docs/operate/client_settings.md"
_NAME: Final = re.compile(r"[a-z0-9.]+")
_UNDERSCORED: Final = frozenset({"log_level", "enabled_events"})
"""The properties whose names have an underscore although they take neither a function nor an object."""
_TOPIC_PREFIX: Final = re.compile(r"topic\.(?!metadata\.|blacklist$)")
"""To librdkafka, topic.acks is another name of acks, and so on."""


def checked_properties(properties: Mapping[str, Any], section: PropertySection) -> dict[str, Any]:
    """Return the properties of ``[kafka.SECTION]`` under the names of the table.

    Raises ``ConfigError`` for an invalid property, or one that is set under two names.
    """
    from consumer.kafka.clients import refusal  # noqa: PLC0415  # loads librdkafka, which a run over files does not need

    accepted: dict[str, Any] = {}
    for given_name, value in properties.items():
        where = f"[kafka.{section}] {_printable(given_name)}"
        _check_name(given_name, where)
        name = ALIASES.get(given_name, given_name)
        if name in RULES:
            _check_value(RULES[name], value, where)
        why = refusal(name, value)
        if why is not None:
            raise ConfigError(f"{where}: {why}")
        if name in accepted:
            raise ConfigError(f"{where}: {name} is also set under another name; remove one of the two")
        accepted[name] = value
    return accepted


def _printable(name: str) -> str:
    """Return a name up to the first unusual character; a secret may have been pasted after it."""
    return re.match(r"[\w.]*", name)[0]  # type: ignore[index]  # it matches every text


def _check_name(name: str, where: str) -> None:
    if name not in _UNDERSCORED and not _NAME.fullmatch(name):
        raise ConfigError(
            f"{where} cannot be set: names have only lower-case letters, digits and dots, except those of functions "
            f"and objects, which no configuration file can contain. Correct the name, or remove it ({_PAGE})"
        )
    if _TOPIC_PREFIX.match(name):
        raise ConfigError(f"{where}: remove topic. from the name ({_PAGE})")


def _check_value(rule: PropertyRule, value: object, where: str) -> None:
    # TOML has true, and librdkafka reads "true".
    text = str(value).lower() if isinstance(value, bool) else str(value)
    match rule.limits:
        case None:
            raise ConfigError(f"{where} cannot be set: {rule.reason}. Remove it ({_PAGE})")
        # librdkafka reads "010" as octal.
        case RangeLimit(low, high) if not re.fullmatch(r"0|-?[1-9][0-9]{0,17}", text):
            raise ConfigError(f"{where} is {value!r}; write a whole number from {low} to {high}")
        case RangeLimit(low, high) if not low <= int(text) <= high:
            raise ConfigError(f"{where} is {text}; it must be from {low} to {high}: {rule.reason}")
        case ChoiceLimit(words) if text.lower() not in words:
            raise ConfigError(f"{where} is {text!r}; it must be {' or '.join(words)}: {rule.reason}")
        case PatternLimit(pattern, description) if not re.fullmatch(pattern, text):
            raise ConfigError(f"{where} may contain only {description}: {rule.reason}")
        case RangeLimit() | ChoiceLimit() | PatternLimit():
            pass
