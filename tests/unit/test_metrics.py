"""What a run measures."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from consumer import metrics as module
from consumer.article import Reason
from consumer.dead_letter import DeadLetter, LetterPosition, dead_letter
from consumer.detector import Tally
from consumer.errors import BadRecord
from consumer.events import rfc3339
from consumer.health import Health
from consumer.metrics import TALLIED, TOLD_BY_OUTCOME, Build, Metrics
from consumer.monitoring import Monitoring
from consumer.pipeline import Observer
from consumer.ports import SinkWatcher, SourceWatcher
from consumer.verdict import Outcome, Verdict

NOW_S = 1_800_000_000.0


class Clock:
    """A time of day that stands still until it is moved."""

    def __init__(self) -> None:
        self.now_s = NOW_S

    def __call__(self) -> float:
        """The time."""
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    """A clock that the test moves."""
    return Clock()


@pytest.fixture
def metrics(clock: Clock) -> Metrics:
    """Metrics of a run that began now."""
    return Metrics(Build("1.2.3", "jieba-tfidf/1", "4x16"), clock)


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    """One sample; None where there is none such."""
    return metrics.registry.get_sample_value(name, labels)


def verdict(
    outcome: Outcome = "unique",
    *,
    arrived_s: float = NOW_S,
    decided_s: float = NOW_S,
    distance: int | None = None,
    similarity: float | None = None,
) -> Verdict:
    """A verdict that says no more than metrics ask."""
    return Verdict(
        id="a",
        outcome=outcome,
        distance=distance,
        similarity=similarity,
        arrived_at=rfc3339(int(arrived_s * 1000)),
        decided_at=rfc3339(int(decided_s * 1000)),
    )


def letter(reason: str) -> DeadLetter:
    """A dead letter for this reason."""
    return dead_letter(BadRecord(reason, "for a test"), LetterPosition("topic", 0, 1), b"{")


def test_a_batch_is_counted(metrics: Metrics, clock: Clock) -> None:
    """Articles count by outcome, duplicates by kind, dead letters by reason; a copy has distance 0 and similarity 1."""
    clock.now_s += 1
    batch = [
        verdict(),
        verdict("retracted"),
        verdict("duplicate", distance=0, similarity=1.0),
        verdict("duplicate", distance=0, similarity=0.99),
        verdict("duplicate", distance=1, similarity=1.0),
        verdict("duplicate", distance=0),
    ]
    metrics.judged(batch, [letter("missing_id"), letter("missing_id")])
    assert value(metrics, "dupwatch_articles_total", outcome="unique") == 1
    assert value(metrics, "dupwatch_articles_total", outcome="retracted") == 1
    assert value(metrics, "dupwatch_articles_total", outcome="duplicate") == 4
    assert value(metrics, "dupwatch_duplicates_total", kind="copy") == 1
    assert value(metrics, "dupwatch_duplicates_total", kind="near") == 3
    assert value(metrics, "dupwatch_dead_letters_total", reason="missing_id") == 2
    assert value(metrics, "dupwatch_batch_records_sum") == 8
    assert value(metrics, "dupwatch_last_processed_timestamp_seconds") == NOW_S + 1


def test_a_reason_nobody_knows_makes_no_series(metrics: Metrics) -> None:
    """Series of dead letters are as many as reasons, and one for all others; each is there from the start."""
    metrics.judged([], [letter("made up 1"), letter("made up 2")])
    assert value(metrics, "dupwatch_dead_letters_total", reason="other") == 2
    (family,) = [one for one in metrics.registry.collect() if one.name == "dupwatch_dead_letters"]
    labels = {one.labels["reason"] for one in family.samples if one.name.endswith("_total")}
    assert labels == set(Reason) | {"other"}


def test_latency_is_from_the_record_time(metrics: Metrics, clock: Clock) -> None:
    """The time from record to commit is measured; a producer whose clock is ahead counts as 0."""
    clock.now_s = NOW_S + 0.25
    ahead = verdict(arrived_s=NOW_S + 100, decided_s=NOW_S + 0.2)
    metrics.judged([verdict(arrived_s=NOW_S + 0.1, decided_s=NOW_S + 0.2), ahead], [])
    assert value(metrics, "dupwatch_end_to_end_seconds_count") == 2
    assert value(metrics, "dupwatch_end_to_end_seconds_sum") == pytest.approx(0.15)
    assert value(metrics, "dupwatch_end_to_end_seconds_bucket", le="0.1") == 1
    assert value(metrics, "dupwatch_end_to_end_seconds_bucket", le="0.2") == 2


def test_a_verdict_given_again_has_no_latency(metrics: Metrics, clock: Clock) -> None:
    """What was decided before the batch began says nothing of how fast this run is."""
    clock.now_s = NOW_S + 10
    metrics.judged([verdict(arrived_s=NOW_S - 86_400, decided_s=NOW_S - 80_000)], [])
    clock.now_s = NOW_S + 20
    metrics.judged([verdict(decided_s=NOW_S + 9), verdict(decided_s=NOW_S + 10)], [])
    assert value(metrics, "dupwatch_end_to_end_seconds_count") == 1
    assert value(metrics, "dupwatch_articles_total", outcome="unique") == 3


def test_latencies_are_told_apart_from_a_millisecond_to_a_minute() -> None:
    """The bounds of the times rise from 1 ms to 60 s, each at most three times the one before."""
    assert (module.SECONDS[0], module.SECONDS[-1]) == (0.001, 60.0)
    assert all(1 < after / before <= 3 for before, after in zip(module.SECONDS, module.SECONDS[1:], strict=False))


def test_the_tally_is_read_when_asked(metrics: Metrics) -> None:
    """The detector's counts show as they are at that moment."""
    tally = Tally(lost_compare_and_sets=3)
    metrics.watch(tally)
    assert value(metrics, "dupwatch_lost_compare_and_sets_total") == 3
    tally.lost_compare_and_sets = 5
    assert value(metrics, "dupwatch_lost_compare_and_sets_total") == 5


