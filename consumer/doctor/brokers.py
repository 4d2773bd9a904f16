"""What is asked of the brokers: questions only, each with a bound, and the answers as plain facts."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs leave out what its module names
    AdminClient,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

from consumer.kafka.client_log import silent_log
from consumer.kafka.offset_metadata import Held, note_of
from consumer.kafka.topics import FoundTopic, found_topics
from consumer.kafka.watermarks import once_led
from consumer.model.errors import ConfigError, SourceError
from storage.clock import MS_PER_S

ASK_S: Final = 5.0
"""How long one answer is waited for."""
_SLICE_S: Final = 1.0
OFFSETS: Final = "__consumer_offsets"
_EARLIEST: Final[Any] = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # the client's stubs leave it out
_LATEST: Final[Any] = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # as above
_NEWEST: Final[Any] = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]  # as above
_SAYS_WHY: Final = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE})  # noqa: SLF001
_GIVEN_UP: Final = frozenset({KafkaError._ALL_BROKERS_DOWN})  # noqa: SLF001


class Cluster(NamedTuple):
    """A cluster, and how the broker that was asked is set."""

    id: str
    brokers: int
    settings: Mapping[str, str]


class Member(NamedTuple):
    """A consumer of a group: where it runs and how many partitions it has; ``instance_id`` where that is static."""

    client: str
    host: str
    instance_id: str | None
    partitions: int


class Group(NamedTuple):
    """A consumer group; ``state`` is Kafka's word for it, "dead" where there is none."""

    state: str
    members: tuple[Member, ...]


class Progress(NamedTuple):
    """How far the group is in one partition: the first message that is there, the end, and what it has committed.

    ``young`` is where messages begin that are younger than was asked, None where nothing was. ``held`` says why the
    group does not read it on, None where it does.
    """

    topic: str
    partition: int
    first: int
    end: int
    committed: int | None
    young: int | None
    held: Held | None = None


class Newest(NamedTuple):
    """The time of the newest message of a topic, and of this machine when the answer came; in milliseconds."""

    topic: str
    time_ms: int
    now_ms: int


