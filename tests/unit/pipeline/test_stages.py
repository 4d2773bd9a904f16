"""Stages are timed for those who listen, and for nobody else."""

from typing import Any, Final

import pytest

from consumer.model.hooks import Hooks
from consumer.pipeline import batches, loop
from consumer.pipeline.batches import BatchMeasured, SinglePieceStage, StageEnded, report_stage
from storage.memory import MemoryStore
from tests.unit.pipeline.fakes import Ends, line, pipeline

STAGES: Final[tuple[SinglePieceStage, ...]] = ("poll", "decode", "emit", "commit")


class StoppedClock:
    """Stands in for the module ``time``; counts how often it is read."""

    def __init__(self) -> None:
        self.readings = 0

    def perf_counter(self) -> float:
        """Return the same time at each reading."""
        self.readings += 1
        return 1.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StoppedClock:
    """The clock of the stages."""
    stopped = StoppedClock()
    monkeypatch.setattr(batches, "time", stopped)
    return stopped


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_is_timed_if_somebody_listens(clock: StoppedClock, stage: SinglePieceStage) -> None:
    """The clock is read at its beginning and its end."""
    ended: list[StageEnded] = []
    hooks = Hooks()
    with report_stage(hooks, stage):
        pass
    assert clock.readings == 0
    hooks.on(StageEnded, ended.append)
    with report_stage(hooks, stage):
        pass
    assert clock.readings == 2
    assert ended == [StageEnded(stage, 0.0)]


def test_a_run_to_which_nobody_listens_times_and_measures_nothing(
    clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No stage of it, and no batch."""
    measured: list[object] = []
    measure = loop._measurements

    def noted(*arguments: Any) -> BatchMeasured:  # noqa: ANN401  # those of ``measure``
        measured.append(arguments)
        return measure(*arguments)

    monkeypatch.setattr(loop, "_measurements", noted)
    ends = Ends([line("a"), line("b")])
    listened = pipeline(ends, MemoryStore())
    listened.hooks.on(BatchMeasured, lambda _: None)
    listened.run()
    assert (len(measured), clock.readings > 0) == (1, True)
    measured.clear()
    clock.readings = 0
    silent = Ends([line("a"), line("b")])
    unheard = pipeline(silent, MemoryStore())
    unheard.hooks = Hooks()
    unheard.run()
    assert silent.sink.outcomes == ends.sink.outcomes
    assert (measured, clock.readings) == ([], 0)
