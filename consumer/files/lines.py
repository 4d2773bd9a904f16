"""Splits a stream of bytes into records, one per line, in bounded memory for any input."""

import hashlib
import re
from abc import ABC, abstractmethod
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Final

import msgspec
from typing_extensions import override

from consumer.model.article import record_too_long
from consumer.model.dead_letter import DEAD_LETTER_RAW_BYTES_MAX
from consumer.model.errors import BadRecord
from consumer.model.record import RawRecord, TableLayout

_LONE_BYTE_ORDER_MARKS: Final = (BOM_UTF8, BOM_UTF8 + b"\r")
_REPEATS_MAX: Final = (1 << 32) - 2
"""The largest number of repeats that a pattern can name."""


class Position(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A position in a file: after ``line`` lines, which are ``offset`` bytes of decompressed input."""

    line: int = 0
    offset: int = 0


def position_of(record: RawRecord) -> Position:
    """Return the position after a record of a file."""
    if not isinstance(record.end, Position):
        raise TypeError("a record of a file ends at a position")
    return record.end


class Splitter(ABC):
    """Splits a stream into records, which do not depend on how the stream is cut into chunks.

    Only the first bytes of a record over the limit are kept; the whole record is hashed as it passes.
    ``blank_lines`` counts blank lines, which are not records; ``line_feed`` is a line feed in the encoding of the
    stream.
    """

    def __init__(self, record_bytes_max: int, start: Position, encoding: str = "utf-8") -> None:
        self.blank_lines = 0
        self._record_bytes_max = record_bytes_max
        self._done = start
        self._carriage_return, self.line_feed = "\r".encode(encoding), "\n".encode(encoding)
        self._partial = self._new_record()

    @property
    def position(self) -> Position:
        """Return the position after the last complete record."""
        return self._done

    @property
    def is_between_records(self) -> bool:
        """Return whether no byte of the next record has been read yet."""
        return self._partial.size_bytes == 0

    @property
    def quoted_bytes(self) -> int:
        """Return the number of bytes read so far of a record with an open quote, or 0 without one."""
        return 0

    def line_feeds(self, data: bytes) -> int:
        """Return how many lines end in this part of the stream."""
        return data.count(self.line_feed)

    def ends_line(self, data: bytes) -> bool:
        """Return whether this part of the stream ends with a line feed."""
        return data.endswith(self.line_feed)

    @abstractmethod
    def feed(self, chunk: bytes) -> Iterator[RawRecord]:
        """Yield the records that end in this chunk. The iterator must be exhausted before the next call."""

    @abstractmethod
    def finish(self) -> RawRecord | None:
        """Return the last record if it has no line end, or None."""

    def abandon(self, fault: BadRecord) -> RawRecord:
        """Return the record at which the input became unreadable, which stands for the rest of the input.

        Its end is the position where it begins, so that a later run reads it once the input is complete. This position
        counts one line too many, which marks the fault as already reported.
        """
        partial, start = self._partial, self._done
        self.restart(Position(start.line + 1, start.offset))
        return partial.record(start, self._done, fault)

    def restart(self, position: Position) -> None:
        """Continue with a new record at this position."""
        self._done = position
        self._partial = self._new_record()

    def _new_record(self) -> "PartialRecord":
        return PartialRecord(self._record_bytes_max, self._carriage_return)


class LineSplitter(Splitter):
    """Splits a stream into lines.

    A line ends with a line feed; a carriage return before it belongs to the line end. A line of white space is not a
    record.
    """

    def __init__(self, record_bytes_max: int, start: Position) -> None:
        super().__init__(record_bytes_max, start)
        self._blank = _blank_lines(_kept_bytes_max(record_bytes_max))

    @override
    def feed(self, chunk: bytes) -> Iterator[RawRecord]:
        at = 0
        while at < len(chunk):
            if self.is_between_records:
                at = self._skip_blank(chunk, at)
            end = chunk.find(b"\n", at)
            self._partial.extend(chunk[at:] if end < 0 else chunk[at:end])
            if end < 0:
                return
            record = self._end(b"\n")
            if record is not None:
                yield record
            at = end + 1

    @override
    def finish(self) -> RawRecord | None:
        return None if self.is_between_records else self._end(b"")

    def _skip_blank(self, chunk: bytes, at: int) -> int:
        """Skip a sequence of blank lines in one step, since a few bytes of gzip may hold millions; return its end."""
        run = self._blank.match(chunk, at)
        if run is None:
            raise AssertionError("the pattern also matches zero lines")
        lines = chunk.count(b"\n", at, run.end())
        self.blank_lines += lines
        self._done = Position(self._done.line + lines, self._done.offset + run.end() - at)
        return run.end()

    def _end(self, line_feed: bytes) -> RawRecord | None:
        line, start = self._partial, self._done
        self.restart(Position(start.line + 1, start.offset + line.size_bytes + len(line_feed)))
        if line.is_blank():
            self.blank_lines += 1
            return None
        return line.record(start, self._done, line_feed=line_feed)


def _kept_bytes_max(record_bytes_max: int) -> int:
    """Return how many bytes of a record are kept before the rest is only hashed.

    It is one more than a record or a dead letter may have, since the last byte may be the carriage return of a line
    end.
    """
    return max(record_bytes_max, DEAD_LETTER_RAW_BYTES_MAX) + 1


def _blank_lines(line_bytes_max: int) -> "re.Pattern[bytes]":
    """Return a pattern for any number of blank lines with their ends, as ``PartialRecord.is_blank`` defines them."""
    return re.compile(rb"(?:\s{0,%d}\n|%b\r?\n)*+" % (min(line_bytes_max, _REPEATS_MAX), BOM_UTF8))


class PartialRecord:
    """A record that arrives piece by piece, possibly with the beginning of its line end."""

    __slots__ = ("_carriage_return", "_digest", "_head", "_held_back", "_record_bytes_max", "size_bytes")

    def __init__(self, record_bytes_max: int, carriage_return: bytes) -> None:
        self.size_bytes = 0
        self._record_bytes_max = record_bytes_max
        self._carriage_return = carriage_return
        self._head = bytearray()
        self._digest: hashlib._Hash | None = None
        self._held_back = b""

    def extend(self, piece: bytes) -> None:
        """Add a piece, which must not end within the bytes of a carriage return."""
        self.size_bytes += len(piece)
        if self._digest is not None:
            self._hash(self._digest, piece)
            return
        self._head += piece
        if len(self._head) > _kept_bytes_max(self._record_bytes_max) + len(self._carriage_return) - 1:
            self._digest = hashlib.sha256()
            self._hash(self._digest, bytes(self._head))
            del self._head[DEAD_LETTER_RAW_BYTES_MAX:]

    def is_blank(self) -> bool:
        """Return whether this line has only white space, or only a byte order mark."""
        return self._digest is None and (not self._head or self._head.isspace() or self._head in _LONE_BYTE_ORDER_MARKS)

    def is_empty(self) -> bool:
        """Return whether this line has nothing but its line end."""
        return self._digest is None and (not self._head or self._head == self._carriage_return)

    def record(
        self,
        start: Position,
        end: Position,
        fault: BadRecord | None = None,
        *,
        line_feed: bytes = b"",
        table: TableLayout | None = None,
    ) -> RawRecord:
        """Return the record as far as it has arrived; ``fault`` takes precedence over a fault of the record itself."""
        data = bytes(self._head)
        sha256: bytes | None = None
        if self._digest is None:
            data = data.removesuffix(self._carriage_return)
            size_bytes = len(data)
            if size_bytes > max(self._record_bytes_max, DEAD_LETTER_RAW_BYTES_MAX):
                sha256 = hashlib.sha256(data).digest()
                data = data[:DEAD_LETTER_RAW_BYTES_MAX]
        else:
            size_bytes = self.size_bytes - len(self._held_back)
            sha256 = self._digest.digest()
        if fault is None and size_bytes > self._record_bytes_max:
            fault = record_too_long(size_bytes, self._record_bytes_max)
        line_end = self._carriage_return[: self.size_bytes - size_bytes] + line_feed
        return RawRecord(
            start.line + 1, start.offset, data, size_bytes, sha256, fault, end, line_end=line_end, table=table
        )

    def _hash(self, digest: "hashlib._Hash", piece: bytes) -> None:
        """Hash a piece except a final carriage return, which may belong to the line end."""
        piece = self._held_back + piece
        self._held_back = self._carriage_return if piece.endswith(self._carriage_return) else b""
        digest.update(piece.removesuffix(self._carriage_return))
