"""The file of banks: JSON lines with one entry each. New entries are appended.

Readers follow the file by reading the appended lines; a replaced file is read as a whole. Writers hold the ``flock`` of
its folder, since the file is replaced when most of its lines are superseded. A killed process leaves at most an
incomplete last line, which readers ignore and the next writer removes. A last line that an editor left without a line
end is an entry like the others. Any other last line without a line end is an error: the file is not a file of banks.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from typing_extensions import override

from consumer.banks.bank import ENTRY_BYTES_MAX, BankError, Banks, BanksMissing, Entry, decode_entry
from consumer.banks.bank_log import BankLog, BankLogChange, NewEntries
from consumer.banks.exchange import lines_of
from storage.files import WriteOptions, locked_folder, open_or_make, opened_regular_file, replace_file

LOCK_S: Final = 10.0
"""How long to wait for another process that is changing the file."""
SUPERSEDED_MIN: Final = 1_000
"""A file is rewritten if it has more superseded lines than this, and more superseded lines than current ones."""
_READ_BYTES: Final = 1 << 20
_TAIL_BYTES: Final = 256


class FilePlace(NamedTuple):
    """The place up to which a file was read: bytes, lines, the last of these bytes, and the identity of the file.

    ``is_ended`` says that the last of these lines has a line end.
    """

    size_bytes: int
    lines: int
    tail: bytes
    device: int
    inode: int
    modified_ns: int
    is_ended: bool = True


class BankFile(BankLog):
    """The file of banks at ``path``. A missing file cannot be read; the first change creates it.

    The first change loads the banks into memory, so that later changes read only appended lines.
    """

    def __init__(self, path: Path, writing: WriteOptions) -> None:
        self._path = path
        self._writing = writing
        self._place: FilePlace | None = None
        self._banks: Banks | None = None
        self._unread = NewEntries([], is_whole=False)
        self._had_entries = False

    @override
    def read(self) -> NewEntries:
        self._follow(self._path)
        unread, self._unread = self._unread, NewEntries([], is_whole=False)
        return unread

    @override
    def change(self, change: BankLogChange) -> Sequence[Entry]:
        try:
            # Resolved, so that all writers lock the same folder and no link is replaced by a file.
            path = self._path.resolve()
            with locked_folder(path.parent, LOCK_S):
                place, banks = self._current(path)
                entries = change(banks)
                after = banks.after(entries)
                lines = (place.lines if place else 0) + len(entries)
                left = len(after.banks) + len(after.items)
                # A file without entries is not rewritten: readers consider an empty file damaged.
                if left and lines - left > max(SUPERSEDED_MIN, left):
                    temporary = path.with_name(f"{path.name}.new")
                    replace_file(path, temporary, lines_of(after.entries()), self._writing)
                elif entries:
                    _append(path, place, lines_of(entries), self._writing)
        except OSError as error:
            raise BankError(f"the bank file {self._path} cannot be changed: {error.strerror or error}") from error
        return entries

    @override
    def close(self) -> None:
        """Forget how far the file was read. There is nothing to close: no file stays open after a read or change."""
        self._place, self._banks, self._unread = None, None, NewEntries([], is_whole=False)

    def _current(self, path: Path) -> tuple[FilePlace | None, Banks]:
        """Return the end of the file and the banks in it, or None and no banks if it is missing."""
        if not path.exists():
            self.close()
            return None, Banks.of(())
        if self._banks is None:
            # Read all of it again, since earlier entries were not kept; the next ``read`` returns them again.
            self.close()
        self._follow(path, keep_banks=True)
        assert self._banks is not None  # noqa: S101  # keep_banks sets it
        return self._place, self._banks

    def _follow(self, path: Path, *, keep_banks: bool = False) -> None:
        """Read what was appended, or the whole file if it was replaced. A ``BankError`` leaves the object unchanged."""
        new = _read(path, self._place)
        if self._had_entries and new.is_whole and not new.entries:
            # Truncated by mistake, or about to be rewritten. Removing all banks does not empty the file: it leaves
            # lines that say so.
            raise BankError(f"the bank file {path} has become empty; restore it, or make banks in it again")
        self._had_entries = self._had_entries or bool(new.entries)
        if new.is_whole:
            banks = Banks.of(new.entries) if keep_banks or self._banks is not None else None
            unread = NewEntries(new.entries, is_whole=True)
        else:
            banks = self._banks.after(new.entries) if self._banks is not None and new.entries else self._banks
            unread = self._unread._replace(entries=[*self._unread.entries, *new.entries])
        self._place, self._banks, self._unread = new.place, banks, unread


class _ReadResult(NamedTuple):
    """The entries that were read, and the place where reading ended; ``is_whole`` if the whole file was read."""

    entries: list[Entry]
    place: FilePlace
    is_whole: bool


def _read(path: Path, since: FilePlace | None) -> _ReadResult:
    """Return the entries appended after the place ``since``.

    Returns all entries if ``since`` is None, or if the file no longer begins with the bytes before that place. Raises
    ``BanksMissing`` if there is no file, and ``BankError`` if it cannot be read or a line is not a valid entry. For an
    invalid line, the message has its number.
    """
    try:
        with opened_regular_file(path) as (descriptor, status):
            start = FilePlace(0, 0, b"", status.st_dev, status.st_ino, status.st_mtime_ns)
            is_continued = since is not None and _is_continued(descriptor, status, since)
            if since is not None and is_continued:
                start = since._replace(modified_ns=status.st_mtime_ns)
            return _ReadResult(*_entries(path, descriptor, start), is_whole=not is_continued)
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise BanksMissing(f"the bank file {path} does not exist; dupwatch bank create creates it") from error
        raise BankError(f"the bank file {path} cannot be read: {error.strerror}") from error


def _append(path: Path, place: FilePlace | None, lines: bytes, writing: WriteOptions) -> None:
    """Append lines after the last entry: all of them, or none."""
    size_bytes = 0 if place is None else place.size_bytes
    if place is not None and not place.is_ended:
        lines = b"\n" + lines
    descriptor = open_or_make(path, os.O_RDWR | os.O_CLOEXEC, writing.mode)
    try:
        os.ftruncate(descriptor, size_bytes)
        _write(descriptor, lines, size_bytes)
        if writing.durable:
            os.fsync(descriptor)
    except OSError:
        # Some lines may have been written before the error, but a change is made as a whole, or not at all.
        with suppress(OSError):
            os.ftruncate(descriptor, size_bytes)
        raise
    finally:
        os.close(descriptor)


def _write(descriptor: int, data: bytes, place: int) -> None:
    left = memoryview(data)
    while left:
        written = os.pwrite(descriptor, left, place)
        left, place = left[written:], place + written


def _entries(path: Path, descriptor: int, since: FilePlace) -> tuple[list[Entry], FilePlace]:
    """Return the complete entries after a place, and the place where they end."""
    entries, size_bytes, lines = [], since.size_bytes, since.lines
    if not since.is_ended:
        # The last line was counted without its line end, which is read next and would count it again.
        lines -= 1
    os.lseek(descriptor, size_bytes, os.SEEK_SET)
    rest = b""
    while data := os.read(descriptor, _READ_BYTES):
        *complete, rest = (rest + data).split(b"\n")
        for line in complete:
            lines += 1
            size_bytes += len(line) + 1
            if line.strip():
                entries.append(_decode(path, lines, line))
        if len(rest) > ENTRY_BYTES_MAX:
            raise BankError(f"the bank file {path}, line {lines + 1}: it has more than {ENTRY_BYTES_MAX:,} bytes")
    is_ended = not rest.strip() or _is_incomplete(rest)
    if not is_ended:
        lines += 1
        size_bytes += len(rest)
        entries.append(_decode(path, lines, rest))
    place = since._replace(size_bytes=size_bytes, lines=lines, tail=_tail(descriptor, size_bytes), is_ended=is_ended)
    return entries, place


def _decode(path: Path, number: int, line: bytes) -> Entry:
    try:
        return decode_entry(line)
    except BankError as error:
        raise BankError(f"the bank file {path}, line {number}: {error}") from None


def _is_incomplete(rest: bytes) -> bool:
    """Return whether a last line without a line end is an incomplete entry, whose writer was killed.

    An object ends with its last brace, so an incomplete entry is not valid JSON. After a power loss zeros may follow.
    """
    written = rest.rstrip(b"\0").lstrip()
    if written and not written.startswith(b"{"):
        return False
    try:
        msgspec.json.decode(rest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True
    return False


def _is_continued(descriptor: int, status: os.stat_result, since: FilePlace) -> bool:
    """Return whether a file seems to begin with the bytes that were read; an editor may change a file in place.

    The file must be the same one. It must be longer or unmodified, and have the last bytes that were read.
    """
    return (
        (status.st_dev, status.st_ino) == (since.device, since.inode)
        and (status.st_size > since.size_bytes or status.st_mtime_ns == since.modified_ns)
        and _tail(descriptor, since.size_bytes) == since.tail
    )


def _tail(descriptor: int, size_bytes: int) -> bytes:
    """Return the last bytes of the first ``size_bytes``."""
    start = max(0, size_bytes - _TAIL_BYTES)
    return os.pread(descriptor, size_bytes - start, start)
