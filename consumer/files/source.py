"""Records from a file of JSON lines or a table, plain or compressed, or from standard input."""

import os
import stat
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

from typing_extensions import override

from consumer.decode.codecs import MAGIC_BYTES_MAX, Codec, codec_of, is_undecided
from consumer.files.lines import LineSplitter, Position, Splitter
from consumer.files.tables import JSON_LINES, OPEN_QUOTE_FACTOR, FileForm, OpenedTable, open_table
from consumer.model.article import Reason
from consumer.model.errors import BadRecord, SourceError
from consumer.model.limits import ReadLimits
from consumer.model.ports import Source
from consumer.model.record import End, RawBatch, RawRecord

_CHUNK_BYTES: Final = 256 * 1024
_STDIN: Final = 0
STREAM: Final = "-"
"""The name of a standard stream, as a source or as a sink."""


class FileSource(Source):
    """The file at ``path``, or standard input (None), read from a position on.

    The first bytes tell whether the input is compressed. A regular file is read in full batches until its end is
    reached. Then a last line without a line end is a record. Any other input (standard input, a named pipe) can only be
    read from its beginning, and its records are delivered without waiting for more.

    Once the first record of a table is read, ``header`` has the bytes before it. If the last line that an earlier run
    read had no line end, ``missing_line_end`` has one as soon as the first record is read. Raises ``ConfigError`` and
    ``SourceError``. For a wrong header of a regular file, the constructor already raises.
    """

    def __init__(self, path: Path | None, limits: ReadLimits, start: Position, form: FileForm = JSON_LINES) -> None:
        self.header = b""
        self.missing_line_end = b""
        self._name = "standard input" if path is None else str(path)
        self._limits = limits
        self._start = start
        self._form = form
        self._separator = form.separator(path)
        self._splitter: Splitter = LineSplitter(limits.record_bytes_max, start)
        self._read_bytes = 0
        self._fault_reported = False
        self._descriptor: int | None = None
        try:
            self._descriptor = os.dup(_STDIN) if path is None else os.open(path, os.O_RDONLY)
            kind = os.fstat(self._descriptor)
        except OSError as error:
            self.close()
            raise self._error(error) from error
        self._total_bytes = kind.st_size if stat.S_ISREG(kind.st_mode) else None
        self._is_stream = path is None or self._total_bytes is None
        if stat.S_ISDIR(kind.st_mode):
            self.close()
            raise SourceError(f"{self._name} is a directory; name a file of JSON lines, CSV or TSV")
        if self._is_stream and start != Position():
            self.close()
            raise SourceError(f"{self._name} can only be read from its beginning, so a run over it cannot be resumed")
        if self._separator is not None and not self._is_stream:
            self._check_header(self._separator)

    @override
    def batches(self) -> Iterator[RawBatch]:
        """Yield batches; damaged or truncated compressed data becomes one last record with a fault.

        Raises ``SourceError`` if a quote stays open, after the records before it.
        """
        records: list[RawRecord] = []
        size_bytes = 0
        end: End = self._start
        for record in self._records():
            full = len(records) == self._limits.batch_records_max or (
                record is not None and size_bytes + len(record.data) > self._limits.batch_bytes_max
            )
            if records and (record is None or full):
                end = records[-1].end
                yield RawBatch(tuple(records), end)
                records, size_bytes = [], 0
            if record is not None:
                records.append(record)
                size_bytes += len(record.data)
        if records or end != self._splitter.position:
            yield RawBatch(tuple(records), self._splitter.position, last=not self._is_stream)

    def progress(self) -> tuple[int, int | None]:
        """Return the number of bytes read from disk, and the file's size, or None if it is not a regular file."""
        total_bytes = None if self._total_bytes is None else max(self._total_bytes, self._read_bytes)
        return self._read_bytes, total_bytes

    def beginning(self, bytes_max: int) -> bytes:
        """Return the first bytes of the open file, even if another file has its name by now; none for a stream."""
        if self._is_stream:
            return b""
        try:
            return os.pread(self._open_descriptor(), bytes_max, 0)
        except OSError as error:
            raise self._error(error) from error

    @property
    def name(self) -> str:
        """Return the name of the input in messages."""
        return self._name

    @property
    def blank_lines(self) -> int:
        """Return how many blank lines were skipped."""
        return self._splitter.blank_lines

    @property
    def is_table(self) -> bool:
        """Return whether the input is CSV or TSV."""
        return self._separator is not None

    @property
    def is_stream(self) -> bool:
        """Return whether the input is a stream, which can only be read from its beginning."""
        return self._is_stream

    def is_same_file(self, other: os.stat_result) -> bool:
        """Return whether the input is this regular file, under any name."""
        status = os.fstat(self._open_descriptor())
        return stat.S_ISREG(status.st_mode) and os.path.samestat(status, other)

    @override
    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _records(self) -> Iterator[RawRecord | None]:
        """Yield the records, and None where earlier records must be delivered without waiting for more."""
        codec, raw = self._open_input()
        chunks = raw if codec is None else codec.decompress(raw, _CHUNK_BYTES)
        if self._separator is not None:
            chunks = self._rows(chunks, self._separator)
        elif codec is not None:
            chunks = self._skip_to_start(chunks)
        try:
            for chunk in chunks:
                yield from self._splitter.feed(chunk)
                if self._splitter.quoted_bytes > OPEN_QUOTE_FACTOR * self._limits.record_bytes_max:
                    yield from self._open_quote()
                if self._is_stream:
                    yield None
        except BadRecord as fault:
            yield from self._unreadable_rest(fault)
            return
        if self._splitter.quoted_bytes:
            yield from self._open_quote()
        last = self._splitter.finish()
        if last is not None:
            yield last

    def _rows(self, chunks: Iterator[bytes], separator: str) -> Iterator[bytes]:
        """Read the header of a table, and return the input after it, or after the start if that is later."""
        opened = self._opened_table(chunks, separator)
        self.header, self._splitter = opened.header, opened.splitter
        if self._start.offset < opened.start.offset:
            self._start = opened.start
        self._splitter.restart(self._start)
        return self._skip_to_start(opened.chunks)

    def _check_header(self, separator: str) -> None:
        """Raise ``SourceError`` for a wrong header of a regular file, before the run creates anything."""
        try:
            codec = self._codec()
            raw = self._from_beginning()
            self._opened_table(raw if codec is None else codec.decompress(raw, _CHUNK_BYTES), separator)
        except SourceError:
            self.close()
            raise

    def _opened_table(self, chunks: Iterator[bytes], separator: str) -> OpenedTable:
        try:
            return open_table(chunks, self._limits, self._form, separator)
        except ValueError as error:
            raise SourceError(f"the header of {self._name} {error}") from error

    def _open_quote(self) -> Iterator[RawRecord | None]:
        """Raise ``SourceError`` for a row whose quote stays open; on a stream, after yielding it for a dead letter.

        A file can be read again from this row on. The text within the quote is never read as rows: an author could
        forge rows.
        """
        why = (
            f"the row that begins in line {self._splitter.position.line + 1} has a quote that is not closed before "
            f"the input ends, or within {OPEN_QUOTE_FACTOR} times source.record_bytes_max"
        )
        if self._is_stream:
            yield self._splitter.abandon(BadRecord(Reason.TRUNCATED_INPUT, why))
        yield None
        raise SourceError(f"{self._name}: {why}. All earlier rows were judged. Close the quote and run again")

    def _unreadable_rest(self, fault: BadRecord) -> Iterator[RawRecord]:
        """Yield the last records of input that became unreadable, unless an earlier run has reported the fault.

        It is the reported fault if the input still has no readable line after the start.
        """
        if fault.reason == Reason.TRAILING_GARBAGE:
            last = self._splitter.finish()
            if last is not None:
                yield last
        if self._fault_reported and self._splitter.position.offset == self._start.offset:
            self._splitter.restart(self._start)
        else:
            yield self._splitter.abandon(fault)

    def _open_input(self) -> tuple[Codec | None, Iterator[bytes]]:
        """Return the input's codec and all its bytes; for an uncompressed file of lines, only bytes after the start."""
        if self._is_stream:
            raw = self._raw()
            opening = b""
            while is_undecided(opening) and (chunk := next(raw, b"")):
                opening += chunk
            return codec_of(opening, growing=True), chain([opening], raw)
        codec = self._codec()
        if codec is None and self._separator is None:
            self._seek()
        return codec, self._raw()

    def _codec(self) -> Codec | None:
        return codec_of(self.beginning(MAGIC_BYTES_MAX), growing=True)

    def _seek(self) -> None:
        offset = self._start.offset
        try:
            if os.fstat(self._open_descriptor()).st_size < offset:
                raise self._too_short()
            if offset and os.pread(self._open_descriptor(), 1, offset - 1) != self._splitter.line_feed:
                self.missing_line_end = self._splitter.line_feed
            self._read_bytes = os.lseek(self._open_descriptor(), offset, os.SEEK_SET)
        except OSError as error:
            raise self._error(error) from error

    def _from_beginning(self) -> Iterator[bytes]:
        """Yield the whole regular file, without moving the offset at which ``_raw`` reads."""
        at = 0
        try:
            while chunk := os.pread(self._open_descriptor(), _CHUNK_BYTES, at):
                at += len(chunk)
                yield chunk
        except OSError as error:
            raise self._error(error) from error

    def _raw(self) -> Iterator[bytes]:
        try:
            while chunk := os.read(self._open_descriptor(), _CHUNK_BYTES):
                self._read_bytes += len(chunk)
                yield chunk
        except OSError as error:
            raise self._error(error) from error

    def _skip_to_start(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the decompressed input after the start. Finds out whether an earlier run reported a fault there."""
        left = self._start.offset
        lines = 0
        chunk = b""
        try:
            while left > len(chunk):
                left -= len(chunk)
                lines += self._splitter.line_feeds(chunk)
                chunk = next(chunks)
        except (BadRecord, StopIteration):
            raise self._too_short() from None
        passed = chunk[:left]
        if self._start.offset > len(self.header) and not self._splitter.ends_line(passed):
            self.missing_line_end = self._splitter.line_feed
        lines += self._splitter.line_feeds(passed) + (passed != b"" and not self._splitter.ends_line(passed))
        self._fault_reported = self._start.line > lines
        if self._fault_reported:
            # The line with the fault was counted, but not read.
            self._splitter.restart(Position(lines, self._start.offset))
        if left < len(chunk):
            yield chunk[left:]
        yield from chunks

    def _open_descriptor(self) -> int:
        if self._descriptor is None:
            raise SourceError(f"{self._name} was closed while it was being read")
        return self._descriptor

    def _too_short(self) -> SourceError:
        return SourceError(
            f"{self._name} is shorter than the {self._start.offset} bytes that an earlier run read of it; "
            "restore it, or start again with another sink"
        )

    def _error(self, error: OSError) -> SourceError:
        return SourceError(f"{self._name} cannot be read: {error.strerror}")
