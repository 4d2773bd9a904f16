"""The loop's reports about batches: started, measured, committed, abandoned, and the duration of each stage."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from consumer.model.article import ExtractionOutcome, TimeFault
from consumer.model.dead_letter import DeadLetter
from consumer.model.hooks import Hooks
from consumer.model.record import RawBatch
from consumer.model.verdict import Outcome, Verdict

SinglePieceStage = Literal["poll", "decode", "emit", "commit"]
Stage = Literal["poll", "decode", "fingerprint", "look_up", "settle", "emit", "commit"]


class BatchStarted(NamedTuple):
    """This batch is about to be judged."""

    batch: RawBatch


class BatchMeasured(NamedTuple):
    """Measurements of a committed batch, apart from its verdicts; reported before ``BatchCommitted``.

    ``outcomes`` has the source and the outcome of each article, in order. ``keyword_counts`` int64[n] has the number of
    distinct keywords of each article with a body. ``headers_lost`` counts records with headers that Kafka's client
    could not return unchanged. ``time_faults`` counts articles with an invalid ``published_at`` by reason, and
    ``pages`` counts web pages by the outcome of extraction. ``without_text`` counts articles whose body is markup
    without any text.
    """

    records: int
    size_bytes: int
    outcomes: Sequence[tuple[str, Outcome]]
    keyword_counts: npt.NDArray[np.int64]
    headers_lost: int = 0
    time_faults: Mapping[TimeFault, int] = MappingProxyType({})
    pages: Mapping[ExtractionOutcome, int] = MappingProxyType({})
    without_text: int = 0


class BatchCommitted(NamedTuple):
    """A batch was committed with these verdicts and dead letters."""

    verdicts: Sequence[Verdict]
    letters: Sequence[DeadLetter]


class BatchAbandoned(NamedTuple):
    """A batch was given up. The owner of its partitions or a later run reads it again.

    A batch from a stream or from clients is not read again.
    """


class StageStarted(NamedTuple):
    """A stage of a batch begins in this thread. Reported only for stages that run in one piece."""

    stage: SinglePieceStage


class StageEnded(NamedTuple):
    """A stage of a batch is over; ``error`` is the exception that ended it, if any.

    Stages that run in several pieces or in other processes are reported once for each batch, without a
    ``StageStarted``.
    """

    stage: Stage
    seconds: float
    error: BaseException | None = None


def report_stage(hooks: Hooks, stage: SinglePieceStage) -> AbstractContextManager[None]:
    """Return a context that reports its block as a stage, or does nothing if nobody listens to ``StageEnded``."""
    return _report_stage(hooks, stage) if hooks.wants(StageEnded) else nullcontext()


@contextmanager
def _report_stage(hooks: Hooks, stage: SinglePieceStage) -> Iterator[None]:
    hooks.report(StageStarted(stage))
    began_s = time.perf_counter()
    error: BaseException | None = None
    try:
        yield
    except BaseException as caught:
        error = caught
        raise
    finally:
        hooks.report(StageEnded(stage, time.perf_counter() - began_s, error))
