"""Where the group is in each partition: asked of the brokers when partitions come, and after a transaction was lost."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

from confluent_kafka import Consumer, KafkaException, TopicPartition

from consumer.kafka.errors import AGAIN_S, ASK_S, Trouble, ask_committed, describe, is_fatal, is_refusal
from consumer.kafka.message import to_client
from consumer.kafka.source.client_failure import ClientFailure
from consumer.kafka.source.commits import Commits
from consumer.kafka.source.handover import ClientTurned, Handover
from consumer.kafka.source.holds import Holds
from consumer.kafka.source.progress import BEGINNING, CommitPoint, Start
from consumer.model.hooks import Hooks
from consumer.model.record import Partition

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class GroupPlaces:
    """Asks the group where it is, and tells it where it begins; for the client's thread only.

    ``first`` is where a partition begins of which the group has no offset.
    """

    first: Literal["earliest", "latest"]
    handover: Handover
    hooks: Hooks
    trouble: Trouble
    holds: Holds
    commits: Commits
    failure: ClientFailure

    def starts(self, consumer: Consumer, partitions: list[TopicPartition]) -> dict[Partition, Start]:
        """Return where these partitions begin, which were just assigned."""
        return self._commit_starts(consumer, self._ask(consumer, partitions, partial(self._start, consumer)))

    def restore(self, consumer: Consumer) -> None:
        """Ask for all places after a transaction of which only the brokers know whether it was committed."""
        with self.handover.changed:
            lost, owned = self.handover.partitions.places_lost, list(self.handover.partitions.owned())
        if lost:
            found = self._ask(consumer, to_client(owned), self._committed)
            with self.handover.changed:
                self.handover.partitions.restart(found)

    def commit_now(self, consumer: Consumer, places: Mapping[Partition, CommitPoint]) -> dict[Partition, int]:
        """Commit at once, unless the run has failed. Return what the group knows then."""
        return {} if self.failure.error is not None else self.commits.now(consumer, places)

    def _ask(
        self, consumer: Consumer, asked: list[TopicPartition], place: Callable[[TopicPartition], Found]
    ) -> dict[Partition, Found]:
        """Ask for what the group has committed until there is an answer, and return what ``place`` makes of it."""
        found: dict[Partition, Found] = {}
        while len(found) < len(asked) and not self.handover.closing:
            self.hooks.report(ClientTurned())
            try:
                left = [partition for partition in asked if (partition.topic, partition.partition) not in found]
                for committed in ask_committed(consumer, left):
                    found[committed.topic, committed.partition] = place(committed)
            except KafkaException as error:
                if is_fatal(error.args[0]) or is_refusal(error.args[0]):
                    raise self.failure.describe(error.args[0]) from error
                self.trouble.suspect(f"the group's offsets cannot be read: {describe(error.args[0])}", certain=True)
                self._wait(AGAIN_S)
        self.trouble.over()
        return found

    def _committed(self, found: TopicPartition) -> Start | None:
        return Start(found.offset, committed=True, note=self.holds.read_note(found)) if found.offset >= 0 else None

    def _start(self, consumer: Consumer, found: TopicPartition) -> Start:
        if (start := self._committed(found)) is not None:
            return start
        if self.first == "earliest":
            return Start(BEGINNING, committed=True)
        _, end = consumer.get_watermark_offsets(TopicPartition(found.topic, found.partition), timeout=ASK_S)
        return Start(end, committed=False)

    def _commit_starts(self, consumer: Consumer, starts: Mapping[Partition, Start]) -> dict[Partition, Start]:
        """Commit where partitions begin that have no offset yet; during its callback a client stays a member."""
        ours = {
            partition: CommitPoint(start.offset, None) for partition, start in starts.items() if not start.committed
        }
        known = self.commit_now(consumer, ours)
        return {
            partition: start._replace(committed=start.committed or partition in known)
            for partition, start in starts.items()
        }

    def _wait(self, wait_s: float) -> None:
        with self.handover.changed:
            self.handover.changed.wait_for(lambda: self.handover.closing, wait_s)
