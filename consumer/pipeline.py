"""The loop: what happens to a batch of records, from the source to the commit.

    source ──▶ decode ──▶ fingerprint ──▶ judge ──▶ emit ──▶ commit
              (read ahead: at most ``ahead`` batches)  (one batch at a time, in order)

A batch is committed after its verdicts and dead letters are flushed, and the commit says how far the source was
read: whatever happens in between, the batch is read and judged again, with the same words.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from consumer.article import Article
from consumer.dead_letter import DeadLetter
from consumer.detector import Detector
from consumer.errors import BadRecord
from consumer.feed import Feed
from consumer.fingerprint import Fingerprints
from consumer.fingerprinting import Fingerprinting
from consumer.journal import Journal
from consumer.ports import RawBatch, RawRecord, Sink, Source
from consumer.reading_ahead import read_ahead
from consumer.stopping import Stopping
from consumer.verdict import Verdict, decode_verdict
from consumer.versions import Came, VersionBuilder, tombstone
from storage.records import Tombstone, Version

log = logging.getLogger("dupwatch")

LARGER_PLANS = {"4x16": "16x28", "8x16": "4x32"}
"""The plan to move to when a window outgrows its own: rows under a wider key are shorter."""
SWEEP_FACTOR = 4
"""A batch sweeps away up to this many times its own size, so that a backlog shrinks."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch that was read and decoded; its fingerprints may still be under way, one for each article with a body."""

    batch: RawBatch
    articles: Sequence[tuple[RawRecord, Article]]
    letters: Sequence[DeadLetter]
    fingerprints: "Future[Fingerprints]"


class Observer(Protocol):
    """Is told what went by; what it does with that is its own affair."""

    def judged(self, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """See one batch, after it was committed."""
        ...


@dataclass(slots=True)
class Pipeline:
    """One run over one source. Everything it works with is handed to it; it builds nothing.

    ``decode`` raises ``BadRecord``; ``bury`` makes the dead letter of such a record.
    """

    source: Source
    decode: Callable[[bytes], Article]
    bury: Callable[[RawRecord, BadRecord], DeadLetter]
    fingerprinting: Fingerprinting
    builder: VersionBuilder
    feed: Feed
    detector: Detector
    sink: Sink
    journal: Journal
    observer: Observer
    stopping: Stopping
    emit_all: bool
    keep_ms: int
    postings_watch: int
    _warned: bool = field(default=False, init=False)

    def run(self) -> None:
        """Judge until the source ends or somebody asks to stop; what was begun is finished and committed."""
        for prepared in self.stopping.between(self._prepared()):
            self._finish(prepared)
        if self.stopping.asked_by is None:
            self.journal.finish()

    def _prepared(self) -> Iterator[Prepared]:
        if self.fingerprinting.ahead == 0:
            return map(self._prepare, self.source.batches())
        return read_ahead(map(self._prepare, self.source.batches()), self.fingerprinting.ahead)

    def _prepare(self, batch: RawBatch) -> Prepared:
        articles: list[tuple[RawRecord, Article]] = []
        letters: list[DeadLetter] = []
        for record in batch.records:
            try:
                articles.append((record, self.decode(record.whole())))
            except BadRecord as error:
                letters.append(self.bury(record, error))
        bodied = [article for _, article in articles if article.body is not None]
        fingerprints = self.fingerprinting.submit(
            [article.body or "" for article in bodied], [article.lang for article in bodied]
        )
        return Prepared(batch, articles, letters, fingerprints)

    def _finish(self, prepared: Prepared) -> None:
        tally = self.detector.tally
        before = tally.versions, tally.postings_read
        arrived = self._arrive(prepared)
        events = [event for part in distinct_ids(arrived) for event in self.detector.judge(part)]
        verdicts = [decode_verdict(event) for event in events]
        wanted = [
            event
            for event, verdict in zip(events, verdicts, strict=True)
            if self.emit_all or verdict.outcome == "duplicate"
        ]
        self.sink.emit(wanted)
        self.sink.reject(prepared.letters)
        self.sink.flush()
        self.journal.commit(prepared.batch.end, verdicts, prepared.letters)
        self.observer.judged(verdicts, prepared.letters)
        self._watch(tally.versions - before[0], tally.postings_read - before[1])
        self._sweep(arrived)

    def _arrive(self, prepared: Prepared) -> list[Version | Tombstone]:
        """Give everything its arrival, in the order of the feed."""
        time_ms = self.feed.time_ms()
        bodied = [(record, article) for record, article in prepared.articles if article.body is not None]
        versions = iter(
            self.builder.versions(
                [article for _, article in bodied],
                [Came(time_ms, record.line) for record, _ in bodied],
                prepared.fingerprints.result(),
            )
        )
        return [
            next(versions)
            if article.body is not None
            else tombstone(article.id, Came(time_ms, record.line), self.feed.place(record.line), self.detector.clock())
            for record, article in prepared.articles
        ]

    def _watch(self, versions: int, postings: int) -> None:
        if not self._warned and versions and postings / versions > self.postings_watch:
            self._warned = True
            larger = LARGER_PLANS.get(self.builder.plan.name)
            log.warning(
                "An article reads %d postings on average, more than %d: the window has outgrown the plan %s; %s.",
                postings // versions,
                self.postings_watch,
                self.builder.plan.name,
                f"move to {larger}, or shorten the window" if larger else "shorten the window",
            )

    def _sweep(self, arrived: Sequence[Version | Tombstone]) -> None:
        if arrived:
            newest_ms = max(one.time_ms if isinstance(one, Tombstone) else one.record.time_ms for one in arrived)
            self.detector.store.sweep(newest_ms - self.keep_ms, SWEEP_FACTOR * len(arrived))


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
