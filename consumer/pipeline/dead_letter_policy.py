"""Turns records that cannot be judged into dead letters, and decides when there are too many.

The kind of sink decides where dead letters go (``feed_kind.SinkAdapter``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from consumer.model.dead_letter import LetterPosition, dead_letter
from consumer.model.errors import BadRecord
from consumer.model.ports import DeadLetterSink, Rejection
from consumer.model.record import RawBatch, RawRecord

Window = tuple[tuple[int, int], ...]
"""Pairs of counts (records, and bad ones among them), oldest first."""

_PARTS: Final = 20
WINDOW_COUNTS_MAX: Final = _PARTS + 2
"""The largest number of pairs of counts in a window."""


@dataclass(frozen=True, slots=True)
class PoisonLimit:
    """A limit on bad records: their share may be at most ``share_max`` among the latest records.

    A full window has at least ``records_min`` records. To keep the window short, small batches share a pair of
    counts until the pair has a 20th of ``records_min``. The oldest pair is dropped as soon as the others have
    ``records_min`` records.
    """

    share_max: float
    records_min: int

    def advance(self, window: Window, records: int, bad: int) -> Window:
        """Return the window with these numbers of further records, and of bad ones among them."""
        if not records:
            return window
        counts = [*window]
        if counts and counts[-1][0] < self.records_min / _PARTS:
            last = counts.pop()
            records, bad = records + last[0], bad + last[1]
        counts.append((records, bad))
        seen = sum(count for count, _ in counts)
        # If ``records_min`` was changed, the window of an earlier run may have too many records or too many pairs.
        while seen - counts[0][0] >= self.records_min or len(counts) > WINDOW_COUNTS_MAX:
            seen -= counts.pop(0)[0]
        return tuple(counts)

    def is_exceeded(self, window: Window) -> bool:
        """Return whether a window is full and too many of its records are bad."""
        records, bad = totals(window)
        return records >= self.records_min and bad > self.share_max * records


def totals(window: Window) -> tuple[int, int]:
    """Return the number of records in a window, and of bad ones among them."""
    return sum(records for records, _ in window), sum(bad for _, bad in window)


class Gate:
    """The decision whether a run continues despite bad records. This base class allows any number of them."""

    def before_judging(self, batch: RawBatch, rejections: Sequence[Rejection]) -> None:
        """Count a batch that has begun. Raises ``Abandoned`` or ``TooManyDeadLetters`` if it must not be judged."""

    def after_commit(self) -> None:
        """Note that the batch is committed. Raises ``TooManyDeadLetters`` if the run has to end after it."""

    def at_end(self) -> None:
        """Check the whole input at its end. Raises ``TooManyDeadLetters`` if the run has failed."""


@dataclass(frozen=True, slots=True)
class DeadLetterPolicy:
    """The sink of dead letters, and the gate that limits their number.

    ``source`` is the name of the input in letters of records that did not come from a topic.
    """

    source: str
    sink: DeadLetterSink
    gate: Gate = field(default_factory=Gate)

    def reject(self, record: RawRecord, fault: BadRecord) -> Rejection:
        """Return the rejection of a record that cannot be judged; the sink gets the rejection with its batch."""
        where = self.source if record.partition is None else "{}[{}]".format(*record.partition)
        position = LetterPosition(source=where, line=record.line, offset=record.start)
        letter = dead_letter(fault, position, record.data, size_bytes=record.size_bytes, sha256=record.sha256)
        return Rejection(record, letter, fault.limit)
