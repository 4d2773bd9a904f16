"""Splits a stream of bytes into the rows of a CSV or TSV table, in bounded memory for any input.

Rows are not decoded here: each keeps its bytes and its position. A regular expression finds the end of a row in one
step.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from typing_extensions import override

from consumer.decode.encodings import Encoding
from consumer.files.lines import Position, Splitter
from consumer.model.record import RawRecord, TableLayout

_EMPTY_LINES: Final = re.compile(rb"(?:\r?\n)*+")
_QUOTED_FIELD: Final = re.compile(rb'"(?:[^"]++|"")*+')
"""A quoted field up to its closing quote or the end of the input, without the closing quote."""


class _Patterns(NamedTuple):
    """Patterns for a whole ``row`` with its line end, and for all ``fields`` of a row that a separator follows."""

    row: "re.Pattern[bytes]"
    fields: "re.Pattern[bytes]"


@cache
def _patterns(separator: str) -> _Patterns:
    sign = re.escape(separator.encode())
    quoted, bare = rb'"(?:[^"]++|"")*+"', rb'(?!")[^%b\n]*+' % sign
    fields = rb"(?:(?:%b|%b)%b)*+" % (quoted, bare, sign)
    row = rb"%b(?:%b\r?+|%b)\n" % (fields, quoted, bare)
    return _Patterns(re.compile(row), re.compile(fields))


class RowSplitter(Splitter):
    """Splits a stream into rows.

    A row ends with a line feed outside quotes; a carriage return before it belongs to the line end. Only a field that
    begins with a quote is quoted; two quotes within it stand for one. A row with text after a closing quote is invalid,
    and ends with that line. An empty line is not a row. Lines are counted within quotes too.
    """

    def __init__(
        self,
        record_bytes_max: int,
        start: Position,
        separator: str,
        encoding: Encoding,
        table: TableLayout | None = None,
    ) -> None:
        self._patterns = _patterns(separator)
        self._encoding = encoding
        self._table = table
        # Stands for the part of the row in earlier chunks: after it, patterns continue as they would after that part.
        self._seen = b""
        self._ends_with_line = False
        self._line_feeds = 0
        self._cut_unit = b""
        super().__init__(record_bytes_max, start, encoding.name)

    @property
    @override
    def quoted_bytes(self) -> int:
        return self._partial.size_bytes if self._seen == b'"' and not self._ends_with_line else 0

    @override
    def line_feeds(self, data: bytes) -> int:
        # Input that is cut off may end within a code unit.
        return self._encoding.ascii_units(data[: len(data) - len(data) % self._encoding.unit_bytes]).count(b"\n")

    @override
    def feed(self, chunk: bytes) -> Iterator[RawRecord]:
        unit_bytes = self._encoding.unit_bytes
        data = self._cut_unit + self._skip_cut_unit(chunk)
        whole_bytes = len(data) - len(data) % unit_bytes
        data, self._cut_unit = data[:whole_bytes], data[whole_bytes:]
        text = self._seen + self._encoding.ascii_units(data)
        seen_bytes = len(self._seen)
        at = 0
        while at < len(text):
            if self.is_between_records:
                at = self._skip_empty(text, at)
            end = self._end_of_row(text, at)
            begin = max(at - seen_bytes, 0) * unit_bytes
            self._line_feeds += text.count(b"\n", at, end or len(text))
            if not end:
                self._partial.extend(data[begin:])
                return
            self._partial.extend(data[begin : (end - 1 - seen_bytes) * unit_bytes])
            record = self._finish_row(self.line_feed)
            if record is not None:
                yield record
            at = end

    @override
    def finish(self) -> RawRecord | None:
        self._partial.extend(self._cut_unit)
        if self.is_between_records:
            return None
        self._line_feeds += 1
        return self._finish_row(b"")

    @override
    def restart(self, position: Position) -> None:
        super().restart(position)
        self._seen = b""
        self._ends_with_line = False
        self._line_feeds = 0

    def _skip_cut_unit(self, chunk: bytes) -> bytes:
        """Skip the rest of a code unit that was cut off when an earlier run read it, since that run has reported it."""
        rest = -self._done.offset % self._encoding.unit_bytes if self.is_between_records else 0
        if rest == 0:
            return chunk
        self._done = Position(self._done.line, self._done.offset + min(rest, len(chunk)))
        return chunk[rest:]

    def _skip_empty(self, text: bytes, at: int) -> int:
        """Skip a sequence of empty lines in one step, and return the offset of its end."""
        run = _EMPTY_LINES.match(text, at)
        if run is None:
            raise AssertionError("the pattern also matches zero lines")
        lines = text.count(b"\n", at, run.end())
        self.blank_lines += lines
        offset = self._done.offset + (run.end() - at) * self._encoding.unit_bytes
        self._done = Position(self._done.line + lines, offset)
        return run.end()

    def _end_of_row(self, text: bytes, at: int) -> int:
        """Return the end of the row that begins at ``at``; if the row has no end yet, save the state and return 0."""
        if self._ends_with_line:
            return text.find(b"\n", at) + 1
        whole = self._patterns.row.match(text, at)
        if whole is not None:
            return whole.end()
        fields = self._patterns.fields.match(text, at)
        field = at if fields is None else fields.end()
        quoted = _QUOTED_FIELD.match(text, field)
        if quoted is None:
            self._seen = b"x" if field < len(text) else b""
            return 0
        rest = text[quoted.end() : quoted.end() + 2]
        if rest in {b"", b'"'}:
            self._seen = b'"' + rest
            return 0
        # Either the row is invalid, or this is the carriage return of its line end.
        self._ends_with_line = True
        return text.find(b"\n", quoted.end()) + 1

    def _finish_row(self, line_feed: bytes) -> RawRecord | None:
        row, start = self._partial, self._done
        end = Position(start.line + self._line_feeds, start.offset + row.size_bytes + len(line_feed))
        self.restart(end)
        if row.is_empty():
            self.blank_lines += 1
            return None
        return row.record(start, end, line_feed=line_feed, table=self._table)
