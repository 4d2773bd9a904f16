"""Read-only requests to the brokers, each with a time limit, and their answers as plain values."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # missing from the stubs
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

from consumer.kafka.client_log import silent_log
from consumer.kafka.clients import new_admin
from consumer.kafka.mock_cluster import ID_PREFIX
from consumer.kafka.offset_metadata import HoldReason, note_of
from consumer.kafka.offset_range import retry_during_election
from consumer.kafka.topics import ExistingTopic, existing_topics
from consumer.model.errors import Fatal, SourceError
from storage.clock import MS_PER_S

REQUEST_TIMEOUT_S: Final = 5.0
"""Time limit of one request."""
_ATTEMPT_S: Final = 1.0
"""Time limit of one attempt to read the metadata."""
OFFSETS_TOPIC: Final = "__consumer_offsets"
_EARLIEST: Final[Any] = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # missing from the stubs
_LATEST: Final[Any] = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # as above
_NEWEST: Final[Any] = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]  # as above
_SPECIFIC_ERRORS: Final = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE})  # noqa: SLF001
_UNSPECIFIC_ERRORS: Final = frozenset({KafkaError._ALL_BROKERS_DOWN})  # noqa: SLF001


class Cluster(NamedTuple):
    """A cluster, and the settings of one of its brokers, which are empty if they could not be read."""

    id: str
    brokers: int
    settings: Mapping[str, str]

    @property
    def is_mock(self) -> bool:
        """Whether it is a mock in the memory of a process, such as that of ``dupwatch demo``."""
        return self.id.startswith(ID_PREFIX)


class GroupMember(NamedTuple):
    """A group's member: where it runs and how many partitions it has. Only static members have an ``instance_id``."""

    client: str
    host: str
    instance_id: str | None
    partitions: int


class GroupState(NamedTuple):
    """A consumer group. ``state`` is Kafka's name of its state in lower case; "dead" if the group does not exist."""

    state: str
    members: tuple[GroupMember, ...]


class GroupProgress(NamedTuple):
    """The progress of a group in one partition: the first offset that exists, the next offset, and the committed one.

    ``young`` is the offset of the first message younger than the requested age; it is ``end`` if all messages are
    older, and None if no age was requested. ``held`` says why the group holds the partition; None if it does not.
    """

    topic: str
    partition: int
    first: int
    end: int
    committed: int | None
    young: int | None
    held: HoldReason | None = None


class NewestMessage(NamedTuple):
    """The time of the newest message of a topic, and this machine's time when the answer came, in milliseconds."""

    topic: str
    time_ms: int
    now_ms: int


