"""The loop that takes each batch of records from the source to the commit.

    poll ──▶ decode ──▶ fingerprint ──▶ look up ──▶ settle ──▶ emit ──▶ commit
              (read ahead: about ``ahead`` batches)    (one batch at a time, in order; its partitions side by side)

A batch is committed after its verdicts and dead letters are flushed. The commit records how far the source was read. If
the run ends in between, the next run reads and judges the batch again, and gets the same verdicts, byte for byte. Only
streams and the requests of clients cannot be read again.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from consumer.banks.busy_items import BusyItems
from consumer.judge.expiry import Expiry
from consumer.judge.judge import Judge
from consumer.judge.tally import Cost
from consumer.judge.versions import VersionBuilder
from consumer.lifecycle.interruption import UNINTERRUPTED, Interruption
from consumer.lifecycle.retry import NoRetry, RetryPolicy
from consumer.lifecycle.stopping import StopSignal
from consumer.lifecycle.thread_progress import ThreadProgress
from consumer.model.article import Article
from consumer.model.errors import Abandoned
from consumer.model.hooks import Hooks
from consumer.model.ports import JudgedRecord, Sink, Source
from consumer.model.record import RawRecord
from consumer.model.verdict import Verdict, VerdictEvent
from consumer.pipeline.arrivals import Arrivals
from consumer.pipeline.batches import (
    BatchAbandoned,
    BatchCommitted,
    BatchMeasured,
    BatchStarted,
    StageEnded,
    report_stage,
)
from consumer.pipeline.dead_letter_policy import DeadLetterPolicy
from consumer.pipeline.journal import Journal
from consumer.pipeline.preparation import Preparation, PreparedBatch
from consumer.pipeline.side_by_side import SideBySide
from consumer.workers.pool import Fingerprinting, TimedFingerprints
from storage.records import Tombstone, Version

log = logging.getLogger("dupwatch")


_CHECK_S = 0.1
"""How often, in seconds, a wait for fingerprints checks whether to abandon the batch."""


def reply_to_nobody() -> None:
    """Do nothing: no client waits for the records of files and topics."""


class PlanWarning:
    """A warning, logged once, that the look-ups of a batch read more than ``postings_max`` postings on average.

    ``larger`` is the plan to move to, or None if there is no larger one.
    """

    def __init__(self, plan_name: str, larger: str | None, postings_max: int) -> None:
        self._plan_name = plan_name
        self._larger = larger
        self._postings_max = postings_max
        self._warned = False

    def observe(self, versions: int, postings_read: int) -> None:
        """Note the number of versions judged in a batch and of postings read for them; warn if too many were read."""
        if self._warned or not versions or postings_read / versions <= self._postings_max:
            return
        self._warned = True
        log.warning(
            "Look-ups read %d postings on average, more than %d. The window is too large for the plan %s: %s",
            postings_read // versions,
            self._postings_max,
            self._plan_name,
            f"move to {self._larger} with dupwatch migrate, or shorten the window"
            if self._larger
            else "shorten the window",
        )


@dataclass(slots=True)
class Pipeline:
    """One run over one source. It builds nothing itself; ``wiring`` provides all its parts.

    ``decode`` raises ``BadRecord`` for a record that cannot be judged, which then goes to ``dead_letters``. If
    ``decode`` has to wait and the run is asked to stop in the meantime, it raises ``Abandoned``.

    ``hooks`` get a report of each step of a batch, and of whether a thread is working or waiting for records.
    A method of ``interruption`` is called between any two pieces of work, and while the batch waits for its
    fingerprints. By default, a batch that has begun is finished. With ``side_by_side``, partitions are judged at the
    same time. ``postings_watch`` is ``postings_max`` of ``PlanWarning``. ``busy_items`` decides which bank matches are
    withheld. ``reply`` is called when a batch is committed and reported.
    """

    source: Source
    decode: Callable[[RawRecord], Article]
    fingerprinting: Fingerprinting
    builder: VersionBuilder
    arrivals: Arrivals
    detector: Judge
    sink: Sink
    dead_letters: DeadLetterPolicy
    journal: Journal
    hooks: Hooks
    stopping: StopSignal
    expiry: Expiry
    postings_watch: int
    retry: RetryPolicy = field(default_factory=NoRetry)
    interruption: Interruption = UNINTERRUPTED
    side_by_side: SideBySide | None = None
    busy_items: BusyItems | None = None
    reply: Callable[[], None] = reply_to_nobody

    def run(self) -> None:
        """Judge until the source ends or the run is asked to stop. A batch that has begun is committed or given up."""
        preparation = Preparation(
            self.source,
            self.decode,
            self.dead_letters.reject,
            self.fingerprinting,
            self.hooks,
            self.stopping,
            self.interruption,
        )
        detector, progress = self.detector, ThreadProgress(self.hooks)
        plan_warning = PlanWarning(detector.plan_name, detector.larger_plan, self.postings_watch)
        for prepared in self.stopping.until_requested(preparation.batches()):
            with progress.at_work():
                self._finish_or_abandon(prepared, plan_warning)
        if self.stopping.requested_by is None:
            self.journal.finish()
            self.dead_letters.gate.at_end()

    def _finish_or_abandon(self, prepared: PreparedBatch, plan_warning: PlanWarning) -> None:
        try:
            cost = self._finish(prepared)
        except Abandoned as why:
            log.info("A batch of %d records was given up: %s", len(prepared.batch.records), why)
            self.journal.abandon()
            self.hooks.report(BatchAbandoned())
        else:
            plan_warning.observe(cost.versions, cost.postings_read)

    def _finish(self, prepared: PreparedBatch) -> Cost:
        """Judge, emit and commit a batch; return the cost of judging it."""
        self.journal.begin(prepared.batch.end)
        self.hooks.report(BatchStarted(prepared.batch))
        self.dead_letters.gate.before_judging(prepared.batch, prepared.rejections)
        fingerprints = self._fingerprints(prepared)
        self.hooks.report(StageEnded("fingerprint", fingerprints.work_s))
        self.retry.call(self.expiry.begin)
        arrived = self._with_arrivals(prepared, fingerprints)
        before = self.detector.cost()
        events = self._judge(prepared, arrived)
        cost = self.detector.cost().since(before)
        self.hooks.report(StageEnded("look_up", cost.look_up_s))
        self.hooks.report(StageEnded("settle", cost.settle_s))
        verdicts = [event.verdict for event in events]
        answers = self._answers(prepared, arrived, events, verdicts)
        letters = [rejection.letter for rejection in prepared.rejections]
        with report_stage(self.hooks, "emit"):
            self.sink.emit(answers)
            self.dead_letters.sink.reject(prepared.rejections)
            self.sink.flush()
            self.dead_letters.sink.flush()
        with report_stage(self.hooks, "commit"):
            self.journal.commit(prepared.batch.end, verdicts, letters)
        if self.busy_items is not None:
            self.busy_items.commit()
        if self.hooks.wants(BatchMeasured):
            self.hooks.report(_measurements(prepared, fingerprints, verdicts))
        self.hooks.report(BatchCommitted(verdicts, letters))
        self.reply()
        self.dead_letters.gate.after_commit()
        self._sweep(arrived)
        return cost

    def _fingerprints(self, prepared: PreparedBatch) -> TimedFingerprints:
        """Wait for the fingerprints, without reporting progress, so that a worker process that hangs is noticed."""
        while not prepared.fingerprints.done():
            wait([prepared.fingerprints], _CHECK_S)
            self.interruption.while_idle()
        return prepared.fingerprints.result()

    def _judge(self, prepared: PreparedBatch, arrived: Sequence[Version | Tombstone]) -> list[VerdictEvent]:
        if self.side_by_side is None:
            return _judge_in_order(arrived, lambda part: self.retry.call(partial(self.detector.judge, part)))
        partitions = [record.partition for record, _ in prepared.articles]
        judge = partial(_judge_in_order, judge=self.detector.judge)
        # All parts are retried together: one that waits for the store must not hide the permanent failure of another.
        return self.retry.call(partial(self.side_by_side.call, judge, arrived, partitions))

    def _answers(
        self,
        prepared: PreparedBatch,
        arrived: Sequence[Version | Tombstone],
        events: Sequence[VerdictEvent],
        verdicts: Sequence[Verdict],
    ) -> list[JudgedRecord]:
        withheld = [False] * len(events) if self.busy_items is None else self.busy_items.withheld(verdicts)
        return [
            JudgedRecord(record, event, match_withheld, item.record.kind if isinstance(item, Version) else None)
            for (record, _), item, event, match_withheld in zip(
                prepared.articles, arrived, events, withheld, strict=True
            )
        ]

    def _with_arrivals(self, prepared: PreparedBatch, computed: TimedFingerprints) -> list[Version | Tombstone]:
        """Return the versions and retractions of a batch with their arrivals, in the order of the feed."""
        arrivals = [self.arrivals.arrived_at(record, article) for record, article in prepared.articles]
        bodied = [
            (article, arrival)
            for (_, article), arrival in zip(prepared.articles, arrivals, strict=True)
            if article.body is not None
        ]
        versions = iter(
            self.builder.versions(
                [article for article, _ in bodied], [arrival for _, arrival in bodied], computed.fingerprints
            )
        )
        return [
            self.detector.retraction(article.id, arrival, self.arrivals.record_name(record))
            if article.body is None
            else next(versions)
            for arrival, (record, article) in zip(arrivals, prepared.articles, strict=True)
        ]

    def _sweep(self, arrived: Sequence[Version | Tombstone]) -> None:
        if arrived:
            newest_ms = max(item.time_ms if isinstance(item, Tombstone) else item.record.time_ms for item in arrived)
            # The batch is committed already. If the run has to stop now, the next run sweeps.
            with suppress(Abandoned):
                self.retry.call(partial(self.expiry.sweep, newest_ms, len(arrived)))


def _measurements(prepared: PreparedBatch, computed: TimedFingerprints, verdicts: Sequence[Verdict]) -> BatchMeasured:
    records = prepared.batch.records
    return BatchMeasured(
        records=len(records),
        size_bytes=sum(record.size_bytes for record in records),
        outcomes=[
            (article.source, verdict.outcome) for (_, article), verdict in zip(prepared.articles, verdicts, strict=True)
        ],
        keyword_counts=computed.fingerprints.keyword_counts,
        headers_lost=sum(record.headers_lost > 0 for record in records),
        time_faults=Counter(article.time_fault for _, article in prepared.articles if article.time_fault is not None),
        pages=Counter(article.extracted for _, article in prepared.articles if article.extracted is not None),
        without_text=sum(article.without_text for _, article in prepared.articles),
    )


def _judge_in_order(
    arrived: Sequence[Version | Tombstone], judge: Callable[[Sequence[Version | Tombstone]], list[VerdictEvent]]
) -> list[VerdictEvent]:
    return [event for part in parts_with_distinct_ids(arrived) for event in judge(part)]


def parts_with_distinct_ids(arrived: Sequence[Version | Tombstone]) -> Iterator[list[Version | Tombstone]]:
    """Split a batch where an id occurs again: its second occurrence must see the verdict of the first."""
    part: list[Version | Tombstone] = []
    seen: set[bytes] = set()
    for item in arrived:
        id_hash = item.id_hash if isinstance(item, Tombstone) else item.record.id_hash
        if id_hash in seen:
            yield part
            part, seen = [], set()
        part.append(item)
        seen.add(id_hash)
    if part:
        yield part
