"""Reads and decodes batches, and has their fingerprints computed: everything that can be done ahead of judging."""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from consumer.lifecycle.interruption import Interruption
from consumer.lifecycle.stopping import Stopping
from consumer.lifecycle.turns import Turns
from consumer.model.article import Article
from consumer.model.errors import Abandoned, BadRecord
from consumer.model.hooks import Hooks
from consumer.model.ports import Rejection, Source
from consumer.model.record import RawBatch, RawRecord
from consumer.pipeline.read_ahead import read_ahead
from consumer.pipeline.stages import timed
from consumer.workers.pool import Fingerprinting, TimedFingerprints

log = logging.getLogger("dupwatch")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch that was read and decoded; the fingerprints of its articles with a body may still be computed."""

    batch: RawBatch
    articles: Sequence[tuple[RawRecord, Article]]
    rejections: Sequence[Rejection]
    fingerprints: "Future[TimedFingerprints]"


@dataclass(frozen=True, slots=True)
class Preparation:
    """Prepares the batches of one source, in order; on a thread of its own where fingerprints are computed ahead.

    ``reject`` makes the dead letter of a bad record. The other parameters are those of ``Pipeline``.
    """

    source: Source
    decode: Callable[[RawRecord], Article]
    reject: Callable[[RawRecord, BadRecord], Rejection]
    fingerprinting: Fingerprinting
    hooks: Hooks
    stopping: Stopping
    interruption: Interruption

    def batches(self) -> Iterator[Prepared]:
        """Prepare batches until the source ends, or until preparing one is abandoned because the run is to stop."""
        prepared = self._prepared()
        return read_ahead(prepared, self.fingerprinting.ahead) if self.fingerprinting.ahead else prepared

    def _prepared(self) -> Iterator[Prepared]:
        turns = Turns(self.hooks)
        for batch in self._polled():
            try:
                with turns.at_work():
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
        proceed = self.interruption.while_preparing
        with timed(self.hooks, "decode"):
            for record in batch.records:
                proceed()
                try:
                    articles.append((record, self.decode(record)))
                except BadRecord as error:
                    rejections.append(self.reject(record, error))
        bodied = [article for _, article in articles if article.body is not None]
        fingerprints = self.fingerprinting.submit(
            [article.body or "" for article in bodied], [article.lang for article in bodied]
        )
        return Prepared(batch, articles, rejections, fingerprints)
