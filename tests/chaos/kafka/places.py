"""How far the group is, and where its topic ends, as seen from outside."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.kafka.topics import Topics

_ANSWER_S: Final = 2.0
_PATIENCE: Final = 10
"""Looks without an answer, one after the other, until the client is made anew."""


class Place(NamedTuple):
    """One partition: the group continues at ``committed``, and the topic ends before ``end``."""

    committed: int
    end: int


Places = Mapping[int, Place]


def done(places: Places) -> int:
    """How many offsets are answered; a few of them are those of transactions, and no messages."""
    return sum(place.committed for place in places.values())


def lag(places: Places) -> int:
    """How many offsets are not answered."""
    return sum(place.end - place.committed for place in places.values())


def moved(before: Places, now: Places) -> bool:
    """Whether every partition has gone on, or is at its end."""
    return all(now[number].committed > before[number].committed or now[number].end == now[number].committed
               for number in before)  # fmt: skip


class Onlooker:
    """Asks the broker, for as long as it is needed; not for several threads."""

    def __init__(self, topics: Topics) -> None:
        self._partitions = [TopicPartition(topics.source, number) for number in range(topics.partitions)]
        self._settings = {
            "bootstrap.servers": topics.address,
            "group.id": topics.prefix,
            "enable.auto.commit": False,
            # Else it would wait for transactions that are open.
            "isolation.level": "read_uncommitted",
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
        self._consumer = Consumer(self._settings)
        self.unanswered: list[str] = []
        """What each look in a row came to that had no answer."""

    def look(self) -> Places | None:
        """How it is now; None where the broker does not answer."""
        try:
            found = self._ask()
        except KafkaException as error:
            self.unanswered.append(str(error))
            if len(self.unanswered) % _PATIENCE == 0:
                # It is the consumers that are to be looked at, and not how this client takes an outage.
                self._consumer.close()
                self._consumer = Consumer(self._settings)
            return None
        self.unanswered.clear()
        return found

    def _ask(self) -> Places:
        found = self._consumer.committed(self._partitions, timeout=_ANSWER_S)
        return {
            position.partition: Place(
                max(0, position.offset),
                self._consumer.get_watermark_offsets(position, timeout=_ANSWER_S)[1],
            )
            for position in found
        }

    def close(self) -> None:
        """Let go of the client."""
        self._consumer.close()