def test_every_count_of_the_tally_is_told() -> None:
    """A count that is added to the tally is told too, or is known to be told otherwise."""
    assert {one.name for one in fields(Tally)} == TALLIED.keys() | TOLD_BY_OUTCOME
    assert not TALLIED.keys() & TOLD_BY_OUTCOME


def test_an_outage_counts_once(metrics: Metrics) -> None:
    """However often it is told that the store is out of reach: it counts again only after it was back."""
    for why in ("refused", "refused", "timed out", None, None, "refused"):
        metrics.store_trouble(why)
    assert value(metrics, "dupwatch_store_outages_total") == 2
    assert value(metrics, "dupwatch_errors_total", type="store") == 2
    assert value(metrics, "dupwatch_unreachable", part="store") == 1
    assert value(metrics, "dupwatch_unreachable", part="sink") == 0
    metrics.store_trouble(None)
    assert value(metrics, "dupwatch_unreachable", part="store") == 0


def test_a_source_is_watched(metrics: Metrics) -> None:
    """What a source tells of its group, its lag and what it lost shows."""
    metrics.beat()
    metrics.assigned(3)
    metrics.rebalanced("assigned")
    metrics.lag("articles", 0, 12)
    metrics.paused(paused=True)
    metrics.gap(7)
    metrics.source_trouble("all brokers are down")
    assert value(metrics, "dupwatch_loop_heartbeat_timestamp_seconds", thread="client") == NOW_S
    assert value(metrics, "dupwatch_assigned_partitions") == 3
    assert value(metrics, "dupwatch_rebalances_total", what="assigned") == 1
    assert value(metrics, "dupwatch_lag_records", topic="articles", partition="0") == 12
    assert value(metrics, "dupwatch_paused") == 1
    assert value(metrics, "dupwatch_records_lost_to_retention_total") == 7
    assert value(metrics, "dupwatch_unreachable", part="source") == 1
    metrics.paused(paused=False)
    assert value(metrics, "dupwatch_paused") == 0


@pytest.mark.parametrize("what", ["revoked", "lost"])
def test_the_lag_of_a_partition_that_went_goes_too(metrics: Metrics, what: module.Rebalance) -> None:
    """Another consumer tells it now; told by two it would count twice. One that comes changes nothing."""
    metrics.lag("articles", 0, 12)
    metrics.rebalanced("assigned")
    assert value(metrics, "dupwatch_lag_records", topic="articles", partition="0") == 12
    metrics.rebalanced(what)
    assert value(metrics, "dupwatch_lag_records", topic="articles", partition="0") is None


