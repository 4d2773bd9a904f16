"""Dead letters in a file beside that of the verdicts: one line of JSON each."""

import base64
import binascii
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
from typing_extensions import override

from consumer.dead_letters.letter import Letter, Letters, is_number
from consumer.model.dead_letter import DeadLetter
from consumer.model.errors import ConfigError, SourceError

LINE_BYTES_MAX: Final = 16 << 20
"""dupwatch writes no longer lines."""
_LETTER_DECODER: Final = msgspec.json.Decoder(DeadLetter)


class FileLetters(Letters):
    """Reads the letters in the file at ``path``; a line that is still being written is left out."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._done_bytes = 0
        try:
            self._size_bytes = path.stat().st_size
        except OSError as error:
            raise self._error(error) from error

    @override
    def letters(self) -> Iterator[Letter]:
        try:
            with self._path.open("rb") as file:
                yield from self._lines(file)
        except OSError as error:
            raise self._error(error) from error

    @override
    def letter(self, position: str) -> Letter | None:
        if not is_number(position):
            raise ConfigError(f"invalid position {position!r}: in a file it is a line number")
        wanted = str(int(position))
        return next((letter for letter in self.letters() if letter.position == wanted), None)

    @override
    def progress(self) -> tuple[int, int]:
        """Return both in bytes."""
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
                yield _of_line(number, _LETTER_DECODER.decode(line))
            except (msgspec.DecodeError, UnicodeError, RecursionError, binascii.Error) as error:
                raise SourceError(f"{self._path}, line {number} is not a dead letter: {error}") from error

    def _error(self, error: OSError) -> SourceError:
        return SourceError(f"the dead letters {self._path} cannot be read: {error.strerror}")


def _of_line(number: int, found: DeadLetter) -> Letter:
    raw = found.raw_base64
    # A text that was edited by hand may contain anything, lone surrogates too.
    value = (found.raw or "").encode(errors="surrogatepass") if raw is None else base64.b64decode(raw, validate=True)
    return Letter(
        position=str(number),
        time_ms=None,
        record_time_ms=None,
        reason=found.reason,
        detail=found.detail,
        origin=None,
        place=f"{found.position.source}:{found.position.line}",
        key=None,
        value=value,
        size_bytes=found.size_bytes,
        sha256=found.sha256,
        cut=found.cut,
    )
