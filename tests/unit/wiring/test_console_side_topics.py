"""What other sources of a console report, next to the topic of flags."""

from consumer.kafka.source.client_thread import LagMeasured, ReplicasChecked
from consumer.kafka.source.gaps import RecordsDeleted
from consumer.kafka.source.handover import ClientProgressed
from consumer.kafka.source.holds import PartitionsHeld
from consumer.kafka.source.rebalances import PartitionsRebalanced
from consumer.lifecycle.thread_progress import ThreadProgressed
from consumer.model.hooks import Hooks, Outage
from consumer.telemetry.health import Health
from consumer.telemetry.metrics import ConsoleMetrics
from consumer.wiring.console_side_topics import SIDE_TOPICS, SideTopicAssigned, side_hooks

TOPIC = "p.near-misses"


class Heard:
    """Hooks for two sources, and all that reaches them."""

    def __init__(self) -> None:
        self.hooks = Hooks()
        self.reported: list[object] = []
        for kind in (LagMeasured, Outage, ThreadProgressed, ReplicasChecked, RecordsDeleted, SideTopicAssigned,
                     ClientProgressed, PartitionsRebalanced, PartitionsHeld):  # fmt: skip
            self.hooks.on(kind, self.reported.append)
        self.second = side_hooks(self.hooks, SIDE_TOPICS[0])
        self.third = side_hooks(self.hooks, SIDE_TOPICS[1])


def test_the_partitions_of_the_console_are_those_of_flags() -> None:
    """An alert says that it has none: the topic of near misses must not hide that."""
    heard = Heard()
    metrics = ConsoleMetrics()
    metrics.listen(heard.hooks)
    heard.hooks.report(PartitionsRebalanced("assigned", 2))
    heard.second.report(PartitionsRebalanced("assigned", 6))
    heard.hooks.report(PartitionsRebalanced("lost", 0))
    heard.second.report(PartitionsRebalanced("assigned", 6))
    assert metrics.registry.get_sample_value("dupwatch_assigned_partitions") == 0
    assert heard.reported.count(SideTopicAssigned("near-misses")) == 2


def test_the_lag_of_partitions_that_leave_is_over() -> None:
    """Or an alert would fire for what another console reads."""
    heard = Heard()
    metrics = ConsoleMetrics()
    metrics.listen(heard.hooks)
    heard.hooks.report(LagMeasured("p.duplicates", 0, 7))
    heard.second.report(LagMeasured(TOPIC, 1, 5_000))
    lag = {"topic": TOPIC, "partition": "1"}
    assert metrics.registry.get_sample_value("dupwatch_lag_records", lag) == 5_000
    heard.second.report(PartitionsRebalanced("revoked", 0))
    assert metrics.registry.get_sample_value("dupwatch_lag_records", lag) == 0
    of_flags = {"topic": "p.duplicates", "partition": "0"}
    assert metrics.registry.get_sample_value("dupwatch_lag_records", of_flags) == 7


def test_a_client_that_hangs_is_not_hidden_by_the_other() -> None:
    """Each has a name of its own."""
    heard, now_s = Heard(), [0.0]
    health = Health(60, grouped=False, clock=lambda: now_s[0])
    health.listen(heard.hooks)
    heard.hooks.report(ClientProgressed())
    heard.second.report(ClientProgressed())
    heard.third.report(ClientProgressed())
    now_s[0] = 61.0
    heard.second.report(ClientProgressed())
    assert {each.thread for each in health.hanging_threads()} == {"client", "bank-matches client"}


def test_outages_of_one_source_do_not_end_with_those_of_the_other() -> None:
    """Held partitions are told as one, since the first source says which of its own are."""
    heard = Heard()
    health = Health(60, grouped=False)
    health.listen(heard.hooks)
    heard.hooks.report(Outage("source", "brokers", "no route"))
    heard.second.report(Outage("source", "brokers", None))
    assert health.unready_reasons() == ["source: no route"]
    heard.hooks.report(Outage("source", "brokers", None))
    heard.second.report(PartitionsHeld({(TOPIC, 0): "it cannot be unpacked", (TOPIC, 1): None}))
    assert health.unready_reasons() == [f"source: {TOPIC}:0 is held: it cannot be unpacked"]
    assert health.held_partitions() == {}
    heard.second.report(PartitionsHeld({(TOPIC, 0): None}))
    assert health.unready_reasons() == []


def test_what_is_about_its_topic_is_passed_on() -> None:
    """Records that were deleted unread, and replicas that are missing."""
    heard = Heard()
    gone, behind = RecordsDeleted(3), ReplicasChecked(TOPIC, 1)
    heard.second.report(gone)
    heard.second.report(behind)
    assert heard.reported == [gone, behind]
