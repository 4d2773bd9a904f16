"""Tells which files are tables, CSV or TSV, and reads their headers."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final, Literal, NamedTuple

from typing_extensions import override

from consumer.decode.article import FieldPaths
from consumer.decode.codecs import CODECS
from consumer.decode.encodings import MARK_BYTES_MAX, encoding_named
from consumer.decode.table_header import read_header
from consumer.files.lines import Position, position_of
from consumer.files.rows import RowSplitter
from consumer.model.errors import BadRecord, ConfigError
from consumer.model.limits import ReadLimits
from consumer.model.record import RawRecord, TableLayout

FileFormat = Literal["jsonl", "csv", "tsv"]
UTF_8: Final = "utf-8"
OPEN_QUOTE_FACTOR: Final = 8
"""A quote that stays open for more than this many times ``record_bytes_max`` counts as forgotten."""
_COMPRESSION_SUFFIXES: Final = frozenset(codec.suffix for codec in CODECS)
_SEPARATORS: Final = {"jsonl": None, "csv": ",", "tsv": "\t"}


class FileForm(NamedTuple):
    """The format of a file, and the encoding of tables. Without a format (None), the file's name decides.

    ``fields`` name the columns of a table that make up an article.
    """

    format: FileFormat | None = None
    encoding: str = UTF_8
    fields: FieldPaths = FieldPaths()

    def separator(self, path: Path | None) -> str | None:
        """Return the separator of fields in this file, or in standard input; None for JSON lines.

        Raises ``ConfigError`` for JSON lines in an encoding other than UTF-8.
        """
        separator = _SEPARATORS[self.format or _named_format(path)]
        if separator is None and encoding_named(self.encoding).name != UTF_8:
            raise ConfigError(
                f"source.encoding={self.encoding} is for CSV and TSV; JSON lines are UTF-8: convert them, as with "
                f"iconv -f {self.encoding} -t UTF-8 FEED, or set source.format"
            )
        return separator


JSON_LINES: Final = FileForm("jsonl")


def _named_format(path: Path | None) -> FileFormat:
    """Return the format of a file by the suffix of its name, before any suffix of a compression."""
    suffixes = [] if path is None else [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSION_SUFFIXES:
        suffixes.pop()
    return "csv" if suffixes[-1:] == [".csv"] else "tsv" if suffixes[-1:] == [".tsv"] else "jsonl"


class OpenedTable(NamedTuple):
    """A table whose header was read. The rows begin at ``start``; ``chunks`` has the whole input from its beginning.

    ``header`` is everything before the rows, byte for byte. ``open_table`` says what differs if the input breaks off.
    """

    splitter: RowSplitter
    start: Position
    header: bytes
    chunks: Iterator[bytes]


def open_table(chunks: Iterator[bytes], limits: ReadLimits, form: FileForm, separator: str) -> OpenedTable:
    """Read the header of a table. Raises ``ValueError``, whose message continues a sentence about the header.

    Input that ends or breaks off within its header has no rows. If it breaks off, the chunks yield the header so far,
    without a byte order mark or empty lines before it, and raise the fault.
    """
    beginning = _ReplayedBeginning(chunks)
    first = b""
    for chunk in beginning:
        first += chunk
        if len(first) >= MARK_BYTES_MAX:
            break
    encoding, mark_bytes = encoding_named(form.encoding).resolve(first)

    def splitter(start: Position, table: TableLayout | None = None) -> RowSplitter:
        return RowSplitter(limits.record_bytes_max, start, separator, encoding, table)

    header_splitter = splitter(Position(0, mark_bytes))
    header = _header(header_splitter, chain([first[mark_bytes:]], beginning), limits)
    if beginning.fault is not None and (header is None or not header.line_end):
        begins = header_splitter.position.offset if header is None else header.start
        return OpenedTable(splitter(Position()), Position(), b"", beginning.replay(begins))
    if header_splitter.quoted_bytes:
        raise ValueError("has a quote that is not closed")
    start, table = header_splitter.position, None
    if header is not None:
        table = read_header(header, separator, encoding.name, form.fields)
        start = position_of(header)
    chunks = in_units(beginning.replay(), encoding.unit_bytes)
    return OpenedTable(splitter(start, table), start, beginning.seen()[: start.offset], chunks)


def in_units(chunks: Iterator[bytes], unit_bytes: int) -> Iterator[bytes]:
    """Yield the chunks cut between code units; only the last one may end within a unit."""
    left = b""
    for chunk in chunks:
        data = left + chunk
        whole_bytes = len(data) - len(data) % unit_bytes
        left = data[whole_bytes:]
        if whole_bytes:
            yield data[:whole_bytes]
    if left:
        yield left


def _header(splitter: RowSplitter, chunks: Iterator[bytes], limits: ReadLimits) -> RawRecord | None:
    """Return the first row, or None if none exists or its quote stays open. Raises ``ValueError`` if it is too long."""
    left_bytes = limits.record_bytes_max
    for chunk in chunks:
        header = next(splitter.feed(chunk), None)
        left_bytes -= len(chunk)
        if header is not None or (left_bytes < 0 and splitter.quoted_bytes):
            return header
        if left_bytes < 0:
            raise ValueError(f"does not end within record_bytes_max = {limits.record_bytes_max} bytes")
    return None if splitter.quoted_bytes else splitter.finish()


class _ReplayedBeginning(Iterator[bytes]):
    """Input whose beginning can be read twice. If the input breaks off, iteration ends, and ``fault`` says why."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.fault: BadRecord | None = None
        self._chunks = chunks
        self._seen: list[bytes] = []

    @override
    def __next__(self) -> bytes:
        if self.fault is not None:
            raise StopIteration
        try:
            chunk = next(self._chunks)
        except BadRecord as fault:
            self.fault = fault
            raise StopIteration from fault
        self._seen.append(chunk)
        return chunk

    def seen(self) -> bytes:
        """Return the bytes read so far."""
        return b"".join(self._seen)

    def replay(self, offset: int = 0) -> Iterator[bytes]:
        """Yield the input again, from an offset that was read, and raise the fault, if any."""
        yield self.seen()[offset:]
        if self.fault is not None:
            raise self.fault
        yield from self._chunks
