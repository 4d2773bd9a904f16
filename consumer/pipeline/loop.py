"""The loop: what happens to a batch of records, from the source to the commit.

    poll ──▶ decode ──▶ fingerprint ──▶ look up ──▶ settle ──▶ emit ──▶ commit
              (read ahead: at most ``ahead`` batches)  (one batch at a time, in order)

A batch is committed after its verdicts and dead letters are flushed, and the commit says how far the source was
read: whatever happens in between, the batch is read and judged again, with the same words.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from consumer.judge.detector import Detector
from consumer.judge.versions import VersionBuilder
from consumer.lifecycle.retry import NoPatience, Patience
from consumer.lifecycle.stopping import Stopping
from consumer.lifecycle.turns import Turns
from consumer.model.article import Article
from consumer.model.dead_letter import DeadLetter
from consumer.model.errors import Abandoned, BadRecord
from consumer.model.hooks import Hooks
from consumer.model.ports import Answer, Rejection, Sink, Source
from consumer.model.record import RawBatch, RawRecord
from consumer.model.verdict import Verdict, VerdictEvent
from consumer.pipeline.arrivals import Feed
from consumer.pipeline.bad_record_limit import Gate
from consumer.pipeline.batches import BatchAbandoned, BatchBegun, BatchCommitted, BatchMeasured
from consumer.pipeline.journal import Journal
from consumer.pipeline.read_ahead import read_ahead
from consumer.pipeline.stages import StageEnded, timed
from consumer.workers.pool import Fingerprinting, Made
from storage.records import Tombstone, Version

log = logging.getLogger("dupwatch")


LARGER_PLANS = {"4x16": "16x28", "8x16": "4x32"}
"""The plan to move to when a window outgrows its own: rows under a wider key are shorter."""
SWEEP_FACTOR = 4
"""A batch sweeps away up to this many times its own size, so that a backlog shrinks."""
_LOOK_S = 0.1
"""How often a wait for fingerprints looks whether the batch is given up."""


def _go_on() -> None:
    """Nobody has a say."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch that was read and decoded; its fingerprints may still be under way, one for each article with a body."""

    batch: RawBatch
    articles: Sequence[tuple[RawRecord, Article]]
    rejections: Sequence[Rejection]
    made: "Future[Made]"


