"""The stages of a batch, and how long each takes, as the loop reports them."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Literal, NamedTuple

from consumer.model.hooks import Hooks

EnteredStage = Literal["poll", "decode", "emit", "commit"]
Stage = Literal["poll", "decode", "fingerprint", "look_up", "settle", "emit", "commit"]


class StageBegan(NamedTuple):
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
    hooks.report(StageBegan(stage))
    began_s = time.perf_counter()
    error: BaseException | None = None
    try:
        yield
    except BaseException as caught:
        error = caught
        raise
    finally:
        hooks.report(StageEnded(stage, time.perf_counter() - began_s, error))
