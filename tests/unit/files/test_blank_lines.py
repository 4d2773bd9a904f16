"""Blank lines: a few bytes of gzip hold millions of them, and each run is skipped in one step."""

import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from consumer.files.lines import LineSplitter, Position
from consumer.files.source import FileSource
from consumer.model.dead_letter import DEAD_LETTER_RAW_BYTES_MAX
from consumer.model.limits import ReadLimits
from tests.zstandard import zstd

RECORD = b'{"id": "one"}\n'
LINES = [b"\n", b"\r\n", b" \n", b"\t \r\n", b"\xef\xbb\xbf\n", b" \n\xef\xbb\xbf\r\n"]


def _gzip(pieces: Iterator[bytes]) -> bytes:
    return _packed(zlib.compressobj(wbits=31), pieces)


def _zstd(pieces: Iterator[bytes]) -> bytes:
    return _packed(zstd.ZstdCompressor(), pieces)


def _packed(packing: Any, pieces: Iterator[bytes]) -> bytes:  # noqa: ANN401  # any compressor
    return b"".join([*map(packing.compress, pieces), packing.flush()])


def read_s(path: Path, line: bytes, lines: int, pack: Callable[[Iterator[bytes]], bytes]) -> float:
    """Read a feed of blank lines between two records; the processor time that takes."""
    piece = line * 100_000
    repeats = lines // piece.count(b"\n")
    path.write_bytes(pack(iter([RECORD, *[piece] * repeats, RECORD])))
    source = FileSource(path, ReadLimits(), Position())
    began_s = time.thread_time()
    records = [record for batch in source.batches() for record in batch.records]
    seconds = time.thread_time() - began_s
    skipped = repeats * piece.count(b"\n")
    size_bytes = 2 * len(RECORD) + repeats * len(piece)
    assert [record.line for record in records] == [1, skipped + 2]
    assert records[1].start == size_bytes - len(RECORD)
    assert records[1].end == Position(skipped + 2, size_bytes)
    assert source.blank_lines == skipped
    source.close()
    return seconds


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("pack", [_gzip, _zstd, b"".join])
def test_two_million_blank_lines_take_a_moment(
    tmp_path: Path, line: bytes, pack: Callable[[Iterator[bytes]], bytes]
) -> None:
    """One by one they take two seconds and more; together a tenth of one."""
    assert read_s(tmp_path / "feed", line, 2_000_000, pack) < 1


def test_twenty_million_blank_lines_take_no_three_seconds(tmp_path: Path) -> None:
    """19 kB of gzip, which took 17 s."""
    path = tmp_path / "feed"
    assert read_s(path, b"\n", 20_000_000, _gzip) < 3
    assert path.stat().st_size < 20_000


@pytest.mark.load
@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("pack", [_gzip, _zstd])
def test_two_hundred_million_blank_lines_take_no_ten_seconds(
    tmp_path: Path, line: bytes, pack: Callable[[Iterator[bytes]], bytes]
) -> None:
    """Also those that only look blank."""
    assert read_s(tmp_path / "feed", line, 200_000_000, pack) < 10


@pytest.mark.parametrize("extra", [-1, 0, 1, 2])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("chunk_bytes", [1_000, 1 << 20])
def test_a_long_blank_line_is_blank_up_to_the_limit(extra: int, line_end: bytes, chunk_bytes: int) -> None:
    """Beyond it only its first bytes are kept, so that nobody knows; wherever it is cut, and whatever is around it."""
    line = b" " * (DEAD_LETTER_RAW_BYTES_MAX + extra)
    stream = b"\n \n" + line + line_end + b"\n{}\n\n"
    splitter = LineSplitter(50, Position())
    records = [
        record
        for start in range(0, len(stream), chunk_bytes)
        for record in splitter.feed(stream[start : start + chunk_bytes])
    ]
    is_blank = len(line + line_end) - 1 <= DEAD_LETTER_RAW_BYTES_MAX + 1
    assert [record.line for record in records] == ([5] if is_blank else [3, 5])
    assert splitter.blank_lines == 4 + is_blank
    assert splitter.position == Position(6, len(stream))
