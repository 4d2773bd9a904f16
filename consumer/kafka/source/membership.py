"""Whether this consumer is still the member of its group that it was, and what is given up when it is not."""

import math
import time
from typing import Final

from confluent_kafka import Consumer, KafkaError

from consumer.kafka.errors import is_fenced
from consumer.kafka.membership import member_of
from consumer.kafka.source.handover import Handover

_JOINING_S: Final = 30.0
"""How long after partitions were lost a static member may be fenced by a request of its own."""


class Membership:
    """The membership of one client; for its thread only.

    ``why_replace`` is why the client cannot be relied on any more and has to be replaced, empty while it can.
    """

    def __init__(self, handover: Handover) -> None:
        self.why_replace = ""
        self._handover = handover
        self._member: bytes | None = None
        self._lost_s = -math.inf

    def note(self, consumer: Consumer) -> None:
        """Hand the client's group metadata to the judge's side, which needs it for transactions.

        The client may never answer another thread that asks. A static member whose session ran out during a rebalance
        joins again under another id, and its client reports no partition as lost. With the new id the brokers would
        accept offsets of partitions that others own by now, so the begun batch is given up before the id is visible.
        """
        metadata = consumer.consumer_group_metadata()
        member = member_of(metadata)
        with self._handover.changed:
            self._handover.group_metadata = metadata
            if member is None or member == self._member:
                return
            if self._handover.partitions.owned():
                self.give_up("it was taken for dead, and let in again as another member")
            self._member = member

    def lost(self) -> None:
        """Note that the client has lost its partitions, and joins again."""
        self._lost_s = time.monotonic()

    def is_own_fencing(self, error: KafkaError) -> bool:
        """Return whether this error comes from the client's own second request; what it had is given up then.

        A static member's client may join twice after a loss, because the brokers were silent and then answer both
        requests (librdkafka's issue 3437). If it is fenced again after that, another process has its name.
        """
        if not is_fenced(error) or time.monotonic() >= self._lost_s + _JOINING_S:
            return False
        with self._handover.changed:
            self.give_up("it has fenced itself")
        return True

    def give_up(self, why: str) -> None:
        """Give up what the client believes to own: others may own it. The caller holds the lock."""
        partitions = self._handover.partitions
        owned = list(partitions.owned())
        partitions.revoke(owned)
        partitions.leave(owned, f"its consumer has lost them: {why}")
        self.why_replace = why
        self._handover.changed.notify_all()

    def replaced(self) -> None:
        """Start again with another client."""
        self.why_replace, self._lost_s = "", -math.inf
