"""The topics of a sink: their names, and how existing topics differ from their plan in ``planned_topics``.

``differences`` is a pure function. ``init`` asks the brokers and creates missing topics; it never changes an existing
one.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs omit these names
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from consumer.kafka.clients import broker_request, new_admin
from consumer.model.errors import SinkError
from consumer.text.counts import counted
from storage.clock import MS_PER_DAY

PARTITIONS: Final = 6
REPLICATION_MAX: Final = 3
"""By default a topic has one copy for each broker, but at most this many."""
REQUEST_TIMEOUT_S: Final = 30.0
RETENTION_MIN_MS: Final = MS_PER_DAY
"""A shorter retention is reported, because a reader that is down for a day would lose messages."""
SOURCE_RETENTION_MS: Final = 8 * MS_PER_DAY
"""The retention of source topics, unless the caller knows the window: the default window and one more day."""
TIMESTAMP_TYPE: Final = "message.timestamp.type"
BROKER_TIME: Final = "LogAppendTime"
PRODUCER_TIME: Final = "CreateTime"
MESSAGE_BYTES_MAX: Final = 10 << 20
"""Room for a record of 8 MiB and its headers."""
_REPLICAS_SAFE: Final = 2
_MS_PER_H: Final = 3_600_000


class SinkTopics(NamedTuple):
    """The topics of one prefix; ``unique`` and the fields after it say which optional topics are written."""

    prefix: str
    unique: bool = False
    verdicts: bool = False
    near_misses: bool = False
    bank_matches: bool = False

    @property
    def duplicates_topic(self) -> str:
        """The topic of flags."""
        return f"{self.prefix}.duplicates"

    @property
    def unique_topic(self) -> str:
        """The topic of the clean feed."""
        return f"{self.prefix}.unique"

    @property
    def verdicts_topic(self) -> str:
        """The topic of all verdicts."""
        return f"{self.prefix}.verdicts"

    @property
    def dead_letters_topic(self) -> str:
        """The topic of records that could not be judged."""
        return f"{self.prefix}.dead-letters"

    @property
    def floods_topic(self) -> str:
        """The topic of floods that have begun. Only the console writes to it."""
        return f"{self.prefix}.floods"

    @property
    def stories_topic(self) -> str:
        """The topic of changes to stories. Only the console writes to it."""
        return f"{self.prefix}.stories"

    @property
    def near_misses_topic(self) -> str:
        """The topic of near misses: a sample of the pairs just under the threshold."""
        return f"{self.prefix}.near-misses"

    @property
    def bank_matches_topic(self) -> str:
        """The topic of articles that repeat texts of a bank with ``action = "deny"``."""
        return f"{self.prefix}.bank-matches"

    @property
    def banks_topic(self) -> str:
        """The topic of the banks of known texts. No consumer writes to it."""
        return f"{self.prefix}.banks"

    @property
    def written_topics(self) -> list[str]:
        """The topics that a consumer writes to."""
        names = [self.duplicates_topic, self.dead_letters_topic]
        names += [self.unique_topic] if self.unique else []
        names += [self.verdicts_topic] if self.verdicts else []
        names += [self.near_misses_topic] if self.near_misses else []
        return names + ([self.bank_matches_topic] if self.bank_matches else [])


class PlannedTopic(NamedTuple):
    """The plan of a topic; ``compaction`` explains why it may or must not be compacted."""

    name: str
    settings: Mapping[str, str]
    may_compact: bool
    compaction: str


class Shape(NamedTuple):
    """The requested number of partitions of a topic, and of copies of each. None stands for the default."""

    partitions: int | None
    replication: int | None


class ExistingTopic(NamedTuple):
    """An existing topic.

    ``leaderless`` lists partitions without a leader, ``out_of_sync`` partitions with a replica that is not in sync, and
    ``missing_brokers`` the brokers of such replicas. ``in_sync_min`` is the smallest number of in-sync replicas of a
    partition, None without partitions.
    """

    partitions: int
    replication: int
    settings: Mapping[str, str]
    leaderless: tuple[int, ...] = ()
    out_of_sync: tuple[int, ...] = ()
    in_sync_min: int | None = None
    missing_brokers: tuple[int, ...] = ()


class TopicProblem(NamedTuple):
    """A problem with an existing topic, and its remedy."""

    description: str
    remedy: str


class TopicReport(NamedTuple):
    """The result of ``init`` for one topic: it was created, or it exists and has these differences."""

    topic: PlannedTopic
    created: bool
    differences: Sequence[str]


def differences(topic: PlannedTopic, found: ExistingTopic, shape: Shape) -> Iterator[str]:
    """Yield the differences of an existing topic from its plan, such as "has 3 partitions, not 6"."""
    if shape.partitions is not None and found.partitions != shape.partitions:
        yield f"has {counted(found.partitions, 'partition')}, not {shape.partitions}"
    if shape.replication is not None and found.replication < shape.replication:
        yield f"has {counted(found.replication, 'copy', 'copies')}, not {shape.replication}"
    yield from (f"{problem.description}; {problem.remedy}" for problem in topic_problems(topic, found))


def topic_problems(topic: PlannedTopic, found: ExistingTopic) -> Iterator[TopicProblem]:
    """Yield the problems with an existing topic, except differences in shape."""
    if found.replication > _REPLICAS_SAFE and int(found.settings.get("min.insync.replicas", "1")) < _REPLICAS_SAFE:
        yield TopicProblem(
            "min.insync.replicas is 1: a message is acknowledged when one broker has it, and lost with that broker",
            "set it to 2",
        )
    policies = set(found.settings.get("cleanup.policy", "delete").split(","))
    if "compact" in policies and not topic.may_compact:
        yield TopicProblem(f"is compacted, but must not be ({topic.compaction})", "set cleanup.policy=delete")
    if "delete" in policies:
        yield from _retention_problems(topic, found)
    largest = int(found.settings.get("max.message.bytes", MESSAGE_BYTES_MAX))
    needed = int(topic.settings.get("max.message.bytes", "0"))
    if largest < needed:
        yield TopicProblem(f"max.message.bytes is {largest}: a larger record would stop the run", f"set it to {needed}")


def _retention_problems(topic: PlannedTopic, found: ExistingTopic) -> Iterator[TopicProblem]:
    keep_ms = int(found.settings.get("retention.ms", "-1"))
    if keep_ms < 0:
        return
    if topic.settings["retention.ms"] == "-1":
        yield TopicProblem(
            f"retention.ms is {keep_ms}: letters keep their records' times, so those of older records would be deleted "
            "on arrival",
            "set it to -1, and limit the topic with retention.bytes",
        )
    elif keep_ms < RETENTION_MIN_MS:
        yield TopicProblem(
            f"retention.ms is {keep_ms} ({keep_ms / _MS_PER_H:.1f} h): messages not read within that time are lost",
            f"set it to at least {RETENTION_MIN_MS} (one day)",
        )
    elif topic.may_compact and dated_by_producers(found):
        # This is the clean feed, in which articles keep their own times.
        yield TopicProblem(
            f"retention.ms is {keep_ms} and {TIMESTAMP_TYPE} is {PRODUCER_TIME}: articles keep their own times, so "
            "older ones would be deleted on arrival",
            f"set {TIMESTAMP_TYPE}={BROKER_TIME}",
        )


def dated_by_producers(found: ExistingTopic) -> bool:
    """Return whether messages have the times that their producers set, rather than the times of the brokers."""
    return found.settings.get(TIMESTAMP_TYPE, PRODUCER_TIME) == PRODUCER_TIME


def new_topic(topic: PlannedTopic, shape: Shape, brokers: int) -> NewTopic:
    """Return the request for a topic in a cluster of ``brokers`` brokers."""
    copies = shape.replication or min(REPLICATION_MAX, brokers)
    safe = {"min.insync.replicas": str(_REPLICAS_SAFE)} if copies > _REPLICAS_SAFE else {}
    return NewTopic(
        topic.name,
        num_partitions=shape.partitions or PARTITIONS,
        replication_factor=copies,
        config={**topic.settings, **safe},
    )


def init(settings: Mapping[str, Any], topics: Sequence[PlannedTopic], shape: Shape) -> list[TopicReport]:
    """Create the missing topics, and check the others; ``settings`` come from ``admin_settings``.

    Raises ``SinkError`` if the brokers do not answer, or refuse a request.
    """
    admin = new_admin(settings)
    with _list_request(settings):
        metadata = admin.list_topics(timeout=REQUEST_TIMEOUT_S)
        found = existing_topics(admin, metadata, [topic.name for topic in topics if topic.name in metadata.topics])
    absent = [topic for topic in topics if topic.name not in found]
    _create(admin, [new_topic(topic, shape, len(metadata.brokers)) for topic in absent])
    return [
        TopicReport(topic, topic.name not in found, list(differences(topic, found[topic.name], shape)))
        if topic.name in found
        else TopicReport(topic, created=True, differences=[])
        for topic in topics
    ]


def missing_topics(settings: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return the topics among these that do not exist. Raises ``SinkError`` if the brokers do not answer."""
    existing = topic_sizes(settings)
    return [name for name in names if name not in existing]


