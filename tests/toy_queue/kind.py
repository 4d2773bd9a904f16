"""A queue in a folder, one file for each message: all that a new kind of source needs is in this folder."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from typing_extensions import override

from consumer.judge.versions import ArrivalTime
from consumer.model.article import Article
from consumer.model.dead_letter import DeadLetter
from consumer.model.errors import ConfigError, SourceError
from consumer.model.ports import Source
from consumer.model.record import End, RawBatch, RawRecord
from consumer.model.verdict import Verdict
from consumer.pipeline.arrivals import Arrivals
from consumer.pipeline.dead_letter_policy import Gate
from consumer.pipeline.feed_kind import FeedKind, OpenedSource, Outputs, SourceAdapter, SourceArguments
from consumer.pipeline.journal import Journal

SCHEME: Final = "queue://"
ANSWERED: Final = "answered"
LOOK_S: Final = 0.01


class Behind(NamedTuple):
    """Everything up to this message was answered."""

    number: int


class QueueSource(Source):
    """Delivers the messages that are not answered yet, in the order of their numbers, until it is stopped or closed."""

    def __init__(self, folder: Path, opening: SourceArguments) -> None:
        self._folder = folder
        self._opening = opening
        self._closed = False
        self._read = 0
        self.reread()

    @override
    def batches(self) -> Iterator[RawBatch]:
        while not (self._closed or self._opening.stopped()):
            names = sorted(name for name in self._folder.glob("*.json") if int(name.stem) > self._read)
            if not names:
                time.sleep(LOOK_S)
                continue
            records = [self._record(name) for name in names[: self._opening.limits.batch_records_max]]
            self._read = records[-1].line
            yield RawBatch(tuple(records), Behind(self._read))

    @override
    def close(self) -> None:
        self._closed = True

    def answer(self, end: Behind) -> None:
        """Deliver nothing up to there again, in no run."""
        (self._folder / ANSWERED).write_text(str(end.number), encoding="ascii")

    def reread(self) -> None:
        """Deliver again what is not answered."""
        answered = self._folder / ANSWERED
        self._read = int(answered.read_text(encoding="ascii")) if answered.exists() else 0

    def _record(self, name: Path) -> RawRecord:
        data = name.read_bytes()
        sent_ms = int(name.stat().st_mtime * 1_000)
        return RawRecord(int(name.stem), 0, data, len(data), None, None, time_ms=sent_ms)


class QueueArrivals(Arrivals):
    """Messages arrive when they were sent."""

    @override
    def arrived_at(self, record: RawRecord, article: Article) -> ArrivalTime:
        return ArrivalTime(record.time_ms, record.line)

    @override
    def record_name(self, record: RawRecord) -> bytes:
        return b"queue:%d" % record.line


class QueueJournal(Journal):
    """Answers messages once their verdicts are written."""

    def __init__(self, source: QueueSource) -> None:
        self._source = source

    @override
    def abandon(self) -> None:
        self._source.reread()

    @override
    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        assert isinstance(end, Behind)
        self._source.answer(end)


def open_queue(url: str, opening: SourceArguments) -> OpenedSource[QueueSource]:
    """Open the queue in a folder."""
    folder = Path(url.removeprefix(SCHEME))
    if not folder.is_dir():
        raise SourceError(f"{url} cannot be read: there is no such folder")
    source = QueueSource(folder, opening)

    def journal(outputs: Outputs) -> Journal:
        return QueueJournal(source)

    return OpenedSource(source, url, QueueArrivals(), Gate(), journal)


def check_queue(url: str, opening: SourceArguments, *, create: bool) -> None:
    """Refuse a URL without a folder."""
    if url == SCHEME:
        raise ConfigError(f"{url} does not name a queue: write {SCHEME}FOLDER")


QUEUE: Final = FeedKind(
    name="queue",
    form=f"{SCHEME}FOLDER",
    pattern=f"{SCHEME}.*",
    source=SourceAdapter(open=open_queue, check=check_queue, is_lasting=True),
)
