"""Decodes the answer to ``getRowsWithColumns`` without an object for each cell.

The Thrift library creates two objects for every cell, which took a third of the time of a look-up. Cells with a column
of the expected length and no value all have the same shape, so numpy cuts their qualifiers out of the received bytes.
Other cells are read one by one.

The bytes are those of Thrift's binary protocol (``thrift/protocol`` of Apache Thrift, THRIFT-110), with the field
numbers of ``Hbase.thrift``: an answer is a list of ``TRowResult``, each a row (field 1) and a map of columns to
``TCell`` (field 2), each a value (field 1) and a time (field 2).
"""

import struct
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np

_STOP: Final = 0
_I64: Final = 10
_BINARY: Final = 11
_STRUCT: Final = 12
_MAP: Final = 13
_LIST: Final = 15
_REPLY: Final = 0x80010002

_LENGTH: Final = struct.Struct(">i")
_MESSAGE: Final = struct.Struct(">Ii")
_NUMBER: Final = struct.Struct(">i")
_FIELD: Final = struct.Struct(">bh")
_LIST_FIELD: Final = struct.Struct(">bhbi")
_TEXT_FIELD: Final = struct.Struct(">bhi")
_MAP_FIELD: Final = struct.Struct(">bhbbi")
_COLUMNS: Final = _MAP_FIELD.pack(_MAP, 2, _BINARY, _STRUCT, 0)[: -_LENGTH.size]
_VALUE: Final = _FIELD.pack(_BINARY, 1)
_TIME: Final = _FIELD.pack(_I64, 2)
_END: Final = bytes([_STOP])
_NO_VALUE: Final = _TEXT_FIELD.pack(_BINARY, 1, 0) + _TIME
_TIME_BYTES: Final = 8
_CELL_BYTES_MIN: Final = _LENGTH.size + len(_NO_VALUE) + _TIME_BYTES + 1
"""The size of the smallest cell: no value, in a column without a name."""
_READ_BYTES: Final = 1 << 16


class MalformedAnswer(Exception):  # noqa: N818  # it is what was received
    """Bytes that are not an answer of the expected kind; the connection cannot be used afterwards."""


class UnexpectedAnswer(Exception):  # noqa: N818  # as above
    """An answer that is not a list of rows, such as an error. ``received`` has the bytes read so far."""

    def __init__(self, received: bytes) -> None:
        super().__init__("the answer is not a list of rows")
        self.received = received


class RowCells(NamedTuple):
    """The cells of a row: the joined qualifiers of its leading cells of one shape, and other values by column."""

    qualifiers: bytes
    values: Mapping[bytes, bytes]


class CellShape:
    """The layout of a cell without a value, in columns of one family and length: the bytes around its qualifier."""

    def __init__(self, family: bytes, qualifier_bytes: int) -> None:
        self.qualifier_bytes = qualifier_bytes
        self._prefix = _LENGTH.pack(len(family) + qualifier_bytes) + family
        self._start = len(self._prefix)
        self._end = self._start + qualifier_bytes
        self._tail = self._end + len(_NO_VALUE)
        self.size = self._tail + _TIME_BYTES + 1
        fixed = {**dict(enumerate(self._prefix)), **dict(enumerate(_NO_VALUE, self._end)), self.size - 1: _STOP}
        self._fixed = [(place, bytes([value])) for place, value in fixed.items()]

    def begins(self, data: bytes, at: int) -> bool:
        """Return whether a cell of this family and length, with or without a value, begins here."""
        return data.startswith(self._prefix, at)

    def count_leading(self, data: bytes, at: int, count: int) -> int:
        """Return how many of ``count`` cells from ``at`` on have this shape, up to the first that does not.

        ``data`` must have at least ``count`` times ``size`` bytes from ``at`` on. All bytes of a cell except its
        qualifier and time are compared, since only then does the next cell begin where this one ends.
        """
        end = at + count * self.size
        if all(data[at + place : end : self.size] == value * count for place, value in self._fixed):
            return count
        table = np.frombuffer(data, np.uint8, count * self.size, at).reshape(count, self.size)
        alike = (table[:, : self._start] == np.frombuffer(self._prefix, np.uint8)).all(axis=1)
        alike &= (table[:, self._end : self._tail] == np.frombuffer(_NO_VALUE, np.uint8)).all(axis=1)
        alike &= table[:, -1] == 0
        return count if alike.all() else int(alike.argmin())

    def qualifiers(self, cells: bytes) -> bytes:
        """Return the joined qualifiers of these cells, which must have this shape."""
        table = np.frombuffer(cells, np.uint8).reshape(-1, self.size)
        return table[:, self._start : self._end].tobytes()


def _complete_cells(data: bytes, at: int, count: int) -> tuple[list[tuple[bytes, bytes]], int]:
    """Return the columns and values of up to ``count`` cells from ``at`` on, and the offset of their end.

    Stops at a cell that is not complete yet, or has fields other than a value followed by a time.
    """
    cells: list[tuple[bytes, bytes]] = []
    while len(cells) < count:
        column = at + _LENGTH.size
        value_field = column + int.from_bytes(data[at:column], "big")
        value = value_field + _TEXT_FIELD.size
        time = value + int.from_bytes(data[value - _LENGTH.size : value], "big")
        stop = time + len(_TIME) + _TIME_BYTES
        if not (
            data.startswith(_VALUE, value_field) and data.startswith(_TIME, time) and data[stop : stop + 1] == _END
        ):
            break
        cells.append((data[column:value_field], data[value:time]))
        at = stop + 1
    return cells, at


