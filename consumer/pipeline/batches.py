"""What the loop reports about batches: begun, committed, measured, abandoned, and how long each stage took."""

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

EnteredStage = Literal["poll", "decode", "emit", "commit"]
Stage = Literal["poll", "decode", "fingerprint", "look_up", "settle", "emit", "commit"]


class BatchStarted(NamedTuple):
    """This batch is about to be judged."""

    batch: RawBatch


class BatchMeasured(NamedTuple):
    """What can be measured in a batch that was committed, beside its verdicts; reported before ``BatchCommitted``.

    ``outcomes`` has the source and the outcome of each article, in order. ``keyword_counts`` int64[n] has the number of
    distinct keywords of each article with a body. ``headers_lost`` counts records with headers that the client could
    not hand out unchanged, ``time_faults`` articles whose ``published_at`` could not be read, by reason,
    ``pages`` web pages by what was taken from them, ``without_text`` articles whose body is markup without any text.
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
    """A batch was given up. Whoever owns its partitions reads it again."""


class StageStarted(NamedTuple):
    """A stage of a batch begins, in this thread. Only of stages that are done in one piece."""

    stage: EnteredStage


class StageEnded(NamedTuple):
    """A stage of a batch is over, and what ended it where that was an error.

    Stages that are done in several pieces, or by other processes, are reported once for each batch, without a
    beginning.
    """

    stage: Stage
    seconds: float
    error: BaseException | None = None


def timed(hooks: Hooks, stage: EnteredStage) -> AbstractContextManager[None]:
    """Report a stage around what happens inside; nothing is timed where nobody listens."""
    return _timed(hooks, stage) if hooks.wants(StageEnded) else nullcontext()


@contextmanager
def _timed(hooks: Hooks, stage: EnteredStage) -> Iterator[None]:
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