def test_a_sink_is_watched(metrics: Metrics) -> None:
    """Its outages and new clients count."""
    metrics.sink_trouble("timed out")
    metrics.reconnected()
    assert value(metrics, "dupwatch_errors_total", type="sink") == 1
    assert value(metrics, "dupwatch_sink_reconnections_total") == 1


def test_a_stage_that_fails_is_timed_too(metrics: Metrics) -> None:
    """How long a stage took counts also where it ended with an error, which passes."""
    with pytest.raises(ZeroDivisionError), metrics.stage("judge"):
        raise ZeroDivisionError
    with metrics.stage("judge"):
        pass
    assert value(metrics, "dupwatch_stage_seconds_count", stage="judge") == 2
    assert value(metrics, "dupwatch_stage_seconds_count", stage="commit") == 0


def test_records_without_a_time_are_counted(metrics: Metrics) -> None:
    """So many at once as are told."""
    metrics.record_times_replaced(2)
    metrics.record_times_replaced(1)
    assert value(metrics, "dupwatch_record_times_replaced_total") == 3


def test_two_runs_share_nothing() -> None:
    """Metrics stand in a registry of their own, so that a process may hold several."""
    first, second = (Metrics(Build("1", "s", "p")) for _ in range(2))
    first.reconnected()
    assert value(second, "dupwatch_sink_reconnections_total") == 0


def test_names(metrics: Metrics) -> None:
    """Every name begins with the product's or the process's, has help and no other unit, and stands in one file."""
    metrics.watch(Tally())
    families = list(text_string_to_metric_families(generate_latest(metrics.registry).decode()))
    ours = [one for one in families if one.name.startswith("dupwatch_") and not one.name.endswith("_created")]
    assert len(ours) > len(TALLIED)
    assert [one.name for one in ours if not one.documentation.endswith(".")] == []
    assert [one.name for one in ours if re.search(r"_(ms|minutes|kb|mib|percent)\b", one.name)] == []
    assert [one.name for one in families if not one.name.startswith(("dupwatch_", "process_"))] == []
    source = Path(module.__file__).read_text(encoding="utf-8")
    assert [one.name for one in ours if one.name.removesuffix("_info") not in source] == []
    assert value(metrics, "dupwatch_build_info", version="1.2.3", scheme="jieba-tfidf/1", plan="4x16") == 1


def test_all_is_told_to_both(metrics: Metrics, clock: Clock) -> None:
    """One object takes what source, sink, pipeline and store tell, and metrics and health both know it."""
    health = Health(60, clock=clock)
    monitoring = Monitoring(metrics, health)
    source: SourceWatcher = monitoring
    sink: SinkWatcher = monitoring
    observer: Observer = monitoring
    source.assigned(2)
    assert health.reasons() == []
    source.source_trouble("a")
    sink.sink_trouble("b")
    monitoring.store_trouble("c")
    assert health.reasons() == ["sink: b", "source: a", "store: c"]
    assert [value(metrics, "dupwatch_unreachable", part=part) for part in ("source", "sink", "store")] == [1, 1, 1]
    source.rebalanced("lost")
    source.lag("t", 1, 4)
    source.paused(paused=True)
    source.gap(1)
    sink.reconnected()
    assert value(metrics, "dupwatch_rebalances_total", what="lost") == 1
    assert value(metrics, "dupwatch_lag_records", topic="t", partition="1") == 4
    assert value(metrics, "dupwatch_paused") == 1
    assert value(metrics, "dupwatch_records_lost_to_retention_total") == 1
    assert value(metrics, "dupwatch_sink_reconnections_total") == 1
    monitoring.working()
    clock.now_s += 61
    assert [late.thread for late in health.late()] == ["client", "main"]
    source.beat()
    observer.judged([verdict()], [])
    assert health.late() == []
    assert value(metrics, "dupwatch_articles_total", outcome="unique") == 1
    assert value(metrics, "dupwatch_loop_heartbeat_timestamp_seconds", thread="client") == clock.now_s
    assert value(metrics, "dupwatch_loop_heartbeat_timestamp_seconds", thread="main") == NOW_S
    monitoring.working()
    monitoring.abandoned()
    clock.now_s += 30
    source.beat()
    clock.now_s += 31
    assert health.late() == []
    assert value(metrics, "dupwatch_errors_total", type="batch_abandoned") == 1
