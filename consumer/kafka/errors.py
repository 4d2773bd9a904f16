"""What a Kafka client's errors mean to a source: wait, or end; and the words for it."""
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
"""How long the client's thread waits for an answer of the brokers."""
AGAIN_S: Final = 0.5
"""What came to nothing is tried again so much later."""
_MISSING_TIMES: Final = 4


def is_fatal(error: KafkaError) -> bool:
    """Whether the client is of no use any more: fenced by another instance, most often."""
    return error.fatal() or error.code() in {KafkaError._FATAL, KafkaError.FENCED_INSTANCE_ID}


def is_refusal(error: KafkaError) -> bool:
    """Whether the cluster will not have us, however often it is asked."""
    return error.code() in _REFUSALS


def is_fenced(error: KafkaError) -> bool:
    """Whether the brokers say that another has this static member's name; of what is fatal only the words are left."""
    return KafkaError(KafkaError.FENCED_INSTANCE_ID).str() in error.str()


def describe(error: KafkaError) -> str:
    """The client's words and its name for the error."""
    return f"{error.str()} ({error.name()})"


def no_answer(brokers: str, error: KafkaError, refused: str) -> str:
    """Why an answer of the brokers did not come, and what to do; ``refused`` says what they refused where they did."""
    if error.code() not in _TRANSPORT | _CERTAIN:
        return f"{refused}: {describe(error)}"
    return (
        f"no broker answers at {brokers} ({error.name()}). Check the address, and that the brokers run; "
        "dupwatch doctor says more."
    )


class Trouble:
    """Whether the brokers can be reached. A suspicion is looked into; one of several brokers may go at any time."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._suspicion: str | None = None
        self._reported = False
        self._again_s = 0.0

    def heed(self, error: KafkaError) -> None:
        """An error that was not the end of the client; most are none of a broker that is out of reach."""
        if error.code() in _CERTAIN or error.code() in _TRANSPORT:
            self.suspect(describe(error), certain=error.code() in _CERTAIN)

    def suspect(self, why: str, *, certain: bool) -> None:
        """Something points to trouble; say so at once where it is certain."""
        if self._suspicion is None:
            self._again_s = time.monotonic()
        self._suspicion = why
        if certain:
            self._report(why)

    def over(self) -> None:
        """A broker has answered."""
        self._suspicion = None
        self._report(None)

    def probe(self, consumer: Consumer, topic: str) -> None:
        """Ask a broker for anything, now and then, as long as there is a suspicion."""
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
    """What the group has committed, negative offsets where nothing; raises ``KafkaException`` without an answer."""
    found = consumer.committed(asked, timeout=ASK_S)
    for one in found:
        if one.error is not None:
            raise KafkaException(one.error)
    return found


class MissingTopics:
    """Topics that the client may not find. A doubt is looked into several times: one just made takes a moment."""

    def __init__(self, topics: Sequence[str], brokers: str) -> None:
        self._topics = topics
        self._brokers = brokers
        self._doubted: dict[str, int] = dict.fromkeys(topics, 0)
        self._again_s = 0.0

    def doubt(self, topic: str) -> None:
        """The client does not know this topic, or one of ours that it does not name."""
        for one in [topic] if topic in self._topics else self._topics:
            self._doubted.setdefault(one, 0)

    def look(self, consumer: Consumer) -> None:
        """Look for those in doubt; raises ``SourceError`` where one is not there."""
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
    """What is said of a topic that the cluster does not know."""
    return SourceError(f"there is no topic {topic} at {brokers}: make it, or dupwatch topics init")


def topic_missing(consumer: Consumer, topic: str) -> bool | None:
    """Whether the cluster does not know the topic; None where nobody answers."""
    try:
        found = consumer.list_topics(topic, timeout=ASK_S).topics.get(topic)
    except KafkaException:
        return None
    return found is None or (found.error is not None and found.error.code() in UNKNOWN_TOPICS)
