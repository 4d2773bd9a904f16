"""Prepares batches ahead of judging: reads and decodes them, and submits their texts for fingerprinting."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, Queue
from typing import Generic, TypeVar

from consumer.lifecycle.interruption import Interruption
from consumer.lifecycle.stopping import StopSignal
from consumer.lifecycle.thread_progress import ThreadProgress
from consumer.model.article import Article
from consumer.model.errors import Abandoned, BadRecord
from consumer.model.hooks import Hooks
from consumer.model.ports import Rejection, Source
from consumer.model.record import RawBatch, RawRecord
from consumer.pipeline.batches import report_stage
from consumer.workers.pool import Fingerprinting, TimedFingerprints

log = logging.getLogger("dupwatch")

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """A decoded batch; the fingerprints of its articles with a body may not be ready yet."""

    batch: RawBatch
    articles: Sequence[tuple[RawRecord, Article]]
    rejections: Sequence[Rejection]
    fingerprints: "Future[TimedFingerprints]"


@dataclass(frozen=True, slots=True)
class Preparation:
    """The preparation of one source's batches, in order; in another thread if fingerprints are computed ahead.

    ``reject`` makes the dead letter of a bad record. The other parameters are those of ``Pipeline``.
    """

    source: Source
    decode: Callable[[RawRecord], Article]
    reject: Callable[[RawRecord, BadRecord], Rejection]
    fingerprinting: Fingerprinting
    hooks: Hooks
    stopping: StopSignal
    interruption: Interruption

    def batches(self) -> Iterator[PreparedBatch]:
        """Yield prepared batches until the source ends, or one is abandoned because the run has to stop."""
        prepared = self._prepare_all()
        return read_ahead(prepared, self.fingerprinting.ahead) if self.fingerprinting.ahead else prepared

    def _prepare_all(self) -> Iterator[PreparedBatch]:
        progress = ThreadProgress(self.hooks)
        for batch in self._poll():
            try:
                with progress.at_work():
                    prepared = self._prepare(batch)
            except Abandoned as why:
                if not self.stopping.requested():
                    raise
                log.info("A batch of %d records was dropped before judging: %s", len(batch.records), why)
                return
            yield prepared

    def _poll(self) -> Iterator[RawBatch]:
        batches = self.source.batches()
        while True:
            with report_stage(self.hooks, "poll"):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def _prepare(self, batch: RawBatch) -> PreparedBatch:
        articles: list[tuple[RawRecord, Article]] = []
        rejections: list[Rejection] = []
        proceed = self.interruption.while_preparing
        with report_stage(self.hooks, "decode"):
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
        return PreparedBatch(batch, articles, rejections, fingerprints)


class _End(Generic[_Item]):
    """The last item in the queue, with the error that ended the items, if any."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def read_ahead(items: Iterator[_Item], ahead: int) -> Iterator[_Item]:
    """Yield the items in order while a thread fetches up to ``ahead`` + 1 more. Raises an error in place of its item.

    If ``items`` blocks, only the thread waits, and fetched items are not delayed.
    """
    queue: Queue[_Item | _End[_Item]] = Queue(ahead)
    closed = threading.Event()

    def fetch() -> None:
        end = _End[_Item](None)
        try:
            for item in items:
                queue.put(item)
                if closed.is_set():
                    return
        except BaseException as error:  # noqa: BLE001  # raised again in place of the item; a panic of Rust is not an Exception
            end = _End(error)
        queue.put(end)

    threading.Thread(target=fetch, name="read-ahead", daemon=True).start()
    try:
        while not isinstance(item := queue.get(), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        closed.set()
        # A thread that waits for room gets it, sees ``closed``, and ends.
        with suppress(Empty):
            while True:
                queue.get_nowait()
