"""What a run measures."""

from dataclasses import fields
from itertools import pairwise
from typing import cast

import numpy as np
import pytest

from consumer.judge.tally import Tally
from consumer.kafka.sink.transactions import SinkReconnected
from consumer.kafka.source.arrivals import RecordTimeBehind
from consumer.kafka.source.client_thread import LagMeasured, ReplicasChecked
from consumer.kafka.source.fetching import FetchingPaused, FetchingWaited
from consumer.kafka.source.gaps import RecordsDeleted
from consumer.kafka.source.handover import ClientProgressed
from consumer.kafka.source.holds import NoteIgnored, PartitionsHeld
from consumer.kafka.source.rebalances import PartitionsRebalanced, Rebalance
from consumer.lifecycle.thread_progress import MAIN, ThreadIdle, ThreadProgress, ThreadProgressed
from consumer.model.article import ExtractionOutcome, Reason, TimeFault
from consumer.model.dead_letter import DeadLetter, LetterPosition, dead_letter
from consumer.model.errors import BadRecord
from consumer.model.hooks import Hooks, Outage, RunPart
from consumer.model.limits import ReadLimits
from consumer.model.verdict import Outcome, Verdict
from consumer.pipeline.arrivals import RecordTimeReplaced
from consumer.pipeline.batches import BatchAbandoned, BatchCommitted, BatchMeasured, StageEnded, report_stage
from consumer.telemetry.health import Health
from consumer.telemetry.metrics import Bounds, Metrics
from consumer.telemetry.metrics.instruments import SECONDS
from consumer.telemetry.metrics.metrics import TALLIED, UNTALLIED_FIELDS
from consumer.text.timestamps import rfc3339
from consumer.web.requests import RequestFailed
from storage.watched import StoreCalled, StoreConnected, StoreRepeated

NOW_S = 1_800_000_000.0


class Clock:
    """A clock that the test moves."""

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
    return Metrics(clock, now=lambda: round(1000 * clock.now_s))


@pytest.fixture
def hooks(metrics: Metrics) -> Hooks:
    """The hooks that the metrics of the run listen to."""
    return Hooks(metrics)


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    """The value of a sample; None if there is no such sample."""
    return metrics.registry.get_sample_value(name, labels)


def verdict(
    outcome: Outcome = "unique",
    *,
    arrived_s: float = NOW_S,
    decided_s: float = NOW_S,
    distance: int | None = None,
    similarity: float | None = None,
) -> Verdict:
    """A verdict with the fields that metrics use."""
    return Verdict(
        id="a",
        outcome=outcome,
        distance=distance,
        similarity=similarity,
        arrived_at=rfc3339(int(arrived_s * 1000)),
        decided_at=rfc3339(int(decided_s * 1000)),
    )


def batch(
    outcomes: list[tuple[str, Outcome]], records: int = 1, size_bytes: int = 1, keywords: tuple[int, ...] = ()
) -> BatchMeasured:
    """What was measured in a batch."""
    return BatchMeasured(records, size_bytes, outcomes, np.array(keywords, np.int64))


def letter(reason: str) -> DeadLetter:
    """A dead letter for this reason."""
    return dead_letter(BadRecord(reason, "for a test"), LetterPosition("topic", 0, 1), b"{")


def test_articles_without_their_published_at_are_counted_by_reason(metrics: Metrics, hooks: Hooks) -> None:
    """All reasons exist from the start, at 0."""
    unread = {TimeFault.NO_ZONE: 2, TimeFault.EMPTY: 1}
    hooks.report(batch([("", "unique")])._replace(time_faults=unread))
    found = {fault: value(metrics, "dupwatch_published_at_unread_total", reason=fault) for fault in TimeFault}
    assert found == dict.fromkeys(TimeFault, 0) | unread


def test_pages_are_counted_by_what_was_taken_from_them(metrics: Metrics, hooks: Hooks) -> None:
    """All labels exist from the start, at 0."""
    pages = {ExtractionOutcome.ARTICLE: 2, ExtractionOutcome.WHOLE_TEXT: 1}
    hooks.report(batch([("", "unique")])._replace(pages=pages))
    found = {extracted: value(metrics, "dupwatch_pages_total", extracted=extracted) for extracted in ExtractionOutcome}
    assert found == dict.fromkeys(ExtractionOutcome, 0) | pages


def test_markup_without_text_is_counted(metrics: Metrics, hooks: Hooks) -> None:
    """Over all batches; a batch without any counts none."""
    for articles in (2, 0, 1):
        hooks.report(batch([("", "unique")])._replace(without_text=articles))
    assert value(metrics, "dupwatch_without_text_total") == 3


