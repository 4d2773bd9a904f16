"""The readable encodings of tables, and which of their bytes are ASCII characters.

A table is split into rows before it is decoded, so that each row keeps its bytes and its position, and a bad row does
not affect others. That works only for encodings in which line ends, quotes and separators are single code units.
"""

import codecs
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

_MARK: Final = "\ufeff"
_NOT_FOR_TEXTS: Final = frozenset({"charmap", "idna", "raw-unicode-escape"})
"""Python codecs that keep ASCII but are not encodings of texts."""
_UNIT_TYPES: Final = {"utf-16-le": "<u2", "utf-16-be": ">u2", "utf-32-le": "<u4", "utf-32-be": ">u4"}
"""The numpy types of code units that are larger than a byte."""
_MARKED: Final = frozenset({"utf-16", "utf-32"})
"""Encodings whose byte order is given by a mark at the beginning."""
MARK_BYTES_MAX: Final = 4
_EXAMPLES: Final = "name one such as utf-8, gb18030, utf-16 or windows-1252"


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding of text. ``name`` is Python's name for it."""

    name: str

    @property
    def unit_bytes(self) -> int:
        """The size of a code unit in bytes."""
        return int(_UNIT_TYPES.get(self.name, "1")[-1])

    def ascii_units(self, data: bytes) -> bytes:
        """Return one byte for each complete code unit: its ASCII character, or a byte above 127 for any other unit."""
        units = _UNIT_TYPES.get(self.name)
        if units is None:
            return data
        whole = len(data) // self.unit_bytes
        found: npt.NDArray[np.uint8] = np.minimum(np.frombuffer(data, units, whole), 255).astype(np.uint8)
        return found.tobytes()

    def resolve(self, opening: bytes) -> tuple["Encoding", int]:
        """Return the encoding of input with these first bytes, and the length of its byte order mark.

        ``opening`` must have at least ``MARK_BYTES_MAX`` bytes unless the input is shorter. Raises ``ValueError`` if a
        required mark is missing.
        """
        names = (f"{self.name}-le", f"{self.name}-be") if self.name in _MARKED else (self.name,)
        for name in names:
            mark = _mark(name)
            if mark and opening.startswith(mark):
                return Encoding(name), len(mark)
        if self.name in _MARKED and opening:
            raise ValueError(f"has no byte order mark: set source.encoding={self.name}-le or {self.name}-be")
        return Encoding(names[0]), 0


def encoding_named(name: str) -> Encoding:
    """Return the encoding with this name. Raises ``ValueError`` if tables in it cannot be read."""
    try:
        python_name = codecs.lookup(name).name.removesuffix("-sig")
        readable = python_name in _MARKED or python_name in _UNIT_TYPES or _contains_ascii(python_name)
    except LookupError:
        raise ValueError(f"unknown encoding; {_EXAMPLES}") from None
    if not readable:
        raise ValueError(f"tables in this encoding cannot be read; convert them to UTF-8, or {_EXAMPLES}")
    return Encoding(python_name)


def _contains_ascii(name: str) -> bool:
    """Return whether each byte below 128, alone, stands for its ASCII character, and no other byte does.

    Raises ``LookupError`` if the codec does not decode to text.
    """
    if name in _NOT_FOR_TEXTS:
        return False
    try:
        keeps_ascii = all(bytes([code]).decode(name) == chr(code) for code in range(128))
    except UnicodeError:
        return False
    return keeps_ascii and not any(bytes([code]).decode(name, "replace").isascii() for code in range(128, 256))


def _mark(name: str) -> bytes:
    try:
        return _MARK.encode(name)
    except UnicodeEncodeError:
        return b""
