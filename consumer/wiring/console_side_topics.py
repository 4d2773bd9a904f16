"""Takes in entries other than flags: reads the topic of each kind, if it exists, in a separate thread."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from consumer.config.config import Config
from consumer.console.intake.side_intake import (
    BANK_MATCHES,
    NEAR_MISSES,
    REPEATS_OF_RETRACTED,
    SideEntryKind,
    SideIntake,
)
from consumer.kafka.source.client_thread import LagMeasured, ReplicasChecked
from consumer.kafka.source.gaps import RecordsDeleted
from consumer.kafka.source.handover import ClientProgressed
from consumer.kafka.source.holds import PartitionsHeld
from consumer.kafka.source.rebalances import PartitionsRebalanced
from consumer.kafka.topics import SinkTopics
from consumer.lifecycle.thread_progress import ThreadIdle, ThreadProgressed
from consumer.model.hooks import Hooks, Outage
from consumer.model.record import Partition, partition_name
from consumer.reviews.database import Database
from consumer.wiring.console_feed import TopicSubscription, begin_again, source_of, topic_exists
from consumer.wiring.kafka_parts import sink_topics

log = logging.getLogger("dupwatch")

LOOK_S: Final = 15.0
"""The pause before the brokers are asked again whether a missing topic exists by now."""


@dataclass(frozen=True, slots=True)
class SideTopic:
    """A topic with entries of one kind.

    ``thread`` is the name of the thread that reads it, and the suffix of its group after ``console.group``. ``setting``
    is the setting that makes consumers write the topic.
    """

    kind: SideEntryKind[Any]
    topic: Callable[[SinkTopics], str]
    thread: str
    setting: str

    def subscription(self, config: Config) -> TopicSubscription:
        """Return the topic and its group, which is separate so that flags never wait for this topic."""
        return TopicSubscription(self.topic(sink_topics(config)), f"{config.console.group}-{self.thread}")


SIDE_TOPICS: Final = (
    SideTopic(NEAR_MISSES, lambda topics: topics.near_misses_topic, "near-misses", "kafka.near_miss_share"),
    SideTopic(BANK_MATCHES, lambda topics: topics.bank_matches_topic, "bank-matches", "banks.url"),
    # Only verdicts show such repeats, and only this topic has the verdicts of unique articles.
    SideTopic(REPEATS_OF_RETRACTED, lambda topics: topics.verdicts_topic, "ended-before", "sink.emit = all"),
)


class SideTopicAssigned(NamedTuple):
    """Partitions of a side topic were assigned, to this process or to others of its group.

    ``thread`` is the name of the thread that reads the topic.
    """

    thread: str


class SideTopicWork:
    """The work of a thread that reads one topic. With ``again`` it first restarts at the beginning, once."""

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
        self._subscription = side.subscription(config)
        self._intake = SideIntake(side.kind, database, hooks, stopping)
        self._hooks = hooks
        self._stopping = stopping
        self._again = again
        self._has_logged_missing = False

    def work(self) -> bool:
        """Take in entries until the console ends, or the topic cannot be read; return False.

        Returns at once if the topic is missing.
        """
        if not topic_exists(self._config, self._subscription):
            self._log_missing()
            return False
        if self._again:
            count = begin_again(self._config, self._subscription)
            log.info("Reading %d offsets of the topic of %s again", count, self._side.kind.name)
            self._again = False
        source = source_of(self._config, self._subscription, side_hooks(self._hooks, self._side), self._stopping.is_set)
        try:
            self._intake.take_all(source)
        finally:
            source.close()
            self._hooks.report(ThreadIdle(_client(self._side)))
        return False

    def _log_missing(self) -> None:
        """Log once that the topic does not exist; it is optional, so this is not an error."""
        if not self._has_logged_missing:
            log.info(
                "There is no topic %s, so there are no %s. Consumers write it with %s; it is read within %.0f s after "
                "it is created",
                self._subscription.topic,
                self._side.kind.name,
                self._side.setting,
                LOOK_S,
            )
        self._has_logged_missing = True


def side_hooks(hooks: Hooks, side: SideTopic) -> Hooks:
    """Return hooks for the source of a side topic. They pass on its reports, distinguishable from those of flags.

    An assignment becomes ``SideTopicAssigned``, since only partitions of flags count as the console's. When partitions
    are taken away, every reported lag becomes 0.
    """
    own, lagging = Hooks(), set[Partition]()

    def lag(measured: LagMeasured) -> None:
        lagging.add((measured.topic, measured.partition))
        hooks.report(measured)

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
    own.on(ClientProgressed, lambda _: hooks.report(ThreadProgressed(_client(side))))
    own.on(Outage, lambda outage: hooks.report(outage._replace(reporter=f"{outage.reporter}, {side.kind.name}")))
    for kind in (RecordsDeleted, ReplicasChecked):
        own.on(kind, hooks.report)
    return own


def _client(side: SideTopic) -> str:
    return f"{side.thread} client"
