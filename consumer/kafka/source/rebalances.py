"""Handles rebalances: the group assigns partitions to this consumer, or takes them away."""

import logging
import time
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from confluent_kafka import Consumer, TopicPartition

from consumer.kafka.message import from_client, log_names
from consumer.kafka.source.fetching import MessageFetcher
from consumer.kafka.source.group_places import Commits, GroupPlaces
from consumer.kafka.source.handover import ClientProgressed, Handover
from consumer.kafka.source.holds import Holds
from consumer.kafka.source.membership import Membership
from consumer.model.hooks import Hooks

log = logging.getLogger("dupwatch")

POLL_S: Final = 0.1

Rebalance = Literal["assigned", "revoked", "lost"]


class PartitionsRebalanced(NamedTuple):
    """A rebalance, after which this consumer owns ``partitions``; "lost" partitions were taken without warning."""

    what: Rebalance
    partitions: int


@dataclass(frozen=True, slots=True)
class RebalanceHandler:
    """The client's callbacks for rebalances; they run in the client's thread.

    ``revoke_s`` is how many seconds a revoked partition waits for the current batch.
    """

    revoke_s: float
    handover: Handover
    hooks: Hooks
    membership: Membership
    fetching: MessageFetcher
    places: GroupPlaces
    commits: Commits
    holds: Holds

    def on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Own these partitions once their starts are known. Each is read once its start is committed."""
        self.membership.note(consumer)
        self.fetching.note_rebalance()
        starts = self.places.starts(consumer, partitions)
        with self.handover.changed:
            self.handover.partitions.assign(starts)
            owned = len(self.handover.partitions.owned())
        consumer.incremental_assign(
            [TopicPartition(topic, number, start.offset) for (topic, number), start in starts.items()]
        )
        self.fetching.pause_new(consumer, starts)
        self.holds.update(consumer)
        log.info("Assigned: %s", log_names(starts))
        self.hooks.report(PartitionsRebalanced("assigned", owned))

    def on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Wait up to ``revoke_s`` for the current batch, commit, and give up these partitions."""
        self.membership.note(consumer)
        handover, leaving = self.handover, from_client(partitions)
        until_s = time.monotonic() + self.revoke_s
        with handover.changed:
            handover.partitions.revoke(leaving)
            while handover.partitions.concerns(leaving) and not handover.is_over():
                left_s = until_s - time.monotonic()
                if left_s <= 0:
                    log.warning(
                        "A batch was not finished within %.1f s when some of its partitions were revoked",
                        self.revoke_s,
                    )
                    break
                self.hooks.report(ClientProgressed())
                handover.changed.wait(min(left_s, POLL_S))
            places = {} if handover.error is not None else self.commits.due_places()
            handover.partitions.leave(leaving, "some of its partitions went to another consumer before it was finished")
        self.places.commit_now(consumer, places)
        self._unassign(consumer, partitions, "revoked")

    def on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Give up these partitions, which another consumer may already own."""
        leaving = from_client(partitions)
        self.membership.note_loss()
        with self.handover.changed:
            self.handover.partitions.revoke(leaving)
            self.handover.partitions.leave(leaving, "the group expelled this consumer, which lost its partitions")
        self._unassign(consumer, partitions, "lost")

    def _unassign(self, consumer: Consumer, partitions: list[TopicPartition], how: Literal["revoked", "lost"]) -> None:
        leaving = from_client(partitions)
        self.fetching.note_rebalance()
        if not self.fetching.release(consumer, leaving):
            self.holds.release(consumer, leaving)
        consumer.incremental_unassign(partitions)
        with self.handover.changed:
            owned = len(self.handover.partitions.owned())
            self.handover.changed.notify_all()
        log.info("%s: %s", how.capitalize(), log_names(leaving))
        self.hooks.report(PartitionsRebalanced(how, owned))
