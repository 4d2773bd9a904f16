"""The ports of the pipeline: where records come from, and where verdicts and dead letters go.

The adapters are in ``consumer.sources`` and ``consumer.sinks``. What they raise is of ``consumer.model.errors`` only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from consumer.model.dead_letter import DeadLetter
from consumer.model.record import RawBatch, RawRecord
from consumer.model.verdict import Verdict


class Marks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much a sink has written, in bytes: what a run that goes on later keeps of both files."""

    verdicts_bytes: int = 0
    dead_letters_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said about a record: ``event`` is the verdict as it is stored, and ``verdict`` what it says."""

    record: RawRecord
    event: bytes
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Rejection:
    """A record that cannot be judged, and its dead letter."""

    record: RawRecord
    letter: DeadLetter


class Source(Protocol):
    """Where records come from.

    A record is delivered once a run, in order, and its batch's ``end`` is the only thing a caller has to keep to go on
    behind it. Nothing is skipped in silence: what cannot be read is delivered as a record with a fault.
    """

    def batches(self) -> Iterator[RawBatch]:
        """Deliver what there is, in batches of bounded count and size; called once.

        Raises ``SourceError`` when the input itself cannot be read. Batches that were delivered before it stand.
        """
        ...

    def close(self) -> None:
        """Let go of the input. Closing again does nothing."""
        ...


class Sink(Protocol):
    """Where verdicts and dead letters go.

    Each call raises ``SinkError`` when something cannot be written. After that nothing may be assumed of the call's
    events and letters; the caller closes the sink, commits nothing, and a later run cuts back to the last marks.
    """

    def emit(self, answers: Sequence[Answer]) -> None:
        """Hand over what was said, of which the sink sends what it carries; an event has no line ends."""
        ...

    def reject(self, rejections: Sequence[Rejection]) -> None:
        """Hand over dead letters."""
        ...

    def flush(self) -> None:
        """Return when all that was handed over is written, and durable where the sink was asked for that."""
        ...

    def marks(self) -> Marks | None:
        """How much is written, for the checkpoint; None for a sink that cannot be cut back."""
        ...

    def close(self) -> None:
        """Let go of the output without writing anything. Closing again does nothing."""
        ...
