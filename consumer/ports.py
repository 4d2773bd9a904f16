"""The ports of the pipeline: where records come from, and where verdicts and dead letters go.

The adapters are in ``consumer.sources`` and ``consumer.sinks``. What they raise is of ``consumer.errors`` only.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol

import msgspec

from consumer.dead_letter import DeadLetter
from consumer.errors import BadRecord
from consumer.verdict import Verdict

NO_TIME_MS: Final = -1
"""The timestamp of a message that has none, as the brokers write it."""
Partition = tuple[str, int]
"""The topic and the number."""


class Position(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a source was read: ``line`` lines are done, which were ``offset`` bytes of decompressed input."""

    line: int = 0
    offset: int = 0


class Marks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much a sink has written, in bytes: what a run that goes on later keeps of both files."""

    verdicts_bytes: int = 0
    dead_letters_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """What a record that came from a topic has beside its value, untouched.

    ``timestamp_ms`` is ``NO_TIME_MS`` where the message has none, and else any number that its producer chose.
    ``null_value`` tells a tombstone from an empty value. ``leader_epoch`` goes into the commit, so that a broker can
    tell that a log was cut back. ``headers_lost`` counts the headers that the client could not hand out as they came
    (``sources.client_headers``).
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int
    null_value: bool = False
    leader_epoch: int | None = None
    headers_lost: int = 0


def headers_bytes(headers: Iterable[tuple[str, bytes | None]]) -> int:
    """What headers hold in bytes that their sender chose the number of."""
    return sum(len(name) + len(value or b"") for name, value in headers)


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One record as it was read, without its line end.

    ``line`` counts from 1, ``start`` is the offset of the record's first byte. ``data`` is the whole record, or only
    its first bytes; then ``sha256`` is the digest of all of it, and None otherwise. ``size_bytes`` is always the size
    of the whole. ``fault`` is what was found wrong while reading; such a record is not decoded but rejected.
    ``end`` is the position at which a later run goes on once this record is answered. A record of a topic has its
    ``message``; then ``line`` is 0 and ``start`` the offset in its partition.
    """

    line: int
    start: int
    data: bytes
    size_bytes: int
    sha256: bytes | None
    fault: BadRecord | None
    end: Position
    message: Message | None = None

    def whole(self) -> bytes:
        """The bytes to be decoded; raises the fault where one was found while reading."""
        if self.fault is not None:
            raise self.fault
        return self.data


class Offsets(NamedTuple):
    """Where in each partition of a topic the next batch begins, and which assignment of partitions that belongs to."""

    next: Mapping[Partition, int]
    assignment: int


End = Position | Offsets


@dataclass(frozen=True, slots=True)
class RawBatch:
    """Records in the order of the source, none when only blank lines came; ``end`` is where the next batch begins.

    ``last``: the source has nothing behind it. A stream and a topic do not know.
    """

    records: tuple[RawRecord, ...]
    end: End
    last: bool = False


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


def partition_name(partition: Partition) -> str:
    """A partition as messages name it, and commands take it."""
    topic, number = partition
    return f"{topic}:{number}"


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


class SourceWatcher(Protocol):
    """Is told how a source is that others feed, and share; called from the source's own thread."""

    def beat(self) -> None:
        """The source's thread turns."""
        ...

    def assigned(self, partitions: int) -> None:
        """So many partitions are this consumer's from now on."""
        ...

    def rebalanced(self, what: Literal["assigned", "revoked", "lost"]) -> None:
        """Partitions came, or went; ``lost`` ones were gone before anybody was asked."""
        ...

    def lag(self, topic: str, partition: int, records: int) -> None:
        """So many records of a partition of ours are there and not committed."""
        ...

    def paused(self, *, paused: bool) -> None:
        """Nothing is fetched for the time being, since what was fetched has not been judged."""
        ...

    def held_back(self, seconds: float) -> None:
        """For so long nothing more was taken in, since what is there has not been judged."""
        ...

    def source_trouble(self, why: str | None) -> None:
        """The brokers cannot be reached, or can again (None)."""
        ...

    def gap(self, records: int) -> None:
        """So many records were deleted from the topic before they were read."""
        ...

    def holding(self, held: Mapping[Partition, str | None]) -> None:
        """These partitions are ours, and why each is held; None where it is not."""
        ...

    def note_unreadable(self) -> None:
        """What stands beside a committed offset cannot be read, and counts as nothing."""
        ...


class SinkWatcher(Protocol):
    """Is told how a sink is that can be out of reach."""

    def sink_trouble(self, why: str | None) -> None:
        """Nothing can be sent, or something can again (None)."""
        ...

    def reconnected(self) -> None:
        """The sink's client was made anew."""
        ...

    def time_moved(self) -> None:
        """A copy of a record was sent with the time of sending, and the record's own time in a header."""
        ...
