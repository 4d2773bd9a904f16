"""The thread that owns the Kafka client: it polls, answers for rebalances, seeks, pauses and commits.

A turn of its loop seeks where seeking is due, commits what was acknowledged, and reads what there is. While the buffer
is full it only keeps the client alive. The client calls back from within its own calls, and so in this thread.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from consumer.kafka.client_log import client_log
from consumer.kafka.client_settings import SourceOptions
from consumer.kafka.clients import new_consumer
from consumer.kafka.errors import UNKNOWN_TOPICS, BrokerHealth, MissingTopics, describe, is_fatal, is_refusal
from consumer.kafka.source.client_failure import ClientFailure
from consumer.kafka.source.fetching import MessageFetcher
from consumer.kafka.source.gaps import GAPS, Gaps
from consumer.kafka.source.group_places import Commits, GroupPlaces
from consumer.kafka.source.handover import ClientTurned, Handover
from consumer.kafka.source.holds import Holds
from consumer.kafka.source.membership import Membership
from consumer.kafka.source.rebalances import RebalanceHandler
from consumer.lifecycle.background import Call
from consumer.model.errors import SourceError
from consumer.model.hooks import Hooks
from consumer.model.limits import ReadLimits
from consumer.model.record import Partition

REPLICAS_S: Final = 30.0
"""How often the brokers are asked."""
_ASK_S: Final = 1.0

log = logging.getLogger("dupwatch")

CLOSE_S: Final = 10.0
"""How long closing may take: the brokers have to answer a commit, and the request to leave the group."""
OUTSIDER_S: Final = 30.0
_ENDED_S: Final = 0.1
_LAG_S: Final = 5.0


class ReplicasChecked(NamedTuple):
    """How many partitions of a topic have a replica that is not in sync."""

    topic: str
    behind: int


class Replicas:
    """Asks for the replicas of some topics now and then, and reports them: a consumer does not notice missing ones."""

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
            self._hooks.report(ReplicasChecked(topic, behind))


class LagMeasured(NamedTuple):
    """How many records of a partition that this consumer owns are in its topic and not committed."""

    topic: str
    partition: int
    records: int


class ClientThread:
    """The thread's work, and what it remembers from turn to turn. ``settings`` are the client's."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        topics: Sequence[str],
        limits: ReadLimits,
        options: SourceOptions,
        handover: Handover,
        hooks: Hooks,
    ) -> None:
        self.consumer: Consumer | None = None
        self._settings = settings
        self._topics = topics
        self._options = options
        self._handover = handover
        self._hooks = hooks
        self._trouble = BrokerHealth(hooks)
        self._failure = ClientFailure(settings)
        self._commits = Commits(handover, self._fail, transactional=options.transactional)
        self._lag_again_s = 0.0
        self._warn_outsider_s = time.monotonic() + OUTSIDER_S
        self._gaps = Gaps(options.on_gap, handover, hooks)
        self._holds = Holds(handover, hooks)
        self._missing = MissingTopics(topics, str(settings["bootstrap.servers"]))
        self._replicas = Replicas(topics, hooks)
        self._membership = Membership(handover)
        self._fetching = MessageFetcher(limits, options.pause_after_s, handover, hooks, self._trouble, self._heed)
        self._places = GroupPlaces(
            options.start, handover, hooks, self._trouble, self._holds, self._commits, self._failure
        )
        self._rebalances = RebalanceHandler(
            revoke_s=options.revoke_s,
            handover=handover,
            hooks=hooks,
            membership=self._membership,
            fetching=self._fetching,
            places=self._places,
            commits=self._commits,
            holds=self._holds,
        )

    def run(self) -> None:
        """Read until the source is closed, or something ends it; then leave the group."""
        try:
            self.consumer = self._subscribed()
            while not self._handover.closing:
                self._turn(self.consumer)
                if self._membership.why_replace:
                    self.consumer = self._replaced(self.consumer)
        except KafkaException as error:
            self._handover.fail(self._failure.error or self._failure.describe(error.args[0]))
        except BaseException as error:  # noqa: BLE001  # it is raised again on the judge's side
            self._handover.fail(error)
        self._end()

    def _subscribed(self) -> Consumer:
        guarded = self._failure.guarded
        settings = {
            **self._settings,
            "error_cb": guarded(self._on_error),
            "on_commit": guarded(self._commits.answered),
            # The only sign of offsets without a record.
            "enable.partition.eof": True,
        }
        consumer = new_consumer(settings)
        consumer.subscribe(
            list(self._topics),
            on_assign=guarded(self._rebalances.on_assign),
            on_revoke=guarded(self._rebalances.on_revoke),
            on_lost=guarded(self._rebalances.on_lost),
        )
        return consumer

    def _replaced(self, consumer: Consumer) -> Consumer:
        """Return another client in place of one that cannot be relied on any more; it joins without partitions."""
        why = self._membership.why_replace
        log.warning("Another client joins the group in place of this one: %s", why)
        # It must not be closed twice.
        self.consumer = None
        closing, until_s = Call(consumer.close), time.monotonic() + self._options.revoke_s + CLOSE_S
        while not closing.ended(_ENDED_S):
            self._hooks.report(ClientTurned())
            if time.monotonic() >= until_s:
                raise SourceError(
                    f"the Kafka client did not close in time, and must be replaced: {why}; restart dupwatch"
                )
        closing.result()
        self._failure.check()
        self._membership.replaced()
        self._fetching.forget()
        self._commits.forget()
        self._holds.forget()
        return self._subscribed()

    def _turn(self, consumer: Consumer) -> None:
        self._hooks.report(ClientTurned())
        self._membership.note(consumer)
        self._places.restore(consumer)
        self._holds.keep(consumer)
        if not self._fetching.paused:
            self._fetching.seek(consumer)
        self._commits.send(consumer)
        if self._fetching.paused:
            self._gaps.bridge(consumer, partial(self._fetching.serve, consumer), self._trouble.heed)
        self._missing.look(consumer)
        self._warn_outsider()
        self._trouble.probe(consumer, self._topics[0])
        self._report_lag(consumer)
        self._replicas.look(consumer)
        self._fetching.turn(consumer)
        self._failure.check()

    def _on_error(self, error: KafkaError) -> None:
        if is_fatal(error):
            self._fail(error)
        else:
            self._trouble.heed(error)

    def _fail(self, error: KafkaError) -> None:
        """End the run, unless the client has fenced itself: it is replaced then."""
        if not self._membership.is_own_fencing(error):
            self._failure.error = self._failure.describe(error)

    def _heed(self, error: KafkaError, partition: Partition) -> None:
        """Act on an error that came in a message's place."""
        code = error.code()
        if code in GAPS:
            # A gap in a held partition matters only when the partition is read again.
            if not self._holds.has(partition):
                self._gaps.add(partition)
        elif code in UNKNOWN_TOPICS:
            self._missing.doubt(partition[0])
        elif is_fatal(error) or is_refusal(error):
            self._fail(error)
        else:
            client_log.info("%s", describe(error))
            self._trouble.heed(error)

    def _warn_outsider(self) -> None:
        """Warn where the group assigns nothing. Old brokers do not say that they lack the new group protocol."""
        if self._fetching.rebalances or not self._warn_outsider_s or time.monotonic() < self._warn_outsider_s:
            return
        self._warn_outsider_s = 0.0
        log.warning(
            "The group %s has assigned nothing to this consumer for %.0f s%s",
            self._settings["group.id"],
            OUTSIDER_S,
            self._failure.needs,
        )

    def _report_lag(self, consumer: Consumer) -> None:
        if time.monotonic() < self._lag_again_s:
            return
        self._lag_again_s = time.monotonic() + _LAG_S
        with self._handover.changed:
            self._handover.partitions.pass_over()
            owned = self._handover.partitions.owned()
        for (topic, number), place in owned.items():
            if place.note.held is not None:
                continue
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), cached=True)
            if high >= 0:
                self._hooks.report(LagMeasured(topic, number, max(0, high - max(low, place.offset, 0))))

    def _end(self) -> None:
        consumer = self.consumer
        if consumer is None:
            return
        try:
            if self._handover.error is None:
                with self._handover.changed:
                    self._handover.partitions.pass_over()
                    places = self._commits.due()
                self._places.commit_now(consumer, places)
            consumer.close()
        except Exception as error:  # noqa: BLE001  # the run ends, and with an error that came before, if any
            log.warning("The Kafka client could not be closed: %s", error)
