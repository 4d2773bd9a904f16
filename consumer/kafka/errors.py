"""What a Kafka client's errors mean to a source: wait, or end; and how messages describe them."""
# ruff: noqa: SLF001  # the client's names of its own errors begin like that

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
_CERTAIN: Final = frozenset({KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION})
_TRANSPORT: Final = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._RESOLVE,
        KafkaError._SSL,
        KafkaError._TIMED_OUT,
        KafkaError._WAIT_COORD,
    }
)
_PROBE_S: Final = 1.0
_PROBE_WAIT_S: Final = 0.5
ASK_S: Final = 5.0
"""How long the client's thread waits for an answer from the brokers."""
AGAIN_S: Final = 0.5
"""The pause before a failed request is tried again."""
_MISSING_TIMES: Final = 4


def is_fatal(error: KafkaError) -> bool:
    """Return whether the client cannot be used any more, most often because another instance fenced it."""
    return error.fatal() or error.code() in {KafkaError._FATAL, KafkaError.FENCED_INSTANCE_ID}


def is_refusal(error: KafkaError) -> bool:
    """Return whether the cluster refuses this client permanently."""
    return error.code() in _REFUSALS


def is_fenced(error: KafkaError) -> bool:
    """Return whether another process has this static member's name; a fatal error has that in its text only."""
    return KafkaError(KafkaError.FENCED_INSTANCE_ID).str() in error.str()


def describe(error: KafkaError) -> str:
    """Return the client's description and its name of the error."""
    return f"{error.str()} ({error.name()})"


def no_answer(brokers: str, error: KafkaError, refused: str) -> str:
    """Return why the brokers did not answer, and what to do; ``refused`` describes what they refused, if they did."""
    if error.code() not in _TRANSPORT | _CERTAIN:
        return f"{refused}: {describe(error)}"
    return (
        f"no broker answers at {brokers} ({error.name()}). Check the address, and that the brokers run; "
        "run dupwatch doctor for details."
    )


class BrokerHealth:
    """Whether the brokers can be reached. A suspicion is checked, because one of several brokers may fail any time."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._suspicion: str | None = None
        self._reported = False
        self._again_s = 0.0

    def heed(self, error: KafkaError) -> None:
        """Note an error that the client survives; most do not mean that the brokers are out of reach."""
        if error.code() in _CERTAIN or error.code() in _TRANSPORT:
            self.suspect(describe(error), certain=error.code() in _CERTAIN)

    def suspect(self, why: str, *, certain: bool) -> None:
        """Note a sign of trouble; report it at once where it is certain."""
        if self._suspicion is None:
            self._again_s = time.monotonic()
        self._suspicion = why
        if certain:
            self._report(why)

    def over(self) -> None:
        """Note that a broker has answered."""
        self._suspicion = None
        self._report(None)

    def probe(self, consumer: Consumer, topic: str) -> None:
        """Ask a broker for metadata from time to time while there is a suspicion."""
        if self._suspicion is None or time.monotonic() < self._again_s:
            return
        try:
            consumer.list_topics(topic, timeout=_PROBE_WAIT_S)
        except KafkaException:
            if self._suspicion is not None:
                self._report(self._suspicion)
            self._again_s = time.monotonic() + _PROBE_S
        else:
            self.over()

    def _report(self, why: str | None) -> None:
        if (why is not None) != self._reported:
            self._reported = why is not None
            self._hooks.report(Outage("source", "brokers", why))


def ask_committed(consumer: Consumer, asked: list[TopicPartition]) -> list[TopicPartition]:
    """Return what the group has committed, negative offsets for nothing; raises ``KafkaException`` if unanswered."""
    found = consumer.committed(asked, timeout=ASK_S)
    for partition in found:
        if partition.error is not None:
            raise KafkaException(partition.error)
    return found


class MissingTopics:
    """Topics that may not exist. Each is checked several times, because a new topic takes a moment to appear."""

    def __init__(self, topics: Sequence[str], brokers: str) -> None:
        self._topics = topics
        self._brokers = brokers
        self._doubted: dict[str, int] = dict.fromkeys(topics, 0)
        self._again_s = 0.0

    def doubt(self, topic: str) -> None:
        """Note that the client does not know this topic, or one of ours that it does not name."""
        for doubted in [topic] if topic in self._topics else self._topics:
            self._doubted.setdefault(doubted, 0)

    def look(self, consumer: Consumer) -> None:
        """Check the topics in doubt; raises ``SourceError`` where one does not exist."""
        if not self._doubted or time.monotonic() < self._again_s:
            return
        self._again_s = time.monotonic() + AGAIN_S
        for topic, times in list(self._doubted.items()):
            missing = topic_missing(consumer, topic)
            if missing is False:
                del self._doubted[topic]
            elif missing:
                self._doubted[topic] = times + 1
                if times + 1 == _MISSING_TIMES:
                    raise no_topic(topic, self._brokers)


def no_topic(topic: str, brokers: str) -> SourceError:
    """Return the error of a topic that does not exist."""
    return SourceError(f"there is no topic {topic} at {brokers}; create it, with dupwatch topics init for example")


def topic_missing(consumer: Consumer, topic: str) -> bool | None:
    """Return whether the topic does not exist; None where no broker answers."""
    try:
        found = consumer.list_topics(topic, timeout=ASK_S).topics.get(topic)
    except KafkaException:
        return None
    return found is None or (found.error is not None and found.error.code() in UNKNOWN_TOPICS)