def test_a_batch_is_counted(metrics: Metrics, hooks: Hooks, clock: Clock) -> None:
    """Articles count by outcome, duplicates by kind, dead letters by reason; a copy has distance 0 and similarity 1."""
    clock.now_s += 1
    verdicts = [
        verdict(),
        verdict("retracted"),
        verdict("duplicate", distance=0, similarity=1.0),
        verdict("duplicate", distance=0, similarity=0.99),
        verdict("duplicate", distance=1, similarity=1.0),
        verdict("duplicate", distance=0),
    ]
    hooks.report(BatchCommitted(verdicts, [letter("missing_id"), letter("missing_id")]))
    assert value(metrics, "dupwatch_articles_total", outcome="unique") == 1
    assert value(metrics, "dupwatch_articles_total", outcome="retracted") == 1
    assert value(metrics, "dupwatch_articles_total", outcome="duplicate") == 4
    assert value(metrics, "dupwatch_duplicates_total", kind="copy") == 1
    assert value(metrics, "dupwatch_duplicates_total", kind="near") == 3
    assert value(metrics, "dupwatch_dead_letters_total", reason="missing_id") == 2
    assert value(metrics, "dupwatch_duplicate_similarity_ratio_sum") == pytest.approx(2.99)
    assert value(metrics, "dupwatch_duplicate_similarity_ratio_bucket", le="0.99") == 1
    assert value(metrics, "dupwatch_duplicate_similarity_ratio_bucket", le="+Inf") == 3
    assert value(metrics, "dupwatch_duplicate_distance_bucket", le="0.0") == 3
    assert value(metrics, "dupwatch_duplicate_distance_bucket", le="1.0") == 4
    assert value(metrics, "dupwatch_last_processed_timestamp_seconds") == NOW_S + 1


def test_a_reason_nobody_knows_makes_no_series(metrics: Metrics, hooks: Hooks) -> None:
    """Each reason has a series from the start, and unknown reasons share one."""
    hooks.report(BatchCommitted([], [letter("made up 1"), letter("made up 2")]))
    assert value(metrics, "dupwatch_dead_letters_total", reason="other") == 2
    (family,) = [metric for metric in metrics.registry.collect() if metric.name == "dupwatch_dead_letters"]
    labels = {sample.labels["reason"] for sample in family.samples if sample.name.endswith("_total")}
    assert labels == set(Reason) | {"other"}


def test_latency_is_from_the_record_time(metrics: Metrics, hooks: Hooks, clock: Clock) -> None:
    """Latency is from the record time to the commit; 0 if the clock of the producer is ahead."""
    clock.now_s = NOW_S + 0.25
    ahead = verdict(arrived_s=NOW_S + 100, decided_s=NOW_S + 0.2)
    hooks.report(BatchCommitted([verdict(arrived_s=NOW_S + 0.1, decided_s=NOW_S + 0.2), ahead], []))
    assert value(metrics, "dupwatch_end_to_end_seconds_count") == 2
    assert value(metrics, "dupwatch_end_to_end_seconds_sum") == pytest.approx(0.15)
    assert value(metrics, "dupwatch_end_to_end_seconds_bucket", le="0.1") == 1
    assert value(metrics, "dupwatch_end_to_end_seconds_bucket", le="0.2") == 2


def test_a_verdict_given_again_has_no_latency(metrics: Metrics, hooks: Hooks, clock: Clock) -> None:
    """A verdict decided before the batch began does not count for latency."""
    clock.now_s = NOW_S + 10
    hooks.report(BatchCommitted([verdict(arrived_s=NOW_S - 86_400, decided_s=NOW_S - 80_000)], []))
    clock.now_s = NOW_S + 20
    hooks.report(BatchCommitted([verdict(decided_s=NOW_S + 9), verdict(decided_s=NOW_S + 10)], []))
    assert value(metrics, "dupwatch_end_to_end_seconds_count") == 1
    assert value(metrics, "dupwatch_articles_total", outcome="unique") == 3


def test_latencies_are_told_apart_from_a_millisecond_to_a_minute() -> None:
    """The bounds go from 1 ms to 60 s, each at most three times the previous one."""
    assert (SECONDS[0], SECONDS[-1]) == (0.001, 60.0)
    assert all(1 < after / before <= 3 for before, after in pairwise(SECONDS))