class Brokers:
    """Read-only requests to one cluster. Every method except ``cluster`` raises ``KafkaException`` if a request fails.

    Call ``cluster`` first: it reads the metadata that the other methods use. ``silent_error`` is the error of a run for
    which these brokers do not answer.
    """

    def __init__(self, address: str, settings: Mapping[str, Any], silent_error: type[Fatal] = SourceError) -> None:
        self._address = address
        self._silent_error = silent_error
        self._errors: list[KafkaError] = []
        # By default librdkafka retries ten times a second and reports each failure.
        quiet: dict[str, Any] = {"reconnect.backoff.ms": 500, "error_cb": self._errors.append}
        self._admin = new_admin({**settings, **quiet}, silent_log)
        self._metadata: Any = None

    def cluster(self) -> Cluster:
        """Return the cluster. Raises ``silent_error`` with the reason if no broker answers."""
        self._metadata = self._read_metadata()
        broker = next(iter(self._metadata.brokers))
        resource = ConfigResource(ResourceType.BROKER, str(broker))
        (answer,) = self._admin.describe_configs([resource], request_timeout=REQUEST_TIMEOUT_S).values()
        try:
            settings = {name: entry.value for name, entry in answer.result().items() if entry.value is not None}
        except KafkaException:
            # A user who may read and write topics may still not see the settings of brokers.
            settings = {}
        return Cluster(self._metadata.cluster_id or "", len(self._metadata.brokers), settings)

    def _read_metadata(self) -> Any:  # noqa: ANN401  # the client has no public type for it
        """Return the metadata. Raises ``silent_error`` at the time limit, or earlier if all brokers are down."""
        until_s = time.monotonic() + REQUEST_TIMEOUT_S
        while True:
            try:
                return self._admin.list_topics(timeout=_ATTEMPT_S)
            except KafkaException as error:
                self._admin.poll(0)
                all_down = any(reported.code() in _UNSPECIFIC_ERRORS for reported in self._errors)
                if all_down or time.monotonic() > until_s:
                    reason = self._reason(error.args[0])
                    raise self._silent_error(f"The brokers at {self._address} do not answer: {reason}.") from error

    def topics(self, names: Sequence[str]) -> dict[str, ExistingTopic]:
        """Return the topics with these names that exist."""
        return existing_topics(
            self._admin, self._metadata, [name for name in names if self._has(name)], REQUEST_TIMEOUT_S
        )

    def group(self, name: str) -> GroupState | None:
        """Return a group and its members; None if the topic of offsets does not exist, or is hidden from this user.

        Without this topic, no request is sent, because the request would make the brokers create it.
        """
        if not self._has(OFFSETS_TOPIC):
            return None
        described = _single_result(self._admin.describe_consumer_groups([name], request_timeout=REQUEST_TIMEOUT_S))
        members = tuple(
            GroupMember(
                member.client_id,
                member.host.removeprefix("/"),
                member.group_instance_id,
                len(member.assignment.topic_partitions) if member.assignment else 0,
            )
            for member in described.members
        )
        return GroupState(described.state.name.lower(), members)

    def progress(self, group: str, topics: Sequence[str], young_ms: Callable[[str], int | None]) -> list[GroupProgress]:
        """Return the progress of a group in each partition of these topics. Topics that do not exist are left out.

        ``young_ms`` returns the age in milliseconds up to which messages of a topic are young; None leaves ``young``
        out.
        """
        places = [
            TopicPartition(topic, partition)
            for topic in topics
            if self._has(topic)
            for partition in self._metadata.topics[topic].partitions
        ]
        of_group = [ConsumerGroupTopicPartitions(group, places)]
        offsets = _single_result(self._admin.list_consumer_group_offsets(of_group, request_timeout=REQUEST_TIMEOUT_S))
        known = [place for place in offsets.topic_partitions if place.offset >= 0]
        committed = {(place.topic, place.partition): place.offset for place in known}
        held = {(place.topic, place.partition): note_of(place.metadata).held for place in known}
        first = self._offsets(dict.fromkeys(places, _EARLIEST))
        end = self._offsets(dict.fromkeys(places, _LATEST))
        now_ms = int(time.time() * MS_PER_S)
        since = {
            place: OffsetSpec.for_timestamp(now_ms - age_ms)
            for place in places
            if (age_ms := young_ms(place.topic)) is not None
        }
        young = self._offsets(since)
        return [
            GroupProgress(
                place.topic,
                place.partition,
                first[place].offset,
                end[place].offset,
                committed.get((place.topic, place.partition)),
                # If all messages are older, the next one will be the first young one.
                (young[place].offset if young[place].offset >= 0 else end[place].offset) if place in young else None,
                held.get((place.topic, place.partition)),
            )
            for place in places
        ]

    def newest_messages(self, topics: Sequence[str]) -> list[NewestMessage]:
        """Return the newest message of each of these topics and the topic of offsets. Skip missing and empty topics."""
        messages = []
        for topic in filter(self._has, (*topics, OFFSETS_TOPIC)):
            places = [TopicPartition(topic, partition) for partition in self._metadata.topics[topic].partitions]
            offsets = self._offsets(dict.fromkeys(places, _NEWEST))
            time_ms = max((offset.timestamp for offset in offsets.values()), default=-1)
            if time_ms >= 0:
                messages.append(NewestMessage(topic, time_ms, int(time.time() * MS_PER_S)))
        return messages

    def _has(self, topic: str) -> bool:
        return topic in self._metadata.topics

    def _offsets(self, specs: Mapping[TopicPartition, OffsetSpec]) -> dict[TopicPartition, Any]:
        if not specs:
            return {}

        def ask(left_s: float) -> dict[TopicPartition, Any]:
            answers = self._admin.list_offsets(dict(specs), request_timeout=left_s)
            return {place: answer.result() for place, answer in answers.items()}

        return retry_during_election(ask, REQUEST_TIMEOUT_S)

    def _reason(self, error: KafkaError) -> str:
        """Return the text of the most specific error that the client reported, or else of ``error``.

        ``error`` is what the call raised, which is usually only a time-out.
        """
        specific = [reported for reported in self._errors if reported.code() in _SPECIFIC_ERRORS]
        other = [reported for reported in self._errors if reported.code() not in _UNSPECIFIC_ERRORS]
        text = (specific or other or [error])[0].str()
        return text.rstrip(".")


def _single_result(answers: Mapping[Any, Any]) -> Any:  # noqa: ANN401  # the type depends on the request
    (answer,) = answers.values()
    return answer.result()
