"""Whether the partitions that are read have all of their replicas, which a consumer does not notice by itself."""

import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaException

from consumer.model.hooks import Hooks

REPLICAS_S: Final = 30.0
"""How often the brokers are asked."""
_ASK_S: Final = 1.0


class ReplicasRead(NamedTuple):
    """How many partitions of a topic have a replica that is not in sync."""

    topic: str
    behind: int


class Replicas:
    """Asks for the replicas of some topics now and then, and reports them."""

    def __init__(self, topics: Sequence[str], hooks: Hooks) -> None:
        self._topics = topics
        self._hooks = hooks
        self._again_s = 0.0

    def look(self, consumer: Consumer) -> None:
        """Ask if it is time. Brokers that do not answer within a second are asked next time: outages have reports."""
        if time.monotonic() < self._again_s:
            return
        self._again_s = time.monotonic() + REPLICAS_S
        try:
            for topic in self._topics:
                self._report(topic, consumer)
        except KafkaException:
            return

    def _report(self, topic: str, consumer: Consumer) -> None:
        found = consumer.list_topics(topic, timeout=_ASK_S).topics.get(topic)
        if found is not None and found.error is None:
            partitions = found.partitions.values()
            behind = sum(len(partition.isrs) < len(partition.replicas) for partition in partitions)
            self._hooks.report(ReplicasRead(topic, behind))
