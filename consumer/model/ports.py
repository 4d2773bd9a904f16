"""The ports of the pipeline: sources of records, and sinks for verdicts and dead letters.

The adapters are in ``consumer.files``, ``consumer.kafka`` and ``consumer.service``. They raise only errors of
``consumer.model.errors``.
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
"""The verdicts to write to a file or a stream. Dead letters are always written."""


class OutputSizes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sizes of the files of verdicts and dead letters. A resumed run truncates both files to these sizes.

    Part of a checkpoint, which refuses unknown members.
    """

    verdicts_bytes: int = 0
    dead_letters_bytes: int = 0


@dataclass(frozen=True, slots=True)
class JudgedRecord:
    """A record and the event of its verdict.

    If ``match_withheld``, the bank match of the verdict is not sent. ``text_kind`` is the number of a ``TextKind``, or
    None for a retraction or a release.
    """

    record: RawRecord
    event: VerdictEvent
    match_withheld: bool = False
    text_kind: int | None = None


@dataclass(frozen=True, slots=True)
class Rejection:
    """A record that cannot be judged, and its dead letter. ``limit`` names the exceeded limit, or is "" if none was."""

    record: RawRecord
    letter: DeadLetter
    limit: str = ""


class Source(Protocol):
    """A source of records.

    It delivers each record once in a run, in order, unless a batch is abandoned. To resume after a batch, a caller
    needs only the batch's ``end``. Nothing is skipped silently: a record that cannot be read is delivered with a fault.
    """

    def batches(self) -> Iterator[RawBatch]:
        """Yield the records in batches of bounded count and size.

        Called once, when the run begins. A thread that reads ahead may request the next batch while the previous one is
        judged. The iterator ends with the input, and blocks while a stream or a topic has nothing new.

        Raises ``SourceError`` if the input cannot be read; earlier batches remain valid.
        """
        ...

    def close(self) -> None:
        """Release the input. Called when the run ends, even after an error; a second call does nothing."""
        ...


class Output(Protocol):
    """The common part of sinks for verdicts and sinks for dead letters.

    For each batch the loop calls ``Sink.emit``, ``DeadLetterSink.reject`` and both ``flush``, in this order. It commits
    the batch only after they have returned.

    Every method except ``close`` raises ``SinkError`` if something cannot be written. Then nobody knows which events
    and letters of the batch were written: the caller closes the outputs and commits nothing, and a later run truncates
    files to the last commit. A method raises ``Abandoned`` if this consumer lost the batch, which may be judged again.
    """

    def flush(self) -> None:
        """Return once everything handed over is written, and durable if the output is configured to be."""
        ...

    def size_bytes(self) -> int | None:
        """Return the size written so far, for the checkpoint. The default, None, is for outputs that are not truncated.

        Called after ``flush``, when a batch is committed.
        """
        return None

    def close(self) -> None:
        """Release the output without writing events or letters; a compressed file may be completed.

        Called when the run ends, even after an error; a second call does nothing.
        """
        ...


class UnbufferedOutput(Output):
    """An output that has written everything when a call returns, and has nothing to release."""

    @override
    def flush(self) -> None:
        """Do nothing: nothing waits to be written."""

    @override
    def close(self) -> None:
        """Do nothing: the caller owns the destination."""


class Sink(Output, Protocol):
    """A sink for verdicts."""

    def emit(self, answers: Sequence[JudgedRecord]) -> None:
        """Hand over the verdicts of a batch. The sink sends the verdicts that it is configured for."""
        ...


class ReleasingSink(Sink, Protocol):
    """A sink for verdicts and for the events of releases."""

    def release(self, answer: JudgedRecord) -> None:
        """Hand over the event of a release, so that readers of the flags learn that a flag was undone."""
        ...


class DeadLetterSink(Output, Protocol):
    """A sink for dead letters.

    It may share files, a checkpoint or a transaction with the verdicts. An output that cannot be truncated may get the
    letters of a batch twice, if the batch is judged again.
    """

    def reject(self, rejections: Sequence[Rejection]) -> None:
        """Hand over the dead letters of a batch; there may be none."""
        ...
