"""Classifies the errors of Kafka clients (wait, or end the run), and describes them in messages."""
# ruff: noqa: SLF001  # the client's own error names begin with an underscore

import time
from collections.abc import Sequence
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from consumer.model.errors import SourceError
from consumer.model.hooks import Hooks, Outage

UNKNOWN_TOPICS: Final = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
)
_REFUSALS: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.INCONSISTENT_GROUP_PROTOCOL,
        KafkaError.GROUP_MAX_SIZE_REACHED,
        KafkaError.UNSUPPORTED_VERSION,
    }
)
_CERTAIN_OUTAGES: Final = frozenset({KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION})
"""Errors that are reported as an outage without a check."""
_TRANSPORT: Final = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._RESOLVE,
        KafkaError._SSL,
        KafkaError._TIMED_OUT,
        KafkaError._WAIT_COORD,
    }
)
_PROBE_PAUSE_S: Final = 1.0
_PROBE_TIMEOUT_S: Final = 0.5
REQUEST_TIMEOUT_S: Final = 5.0
"""How long the client's thread waits for an answer from the brokers."""
RETRY_PAUSE_S: Final = 0.5
"""The pause before a failed request is repeated."""
_MISSES_MAX: Final = 4


def is_fatal(error: KafkaError) -> bool:
    """Return whether the client can no longer be used, usually because another instance fenced it."""
    return error.fatal() or error.code() in {KafkaError._FATAL, KafkaError.FENCED_INSTANCE_ID}


def is_refusal(error: KafkaError) -> bool:
    """Return whether the cluster refuses this client permanently."""
    return error.code() in _REFUSALS


def is_fenced(error: KafkaError) -> bool:
    """Return whether another client has taken this static member's name. A fatal error says so only in its text."""
    return KafkaError(KafkaError.FENCED_INSTANCE_ID).str() in error.str()


def describe(error: KafkaError) -> str:
    """Return the client's description of an error, and the error's name."""
    return f"{error.str()} ({error.name()})"


def failure_message(brokers: str, error: KafkaError, failure: str) -> str:
    """Return why a request failed, and what to do.

    The message begins with ``failure`` if a broker has answered, unless the brokers refuse the credentials.
    """
    if error.code() == KafkaError._AUTHENTICATION:
        return (
            f"the brokers at {brokers} refuse the credentials: {describe(error)}. Check the sasl properties in "
            "kafka.client and kafka.secret_files."
        )
    if error.code() not in _TRANSPORT | _CERTAIN_OUTAGES:
        return f"{failure}: {describe(error)}"
    return (
        f"no broker answers at {brokers} ({error.name()}). Check the address, and that the brokers are running; "
        "run dupwatch doctor for details."
    )


class BrokerHealth:
    """A monitor of the brokers.

    It reports an outage only after a conclusive sign or a failed check, because a single broker may fail at any time.
    """

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._suspicion: str | None = None
        self._reported = False
        self._next_probe_s = 0.0

    def note_error(self, error: KafkaError) -> None:
        """Note an error that the client survives. Most such errors do not mean an outage."""
        if error.code() in _CERTAIN_OUTAGES or error.code() in _TRANSPORT:
            self.suspect(describe(error), certain=error.code() in _CERTAIN_OUTAGES)

    def suspect(self, why: str, *, certain: bool) -> None:
        """Note a sign of an outage. If the sign is certain, report the outage without a check."""
        if self._suspicion is None:
            self._next_probe_s = time.monotonic()
        self._suspicion = why
        if certain:
            self._report(why)

    def note_answer(self) -> None:
        """Note that a broker has answered."""
        self._suspicion = None
        self._report(None)

    def probe(self, consumer: Consumer, topic: str) -> None:
        """While an outage is suspected, ask a broker for metadata from time to time, and report the result."""
        if self._suspicion is None or time.monotonic() < self._next_probe_s:
            return
        try:
            consumer.list_topics(topic, timeout=_PROBE_TIMEOUT_S)
        except KafkaException:
            if self._suspicion is not None:
                self._report(self._suspicion)
            self._next_probe_s = time.monotonic() + _PROBE_PAUSE_S
        else:
            self.note_answer()

    def _report(self, why: str | None) -> None:
        if (why is not None) != self._reported:
            self._reported = why is not None
            self._hooks.report(Outage("source", "brokers", why))


def committed_offsets(consumer: Consumer, partitions: list[TopicPartition]) -> list[TopicPartition]:
    """Return the committed offsets of the group, negative for partitions without one. Raises ``KafkaException``."""
    committed = consumer.committed(partitions, timeout=REQUEST_TIMEOUT_S)
    for partition in committed:
        if partition.error is not None:
            raise KafkaException(partition.error)
    return committed


class MissingTopics:
    """Topics that may not exist. Each is checked several times, because a new topic takes a moment to appear."""

    def __init__(self, topics: Sequence[str], brokers: str) -> None:
        self._topics = topics
        self._brokers = brokers
        self._suspects: dict[str, int] = dict.fromkeys(topics, 0)
        self._next_check_s = 0.0

    def suspect(self, topic: str) -> None:
        """Note that the client does not know this topic. If it is none of the run's topics, suspect all of them."""
        for suspect in [topic] if topic in self._topics else self._topics:
            self._suspects.setdefault(suspect, 0)

    def check(self, consumer: Consumer) -> None:
        """Check the suspected topics if a check is due. Raises ``SourceError`` if one was missing in four checks."""
        if not self._suspects or time.monotonic() < self._next_check_s:
            return
        self._next_check_s = time.monotonic() + RETRY_PAUSE_S
        for topic, misses in list(self._suspects.items()):
            missing = topic_missing(consumer, topic)
            if missing is False:
                del self._suspects[topic]
            elif missing:
                self._suspects[topic] = misses + 1
                if misses + 1 == _MISSES_MAX:
                    raise no_topic(topic, self._brokers)


def no_topic(topic: str, brokers: str) -> SourceError:
    """Return the error for a topic that does not exist."""
    return SourceError(f"there is no topic {topic} at {brokers}; create it, for example with dupwatch topics init")


def topic_missing(consumer: Consumer, topic: str) -> bool | None:
    """Return whether the topic does not exist, or None if no broker answers."""
    try:
        metadata = consumer.list_topics(topic, timeout=REQUEST_TIMEOUT_S).topics.get(topic)
    except KafkaException:
        return None
    return metadata is None or (metadata.error is not None and metadata.error.code() in UNKNOWN_TOPICS)