class Brokers:
    """One cluster, asked by a client that writes nothing. Raises ``KafkaException`` where it refuses an answer."""

    def __init__(self, address: str, settings: Mapping[str, Any]) -> None:
        self._address = address
        self._errors: list[KafkaError] = []
        # Librdkafka tries again at once, ten times a second, and reports each time.
        calm: dict[str, Any] = {"reconnect.backoff.ms": 500, "error_cb": self._errors.append}
        try:
            self._admin = AdminClient({**settings, **calm}, logger=silent_log)
        except KafkaException as error:
            raise ConfigError(f"librdkafka does not take its settings: {error.args[0].str()}") from error
        self._metadata: Any = None

    def cluster(self) -> Cluster:
        """The cluster; ``SourceError`` says why nobody answers."""
        self._metadata = self._answered()
        broker = next(iter(self._metadata.brokers))
        resource = ConfigResource(ResourceType.BROKER, str(broker))
        (answer,) = self._admin.describe_configs([resource], request_timeout=ASK_S).values()
        try:
            settings = {name: one.value for name, one in answer.result().items() if one.value is not None}
        except KafkaException:
            # A user who may read and write topics need not be allowed to see this.
            settings = {}
        return Cluster(self._metadata.cluster_id or "", len(self._metadata.brokers), settings)

    def _answered(self) -> Any:  # noqa: ANN401  # the client has no public type for it
        """What there is. The client tries for as long as it may; where nobody listens that is soon known."""
        until_s = time.monotonic() + ASK_S
        while True:
            try:
                return self._admin.list_topics(timeout=_SLICE_S)
            except KafkaException as error:
                self._admin.poll(0)
                given_up = any(one.code() in _GIVEN_UP for one in self._errors)
                if given_up or time.monotonic() > until_s:
                    why = self._why(error.args[0])
                    raise SourceError(f"The brokers at {self._address} do not answer: {why}.") from error

    def topics(self, names: Sequence[str]) -> dict[str, FoundTopic]:
        """Those of these topics that are there."""
        return found_topics(self._admin, self._metadata, [name for name in names if self._has(name)], ASK_S)

    def group(self, name: str) -> Group | None:
        """A group and its members; None where no group has ever committed, as far as this user may see.

        Then nothing is asked: asking for a group makes the brokers create their own topic for offsets.
        """
        if not self._has(OFFSETS):
            return None
        described = _only(self._admin.describe_consumer_groups([name], request_timeout=ASK_S))
        members = tuple(
            Member(
                one.client_id,
                one.host.removeprefix("/"),
                one.group_instance_id,
                len(one.assignment.topic_partitions) if one.assignment else 0,
            )
            for one in described.members
        )
        return Group(described.state.name.lower(), members)

    def progress(self, group: str, topics: Sequence[str], older_ms: Callable[[str], int | None]) -> list[Progress]:
        """How far a group is in these topics; ``older_ms`` says from which age on a message of one is not ``young``."""
        places = [
            TopicPartition(topic, partition)
            for topic in topics
            if self._has(topic)
            for partition in self._metadata.topics[topic].partitions
        ]
        of_group = [ConsumerGroupTopicPartitions(group, places)]
        asked = _only(self._admin.list_consumer_group_offsets(of_group, request_timeout=ASK_S))
        known = [one for one in asked.topic_partitions if one.offset >= 0]
        committed = {(one.topic, one.partition): one.offset for one in known}
        held = {(one.topic, one.partition): note_of(one.metadata).held for one in known}
        first = self._offsets(dict.fromkeys(places, _EARLIEST))
        end = self._offsets(dict.fromkeys(places, _LATEST))
        now_ms = int(time.time() * MS_PER_S)
        since = {
            place: OffsetSpec.for_timestamp(now_ms - older)
            for place in places
            if (older := older_ms(place.topic)) is not None
        }
        young = self._offsets(since)
        return [
            Progress(
                place.topic,
                place.partition,
                first[place].offset,
                end[place].offset,
                committed.get((place.topic, place.partition)),
                # Where no message is that young, those that are would begin at the end.
                _begin(young[place].offset, end[place].offset) if place in young else None,
                held.get((place.topic, place.partition)),
            )
            for place in places
        ]

    def newest(self, topics: Sequence[str]) -> list[Newest]:
        """The time of the newest message of each of these topics that has one, and of the group's own commits."""
        found = []
        for topic in [one for one in (*topics, OFFSETS) if self._has(one)]:
            places = [TopicPartition(topic, partition) for partition in self._metadata.topics[topic].partitions]
            offsets = self._offsets(dict.fromkeys(places, _NEWEST))
            time_ms = max((one.timestamp for one in offsets.values()), default=-1)
            if time_ms >= 0:
                found.append(Newest(topic, time_ms, int(time.time() * MS_PER_S)))
        return found

    def _has(self, topic: str) -> bool:
        return topic in self._metadata.topics

    def _offsets(self, asked: Mapping[TopicPartition, OffsetSpec]) -> dict[TopicPartition, Any]:
        if not asked:
            return {}

        def ask(left_s: float) -> dict[TopicPartition, Any]:
            answers = self._admin.list_offsets(dict(asked), request_timeout=left_s)
            return {place: answer.result() for place, answer in answers.items()}

        return once_led(ask, ASK_S)

    def _why(self, error: KafkaError) -> str:
        """The error that says most: what the call ends with is only that it did not come to an answer."""
        telling = [one for one in self._errors if one.code() in _SAYS_WHY]
        other = [one for one in self._errors if one.code() not in _GIVEN_UP]
        text = (telling or other or [error])[0].str()
        return text.rstrip(".")


def _begin(found: int, end: int) -> int:
    return end if found < 0 else found


def _only(answers: Mapping[Any, Any]) -> Any:  # noqa: ANN401  # whatever was asked for
    (answer,) = answers.values()
    return answer.result()
