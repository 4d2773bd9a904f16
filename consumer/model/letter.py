"""Dead letters as they are read back, the filter that commands select them with, and the port of their readers.

In a topic a letter is the record itself, and headers say why it was rejected. In a file it is a line of JSON
(``model.dead_letter``). Both are read as a ``Letter``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import msgspec

from consumer.model.record import Header


class _HasId(msgspec.Struct):
    id: str | int


_ID_DECODER: Final = msgspec.json.Decoder(_HasId)


class LetterOrigin(NamedTuple):
    """The record of a topic that became a letter."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter.

    ``position`` is "PARTITION:OFFSET" in a topic and the line number in a file. ``reason`` is None for a record of the
    topic that is not a letter of dupwatch; ``detail`` then says so. ``record_time_ms`` is the time of the rejected
    record, or None. ``time_ms`` is the same, or else the time when the letter was written, or else None. For a
    record that did not come from a topic, ``origin`` is None and ``place`` describes its position. If ``cut``,
    ``value`` is only the beginning of the record. ``size_bytes`` and ``sha256`` (hex) describe the whole; ``sha256`` is
    None if it was not computed. ``replays`` counts earlier replays of the record.
    """

    position: str
    time_ms: int | None
    record_time_ms: int | None
    reason: str | None
    detail: str
    origin: LetterOrigin | None
    place: str
    key: bytes | None
    value: bytes | None
    size_bytes: int
    sha256: str | None
    cut: bool
    headers: tuple[Header, ...] = ()
    replays: int = 0

    @property
    def article_id(self) -> str:
        """Return the article's id: the key as text, or else the id in the value, or else ""."""
        if self.key is not None:
            return self.key.decode(errors="backslashreplace")
        try:
            return str(_ID_DECODER.decode(self.value or b"").id)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return ""


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """A filter for letters; every given condition must hold. Times are in milliseconds since 1970.

    ``since_ms`` is inclusive, ``until_ms`` exclusive.
    """

    reasons: frozenset[str] = frozenset()
    since_ms: int | None = None
    until_ms: int | None = None
    article_id: str | None = None

    def takes(self, letter: Letter) -> bool:
        """Return whether the filter selects a letter. A letter without a time is in no period."""
        if self.reasons and letter.reason not in self.reasons:
            return False
        if self.since_ms is not None and (letter.time_ms is None or letter.time_ms < self.since_ms):
            return False
        if self.until_ms is not None and (letter.time_ms is None or letter.time_ms >= self.until_ms):
            return False
        return self.article_id is None or letter.article_id == self.article_id


class LetterReader(Protocol):
    """A reader of dead letters, for one call of either ``letters`` or ``letter``.

    Both raise ``SourceError`` if the letters cannot be read.
    """

    def letters(self) -> Iterator[Letter]:
        """Yield all letters that existed when the reader was made, in order of position."""
        ...

    def letter(self, position: str) -> Letter | None:
        """Return the letter at a position, or None if there is none. Raises ``ConfigError`` for an invalid position."""
        ...

    def progress(self) -> tuple[int, int]:
        """Return how far reading has got, and the total, in bytes of the file or offsets of the topic."""
        ...


def is_number(text: str) -> bool:
    """Return whether this is a whole number in ASCII digits, without a sign."""
    return text.isascii() and text.isdigit()
