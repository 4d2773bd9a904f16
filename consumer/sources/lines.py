"""From a stream of bytes to records, one a line, in bounded memory whatever comes."""

import hashlib
from collections.abc import Iterator
from typing import Final

from consumer.model.article import record_too_long
from consumer.model.dead_letter import DEAD_LETTER_RAW_BYTES_MAX
from consumer.model.errors import BadRecord
from consumer.model.record import Position, RawRecord

_BOM: Final = b"\xef\xbb\xbf"


class LineSplitter:
    """Cuts a stream into records; how the stream was cut into chunks makes no difference.

    A line ends with a line feed, and a carriage return before it belongs to the line end. A line of white space is no
    record. Of a record over the limit the first bytes are kept, and the rest is hashed as it goes by.
    """

    def __init__(self, record_bytes_max: int, start: Position) -> None:
        self._record_bytes_max = record_bytes_max
        self._done = start
        self._line = _Line(record_bytes_max)

    @property
    def position(self) -> Position:
        """Behind the last line that is complete."""
        return self._done

    @property
    def between_lines(self) -> bool:
        """Whether nothing of a next line has been seen."""
        return self._line.size_bytes == 0

    def feed(self, chunk: bytes) -> Iterator[RawRecord]:
        """The records that end within this chunk; to be taken to the end before the next chunk is fed."""
        *ended, begun = chunk.split(b"\n")
        for piece in ended:
            self._line.extend(piece)
            record = self._end(lines=1, end_bytes=1, fault=None)
            if record is not None:
                yield record
        self._line.extend(begun)

    def finish(self) -> RawRecord | None:
        """The last line, if it has no line end."""
        return None if self.between_lines else self._end(lines=1, end_bytes=0, fault=None)

    def abandon(self, fault: BadRecord) -> RawRecord:
        """The record at which the input became unreadable: what there is of it, and all that would have followed.

        The position behind it is where that line begins, so a later run reads the line from there once the input is
        whole. It counts one line more than can be seen, which says that the break was answered.
        """
        line, self._line = self._line, _Line(self._record_bytes_max)
        start = self._done
        self._done = Position(start.line + 1, start.offset)
        record = line.record(start, self._done, fault)
        if record is None:
            raise AssertionError("a record with a fault is never blank")
        return record

    def restart(self, position: Position) -> None:
        """Go on at a position, of which nothing was seen yet."""
        self._done = position
        self._line = _Line(self._record_bytes_max)

    def _end(self, *, lines: int, end_bytes: int, fault: BadRecord | None) -> RawRecord | None:
        line, self._line = self._line, _Line(self._record_bytes_max)
        start = self._done
        self._done = Position(start.line + lines, start.offset + line.size_bytes + end_bytes)
        return line.record(start, self._done, fault)


class _Line:
    """One line as it comes in."""

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
        # One byte more may be a carriage return, which is not the record's.
        if len(self._head) > max(self._record_bytes_max, DEAD_LETTER_RAW_BYTES_MAX) + 1:
            self._digest = hashlib.sha256()
            self._hash(self._digest, bytes(self._head))
            del self._head[DEAD_LETTER_RAW_BYTES_MAX:]

    def record(self, start: Position, end: Position, fault: BadRecord | None) -> RawRecord | None:
        """The line as a record, None for a blank one; ``fault`` goes before what may be wrong with the line."""
        data = bytes(self._head)
        sha256: bytes | None = None
        if self._digest is None:
            data = data.removesuffix(b"\r")
            size_bytes = len(data)
            if fault is None and (not data or data.isspace() or data == _BOM):
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
        """Add to the digest all but a last carriage return, of which it is not known yet whose it is."""
        piece = self._held_back + piece
        self._held_back = b"\r" if piece.endswith(b"\r") else b""
        digest.update(piece.removesuffix(b"\r"))
