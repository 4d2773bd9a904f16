"""Splits a stream of bytes into records, one per line, in bounded memory for any input."""

import hashlib
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Final

import msgspec

from consumer.model.article import record_too_long
from consumer.model.dead_letter import DEAD_LETTER_RAW_BYTES_MAX
from consumer.model.errors import BadRecord
from consumer.model.record import RawRecord

_REPEATS_MAX: Final = (1 << 32) - 2
"""The largest number of repeats that a pattern can name."""


class Position(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a file was read: ``line`` lines, which are ``offset`` bytes of decompressed input."""

    line: int = 0
    offset: int = 0


class LineSplitter:
    """Splits a stream into records, the same ones however the stream is cut into chunks.

    A line ends with a line feed; a carriage return before it belongs to the line end. A line of white space is not a
    record; ``blank_lines`` counts them. Of a record over the limit, only the first bytes are kept; the rest is hashed
    as it passes.
    """

    def __init__(self, record_bytes_max: int, start: Position) -> None:
        self.blank_lines = 0
        self._record_bytes_max = record_bytes_max
        self._done = start
        self._line = _Line(record_bytes_max)
        self._blank = _blank_lines(_held_bytes_max(record_bytes_max))

    @property
    def position(self) -> Position:
        """Return the position behind the last complete line."""
        return self._done

    @property
    def between_lines(self) -> bool:
        """Return whether nothing of the next line was seen yet."""
        return self._line.size_bytes == 0

    def feed(self, chunk: bytes) -> Iterator[RawRecord]:
        """Yield the records that end in this chunk; to be exhausted before the next chunk is fed."""
        at = 0
        while at < len(chunk):
            if self.between_lines:
                at = self._skip_blank(chunk, at)
            end = chunk.find(b"\n", at)
            self._line.extend(chunk[at:] if end < 0 else chunk[at:end])
            if end < 0:
                return
            record = self._end(end_bytes=1)
            if record is not None:
                yield record
            at = end + 1

    def finish(self) -> RawRecord | None:
        """Return the last line, if it has no line end."""
        return None if self.between_lines else self._end(end_bytes=0)

    def abandon(self, fault: BadRecord) -> RawRecord:
        """Return the record at which the input became unreadable, which stands for all that would have followed.

        The position behind it is the beginning of its line, so a later run reads that line once the input is complete.
        The position counts one more line than there is, which marks that the break was answered.
        """
        line, self._line = self._line, _Line(self._record_bytes_max)
        start = self._done
        self._done = Position(start.line + 1, start.offset)
        record = line.record(start, self._done, fault)
        if record is None:
            raise AssertionError("a record with a fault is never blank")
        return record

    def restart(self, position: Position) -> None:
        """Continue at a position of which nothing was seen yet."""
        self._done = position
        self._line = _Line(self._record_bytes_max)

    def _skip_blank(self, chunk: bytes, at: int) -> int:
        """Skip a run of blank lines in one step, and return where it ends: a few bytes of gzip hold millions."""
        run = self._blank.match(chunk, at)
        if run is None:
            raise AssertionError("a run of blank lines may be empty")
        lines = chunk.count(b"\n", at, run.end())
        self.blank_lines += lines
        self._done = Position(self._done.line + lines, self._done.offset + run.end() - at)
        return run.end()

    def _end(self, *, end_bytes: int) -> RawRecord | None:
        line, self._line = self._line, _Line(self._record_bytes_max)
        start = self._done
        self._done = Position(start.line + 1, start.offset + line.size_bytes + end_bytes)
        record = line.record(start, self._done, fault=None)
        self.blank_lines += record is None
        return record


def _held_bytes_max(record_bytes_max: int) -> int:
    """Return how many bytes of a line are held before the rest is only hashed.

    One more than a record or a dead letter may have: the last may be a carriage return, which does not belong to it.
    """
    return max(record_bytes_max, DEAD_LETTER_RAW_BYTES_MAX) + 1


def _blank_lines(line_bytes_max: int) -> "re.Pattern[bytes]":
    """Return a pattern of any number of blank lines with their ends: what ``_Line.record`` returns None for."""
    return re.compile(rb"(?:\s{0,%d}\n|%b\r?\n)*+" % (min(line_bytes_max, _REPEATS_MAX), BOM_UTF8))


class _Line:
    """One line as it arrives, piece by piece."""

    __slots__ = ("_digest", "_head", "_held_back", "_record_bytes_max", "size_bytes")

    def __init__(self, record_bytes_max: int) -> None:
        self.size_bytes = 0
        self._record_bytes_max = record_bytes_max
        self._head = bytearray()
        self._digest: hashlib._Hash | None = None
        self._held_back = b""

    def extend(self, piece: bytes) -> None:
        self.size_bytes += len(piece)
        if self._digest is not None:
            self._hash(self._digest, piece)
            return
        self._head += piece
        if len(self._head) > _held_bytes_max(self._record_bytes_max):
            self._digest = hashlib.sha256()
            self._hash(self._digest, bytes(self._head))
            del self._head[DEAD_LETTER_RAW_BYTES_MAX:]

    def record(self, start: Position, end: Position, fault: BadRecord | None) -> RawRecord | None:
        """Return the line as a record, None for a blank one; ``fault`` takes precedence over faults of the line."""
        data = bytes(self._head)
        sha256: bytes | None = None
        if self._digest is None:
            data = data.removesuffix(b"\r")
            size_bytes = len(data)
            if fault is None and (not data or data.isspace() or data == BOM_UTF8):
                return None
            if size_bytes > max(self._record_bytes_max, DEAD_LETTER_RAW_BYTES_MAX):
                sha256 = hashlib.sha256(data).digest()
                data = data[:DEAD_LETTER_RAW_BYTES_MAX]
        else:
            size_bytes = self.size_bytes - len(self._held_back)
            sha256 = self._digest.digest()
        if fault is None and size_bytes > self._record_bytes_max:
            fault = record_too_long(size_bytes, self._record_bytes_max)
        return RawRecord(start.line + 1, start.offset, data, size_bytes, sha256, fault, end)

    def _hash(self, digest: "hashlib._Hash", piece: bytes) -> None:
        """Hash all but a last carriage return, which may belong to the line end."""
        piece = self._held_back + piece
        self._held_back = b"\r" if piece.endswith(b"\r") else b""
        digest.update(piece.removesuffix(b"\r"))
