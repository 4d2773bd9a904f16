"""Which broker leads what, and how to move it without harming a broker."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.kafka.raw_reassignment import reassign

OFFSETS: Final = "__consumer_offsets"
TRANSACTIONS: Final = "__transaction_state"
_REQUEST_TIMEOUT_S: Final = 5.0
_MOVED_S: Final = 15.0
_LOOK_S: Final = 0.1


Key = tuple[str, int]
"""Topic and partition."""


class NotMoved(Exception):  # noqa: N818  # it is what the leaders have
    """No leader has moved."""


def place_of_offsets(group: str, partitions: int) -> int:
    """The partition of a group's offsets: Java's hash of its name, without the sign, modulo their number."""
    units = group.encode("utf-16-be")
    hashed = 0
    for place in range(0, len(units), 2):
        hashed = (31 * hashed + int.from_bytes(units[place : place + 2])) & 0xFFFFFFFF
    return min(hashed, (1 << 32) - hashed) % (1 << 31) % partitions


class Leadership:
    """Asks the brokers of a cluster, and moves leaders between them."""

    def __init__(self, address: str, seed: str) -> None:
        self._address = address
        self._admin = AdminClient({"bootstrap.servers": address, "reconnect.backoff.max.ms": 500, "log_level": 0})
        self._chance = random.Random(f"leaders {seed}")

    def coordinator(self, group: str) -> int:
        """The node that coordinates a group: it leads the partition with the group's offsets.

        Raises ``KafkaException``, and ``NotMoved`` while no broker does. Asking for the coordinator instead, while
        coordinators move, aborts the process (librdkafka 2.x: "Assertion `eonce->refcnt > 0' failed").
        """
        partitions = self._partitions(lambda name: name == OFFSETS)
        leader = -1 if not partitions else int(partitions[OFFSETS, place_of_offsets(group, len(partitions))].leader)
        if leader < 0:
            raise NotMoved
        return leader

    def move(self, moved: Callable[[str], bool]) -> int:
        """Let other brokers lead the partitions of these topics; how many do.

        Raises ``NotMoved``, ``OSError``, ``KafkaException``.
        """
        before = self._partitions(moved)
        wanted: dict[Key, list[int]] = {}
        for key, found in before.items():
            others = [broker for broker in found.isrs if broker != found.leader]
            if others:
                first = self._chance.choice(others)
                wanted[key] = [first, *(broker for broker in found.replicas if broker != first)]
        self._reassign(wanted)
        partitions = [TopicPartition(*key) for key in wanted]
        # Its result says why some stay; which have moved is seen below. Version 2.16 of the client takes no time-out.
        self._admin.elect_leaders(ElectionType.PREFERRED, partitions).result(_MOVED_S)
        until_s = time.monotonic() + _MOVED_S
        while True:
            now = self._partitions(moved)
            count = sum(int(now[key].leader == brokers[0]) for key, brokers in wanted.items() if key in now)
            if count and count == len(wanted):
                return count
            if time.monotonic() > until_s:
                if not count:
                    raise NotMoved
                return count
            time.sleep(_LOOK_S)

    def _reassign(self, wanted: Mapping[Key, Sequence[int]]) -> None:
        """Ask one broker, or another where it does not answer."""
        failures = []
        for address in self._address.split(","):
            try:
                return reassign(address, wanted)
            except OSError as error:
                failures.append(error)
        raise failures[-1]

    def _partitions(self, chosen: Callable[[str], bool]) -> dict[Key, Any]:
        topics = self._admin.list_topics(timeout=_REQUEST_TIMEOUT_S).topics
        return {
            (name, number): partition
            for name, topic in topics.items()
            if chosen(name)
            for number, partition in topic.partitions.items()
        }