@dataclass(slots=True)
class Pipeline:
    """One run over one source. Everything it works with is handed to it; it builds nothing.

    ``decode`` raises ``BadRecord``; ``bury`` makes the dead letter of such a record. Where ``decode`` has to wait, and
    the run was asked to stop meanwhile, it raises ``Abandoned``.

    ``hooks`` hears what happens to each batch, and when a thread has records and when it waits for more. While a thread
    prepares a batch it calls ``turn`` between any two pieces of work; while it waits for fingerprints it calls
    ``check``. Both raise ``Abandoned`` where the batch is to be given up.
    """

    source: Source
    decode: Callable[[RawRecord], Article]
    bury: Callable[[RawRecord, BadRecord], DeadLetter]
    fingerprinting: Fingerprinting
    builder: VersionBuilder
    feed: Feed
    detector: Detector
    sink: Sink
    journal: Journal
    hooks: Hooks
    stopping: Stopping
    keep_ms: int
    postings_watch: int
    patience: Patience = field(default_factory=NoPatience)
    poison: Gate | None = None
    turn: Callable[[], None] = _go_on
    check: Callable[[], None] = _go_on
    _turns: Turns = field(init=False)
    _warned: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Report the turns of this run's threads to its listeners."""
        self._turns = Turns(self.hooks)

    def run(self) -> None:
        """Judge until the source ends or somebody asks to stop; what was begun is finished and committed."""
        for prepared in self.stopping.between(self._prepared()):
            with self._turns.at_work():
                self._finish_or_abandon(prepared)
        if self.stopping.asked_by is None:
            self.journal.finish()
            if self.poison is not None:
                self.poison.ended()

    def _finish_or_abandon(self, prepared: Prepared) -> None:
        try:
            self._finish(prepared)
        except Abandoned as why:
            log.info("A batch of %d records was given up: %s", len(prepared.batch.records), why)
            self.journal.abandon()
            self.hooks.report(BatchAbandoned())

    def _prepared(self) -> Iterator[Prepared]:
        prepared = self._preparing()
        return read_ahead(prepared, self.fingerprinting.ahead) if self.fingerprinting.ahead else prepared

    def _preparing(self) -> Iterator[Prepared]:
        for batch in self._polled():
            try:
                with self._turns.at_work():
                    prepared = self._prepare(batch)
            except Abandoned as why:
                if not self.stopping.asked():
                    raise
                log.info("A batch of %d records was not begun: %s", len(batch.records), why)
                return
            yield prepared

    def _polled(self) -> Iterator[RawBatch]:
        batches = self.source.batches()
        while True:
            with timed(self.hooks, "poll"):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def _prepare(self, batch: RawBatch) -> Prepared:
        articles: list[tuple[RawRecord, Article]] = []
        rejections: list[Rejection] = []
        with timed(self.hooks, "decode"):
            for record in batch.records:
                self.turn()
                try:
                    articles.append((record, self.decode(record)))
                except BadRecord as error:
                    rejections.append(Rejection(record, self.bury(record, error)))
        bodied = [article for _, article in articles if article.body is not None]
        made = self.fingerprinting.submit(
            [article.body or "" for article in bodied], [article.lang for article in bodied]
        )
        return Prepared(batch, articles, rejections, made)

    def _finish(self, prepared: Prepared) -> None:
        self.journal.begin(prepared.batch.end)
        self.hooks.report(BatchBegun(prepared.batch))
        if self.poison is not None:
            self.poison.see(prepared.batch, prepared.rejections)
        made = self._made(prepared)
        self.hooks.report(StageEnded("fingerprint", made.work_s))
        arrived = self._arrive(prepared, made)
        before = self.detector.cost()
        events = self._judge(arrived)
        cost = self.detector.cost().since(before)
        self.hooks.report(StageEnded("look_up", cost.look_up_s))
        self.hooks.report(StageEnded("settle", cost.settle_s))
        verdicts = [event.verdict for event in events]
        answers = [
            Answer(record, event.encoded, event.verdict)
            for (record, _), event in zip(prepared.articles, events, strict=True)
        ]
        letters = [one.letter for one in prepared.rejections]
        with timed(self.hooks, "emit"):
            self.sink.emit(answers)
            self.sink.reject(prepared.rejections)
            self.sink.flush()
        with timed(self.hooks, "commit"):
            self.journal.commit(prepared.batch.end, verdicts, letters)
        if self.hooks.wants(BatchMeasured):
            self.hooks.report(_measured(prepared, made, verdicts))
        self.hooks.report(BatchCommitted(verdicts, letters))
        if self.poison is not None:
            self.poison.answered()
        self._watch(cost.versions, cost.postings_read)
        self._sweep(arrived)

    def _made(self, prepared: Prepared) -> Made:
        """Wait for the fingerprints. This is no turn of the loop: a worker process that hangs has to show."""
        while not prepared.made.done():
            wait([prepared.made], _LOOK_S)
            self.check()
        return prepared.made.result()

    def _judge(self, arrived: Sequence[Version | Tombstone]) -> list[VerdictEvent]:
        return [
            event for part in distinct_ids(arrived) for event in self.patience.call(partial(self.detector.judge, part))
        ]

    def _arrive(self, prepared: Prepared, made: Made) -> list[Version | Tombstone]:
        """Give everything its arrival, in the order of the feed."""
        came = [self.feed.came(record, article) for record, article in prepared.articles]
        bodied = [at for at, (_, article) in enumerate(prepared.articles) if article.body is not None]
        versions = iter(
            self.builder.versions(
                [prepared.articles[at][1] for at in bodied],
                [came[at] for at in bodied],
                made.fingerprints,
            )
        )
        return [
            next(versions)
            if article.body is not None
            else self.detector.retraction(article.id, at, self.feed.place(record))
            for at, (record, article) in zip(came, prepared.articles, strict=True)
        ]

    def _watch(self, versions: int, postings: int) -> None:
        if not self._warned and versions and postings / versions > self.postings_watch:
            self._warned = True
            larger = LARGER_PLANS.get(self.detector.plan_name)
            log.warning(
                "An article reads %d postings on average, more than %d: the window has outgrown the plan %s; %s.",
                postings // versions,
                self.postings_watch,
                self.detector.plan_name,
                f"move to {larger}, or shorten the window" if larger else "shorten the window",
            )

    def _sweep(self, arrived: Sequence[Version | Tombstone]) -> None:
        if arrived:
            newest_ms = max(one.time_ms if isinstance(one, Tombstone) else one.record.time_ms for one in arrived)
            sweep = partial(self.detector.sweep, newest_ms - self.keep_ms, SWEEP_FACTOR * len(arrived))
            # The batch is committed. Where the run is to stop now, the next one sweeps.
            with suppress(Abandoned):
                self.patience.call(sweep)


def _measured(prepared: Prepared, made: Made, verdicts: Sequence[Verdict]) -> BatchMeasured:
    records = prepared.batch.records
    return BatchMeasured(
        records=len(records),
        size_bytes=sum(record.size_bytes for record in records),
        outcomes=[
            (article.source, verdict.outcome) for (_, article), verdict in zip(prepared.articles, verdicts, strict=True)
        ],
        keyword_counts=made.fingerprints.keyword_counts,
        headers_lost=sum(record.message is not None and record.message.headers_lost > 0 for record in records),
        time_faults=Counter(article.time_fault for _, article in prepared.articles if article.time_fault is not None),
    )


def distinct_ids(arrived: Sequence[Version | Tombstone]) -> Iterator[list[Version | Tombstone]]:
    """Cut where an id comes again: what follows must see what was decided about the one before."""
    part: list[Version | Tombstone] = []
    seen: set[bytes] = set()
    for one in arrived:
        owner = one.id_hash if isinstance(one, Tombstone) else one.record.id_hash
        if owner in seen:
            yield part
            part, seen = [], set()
        part.append(one)
        seen.add(owner)
    if part:
        yield part
