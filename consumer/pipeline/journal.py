"""Keeps track of how far a run got, so that a run from a file into a file can be resumed."""

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec
from typing_extensions import override

from consumer.model.dead_letter import DeadLetter
from consumer.model.ports import Marks, Output
from consumer.model.record import End, Position
from consumer.model.verdict import Verdict
from consumer.pipeline.checkpoint import Beginning, Checkpoint, Counts, head_of, save
from storage.files import FileWriting

log = logging.getLogger("dupwatch")


class Journal(Protocol):
    """Records every batch: before it is judged, and after its verdicts and dead letters are flushed."""

    def begin(self, end: End) -> None:
        """Begin a batch that ends there. Raises ``Abandoned`` if it no longer belongs to this run."""
        ...

    def abandon(self) -> None:
        """Give up the current batch: its output is void, and the source delivers it again."""
        ...

    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """Have a later run begin after this batch. Raises ``Abandoned`` if it no longer belongs to this run."""
        ...

    def finish(self) -> None:
        """Note that the source was read to its end."""
        ...


class _ExclusiveJournal(Journal):
    """For files and streams, which belong to one run: it gives up a batch only when it is asked to stop."""

    @override
    def begin(self, end: End) -> None:
        """Do nothing: the batch cannot be taken away."""

    @override
    def abandon(self) -> None:
        """Do nothing: the run ends, and a later one begins after the last committed batch."""


class NoJournal(_ExclusiveJournal):
    """For a stream, or for a store that ends with the process: such a run cannot be resumed."""

    @override
    def abandon(self) -> None:
        """Log that the records of this batch will never be judged."""
        log.warning("The last records read have no verdicts: the run did not finish in time after it was asked to stop")

    @override
    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """Keep nothing."""

    @override
    def finish(self) -> None:
        """Keep nothing."""


class Outputs(NamedTuple):
    """The outputs whose sizes a checkpoint records."""

    verdicts: Output
    dead_letters: Output


class FileJournal(_ExclusiveJournal):
    """Keeps a checkpoint beside the sink. The first one is written before the first batch: it has the record time.

    It has the sizes of both outputs, if they can be cut back.
    """

    def __init__(
        self,
        path: Path,
        checkpoint: Checkpoint,
        beginning: Beginning,
        outputs: Outputs,
        writing: FileWriting,
    ) -> None:
        self._path = path
        self._checkpoint = checkpoint
        self._beginning = beginning
        self._outputs = outputs
        self._writing = writing
        self._save(checkpoint)

    @override
    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """Save where the batch ended, and the current sizes of the output files."""
        before = self._checkpoint.counts
        outcomes = Counter(verdict.outcome for verdict in verdicts)
        counts = Counts(
            unique=before.unique + outcomes["unique"],
            duplicate=before.duplicate + outcomes["duplicate"],
            retracted=before.retracted + outcomes["retracted"],
            dead_letters=before.dead_letters + len(letters),
        )
        verdicts_bytes = self._outputs.verdicts.size_bytes()
        if verdicts_bytes is None or not isinstance(end, Position):
            raise TypeError("a checkpoint needs a file as the source, and a sink that can be cut back")
        # Letters that cannot be cut back may be written again after a crash.
        marks = Marks(verdicts_bytes, self._outputs.dead_letters.size_bytes() or 0)
        self._save(
            msgspec.structs.replace(
                self._checkpoint,
                head=head_of(self._beginning, end, self._checkpoint.head),
                position=end,
                marks=marks,
                counts=counts,
            )
        )

    @override
    def finish(self) -> None:
        """Save that the source ended: lines added later belong to another run."""
        self._save(msgspec.structs.replace(self._checkpoint, finished=True))

    def _save(self, checkpoint: Checkpoint) -> None:
        save(self._path, checkpoint, self._writing)
        self._checkpoint = checkpoint
