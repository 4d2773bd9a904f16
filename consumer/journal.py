"""How far a run came, kept where it can be: a run over a file into a file goes on where it was."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from consumer.checkpoint import Beginning, Checkpoint, Counts, head_of, save
from consumer.dead_letter import DeadLetter
from consumer.ports import Position, Sink
from consumer.verdict import Verdict


class Journal(Protocol):
    """Is told of every batch once its verdicts and dead letters are flushed."""

    def commit(self, end: Position, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """A later run begins behind this batch."""
        ...

    def finish(self) -> None:
        """The source was read to its end."""
        ...


class NoJournal:
    """For a stream, or a store that ends with the process: there is nothing to go on from."""

    def commit(self, end: Position, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """Keep nothing."""

    def finish(self) -> None:
        """Keep nothing."""


class FileJournal:
    """Keeps a checkpoint beside the sink; the first one before the first batch, since it holds the record time."""

    def __init__(self, path: Path, checkpoint: Checkpoint, beginning: Beginning, sink: Sink, *, durable: bool) -> None:
        self._path = path
        self._checkpoint = checkpoint
        self._beginning = beginning
        self._sink = sink
        self._durable = durable
        self._save(checkpoint)

    def commit(self, end: Position, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """Save where the batch ended, and how long the sink's files are now."""
        before = self._checkpoint.counts
        outcomes = Counter(verdict.outcome for verdict in verdicts)
        counts = Counts(
            unique=before.unique + outcomes["unique"],
            duplicate=before.duplicate + outcomes["duplicate"],
            retracted=before.retracted + outcomes["retracted"],
            dead_letters=before.dead_letters + len(letters),
        )
        marks = self._sink.marks()
        if marks is None:
            raise TypeError("a journal needs a sink that can be cut back")
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
        save(self._path, checkpoint, durable=self._durable)
        self._checkpoint = checkpoint
