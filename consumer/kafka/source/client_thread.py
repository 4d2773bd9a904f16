"""The thread that owns the Kafka client: it polls, handles rebalances, seeks, pauses and commits.

A turn of its loop makes the seeks that are due, commits acknowledged offsets, and reads new messages. While the buffer
is full, it reads at most one message, to keep the client alive. The client's callbacks run inside calls to the client,
so they run in this thread too.
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
from consumer.kafka.source.gaps import GAP_ERRORS, Gaps
from consumer.kafka.source.group_places import Commits, GroupPlaces
from consumer.kafka.source.handover import ClientProgressed, Handover
from consumer.kafka.source.holds import Holds
from consumer.kafka.source.membership import Membership
from consumer.kafka.source.rebalances import RebalanceHandler
from consumer.lifecycle.background import Call
from consumer.model.errors import SourceError
from consumer.model.hooks import Hooks
from consumer.model.limits import ReadLimits
from consumer.model.record import Partition

REPLICAS_S: Final = 30.0
"""The pause between two checks of the replicas."""
_REQUEST_TIMEOUT_S: Final = 1.0

log = logging.getLogger("dupwatch")

CLOSE_S: Final = 10.0
"""The time limit for closing. The brokers have to answer a commit and the request to leave the group."""
UNASSIGNED_S: Final = 30.0
"""A consumer that has got no assignment this long after its start logs a warning."""
_CLOSE_POLL_S: Final = 0.1
_LAG_S: Final = 5.0


class ReplicasChecked(NamedTuple):
    """The number of partitions of a topic that have a replica that is not in sync."""

    topic: str
    behind: int


class Replicas:
    """A periodic check of topics for replicas that are not in sync. A consumer does not notice such replicas."""

    def __init__(self, topics: Sequence[str], hooks: Hooks) -> None:
        self._topics = topics
        self._hooks = hooks
        self._next_check_s = 0.0

    def check(self, consumer: Consumer) -> None:
        """Check and report the replicas if a check is due; skip it if the brokers do not answer within a second."""
        if time.monotonic() < self._next_check_s:
            return
        self._next_check_s = time.monotonic() + REPLICAS_S
        try:
            for topic in self._topics:
                self._report(topic, consumer)
        except KafkaException:
            return

    def _report(self, topic: str, consumer: Consumer) -> None:
        metadata = consumer.list_topics(topic, timeout=_REQUEST_TIMEOUT_S).topics.get(topic)
        if metadata is not None and metadata.error is None:
            partitions = metadata.partitions.values()
            behind = sum(len(partition.isrs) < len(partition.replicas) for partition in partitions)
            self._hooks.report(ReplicasChecked(topic, behind))


class LagMeasured(NamedTuple):
    """The lag in a partition that this consumer owns: the number of offsets that are not answered yet."""

    topic: str
    partition: int
    records: int


class ClientThread:
    """The work and the state of the client's thread. ``settings`` come from ``consumer_settings``."""

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
        self._broker_health = BrokerHealth(hooks)
        self._failure = ClientFailure(settings)
        self._commits = Commits(handover, self._fail, transactional=options.transactional)
        self._next_lag_s = 0.0
        self._unassigned_warning_s = time.monotonic() + UNASSIGNED_S
        self._gaps = Gaps(options.on_gap, handover, hooks)
        self._holds = Holds(handover, hooks)
        self._missing = MissingTopics(topics, str(settings["bootstrap.servers"]))
        self._replicas = Replicas(topics, hooks)
        self._membership = Membership(handover)
        self._fetching = MessageFetcher(
            limits, options.pause_after_s, handover, hooks, self._broker_health, self._handle_error
        )
        self._places = GroupPlaces(
            options.start, handover, hooks, self._broker_health, self._holds, self._commits, self._failure
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
        """Read until the source is closed or fails; then leave the group."""
        try:
            self.consumer = self._subscribe()
            while not self._handover.closing:
                self._turn(self.consumer)
                if self._membership.replacement_reason:
                    self.consumer = self._replace_client(self.consumer)
        except KafkaException as error:
            self._handover.fail(self._failure.error or self._failure.source_error(error.args[0]))
        except BaseException as error:  # noqa: BLE001  # raised again in the judging thread
            self._handover.fail(error)
        self._end()

    def _subscribe(self) -> Consumer:
        guard = self._failure.guard
        settings = {
            **self._settings,
            "error_cb": guard(self._on_error),
            "on_commit": guard(self._commits.note_answer),
            # Only this event reveals offsets without a record.
            "enable.partition.eof": True,
        }
        consumer = new_consumer(settings)
        consumer.subscribe(
            list(self._topics),
            on_assign=guard(self._rebalances.on_assign),
            on_revoke=guard(self._rebalances.on_revoke),
            on_lost=guard(self._rebalances.on_lost),
        )
        return consumer

    def _replace_client(self, consumer: Consumer) -> Consumer:
        """Close a client that can no longer be relied on, and return a new one, which joins without partitions."""
        why = self._membership.replacement_reason
        log.warning("The Kafka client is replaced, and joins the group again: %s", why)
        # Cleared, so that _end does not close the old client again.
        self.consumer = None
        closing, until_s = Call(consumer.close), time.monotonic() + self._options.revoke_s + CLOSE_S
        while not closing.wait(_CLOSE_POLL_S):
            self._hooks.report(ClientProgressed())
            if time.monotonic() >= until_s:
                raise SourceError(
                    f"the Kafka client has to be replaced, but did not close in time: {why}; restart dupwatch"
                )
        closing.result()
        self._failure.check()
        self._membership.reset()
        self._fetching.forget()
        self._commits.forget()
        self._holds.forget()
        return self._subscribe()

    def _turn(self, consumer: Consumer) -> None:
        self._hooks.report(ClientProgressed())
        self._membership.note(consumer)
        self._places.restore(consumer)
        self._holds.update(consumer)
        if not self._fetching.paused:
            self._fetching.seek(consumer)
        self._commits.send(consumer)
        if self._fetching.paused:
            self._gaps.bridge(consumer, partial(self._fetching.serve, consumer), self._broker_health.note_error)
        self._missing.check(consumer)
        self._warn_if_unassigned()
        self._broker_health.probe(consumer, self._topics[0])
        self._report_lag(consumer)
        self._replicas.check(consumer)
        self._fetching.turn(consumer)
        self._failure.check()

    def _on_error(self, error: KafkaError) -> None:
        if is_fatal(error):
            self._fail(error)
        else:
            self._broker_health.note_error(error)

    def _fail(self, error: KafkaError) -> None:
        """End the run, unless the client has fenced itself and will be replaced."""
        if not self._membership.is_own_fencing(error):
            self._failure.error = self._failure.source_error(error)

    def _handle_error(self, error: KafkaError, partition: Partition) -> None:
        """Act on an error that came in place of a message."""
        code = error.code()
        if code in GAP_ERRORS:
            # A gap in a held partition matters only when the partition is read again.
            if not self._holds.has(partition):
                self._gaps.add(partition)
        elif code in UNKNOWN_TOPICS:
            self._missing.suspect(partition[0])
        elif is_fatal(error) or is_refusal(error):
            self._fail(error)
        else:
            client_log.info("%s", describe(error))
            self._broker_health.note_error(error)

    def _warn_if_unassigned(self) -> None:
        """Warn once if the group makes no assignment. Old brokers do not say that they lack the new group protocol."""
        if self._fetching.rebalances or not self._unassigned_warning_s:
            return
        if time.monotonic() < self._unassigned_warning_s:
            return
        self._unassigned_warning_s = 0.0
        log.warning(
            "The group %s has assigned no partitions to this consumer for %.0f s%s",
            self._settings["group.id"],
            UNASSIGNED_S,
            self._failure.protocol_hint,
        )

    def _report_lag(self, consumer: Consumer) -> None:
        if time.monotonic() < self._next_lag_s:
            return
        self._next_lag_s = time.monotonic() + _LAG_S
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
                    places = self._commits.due_places()
                self._places.commit_now(consumer, places)
            consumer.close()
        except Exception as error:  # noqa: BLE001  # the run ends in any case, and an earlier error is the cause to report
            log.warning("The Kafka client could not be closed: %s", error)
