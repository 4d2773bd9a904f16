"""Takes in entries that are no flags: reads the topic of each kind while there is one, beside that of flags."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from consumer.config.config import Config
from consumer.console.intake.side_intake import BANK_MATCHES, NEAR_MISSES, REPEATS_OF_ENDED, SideIntake, SideKind
from consumer.kafka.source.client_thread import LagMeasured, ReplicasChecked
from consumer.kafka.source.gaps import RecordsDeleted
from consumer.kafka.source.handover import ClientTurned
from consumer.kafka.source.holds import PartitionsHeld
from consumer.kafka.source.rebalances import PartitionsRebalanced
from consumer.kafka.topics import SinkTopics
from consumer.lifecycle.turns import ThreadRested, ThreadTurned
from consumer.model.hooks import Hooks, Outage
from consumer.model.record import Partition, partition_name
from consumer.reviews.database import Database
from consumer.wiring.console_feed import TopicSubscription, begin_again, is_there, source_of
from consumer.wiring.kafka_parts import sink_topics

log = logging.getLogger("dupwatch")

LOOK_S: Final = 15.0
"""How often the brokers are asked whether there is such a topic by now."""


@dataclass(frozen=True, slots=True)
class SideTopic:
    """A topic with entries of one kind.

    ``thread`` is the name of the thread that reads it, and follows on ``console.group`` in the name of its group.
    ``setting`` is what makes consumers write it.
    """

    kind: SideKind[Any]
    topic: Callable[[SinkTopics], str]
    thread: str
    setting: str

    def read(self, config: Config) -> TopicSubscription:
        """Return the topic, and its group: its own, so that flags never wait for what happens to this topic."""
        return TopicSubscription(self.topic(sink_topics(config)), f"{config.console.group}-{self.thread}")


SIDE_TOPICS: Final = (
    SideTopic(NEAR_MISSES, lambda topics: topics.near_misses_topic, "near-misses", "kafka.near_miss_share"),
    SideTopic(BANK_MATCHES, lambda topics: topics.bank_matches_topic, "bank-matches", "banks.url"),
    # Only a verdict says it, and only this topic has those of unique articles.
    SideTopic(REPEATS_OF_ENDED, lambda topics: topics.verdicts_topic, "ended-before", "sink.emit = all"),
)


class SideTopicAssigned(NamedTuple):
    """A topic of other entries is being read: this process has partitions of it, or others of its group have all.

    ``thread`` is the one that reads it.
    """

    thread: str


class SideTopicWork:
    """The work of a thread. ``again``: the topic is read from its beginning, once."""

    def __init__(
        self,
        side: SideTopic,
        config: Config,
        database: Database,
        hooks: Hooks,
        stopping: threading.Event,
        *,
        again: bool,
    ) -> None:
        self._side = side
        self._config = config
        self._read = side.read(config)
        self._intake = SideIntake(side.kind, database, hooks, stopping)
        self._hooks = hooks
        self._stopping = stopping
        self._again = again
        self._is_missing_told = False

    def work(self) -> bool:
        """Take in entries until the console ends, or the topic cannot be read; at once where there is none."""
        if not is_there(self._config, self._read):
            self._tell_missing()
            return False
        if self._again:
            count = begin_again(self._config, self._read)
            log.info("%d offsets of the topic of %s are read again.", count, self._side.kind.name)
            self._again = False
        source = source_of(self._config, self._read, beside(self._hooks, self._side), self._stopping.is_set)
        try:
            self._intake.take_all(source)
        finally:
            source.close()
            self._hooks.report(ThreadRested(_client(self._side)))
        return False

    def _tell_missing(self) -> None:
        """Say once that there is no topic: it is off by default, and no error."""
        if not self._is_missing_told:
            log.info(
                "There is no topic %s, so no %s come in. Consumers write it with %s; once it is there, it is read "
                "within %.0f s.",
                self._read.topic,
                self._side.kind.name,
                self._side.setting,
                LOOK_S,
            )
        self._is_missing_told = True


def beside(hooks: Hooks, side: SideTopic) -> Hooks:
    """Return hooks for another source in one process; what it reports to ``hooks`` is not taken for the first one's.

    Which partitions the console has is said of flags alone. The lag of partitions that leave is 0 from then on.
    """
    own, lagging = Hooks(), set[Partition]()

    def lag(read: LagMeasured) -> None:
        lagging.add((read.topic, read.partition))
        hooks.report(read)

    def rebalanced(rebalance: PartitionsRebalanced) -> None:
        if rebalance.what == "assigned":
            hooks.report(SideTopicAssigned(side.thread))
        else:
            for topic, partition in lagging:
                hooks.report(LagMeasured(topic, partition, 0))
            lagging.clear()

    def held(report: PartitionsHeld) -> None:
        whys = [f"{partition_name(partition)} is held: {why}" for partition, why in report.reasons.items() if why]
        hooks.report(Outage("source", f"held, {side.kind.name}", "; ".join(whys) or None))

    own.on(LagMeasured, lag)
    own.on(PartitionsRebalanced, rebalanced)
    own.on(PartitionsHeld, held)
    own.on(ClientTurned, lambda _: hooks.report(ThreadTurned(_client(side))))
    own.on(Outage, lambda outage: hooks.report(outage._replace(reporter=f"{outage.reporter}, {side.kind.name}")))
    for kind in (RecordsDeleted, ReplicasChecked):
        own.on(kind, hooks.report)
    return own


def _client(side: SideTopic) -> str:
    return f"{side.thread} client"
