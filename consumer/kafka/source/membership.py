"""Watches the consumer's membership of its group, and gives up its partitions when the membership changes."""

import math
import time
from typing import Final

from confluent_kafka import Consumer, KafkaError

from consumer.kafka.errors import is_fenced
from consumer.kafka.membership import member_of
from consumer.kafka.source.handover import Handover

_JOINING_S: Final = 30.0
"""After losing its partitions, a static member may be fenced by a request of its own for this long."""


class Membership:
    """The membership of one client; for its thread only.

    ``replacement_reason`` is the reason to replace the client, empty while it can be relied on.
    """

    def __init__(self, handover: Handover) -> None:
        self.replacement_reason = ""
        self._handover = handover
        self._member: bytes | None = None
        self._lost_s = -math.inf

    def note(self, consumer: Consumer) -> None:
        """Hand the client's group metadata to the judging thread, which needs it for transactions.

        In that thread ``consumer_group_metadata`` might never return. A static member whose session expired during a
        rebalance joins again under another id, and its client reports no partition as lost. With the new id the brokers
        would accept offsets of partitions that now belong to others, so the current batch is given up before the new id
        becomes visible.
        """
        metadata = consumer.consumer_group_metadata()
        member = member_of(metadata)
        with self._handover.changed:
            self._handover.group_metadata = metadata
            if member is None or member == self._member:
                return
            if self._handover.partitions.owned():
                self.give_up("the group expelled it, and it joined again as another member")
            self._member = member

    def note_loss(self) -> None:
        """Note that the client has lost its partitions and joins again."""
        self._lost_s = time.monotonic()

    def is_own_fencing(self, error: KafkaError) -> bool:
        """Return whether the client's own second request has fenced it; if so, its partitions are given up.

        A static member's client may join twice after a loss, because the brokers were silent and then answer both
        requests (librdkafka's issue 3437). If it is fenced later, another process has its name.
        """
        if not is_fenced(error) or time.monotonic() >= self._lost_s + _JOINING_S:
            return False
        with self._handover.changed:
            self.give_up("it has fenced itself")
        return True

    def give_up(self, why: str) -> None:
        """Give up all partitions, which others may own by now. The caller holds the lock."""
        partitions = self._handover.partitions
        owned = list(partitions.owned())
        partitions.revoke(owned)
        partitions.leave(owned, f"its consumer has lost them: {why}")
        self.replacement_reason = why
        self._handover.changed.notify_all()

    def reset(self) -> None:
        """Reset the state for a new client."""
        self.replacement_reason, self._lost_s = "", -math.inf
