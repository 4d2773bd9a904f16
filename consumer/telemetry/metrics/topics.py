"""Metrics of the topics that a consumer reads."""

from contextlib import suppress
from typing import Final, get_args

from consumer.kafka.source.client_thread import LagMeasured, ReplicasChecked
from consumer.kafka.source.fetching import FetchingPaused
from consumer.kafka.source.gaps import RecordsDeleted
from consumer.kafka.source.holds import PartitionsHeld
from consumer.kafka.source.rebalances import PartitionsRebalanced, Rebalance
from consumer.model.hooks import Hooks
from consumer.telemetry.metrics.instruments import Instruments, Label, Measure, MetricGroup, reaction

_PARTITION: Final = (
    Label("topic", others_limit="the topics that are read"),
    Label("partition", others_limit="the partitions assigned to this consumer"),
)

LAG: Final = Measure(
    "dupwatch_lag_records",
    "gauge",
    "Offsets of a partition that are not committed yet; no series for held partitions. Offsets without a record are "
    "skipped within 5 seconds.",
    "records",
    _PARTITION,
)
ASSIGNED: Final = Measure(
    "dupwatch_assigned_partitions", "gauge", "Partitions assigned to this consumer.", "partitions"
)
PARTITION_HELD: Final = Measure(
    "dupwatch_partition_held",
    "gauge",
    "1 while this consumer does not read a partition because too many of its records cannot be judged, or because the "
    "client cannot unpack its next batch; else 0.",
    "0 or 1",
    _PARTITION,
)
REBALANCES: Final = Measure(
    "dupwatch_rebalances_total",
    "counter",
    "Rebalances in which this consumer was assigned partitions, or had them revoked or lost.",
    "times",
    (Label("what", get_args(Rebalance)),),
)
PAUSED: Final = Measure("dupwatch_paused", "gauge", "1 while fetching is paused, else 0.", "0 or 1")
UNDER_REPLICATED: Final = Measure(
    "dupwatch_under_replicated_partitions",
    "gauge",
    "Partitions of a topic with at least one replica out of sync, no matter which consumer reads them.",
    "partitions",
    (Label("topic", others_limit="the topics that are read"),),
)
LOST_TO_RETENTION: Final = Measure(
    "dupwatch_records_lost_to_retention_total",
    "counter",
    "Records that were deleted from a topic before they were read.",
    "records",
)
GROUP: Final = MetricGroup(
    "Topics", (LAG, ASSIGNED, PARTITION_HELD, REBALANCES, PAUSED, UNDER_REPLICATED, LOST_TO_RETENTION)
)
REACTIONS: Final = (
    reaction(REBALANCES, PartitionsRebalanced, labels=lambda rebalanced: (rebalanced.what,)),
    reaction(ASSIGNED, PartitionsRebalanced, lambda rebalanced: rebalanced.partitions),
    reaction(LAG, LagMeasured, lambda lag: lag.records, lambda lag: (lag.topic, str(lag.partition))),
    reaction(PAUSED, FetchingPaused, lambda fetching: fetching.paused),
    reaction(UNDER_REPLICATED, ReplicasChecked, lambda replicas: replicas.behind, lambda replicas: (replicas.topic,)),
    reaction(LOST_TO_RETENTION, RecordsDeleted, lambda deleted: deleted.records),
)


class TopicMetrics:
    """The held partitions, and the lag of the others.

    The lag of a partition is removed when it is held, and all lag when partitions are revoked or lost.
    """

    def __init__(self, instruments: Instruments) -> None:
        self._lag = instruments.gauge(LAG)
        self._held = instruments.gauge(PARTITION_HELD)

    def listen(self, hooks: Hooks) -> None:
        """Follow partitions from now on."""
        hooks.on(PartitionsRebalanced, self._clear_lag)
        hooks.on(PartitionsHeld, self._show_held)

    def _clear_lag(self, rebalanced: PartitionsRebalanced) -> None:
        if rebalanced.what != "assigned":
            # The lag of remaining partitions is reported again soon, and that of the others by their new owner.
            self._lag.clear()

    def _show_held(self, report: PartitionsHeld) -> None:
        """Show which partitions are held, and remove their lag, which would trigger alerts until a person acts."""
        self._held.clear()
        for (topic, partition), reason in report.reasons.items():
            self._held.labels(topic, str(partition)).set(reason is not None)
            if reason is not None:
                with suppress(KeyError):
                    self._lag.remove(topic, str(partition))
