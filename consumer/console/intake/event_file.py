"""Reads a file of events as it grows: the sink of a run or of the service, or the console's own file of releases.

Only whole lines are read. The position is stored with the events, so that no event is lost or stored twice. A resumed
run truncates its sink and writes different lines, and somebody may replace the file. So each position is stored as a
mark, which includes a digest of the bytes before it. Reading continues at the latest mark that still matches the file.
"""

import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from typing_extensions import override

from consumer.console.intake.intake import EventSource
from consumer.files.lines import LineSplitter, Position, position_of
from consumer.model.errors import Abandoned, SourceError
from consumer.model.limits import ReadLimits
from consumer.model.record import End, RawBatch, RawRecord
from consumer.reviews.database import Connection, Database
from consumer.reviews.read_files import FileMark, FileMarks, forget_marks, marks_of, move_marks
from storage.files import opened_regular_file

log = logging.getLogger("dupwatch")

CHUNK_BYTES: Final = 1 << 20
"""The size of one read in bytes. Its complete lines form one batch, or several if they are too many for one."""
TAIL_BYTES: Final = 4_096
"""The maximum number of bytes before a position that its mark digests. They hold several events, so digests differ."""
MARKS_MAX: Final = 4
"""The maximum number of marks of a file. A file that matches none of its marks is read from the beginning."""
MARKS_APART_BYTES: Final = 1 << 20
"""The minimum distance between marks other than the latest. It is usually more than a resumed run cuts off."""


_EMPTY_DIGEST: Final = hashlib.sha256().hexdigest()
_BEGINNING: Final = FileMark(0, 0, _EMPTY_DIGEST)


class EventFile(EventSource):
    """The file at ``path``. Reading ends between batches once ``stopped`` returns True. Used by one thread."""

    def __init__(self, path: Path, database: Database, limits: ReadLimits, stopped: Callable[[], bool]) -> None:
        self.path = path
        self._database = database
        self._limits = limits
        self._stopped = stopped
        self._key = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()
        self._marks: FileMarks = ()
        self._inode: tuple[int, int] | None = None
        self._last_unchanged: tuple[FileMark, tuple[int, int], int, int] | None = None
        self._read_to = 0
        self._is_abandoned = False

    @override
    def batches(self) -> Iterator[RawBatch]:
        """Yield the lines after the stored position. Yield nothing if there are no further whole lines.

        Raises ``FileNotFoundError``, ``SourceError`` if the file cannot be read, and ``DatabaseUnavailable``.
        """
        try:
            with opened_regular_file(self.path) as (descriptor, status):
                self._inode = (status.st_dev, status.st_ino)
                self._is_abandoned = False
                place, tail = self._place(descriptor)
                # Do not read an incomplete line again until the file changes.
                state = (place, self._inode, status.st_size, status.st_mtime_ns)
                if state == self._last_unchanged:
                    return
                has_news = False
                for batch in self._read(descriptor, place, tail):
                    if self._stopped() or self._is_abandoned:
                        return
                    has_news = True
                    yield batch
                if not has_news:
                    self._last_unchanged = state
        except FileNotFoundError:
            raise
        except OSError as error:
            raise SourceError(f"{self.path} cannot be read: {error.strerror}") from error

    @override
    def place_of(self, record: RawRecord) -> str:
        return f"{self.path} line {record.line}"

    @override
    def begin(self, end: End) -> None:
        self._read_to = _mark(end).offset

    @override
    def check(self) -> None:
        """Raise ``Abandoned`` if the current batch was cut off, or the file was replaced or removed."""
        try:
            status = self.path.stat()
        except OSError:
            status = None
        if status is None or (status.st_dev, status.st_ino) != self._inode or status.st_size < self._read_to:
            raise Abandoned(f"{self.path} no longer has the lines that were read from it")

    @override
    def note(self, connection: Connection, end: End) -> None:
        if not move_marks(connection, self._key, self._marks, marks_to_keep(self._marks, _mark(end))):
            raise Abandoned(f"another console has read {self.path}, or began to read it again")

    @override
    def commit(self, end: End) -> None:
        self._marks = marks_to_keep(self._marks, _mark(end))

    @override
    def abandon(self) -> None:
        self._is_abandoned = True

    def begin_again(self) -> None:
        """Forget the stored positions, so that the file is read from the beginning. Raises ``DatabaseUnavailable``."""
        self._database.write(lambda connection: forget_marks(connection, [self._key]))

    def _place(self, descriptor: int) -> tuple[FileMark, bytes]:
        """Return the latest mark that still matches the file, and the bytes that it digests.

        If none matches, return the beginning of the file. Forgets the marks after the returned one. Raises ``OSError``
        and ``DatabaseUnavailable``.
        """
        with self._database.read_connection() as connection:
            self._marks = known = marks_of(connection, self._key)
        for number, mark in enumerate(known):
            start = max(0, mark.offset - TAIL_BYTES)
            tail = os.pread(descriptor, mark.offset - start, start)
            if _digest(tail) == mark.sha256:
                self._keep_only(known[number:])
                return mark, tail
        self._keep_only(())
        return _BEGINNING, b""

    def _keep_only(self, kept: FileMarks) -> None:
        """Keep only the marks ``kept``. If another console has moved the marks, ``note`` raises ``Abandoned`` later."""
        before = self._marks
        if kept == before:
            return
        log.info(
            "%s no longer has the lines that were read from it: a run has resumed, or the file was replaced. Reading "
            "from line %d.",
            self.path,
            kept[0].line + 1 if kept else 1,
        )
        if self._database.write(lambda connection: move_marks(connection, self._key, before, kept)):
            self._marks = kept

    def _read(self, descriptor: int, place: FileMark, tail: bytes) -> Iterator[RawBatch]:
        splitter = LineSplitter(self._limits.record_bytes_max, Position(place.line, place.offset))
        at = place.offset
        while chunk := os.pread(descriptor, CHUNK_BYTES, at):
            # Digest the bytes that were read: the file may change before the batch is stored.
            window, window_start = tail + chunk, at - len(tail)

            def mark(end: Position, window: bytes = window, window_start: int = window_start) -> FileMark:
                end_index = end.offset - window_start
                return FileMark(end.line, end.offset, _digest(window[max(0, end_index - TAIL_BYTES) : end_index]))

            records: list[RawRecord] = []
            for record in splitter.feed(chunk):
                records.append(record)
                if len(records) == self._limits.batch_records_max:
                    yield RawBatch(tuple(records), mark(position_of(record)))
                    records = []
            if records:
                yield RawBatch(tuple(records), mark(splitter.position))
            at += len(chunk)
            tail = window[-TAIL_BYTES:]


def marks_to_keep(marks: FileMarks, latest: FileMark) -> FileMarks:
    """Return the marks to keep after reading up to ``latest``, latest first, at most ``MARKS_MAX``.

    All marks except the latest are ``MARKS_APART_BYTES`` or more apart.
    """
    earlier = marks[1:]
    if marks and marks[0].offset - (earlier[0].offset if earlier else 0) >= MARKS_APART_BYTES:
        earlier = (marks[0], *earlier)
    return (latest, *earlier)[:MARKS_MAX]


def _mark(end: End) -> FileMark:
    if not isinstance(end, FileMark):
        raise TypeError("a batch of a file must end at a file mark")
    return end


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
