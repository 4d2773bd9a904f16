"""What the loop tells those who watch a run."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from consumer.model.article import TimeFault
from consumer.model.dead_letter import DeadLetter
from consumer.model.record import RawBatch
from consumer.model.verdict import Outcome, Verdict

Entered = Literal["poll", "decode", "emit", "commit"]
Summed = Literal["fingerprint", "look_up", "settle"]
Stage = Literal["poll", "decode", "fingerprint", "look_up", "settle", "emit", "commit"]


class Measured(NamedTuple):
    """What there is to measure in a batch, beside its verdicts: all records of it, and sources in their order.

    ``keyword_counts`` int64[n]: the distinct keywords of each article that has a body. ``headers_lost``: how many of
    the records have headers that are not as they came. ``time_faults``: articles whose ``published_at`` could not be
    read, by why.
    """

    records: int
    size_bytes: int
    said: Sequence[tuple[str, Outcome]]
    keyword_counts: npt.NDArray[np.int64]
    headers_lost: int = 0
    time_faults: Mapping[TimeFault, int] = MappingProxyType({})


class Observer(Protocol):
    """Is told what went by; what it does with that is its own affair."""

    def begun(self, batch: RawBatch) -> None:
        """This batch is about to be judged."""
        ...

    def stage(self, stage: Entered) -> AbstractContextManager[None]:
        """What happens inside is this stage's; may be called from the thread that reads ahead."""
        ...

    def spent(self, stage: Summed, seconds: float) -> None:
        """Say how long this stage of a batch took, wherever and in however many pieces it was done."""
        ...

    def measured(self, batch: Measured) -> None:
        """See one batch, after it was committed."""
        ...

    def judged(self, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """See one batch, after it was committed."""
        ...

    def abandoned(self) -> None:
        """The batch was given up."""
        ...


class Onlooker:
    """An observer to whom nothing matters; a subclass says what does."""

    def begun(self, batch: RawBatch) -> None:
        """Nothing."""

    def stage(self, stage: Entered) -> AbstractContextManager[None]:
        """Nothing."""
        del stage
        return nullcontext()

    def spent(self, stage: Summed, seconds: float) -> None:
        """Nothing."""

    def measured(self, batch: Measured) -> None:
        """Nothing."""

    def judged(self, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """Nothing."""

    def abandoned(self) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class Observers:
    """Several observers, told in turn."""

    all: Sequence[Observer]

    def begun(self, batch: RawBatch) -> None:
        """Tell all."""
        for one in self.all:
            one.begun(batch)

    @contextmanager
    def stage(self, stage: Entered) -> Iterator[None]:
        """Let all time it."""
        with ExitStack() as timed:
            for one in self.all:
                timed.enter_context(one.stage(stage))
            yield

    def spent(self, stage: Summed, seconds: float) -> None:
        """Tell all."""
        for one in self.all:
            one.spent(stage, seconds)

    def measured(self, batch: Measured) -> None:
        """Tell all."""
        for one in self.all:
            one.measured(batch)

    def judged(self, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """Tell all."""
        for one in self.all:
            one.judged(verdicts, letters)

    def abandoned(self) -> None:
        """Tell all."""
        for one in self.all:
            one.abandoned()
