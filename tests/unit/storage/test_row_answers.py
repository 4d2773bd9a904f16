"""Answers with rows, decoded from bytes that the Thrift library has written."""

import io
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from thriftpy2.protocol.cybin import TCyBinaryProtocol
from thriftpy2.thrift import TMessageType
from thriftpy2.transport.memory import TCyMemoryBuffer

from storage.hbase.row_answers import CellShape, MalformedAnswer, RowAnswerReader, RowCells, UnexpectedAnswer
from storage.hbase.thrift_client import DECLARED_ERRORS, Hbase, TCell, TRowResult

CALL: Final = "getRowsWithColumns"
NUMBER: Final = 0x7FFF_FFFF
QUALIFIER_BYTES: Final = 9
SHAPE: Final = CellShape(b"p:", QUALIFIER_BYTES)

Rows = dict[bytes, dict[bytes, tuple[bytes, int]]]
"""The value and time of each cell, by row and column."""


def answer(rows: Rows, kind: int = TMessageType.REPLY) -> bytes:
    """Return the bytes of an answer with these rows, their columns in order, as a gateway writes them."""
    results = [
        TRowResult(
            row=row,
            columns={column: TCell(value=value, timestamp=time) for column, (value, time) in sorted(cells.items())},
        )
        for row, cells in rows.items()
    ]
    return _message(Hbase.getRowsWithColumns_result(success=results), kind)


def _message(result: Any, kind: int = TMessageType.REPLY) -> bytes:  # noqa: ANN401  # the library has no types
    buffer = TCyMemoryBuffer()
    protocol = TCyBinaryProtocol(buffer, decode_response=False)
    protocol.write_message_begin(CALL, kind, NUMBER)
    protocol.write_struct(result)
    whole: bytes = buffer.getvalue()
    return whole


def received(whole: bytes, sizes: Sequence[int] = (1 << 20,)) -> Callable[[int], bytes]:
    """Return a function that gives these bytes in parts of these sizes, in turn; it fails if more is awaited."""
    stream, turns = io.BytesIO(whole), iter(range(1 << 20))

    def receive(count: int) -> bytes:
        part = stream.read(min(count, sizes[next(turns) % len(sizes)]))
        assert part, "more bytes were awaited than the answer has"
        return part

    return receive


def expected(rows: Rows) -> dict[bytes, RowCells]:
    """Return what is read of these rows: columns that follow one of another shape come by themselves."""
    found: dict[bytes, RowCells] = {}
    for row, cells in rows.items():
        joined = b""
        values: dict[bytes, bytes] = {}
        for column, (value, _) in sorted(cells.items()):
            if column.startswith(b"p:") and len(column) == len(b"p:") + QUALIFIER_BYTES and not value and not values:
                joined += column[len(b"p:") :]
            else:
                values[column] = value
        found[row] = RowCells(joined, values)
    return found


cells = st.one_of(
    st.tuples(st.binary(min_size=QUALIFIER_BYTES, max_size=QUALIFIER_BYTES).map(b"p:".__add__), st.just(b"")),
    st.tuples(st.binary(min_size=24, max_size=24).map(b"s:".__add__), st.binary(min_size=1, max_size=200)),
    st.tuples(st.binary(max_size=14).map(b"p:".__add__), st.binary(max_size=60)),
)
row_strategy = st.dictionaries(
    st.binary(min_size=1, max_size=4),
    st.lists(st.tuples(cells, st.integers(0, 2**63 - 1)), min_size=1, max_size=30).map(
        lambda drawn: {column: (value, time) for (column, value), time in drawn}
    ),
    max_size=6,
)


_ZERO: Final = b"p:" + bytes(QUALIFIER_BYTES)
_ONE: Final = b"p:\x00\x01" + bytes(QUALIFIER_BYTES - 2)


# Between two cells of the shape is one of the same length, with a shorter column and a value.
@example({b"row": {_ZERO: (b"", 0), b"p:\x00\x01": (bytes(QUALIFIER_BYTES - 2), 0), _ONE: (b"", 0)}}, [157])
@given(row_strategy, st.lists(st.integers(1, 300), min_size=1, max_size=5))
def test_rows_are_read_as_the_library_wrote_them(rows: Rows, sizes: list[int]) -> None:
    """In parts of any size, without waiting for more than was sent."""
    reader = RowAnswerReader(received(answer(rows), sizes))
    assert reader.message() == (CALL, NUMBER)
    assert reader.rows(SHAPE) == expected(rows)


@pytest.mark.parametrize("result", ["error", "empty"])
def test_another_answer_is_handed_back(result: str) -> None:
    """With all that was received of it, so that the library reads it from the start."""
    whole = _message(
        Hbase.getRowsWithColumns_result(io=DECLARED_ERRORS[0](b"Table does not exist"))
        if result == "error"
        else Hbase.getRowsWithColumns_result()
    ) + bytes(2)
    with pytest.raises(UnexpectedAnswer) as other:
        RowAnswerReader(received(whole)).message()
    assert other.value.received == whole


def test_an_exception_of_the_server_is_handed_back() -> None:
    """A message of type exception has another struct."""
    whole = answer({}, TMessageType.EXCEPTION)
    with pytest.raises(UnexpectedAnswer):
        RowAnswerReader(received(whole)).message()


ONE: Final = {b"row": {b"p:" + bytes([number]) * QUALIFIER_BYTES: (b"", 7) for number in range(3)}}


@pytest.mark.parametrize("place", range(len(answer(ONE))))
@pytest.mark.parametrize("bit", [0, 7])
def test_no_changed_byte_raises_anything_else(place: int, bit: int) -> None:
    """What cannot be read is malformed; what can has no row or cell more than was sent."""
    whole = bytearray(answer(ONE))
    whole[place] ^= 1 << bit
    stream = io.BytesIO(bytes(whole))
    reader = RowAnswerReader(lambda count: stream.read(min(count, 1 << 16)))
    try:
        reader.message()
        found = reader.rows(SHAPE)
    except (MalformedAnswer, UnexpectedAnswer):
        return
    assert len(found) == 1
    (row_cells,) = found.values()
    assert len(row_cells.qualifiers) // QUALIFIER_BYTES + len(row_cells.values) <= 3


def test_bytes_after_the_answer_are_those_of_the_next() -> None:
    """They are handed back as they came."""
    reader = RowAnswerReader(received(answer(ONE) + answer({})))
    reader.message()
    assert len(reader.rows(SHAPE)) == 1
    assert reader.rest == answer({})


@pytest.mark.parametrize("field", [struct.pack(">bh", 11, 1), struct.pack(">bh", 10, 2)], ids=["value", "time"])
@pytest.mark.parametrize("other", [struct.pack(">bh", 11, 7), struct.pack(">bh", 10, 1)], ids=["binary", "number"])
def test_other_fields_of_a_cell_are_refused(field: bytes, other: bytes) -> None:
    """A value or a time is told by the type and number of its field, also where cells are cut out whole."""
    # Eight bytes of value: with the length before it as long as a time is with the field before.
    whole = answer({b"row": {b"s:set": (b"8 bytes!", 0x0B00_0100_0000_0000)}})
    assert whole.count(field) >= 1
    place = whole.rindex(b"8 bytes!") - 7 if field[0] == 11 else whole.rindex(b"8 bytes!") + 8
    assert whole[place : place + 3] == field
    reader = RowAnswerReader(received(whole[:place] + other + whole[place + 3 :]))
    reader.message()
    with pytest.raises(MalformedAnswer):
        reader.rows(SHAPE)