def test_the_tally_is_read_when_asked(metrics: Metrics) -> None:
    """A scrape shows the current counts of the detector."""
    tally = Tally(lost_compare_and_sets=3)
    metrics.watch(tally)
    assert value(metrics, "dupwatch_lost_compare_and_sets_total") == 3
    tally.lost_compare_and_sets = 5
    assert value(metrics, "dupwatch_lost_compare_and_sets_total") == 5
    tally.candidates.add([0, 3, 3, 20_000])
    assert value(metrics, "dupwatch_article_candidates_sum") == 20_006
    counts = {le: value(metrics, "dupwatch_article_candidates_bucket", le=le) for le in ("0.0", "2.0", "5.0", "+Inf")}
    assert counts == {"0.0": 1, "2.0": 1, "5.0": 3, "+Inf": 4}
    assert value(metrics, "dupwatch_article_candidates_count") == 4


def test_every_count_of_the_tally_is_told() -> None:
    """Every field of the tally is a metric, or is listed as reported otherwise."""
    assert {tallied.name for tallied in fields(Tally)} == TALLIED.keys() | UNTALLIED_FIELDS
    assert not TALLIED.keys() & UNTALLIED_FIELDS


def test_a_batch_is_measured() -> None:
    """Records, bytes and keywords; the fill ratio is of the nearer limit, and at most 1."""
    read = ReadLimits(batch_records_max=100, batch_bytes_max=1_000)
    metrics = Metrics(bounds=Bounds(read))
    hooks = Hooks(metrics)
    hooks.report(batch([], records=20, size_bytes=100, keywords=(3, 70)))
    hooks.report(batch([], records=10, size_bytes=400))
    hooks.report(batch([], records=1, size_bytes=9_000))
    assert value(metrics, "dupwatch_batch_records_sum") == 31
    assert value(metrics, "dupwatch_batch_bytes_sum") == 9_500
    assert value(metrics, "dupwatch_batch_fill_ratio_sum") == pytest.approx(0.2 + 0.4 + 1)
    assert value(metrics, "dupwatch_article_keywords_bucket", le="5.0") == 1
    assert value(metrics, "dupwatch_article_keywords_bucket", le="100.0") == 2


def by_source(metrics: Metrics, source: str, outcome: Outcome) -> float | None:
    """The number of articles of this source with this outcome."""
    return value(metrics, "dupwatch_source_articles_total", source=source, outcome=outcome)


def test_articles_count_by_source() -> None:
    """The first sources have series of their own, later ones share one; each has all outcomes at once."""
    metrics = Metrics(bounds=Bounds(sources_max=2, sources=("ours",)))
    hooks = Hooks(metrics)
    assert by_source(metrics, "ours", "duplicate") == 0
    assert by_source(metrics, "wire", "unique") is None
    hooks.report(batch([("wire", "unique"), ("wire", "unique"), ("ours", "duplicate"), ("late", "unique")]))
    hooks.report(batch([("later", "unique"), ("", "retracted"), (" wi\u200bre", "unique")]))
    assert [by_source(metrics, "wire", outcome) for outcome in ("unique", "duplicate")] == [3, 0]
    assert by_source(metrics, "ours", "duplicate") == 1
    assert by_source(metrics, "other", "unique") == 2
    assert by_source(metrics, "none", "retracted") == 1
    assert by_source(metrics, "late", "unique") is None


def test_calls_and_connections_of_the_store_count(metrics: Metrics, hooks: Hooks) -> None:
    """Calls count by operation and outcome; the time of failed calls and retries within a call count, too."""
    hooks.report(StoreCalled("settle", "ok", 0.003))
    hooks.report(StoreCalled("settle", "unavailable", 60.0))
    hooks.report(StoreConnected("opened"))
    hooks.report(StoreRepeated("settle"))
    hooks.report(StoreRepeated("settle"))
    assert value(metrics, "dupwatch_store_repeats_total", operation="settle") == 2
    assert value(metrics, "dupwatch_store_repeats_total", operation="create") == 0
    assert value(metrics, "dupwatch_store_operations_total", operation="settle", outcome="unavailable") == 1
    assert value(metrics, "dupwatch_store_operation_seconds_count", operation="settle") == 2
    assert value(metrics, "dupwatch_store_operation_seconds_bucket", operation="settle", le="0.005") == 1
    assert value(metrics, "dupwatch_store_connections_total", what="opened") == 1
    assert value(metrics, "dupwatch_store_connections_total", what="lost") == 0


