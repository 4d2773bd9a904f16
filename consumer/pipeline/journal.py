"""How far a run came, kept where it can be: a run over a file into a file goes on where it was."""

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from consumer.model.dead_letter import DeadLetter
from consumer.model.ports import Marks, Output
from consumer.model.record import End, Position
from consumer.model.verdict import Verdict
from consumer.pipeline.checkpoint import Beginning, Checkpoint, Counts, head_of, save
from storage.files import FileWriting

log = logging.getLogger("dupwatch")


class Journal(Protocol):
    """Is told of every batch before it is judged, and once its verdicts and dead letters are flushed."""

    def begin(self, end: End) -> None:
        """The batch that ends there is about to be judged; raises ``Abandoned`` where it is not this run's any more."""
        ...

    def abandon(self) -> None:
        """The batch that was begun is given up: what the sink has of it is void, and the source gives it again."""
        ...

    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """A later run begins behind this batch. Raises ``Abandoned`` where it is not this run's any more."""
        ...

    def finish(self) -> None:
        """The source was read to its end."""
        ...


class _NothingTaken:
    """A file and a stream belong to their run alone: it gives a batch up only when it is asked to stop."""

    def begin(self, end: End) -> None:
        """There is nobody to ask."""

    def abandon(self) -> None:
        """The run ends. A later one begins behind the last batch that was committed."""


class NoJournal(_NothingTaken):
    """For a stream, or a store that ends with the process: there is nothing to go on from."""

    def abandon(self) -> None:
        """Say so: no later run answers these records."""
        log.warning("The last records that were read have no verdicts: the run was asked to stop, and took too long")

    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """Keep nothing."""

    def finish(self) -> None:
        """Keep nothing."""


class Outputs(NamedTuple):
    """What a checkpoint has the sizes of."""

    verdicts: Output
    dead_letters: Output


class FileJournal(_NothingTaken):
    """Keeps a checkpoint beside the sink; the first one before the first batch, since it holds the record time.

    It has the sizes of both outputs, as far as they can be cut back.
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

    def commit(self, end: End, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """Save where the batch ended, and how long the sink's files are now."""
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
            raise TypeError("a checkpoint needs a source that is a file, and a sink that can be cut back")
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

    def finish(self) -> None:
        """Save that new lines, if there ever are any, belong to another run."""
        self._save(msgspec.structs.replace(self._checkpoint, finished=True))

    def _save(self, checkpoint: Checkpoint) -> None:
        save(self._path, checkpoint, self._writing)
        self._checkpoint = checkpoint
