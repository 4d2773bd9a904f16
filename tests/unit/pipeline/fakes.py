"""Small fakes of what a pipeline works with, and a pipeline over them and a store."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import get_args

import msgspec

from consumer.decode.article import FieldMap, decode
from consumer.files.lines import Position
from consumer.fingerprint import BlockPlan, Fingerprinter, Scheme
from consumer.judge.detector import Detector
from consumer.judge.expiry import Expiry
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import VersionBuilder
from consumer.lifecycle.stopping import StopSignal
from consumer.model.article import Article
from consumer.model.dead_letter import DeadLetter
from consumer.model.errors import Abandoned, SinkError
from consumer.model.hooks import Hooks
from consumer.model.limits import DecodeLimits
from consumer.model.ports import JudgedRecord, Rejection
from consumer.model.record import End, RawBatch, RawRecord
from consumer.model.verdict import Verdict
from consumer.pipeline.arrivals import FileArrivals
from consumer.pipeline.batches import (
    BatchAbandoned,
    BatchCommitted,
    BatchMeasured,
    SinglePieceStage,
    Stage,
    StageEnded,
    StageStarted,
)
from consumer.pipeline.dead_letter_policy import DeadLetterPolicy
from consumer.pipeline.journal import Journal
from consumer.pipeline.loop import Pipeline
from consumer.workers.pool import InlineFingerprinting, TimedFingerprints
from consumer.workers.word_files import load_lexicon
from storage.interface import Store

FINGERPRINTING = InlineFingerprinting(Fingerprinter(Scheme(), load_lexicon()))
SETTINGS = JudgeSettings(plan=BlockPlan.named("4x16"), scheme_digest="")
TEXT = "苍浦市气象台今天早晨发布通知说，本周末将有一次明显的降温过程，市民出行时请注意添加衣物并留意道路结冰。"
KEEP_MS = 1_000


@dataclass
class LineSource:
    """Delivers these batches of lines, which are counted from 1."""

    lines: list[list[bytes]]

    def batches(self) -> Iterator[RawBatch]:
        """Deliver all of them."""
        number = 0
        for batch in self.lines:
            records = []
            for data in batch:
                number += 1
                records.append(RawRecord(number, 0, data, len(data), None, None, Position(number, 0)))
            yield RawBatch(tuple(records), Position(number, 0))

    def close(self) -> None:
        """Nothing to close."""


@dataclass
class KeepingSink:
    """Keeps answers, and notes each call in ``steps``; its disk may be full."""

    steps: list[str]
    disk_is_full: bool = False
    answers: list[JudgedRecord] = field(default_factory=list)

    @property
    def events(self) -> list[bytes]:
        """The verdicts as they are stored."""
        return [answer.event.encoded for answer in self.answers]

    @property
    def outcomes(self) -> list[tuple[str, str]]:
        """Ids and outcomes, as the events have them."""
        return [(event["id"], event["outcome"]) for event in map(msgspec.json.decode, self.events)]

    def emit(self, answers: Sequence[JudgedRecord]) -> None:
        """Keep answers."""
        self.steps.append("emit")
        self.answers += answers

    def flush(self) -> None:
        """Fail if the disk is full."""
        self.steps.append("flush")
        if self.disk_is_full:
            raise SinkError("the disk is full")

    def size_bytes(self) -> int | None:
        """It cannot be cut back."""
        return None

    def close(self) -> None:
        """Nothing to close."""


@dataclass
class KeepingDeadLetters:
    """Keeps dead letters, and notes each call in ``steps``; its disk may be full."""

    steps: list[str]
    disk_is_full: bool = False
    letters: list[DeadLetter] = field(default_factory=list)

    def reject(self, rejections: Sequence[Rejection]) -> None:
        """Keep dead letters."""
        self.steps.append("reject")
        self.letters += [rejection.letter for rejection in rejections]

    def flush(self) -> None:
        """Fail if the disk is full."""
        self.steps.append("flush letters")
        if self.disk_is_full:
            raise SinkError("the disk of the letters is full")

    def size_bytes(self) -> int | None:
        """It cannot be cut back."""
        return None

    def close(self) -> None:
        """Nothing to close."""


@dataclass
class NotingJournal(Journal):
    """Keeps what was committed, and notes each call in ``steps``; batches with these numbers are taken away."""

    steps: list[str]
    taken_away: set[int] = field(default_factory=set)
    committed: list[End] = field(default_factory=list)
    begun: int = 0

    def begin(self, end: End) -> None:
        """Count batches, from 0, and refuse those that are taken away."""
        number, self.begun = self.begun, self.begun + 1
        if number in self.taken_away:
            raise Abandoned("its partitions were reassigned")

    def abandon(self) -> None:
        """Note it."""
        self.steps.append("abandon")

    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """Keep the position."""
        self.steps.append("commit")
        self.committed.append(end)

    def finish(self) -> None:
        """Note it."""
        self.steps.append("finish")


@dataclass
class NotingListener:
    """Keeps what the pipeline reports, and notes the end of each batch in ``steps``."""

    steps: list[str]
    stages: list[Stage] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    measured: list[BatchMeasured] = field(default_factory=list)

    def listen(self, hooks: Hooks) -> None:
        """Listen."""
        hooks.on(StageStarted, lambda began: self.stages.append(began.stage))
        hooks.on(StageEnded, self._stage_ended)
        hooks.on(BatchMeasured, self.measured.append)
        hooks.on(BatchCommitted, lambda _: self.steps.append("committed"))
        hooks.on(BatchAbandoned, lambda _: self.steps.append("abandoned"))

    def _stage_ended(self, ended: StageEnded) -> None:
        # The others were noted when they began.
        if ended.stage not in get_args(SinglePieceStage):
            self.stages.append(ended.stage)
            self.seconds.append(ended.seconds)


class Ends:
    """The fakes at the ends of one pipeline, and what was done with them, in order."""

    def __init__(self, *batches: list[bytes]) -> None:
        self.steps: list[str] = []
        self.source = LineSource(list(batches))
        self.sink = KeepingSink(self.steps)
        self.dead_letters = KeepingDeadLetters(self.steps)
        self.journal = NotingJournal(self.steps)
        self.listener = NotingListener(self.steps)


@dataclass
class Ahead:
    """Fingerprints computed in this process, but batches are prepared by another thread."""

    ahead: int

    def submit(self, texts: Sequence[str], languages: Sequence[str]) -> "Future[TimedFingerprints]":
        """Compute them at once."""
        return FINGERPRINTING.submit(texts, languages)

    def close(self) -> None:
        """Nothing to close."""


class Never(Ahead):
    """Fingerprints that never come."""

    def __init__(self) -> None:
        super().__init__(0)

    def submit(self, texts: Sequence[str], languages: Sequence[str]) -> "Future[TimedFingerprints]":
        """Return a future that nobody sets."""
        return Future()


def pipeline(ends: Ends, store: Store, *, postings_watch: int = 1_000) -> Pipeline:
    """Build a pipeline between these ends, over one store."""

    def decode_all(record: RawRecord) -> Article:
        return decode(record.whole(), FieldMap(), DecodeLimits(), "text")

    detector = Detector(store, SETTINGS, lambda: 10_000)
    return Pipeline(
        source=ends.source,
        decode=decode_all,
        fingerprinting=FINGERPRINTING,
        builder=VersionBuilder("jieba-tfidf/1", SETTINGS.plan, lane1=True),
        arrivals=FileArrivals(10_000, b"feed", "feed"),
        detector=detector,
        sink=ends.sink,
        dead_letters=DeadLetterPolicy("feed", ends.dead_letters),
        journal=ends.journal,
        hooks=Hooks(ends.listener),
        stopping=StopSignal(),
        expiry=Expiry(detector, lambda: 10_000, SETTINGS.window_ms, KEEP_MS),
        postings_watch=postings_watch,
    )


def line(article_id: str, body: str | None = TEXT, **more: str) -> bytes:
    """Write one record."""
    return msgspec.json.encode({"id": article_id, "body": body} | more)