def test_an_outage_counts_once(metrics: Metrics, hooks: Hooks) -> None:
    """Repeated reports of one outage count once; it counts again only after the store was reachable."""
    for why in ("refused", "refused", "timed out", None, None, "refused"):
        hooks.report(Outage("store", "test", why))
    assert value(metrics, "dupwatch_outages_total", part="store") == 2
    assert value(metrics, "dupwatch_recoveries_total", part="store") == 1
    assert value(metrics, "dupwatch_errors_total", type="store") == 2
    assert value(metrics, "dupwatch_unreachable", part="store") == 1
    assert value(metrics, "dupwatch_unreachable", part="sink") == 0
    hooks.report(Outage("store", "test", None))
    assert value(metrics, "dupwatch_unreachable", part="store") == 0
    assert value(metrics, "dupwatch_recoveries_total", part="store") == 2
    assert value(metrics, "dupwatch_recoveries_total", part="sink") == 0


def test_a_source_is_watched(metrics: Metrics, hooks: Hooks) -> None:
    """Reports of a source on its group, lag and lost records are metrics."""
    hooks.report(ClientProgressed())
    hooks.report(PartitionsRebalanced("assigned", 3))
    hooks.report(LagMeasured("articles", 0, 12))
    hooks.report(FetchingPaused(paused=True))
    hooks.report(FetchingWaited(0.25))
    hooks.report(RecordsDeleted(7))
    hooks.report(ReplicasChecked("articles", 4))
    hooks.report(Outage("source", "test", "all brokers are down"))
    assert value(metrics, "dupwatch_loop_heartbeat_timestamp_seconds", thread="client") == NOW_S
    assert value(metrics, "dupwatch_assigned_partitions") == 3
    assert value(metrics, "dupwatch_rebalances_total", what="assigned") == 1
    assert value(metrics, "dupwatch_lag_records", topic="articles", partition="0") == 12
    assert value(metrics, "dupwatch_paused") == 1
    assert value(metrics, "dupwatch_under_replicated_partitions", topic="articles") == 4
    assert value(metrics, "dupwatch_stage_seconds_sum", stage="back_pressure") == 0.25
    assert value(metrics, "dupwatch_records_lost_to_retention_total") == 7
    assert value(metrics, "dupwatch_unreachable", part="source") == 1
    hooks.report(FetchingPaused(paused=False))
    assert value(metrics, "dupwatch_paused") == 0


@pytest.mark.parametrize("what", ["revoked", "lost"])
def test_the_lag_of_a_partition_that_went_goes_too(metrics: Metrics, hooks: Hooks, what: Rebalance) -> None:
    """Its new owner reports it now; reported by both it would count twice. An assigned partition changes nothing."""
    hooks.report(LagMeasured("articles", 0, 12))
    hooks.report(PartitionsRebalanced("assigned", 1))
    assert value(metrics, "dupwatch_lag_records", topic="articles", partition="0") == 12
    hooks.report(PartitionsRebalanced(what, 1))
    assert value(metrics, "dupwatch_lag_records", topic="articles", partition="0") is None


def test_what_is_held_is_told_and_its_lag_is_not(metrics: Metrics, hooks: Hooks) -> None:
    """The lag of a held partition is not shown: it would set off alerts. A partition that is gone is not shown."""
    hooks.report(LagMeasured("articles", 0, 12))
    hooks.report(LagMeasured("articles", 1, 12))
    hooks.report(
        PartitionsHeld(
            {("articles", 0): "6 of the last 10", ("articles", 1): None, ("articles", 2): "6 of the last 10"}
        )
    )
    gauges = [value(metrics, "dupwatch_partition_held", topic="articles", partition=str(number)) for number in range(3)]
    assert gauges == [1, 0, 1]
    lags = [value(metrics, "dupwatch_lag_records", topic="articles", partition=str(number)) for number in range(2)]
    assert lags == [None, 12]
    hooks.report(PartitionsHeld({("articles", 1): None}))
    assert value(metrics, "dupwatch_partition_held", topic="articles", partition="0") is None
    hooks.report(RecordTimeBehind())
    hooks.report(NoteIgnored())
    assert value(metrics, "dupwatch_record_times_behind_total") == 1
    assert value(metrics, "dupwatch_errors_total", type="offset_note") == 1


def test_a_sink_is_watched(metrics: Metrics, hooks: Hooks) -> None:
    """Its outages and new clients count."""
    hooks.report(Outage("sink", "test", "timed out"))
    hooks.report(SinkReconnected())
    assert value(metrics, "dupwatch_errors_total", type="sink") == 1
    assert value(metrics, "dupwatch_sink_reconnections_total") == 1


