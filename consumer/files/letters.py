"""Writes dead letters to a file next to the verdicts, as JSON lines, and reads them back."""

import base64
import binascii
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
from typing_extensions import override

from consumer.files.line_file import LineFile, WholeLines
from consumer.files.sinks import NO_CHECKPOINT
from consumer.model.dead_letter import SCHEMA, DeadLetter, encode
from consumer.model.errors import ConfigError, SourceError
from consumer.model.letter import Letter, LetterReader, is_number
from consumer.model.ports import DeadLetterSink, Rejection
from storage.files import WriteOptions

DEAD_LETTERS_SUFFIX: Final = ".dead-letters.jsonl"
WHOLE_LETTERS: Final = WholeLines(f'{{"schema":"{SCHEMA}"'.encode(), "dead letters")
"""Keeps all letters of a file that has no checkpoint."""
LINE_BYTES_MAX: Final = 16 << 20
"""Longer than any line that dupwatch writes."""
_LETTER_DECODER: Final = msgspec.json.Decoder(DeadLetter)


def dead_letters_path(path: Path) -> Path:
    """Return the path of the dead letters that belong to the verdicts in ``path``."""
    # with_name would fail for a folder such as . that has no name.
    return path.parent / (path.name + DEAD_LETTERS_SUFFIX)


class FileDeadLetters(DeadLetterSink):
    """A file of dead letters at ``path``. One process at a time appends to it.

    The file is created with the first letter. The parameters are those of ``FileSink``, except ``emit``.
    """

    def __init__(
        self,
        path: Path,
        keep_bytes: int | WholeLines | None,
        writing: WriteOptions,
        *,
        why_not_append: str = NO_CHECKPOINT,
    ) -> None:
        self._path = path
        self._keep = keep_bytes if isinstance(keep_bytes, WholeLines) else None
        self._writing = writing
        self._why_not_append = why_not_append
        self._file: LineFile | None = None
        if path.exists() or (keep_bytes and self._keep is None):
            self._file = LineFile(path, keep_bytes, writing, why_not_append)

    @override
    def reject(self, rejections: Sequence[Rejection]) -> None:
        if rejections:
            if self._file is None:
                self._file = LineFile(self._path, self._keep, self._writing, self._why_not_append)
            self._file.write(encode(rejection.letter) for rejection in rejections)

    @override
    def flush(self) -> None:
        if self._file is not None and self._writing.durable:
            self._file.sync()

    @override
    def size_bytes(self) -> int:
        return 0 if self._file is None else self._file.size_bytes

    @override
    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class FileLetterReader(LetterReader):
    """A reader of the letters in the file at ``path``. It leaves out a last line that is still being written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._done_bytes = 0
        try:
            self._size_bytes = path.stat().st_size
        except OSError as error:
            raise self._error(error) from error

    @override
    def letters(self) -> Iterator[Letter]:
        self._done_bytes = 0
        try:
            with self._path.open("rb") as file:
                yield from self._lines(file)
        except OSError as error:
            raise self._error(error) from error

    @override
    def letter(self, position: str) -> Letter | None:
        if not is_number(position):
            raise ConfigError(f"invalid position {position!r}: write a line number for a letter in a file")
        line_number = str(int(position))
        return next((letter for letter in self.letters() if letter.position == line_number), None)

    @override
    def progress(self) -> tuple[int, int]:
        """Return the bytes read and the size of the file."""
        return self._done_bytes, self._size_bytes

    def _lines(self, file: BinaryIO) -> Iterator[Letter]:
        number = 0
        while self._done_bytes < self._size_bytes:
            line = file.readline(LINE_BYTES_MAX)
            if not line.endswith(b"\n"):
                if len(line) == LINE_BYTES_MAX:
                    raise SourceError(f"{self._path}, line {number + 1} is too long for a dead letter")
                return
            number += 1
            self._done_bytes += len(line)
            try:
                yield _letter(number, _LETTER_DECODER.decode(line))
            except (msgspec.DecodeError, UnicodeError, RecursionError, binascii.Error) as error:
                raise SourceError(f"{self._path}, line {number} is not a dead letter: {error}") from error

    def _error(self, error: OSError) -> SourceError:
        return SourceError(f"the dead letters {self._path} cannot be read: {error.strerror}")


def _letter(number: int, stored: DeadLetter) -> Letter:
    raw = stored.raw_base64
    # A text that was edited by hand may contain anything, even lone surrogates.
    value = (stored.raw or "").encode(errors="surrogatepass") if raw is None else base64.b64decode(raw, validate=True)
    return Letter(
        position=str(number),
        time_ms=None,
        record_time_ms=None,
        reason=stored.reason,
        detail=stored.detail,
        origin=None,
        place=f"{stored.position.source}:{stored.position.line}",
        key=None,
        value=value,
        size_bytes=stored.size_bytes,
        sha256=stored.sha256,
        cut=stored.cut,
    )