def topic_sizes(settings: Mapping[str, Any], timeout_s: float = REQUEST_TIMEOUT_S) -> dict[str, int]:
    """Return the number of partitions of each topic; ``settings`` come from ``admin_settings``.

    All topics are listed, because a request for one may create it. Raises ``SinkError`` if the brokers do not answer.
    """
    admin = new_admin(settings)
    with _list_request(settings):
        listed = admin.list_topics(timeout=timeout_s).topics
    return {name: len(topic.partitions) for name, topic in listed.items()}


def _list_request(settings: Mapping[str, Any]) -> AbstractContextManager[None]:
    brokers = str(settings["bootstrap.servers"])
    return broker_request(brokers, f"the topics at {brokers} cannot be listed", SinkError)


def existing_topics(
    admin: AdminClient,
    metadata: Any,  # noqa: ANN401  # the client has no public type for it
    names: Sequence[str],
    timeout_s: float = REQUEST_TIMEOUT_S,
) -> dict[str, ExistingTopic]:
    """Return these topics by name, with their current settings. Raises ``KafkaException``.

    ``metadata`` must include them. A topic that was deleted after ``metadata`` was read is left out.
    """
    found: dict[str, ExistingTopic] = {}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    answers = admin.describe_configs(resources, request_timeout=timeout_s) if resources else {}
    for resource, answer in answers.items():
        try:
            entries = answer.result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                continue
            raise
        settings = {name: entry.value for name, entry in entries.items() if entry.value is not None}
        found[resource.name] = _existing_topic(metadata.topics[resource.name].partitions, settings)
    return found


def _existing_topic(partitions: Mapping[int, Any], settings: Mapping[str, str]) -> ExistingTopic:
    """Return an existing topic. Each partition has ``leader`` (-1 for none), ``replicas`` and ``isrs``: broker ids."""
    absent = {number: set(partition.replicas) - set(partition.isrs) for number, partition in partitions.items()}
    return ExistingTopic(
        partitions=len(partitions),
        replication=min((len(partition.replicas) for partition in partitions.values()), default=0),
        settings=settings,
        leaderless=tuple(sorted(number for number, partition in partitions.items() if partition.leader < 0)),
        out_of_sync=tuple(sorted(number for number, brokers in absent.items() if brokers)),
        in_sync_min=min((len(partition.isrs) for partition in partitions.values()), default=None),
        missing_brokers=tuple(sorted(set().union(*absent.values()))),
    )


def _create(admin: AdminClient, topics: Sequence[NewTopic]) -> None:
    if not topics:
        return
    for name, answer in admin.create_topics(list(topics), request_timeout=REQUEST_TIMEOUT_S).items():
        try:
            answer.result()
        except KafkaException as error:
            raise SinkError(f"the topic {name} cannot be created: {error.args[0].str()}") from error