def test_a_stage_that_fails_is_timed_too(metrics: Metrics, hooks: Hooks) -> None:
    """A stage that fails is timed, too, and its error is raised."""
    with pytest.raises(ZeroDivisionError), report_stage(hooks, "emit"):
        raise ZeroDivisionError
    with report_stage(hooks, "emit"):
        pass
    hooks.report(StageEnded("look_up", 1.5))
    assert value(metrics, "dupwatch_stage_seconds_count", stage="emit") == 2
    assert value(metrics, "dupwatch_stage_seconds_sum", stage="look_up") == 1.5
    assert value(metrics, "dupwatch_stage_seconds_count", stage="commit") == 0


def test_records_without_a_time_are_counted(metrics: Metrics, hooks: Hooks) -> None:
    """Each record whose time was replaced counts."""
    hooks.report(RecordTimeReplaced())
    hooks.report(RecordTimeReplaced())
    assert value(metrics, "dupwatch_record_times_replaced_total") == 2


def test_two_runs_share_nothing() -> None:
    """Each run has its own registry, so that a process may have several."""
    first, second = (Metrics() for _ in range(2))
    Hooks(first).report(SinkReconnected())
    assert value(second, "dupwatch_sink_reconnections_total") == 0


def test_one_report_reaches_metrics_and_health(metrics: Metrics, clock: Clock) -> None:
    """Both listen to the same hooks: an outage, an assignment and a hold show in both."""
    health = Health(60, clock=clock)
    hooks = Hooks(metrics, health)
    hooks.report(ClientProgressed())
    hooks.report(PartitionsRebalanced("assigned", 2))
    assert health.unready_reasons() == []
    assert value(metrics, "dupwatch_assigned_partitions") == 2
    for part, why in (("source", "a"), ("sink", "b"), ("store", "c")):
        hooks.report(Outage(cast("RunPart", part), "test", why))
    assert health.unready_reasons() == ["sink: b", "source: a", "store: c"]
    assert [value(metrics, "dupwatch_unreachable", part=part) for part in ("source", "sink", "store")] == [1, 1, 1]
    hooks.report(PartitionsHeld({("t", 1): None, ("t", 2): "6 of the last 10"}))
    assert value(metrics, "dupwatch_partition_held", topic="t", partition="2") == 1
    assert health.held_partitions() == {"t:2": "6 of the last 10"}


def test_threads_that_work_show_in_metrics_and_health(metrics: Metrics, clock: Clock) -> None:
    """The main thread is busy while it works; one that does not turn is late, and one that rests is not."""
    health = Health(60, clock=clock)
    hooks = Hooks(metrics, health)
    progress = ThreadProgress(hooks)
    hooks.report(ClientProgressed())
    progress.report()
    assert value(metrics, "dupwatch_busy") == 1
    clock.now_s += 61
    assert [late.thread for late in health.hanging_threads()] == ["client", "main"]
    hooks.report(ClientProgressed())
    progress.report_idle()
    assert health.hanging_threads() == []
    assert value(metrics, "dupwatch_busy") == 0
    assert value(metrics, "dupwatch_loop_heartbeat_timestamp_seconds", thread="client") == clock.now_s
    assert value(metrics, "dupwatch_loop_heartbeat_timestamp_seconds", thread="main") == NOW_S
    with progress.at_work():
        assert value(metrics, "dupwatch_busy") == 1
    assert value(metrics, "dupwatch_busy") == 0
    clock.now_s += 30
    hooks.report(ClientProgressed())
    clock.now_s += 31
    assert health.hanging_threads() == []


def test_threads_beside_the_main_one_are_not_busy(metrics: Metrics, clock: Clock) -> None:
    """A thread that prepares batches counts for health, under its name, and not for the busy main thread."""
    health = Health(60, clock=clock)
    hooks = Hooks(metrics, health)
    hooks.report(ThreadIdle(MAIN))
    hooks.report(ThreadProgressed("read-ahead"))
    assert value(metrics, "dupwatch_busy") == 0
    clock.now_s += 61
    assert [late.thread for late in health.hanging_threads()] == ["read-ahead"]
    hooks.report(ThreadIdle("read-ahead"))
    assert health.hanging_threads() == []


def test_what_goes_wrong_without_ending_a_run_is_counted(metrics: Metrics) -> None:
    """Batches that were abandoned, and requests for pages that failed."""
    hooks = Hooks(metrics)
    hooks.report(BatchAbandoned())
    hooks.report(RequestFailed())
    assert value(metrics, "dupwatch_errors_total", type="batch_abandoned") == 1
    assert value(metrics, "dupwatch_errors_total", type="request") == 1