class RowAnswerReader:
    """A reader of one answer. ``receive`` returns up to the given number of bytes, none at the end of the stream.

    Every method may raise ``MalformedAnswer`` and the errors of ``receive``.
    """

    def __init__(self, receive: Callable[[int], bytes]) -> None:
        self._receive = receive
        self._data = b""
        self._at = 0

    def message(self) -> tuple[str, int]:
        """Read the head of the answer; return the name of the call and the number of the request.

        Raises ``UnexpectedAnswer`` for an error, or any other answer that is not a list of rows.
        """
        self._need(_MESSAGE.size)
        kind, name_bytes = _MESSAGE.unpack_from(self._data)
        if kind != _REPLY:
            raise UnexpectedAnswer(self._data)
        self._at = _MESSAGE.size
        name = self._take(name_bytes).decode("ascii", "replace")
        (number,) = _NUMBER.unpack(self._take(_NUMBER.size))
        self._need(_FIELD.size)
        if _FIELD.unpack_from(self._data, self._at) != (_LIST, 0):
            raise UnexpectedAnswer(self._data)
        return name, number

    @property
    def rest(self) -> bytes:
        """The bytes received after this answer: the beginning of the next one."""
        return self._data[self._at :]

    def rows(self, shape: CellShape) -> dict[bytes, RowCells]:
        """Read the rows and the end of the answer; a row's leading cells of this shape become joined qualifiers."""
        _, _, kind, count = self._unpack(_LIST_FIELD)
        if kind != _STRUCT or count < 0:
            raise MalformedAnswer(f"a list of {count} values of type {kind} instead of rows")
        rows = [self._row(shape) for _ in range(count)]
        if self._take(1)[0] != _STOP:
            raise MalformedAnswer("a field after the last row")
        # Cut once for the whole answer, since most rows have only a few cells.
        qualifiers = shape.qualifiers(b"".join(alike for _, alike, _ in rows))
        found: dict[bytes, RowCells] = {}
        start = 0
        for row, alike, values in rows:
            end = start + len(alike) // shape.size * shape.qualifier_bytes
            found[row] = RowCells(qualifiers[start:end], values)
            start = end
        return found

    def _row(self, shape: CellShape) -> tuple[bytes, bytes, dict[bytes, bytes]]:
        """Read a row; return its key, the bytes of its leading cells of this shape, and the values of the others."""
        self._need(_TEXT_FIELD.size)
        kind, number, key_bytes = _TEXT_FIELD.unpack_from(self._data, self._at)
        if (kind, number) != (_BINARY, 1) or key_bytes < 0:
            raise MalformedAnswer(f"field {number} of type {kind} instead of a row's key")
        self._need(_TEXT_FIELD.size + key_bytes + _MAP_FIELD.size)
        key = self._at + _TEXT_FIELD.size
        start = key + key_bytes + _MAP_FIELD.size
        row = self._data[key : key + key_bytes]
        count = _LENGTH.unpack_from(self._data, start - _LENGTH.size)[0]
        if not self._data.startswith(_COLUMNS, key + key_bytes) or count < 0:
            raise MalformedAnswer("no columns after a row's key")
        self._at = start
        alike, values = self._cells(count, shape)
        if self._data[self._at] != _STOP:
            raise MalformedAnswer("a field after a row's columns")
        self._at += 1
        return row, alike, values

    def _cells(self, count: int, shape: CellShape) -> tuple[bytes, dict[bytes, bytes]]:
        """Return the bytes of the leading cells of this shape, and the values of the others.

        Also receive one more byte.
        """
        left = count
        alike: list[bytes] = []
        while left:
            # Wait only for bytes that must come: the smallest cells, then one cell of this shape.
            self._need(left * _CELL_BYTES_MIN)
            if not shape.begins(self._data, self._at):
                break
            self._need(shape.size)
            available = min(left, (len(self._data) - self._at) // shape.size)
            leading = shape.count_leading(self._data, self._at, available)
            alike.append(self._take(leading * shape.size))
            left -= leading
            if leading < available:
                break
        # Cells of other shapes follow: posting sets, usually one for each bucket.
        values: dict[bytes, bytes] = {}
        while left:
            complete, self._at = _complete_cells(self._data, self._at, left)
            values.update(complete)
            left -= len(complete)
            if left:
                # A cell with other fields, or one whose bytes have not all been received.
                column = self._text()
                values[column] = self._value()
                left -= 1
        self._need(1)
        return b"".join(alike), values

    def _value(self) -> bytes:
        """Read the rest of a cell, after its column, and return its value."""
        value = b""
        while True:
            kind = self._take(1)[0]
            if kind == _STOP:
                return value
            number = int.from_bytes(self._take(2), "big")
            if (kind, number) == (_BINARY, 1):
                value = self._text()
            elif (kind, number) == (_I64, 2):
                self._take(_TIME_BYTES)
            else:
                raise MalformedAnswer(f"field {number} of type {kind} in a cell")

    def _text(self) -> bytes:
        (size,) = self._unpack(_LENGTH)
        return self._take(size)

    def _unpack(self, layout: struct.Struct) -> tuple[int, ...]:
        self._need(layout.size)
        values = layout.unpack_from(self._data, self._at)
        self._at += layout.size
        return values

    def _take(self, count: int) -> bytes:
        if count < 0:
            raise MalformedAnswer(f"a length of {count}")
        self._need(count)
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken

    def _need(self, count: int) -> None:
        """Receive until at least this many unread bytes are available."""
        missing = self._at + count - len(self._data)
        if missing <= 0:
            return
        received = [self._data[self._at :]]
        while missing > 0:
            part = self._receive(max(missing, _READ_BYTES))
            if not part:
                raise MalformedAnswer("the connection ended in the middle of an answer")
            received.append(part)
            missing -= len(part)
        self._data = b"".join(received)
        self._at = 0
