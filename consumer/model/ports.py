"""The ports of the pipeline: where records come from, and where verdicts and dead letters go.

The adapters are in ``consumer.files``, ``consumer.kafka`` and ``consumer.service``. They raise errors of
``consumer.model.errors`` only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec
from typing_extensions import override

from consumer.model.dead_letter import DeadLetter
from consumer.model.record import RawBatch, RawRecord
from consumer.model.verdict import VerdictEvent

Emit = Literal["duplicates", "all", "none"]
"""Which verdicts a file or a stream gets. Dead letters are always written."""


class OutputSizes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many bytes of verdicts and dead letters are written: a run that resumes cuts both files back to this.

    Part of a checkpoint, which refuses unknown members.
    """

    verdicts_bytes: int = 0
    dead_letters_bytes: int = 0


@dataclass(frozen=True, slots=True)
class JudgedRecord:
    """A record and the event of its verdict.

    ``match_withheld`` says that the bank match of the verdict is not sent, if it has one. ``text_kind`` is the number
    of a ``TextKind``, None for a retraction and a release.
    """

    record: RawRecord
    event: VerdictEvent
    match_withheld: bool = False
    text_kind: int | None = None


@dataclass(frozen=True, slots=True)
class Rejection:
    """A record that cannot be judged, and its dead letter; ``limit`` names the limit that it met, "" for none."""

    record: RawRecord
    letter: DeadLetter
    limit: str = ""


class Source(Protocol):
    """Where records come from.

    A source delivers each record once in a run, in order. To resume after a batch, a caller needs only the batch's
    ``end``. Nothing is skipped silently: a record that cannot be read is delivered with a fault.
    """

    def batches(self) -> Iterator[RawBatch]:
        """Deliver the records, in batches of bounded count and size.

        Called once, when the run begins. A thread that reads ahead may ask for the next batch while the one before is
        judged. The iterator ends where the input ends, and blocks while a stream or a topic has nothing new.

        Raises ``SourceError`` where the input cannot be read; batches that were delivered before stay valid.
        """
        ...

    def close(self) -> None:
        """Release the input. Called when the run ends, also after an error; a second call does nothing."""
        ...


class Output(Protocol):
    """What a sink of verdicts and one of dead letters have in common.

    For each batch the loop calls ``Sink.emit``, ``DeadLetterSink.reject`` and both ``flush``, in this order. It commits
    the batch only after they have returned.

    Every method but ``close`` raises ``SinkError`` where something cannot be written. After that it is unknown which
    events and letters of the batch were written: the caller closes the outputs and commits nothing, and a later run
    cuts them back to the last commit. ``Abandoned`` means that the batch is lost, but may be judged again.
    """

    def flush(self) -> None:
        """Return once everything handed over is written, and durable where the output is configured for that."""
        ...

    def size_bytes(self) -> int | None:
        """Return how much is written, for the checkpoint; None, as here, for an output that cannot be cut back.

        Called after ``flush``, when a batch is committed.
        """
        return None

    def close(self) -> None:
        """Release the output without writing events or letters; a compressed file may be completed.

        Called when the run ends, also after an error; a second call does nothing.
        """
        ...


class UnbufferedOutput(Output):
    """An output that has written everything when a call returns, and has nothing to release."""

    @override
    def flush(self) -> None:
        """Do nothing: nothing waits to be written."""

    @override
    def close(self) -> None:
        """Do nothing: whatever is written to belongs to the caller."""


class Sink(Output, Protocol):
    """Where verdicts go."""

    def emit(self, answers: Sequence[JudgedRecord]) -> None:
        """Hand over the verdicts of a batch; the sink sends those it is configured for. An event has no line end."""
        ...


class ReleasingSink(Sink, Protocol):
    """Where verdicts go, and the events of releases."""

    def release(self, answer: JudgedRecord) -> None:
        """Hand over the event of a release, so that readers of the flags learn that one was undone."""
        ...


class DeadLetterSink(Output, Protocol):
    """Where dead letters go.

    It may share files, a checkpoint or a transaction with the verdicts, but need not. An output that cannot be cut back
    may have letters of a batch that is judged again, and gets them twice.
    """

    def reject(self, rejections: Sequence[Rejection]) -> None:
        """Hand over the dead letters of a batch; there may be none."""
        ...
