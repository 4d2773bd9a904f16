"""Reading files and pipes: every byte of the input is in one record or between two, in bounded memory."""

import gzip
import hashlib
import os
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from consumer.decode.decompression import gunzip
from consumer.files.lines import LineSplitter, Position
from consumer.files.source import FileSource
from consumer.model.article import Reason
from consumer.model.dead_letter import DEAD_LETTER_RAW_BYTES_MAX
from consumer.model.errors import BadRecord, SourceError
from consumer.model.limits import ReadLimits
from consumer.model.record import RawBatch, RawRecord
from tests.examples import examples
from tests.zstandard import zstd

BEGIN = Position()
LIMITS = ReadLimits()
MIXED = (
    b'\xef\xbb\xbf{"a":1}\n\n{"b":2}\r\n  \t\nnot json\n\xff\xfe\n\r\n'
    + b"x" * 50
    + b"\n"
    + b"y" * 51
    + b'\r\n{"last":3}'
)


class Form(NamedTuple):
    """How a file may be written; ``decompress`` returns what can be had of the beginning of one."""

    name: str
    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes], bytes]
    open: Callable[[Path], BinaryIO]
    in_pieces: "Callable[[], Pieces]"


class Pieces:
    """Plain text, piece by piece, each of which can be read at once."""

    def add(self, piece: bytes) -> bytes:
        """Return how a piece is written."""
        return piece

    def end(self) -> bytes:
        """Return how the end is written."""
        return b""


class GzipPieces(Pieces):
    """The same as gzip."""

    def __init__(self) -> None:
        self._compress = zlib.compressobj(wbits=31)

    def add(self, piece: bytes) -> bytes:
        """Return how a piece is written."""
        return self._compress.compress(piece) + self._compress.flush(zlib.Z_SYNC_FLUSH)

    def end(self) -> bytes:
        """Return how the end is written."""
        return self._compress.flush()


class ZstdPieces(Pieces):
    """The same as zstd."""

    def __init__(self) -> None:
        self._compress = zstd.ZstdCompressor()

    def add(self, piece: bytes) -> bytes:
        """Return how a piece is written."""
        return self._compress.compress(piece, zstd.ZstdCompressor.FLUSH_BLOCK)

    def end(self) -> bytes:
        """Return how the end is written."""
        return self._compress.flush()


AS_TEXT = Form("plain", bytes, bytes, lambda path: path.open("wb"), Pieces)
AS_GZIP = Form(
    "gzip",
    gzip.compress,
    lambda packed: zlib.decompressobj(31).decompress(packed),
    lambda path: cast(BinaryIO, gzip.GzipFile(path, "wb", 1)),
    GzipPieces,
)
AS_ZSTD = Form(
    "zstd",
    zstd.compress,
    lambda packed: zstd.ZstdDecompressor().decompress(packed),
    lambda path: cast(BinaryIO, zstd.open(path, "wb")),
    ZstdPieces,
)
in_all_forms = pytest.mark.parametrize("form", [AS_TEXT, AS_GZIP, AS_ZSTD], ids=lambda form: form.name)
packed_forms = pytest.mark.parametrize("form", [AS_GZIP, AS_ZSTD], ids=lambda form: form.name)
SMALL = ReadLimits(record_bytes_max=50, batch_records_max=2, batch_bytes_max=60)


class Seen(NamedTuple):
    """What two records that are the same have in common."""

    line: int
    start: int
    data: bytes
    size_bytes: int
    sha256: bytes | None
    reason: str | None
    end: Position


def position_of(end: object) -> Position:
    """The position in a file, as which this source gives an end."""
    assert isinstance(end, Position)
    return end


def seen(records: Iterable[RawRecord]) -> list[Seen]:
    """Records in a form that compares."""
    return [
        Seen(
            record.line,
            record.start,
            record.data,
            record.size_bytes,
            record.sha256,
            record.fault.reason if record.fault else None,
            position_of(record.end),
        )
        for record in records
    ]


def batches(path: Path, limits: ReadLimits = LIMITS, start: Position = BEGIN) -> list[RawBatch]:
    """All batches of a file."""
    source = FileSource(path, limits, start)
    try:
        return list(source.batches())
    finally:
        source.close()


def behind(batch: RawBatch) -> Position:
    """Where a batch of a file ends."""
    return position_of(batch.end)


def records(path: Path, limits: ReadLimits = LIMITS, start: Position = BEGIN) -> list[Seen]:
    """All records of a file."""
    return seen(record for batch in batches(path, limits, start) for record in batch.records)


def written(path: Path, data: bytes) -> Path:
    """A file with this content."""
    path.write_bytes(data)
    return path


def test_lines_become_records_with_their_place(tmp_path: Path) -> None:
    """Line ends are no part of a record, blank lines only count, and the last line needs no end."""
    found = records(written(tmp_path / "feed", MIXED), SMALL)
    assert [(record.line, record.start, record.size_bytes, record.reason) for record in found] == [
        (1, 0, 10, None),
        (3, 12, 7, None),
        (5, 25, 8, None),
        (6, 34, 2, None),
        (8, 39, 50, None),
        (9, 90, 51, Reason.RECORD_TOO_LONG),
        (10, 143, 10, None),
    ]
    assert [record.data for record in found][1:4] == [b'{"b":2}', b"not json", b"\xff\xfe"]
    assert found[-1].end == Position(10, len(MIXED))


def test_batches_are_bounded_by_count_and_bytes(tmp_path: Path) -> None:
    """No batch has more records or bytes than allowed, but for a single record; each ends where the next begins."""
    path = written(tmp_path / "feed", MIXED)
    found = batches(path, SMALL)
    assert [len(batch.records) for batch in found] == [2, 2, 1, 1, 1]
    assert [batch.end for batch in found] == [batch.records[-1].end for batch in found]


def test_blank_lines_at_the_end_are_read(tmp_path: Path) -> None:
    """The last batch ends where the input does, also without a record."""
    assert [(len(batch.records), batch.end) for batch in batches(written(tmp_path / "a", b"{}\n\n\n"))] == [
        (1, Position(3, 5))
    ]
    assert [(len(batch.records), batch.end) for batch in batches(written(tmp_path / "b", b"\n\n"))] == [
        (0, Position(2, 2))
    ]
    assert batches(written(tmp_path / "c", b"")) == []


@in_all_forms
def test_resuming_at_any_position_gives_the_rest(tmp_path: Path, form: Form) -> None:
    """A run that starts at any record's or batch's end reads exactly what the first run read after it."""
    path = written(tmp_path / "feed", form.compress(MIXED[:70]) + form.compress(MIXED[70:]))
    whole = records(path, SMALL)
    assert [record.data for record in whole] == [
        record.data for record in records(written(tmp_path / "plain", MIXED), SMALL)
    ]
    ends = {record.end for record in whole} | {behind(batch) for batch in batches(path, SMALL)}
    for end in ends:
        assert records(path, SMALL, end) == [record for record in whole if record.line > end.line]


@given(
    st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b" ", b"\xef\xbb\xbf", b"x" * 9, b"x" * 10, b"\xff"])),
    st.lists(st.integers(0, 60)),
    st.integers(0, 11),
)
def test_chunks_make_no_difference(parts: list[bytes], cuts: list[int], record_bytes_max: int) -> None:
    """However a stream is cut, the same records come out of it, and together they account for all of its bytes."""
    data = b"".join(parts)

    def split(chunks: list[bytes]) -> list[Seen]:
        splitter = LineSplitter(record_bytes_max, BEGIN)
        found = [record for chunk in chunks for record in splitter.feed(chunk)]
        last = splitter.finish()
        assert splitter.position.offset == len(data)
        return seen(found if last is None else [*found, last])

    at = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    whole = split([data])
    assert split([data[a:b] for a, b in pairwise(at)]) == whole
    lines = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    assert [record.data for record in whole] == [line for line in lines if line.strip() and line != b"\xef\xbb\xbf"]


@given(st.lists(st.integers(1, 200_000), max_size=6), st.sampled_from([b"a", b"a\r", b"\r"]))
@examples(25)
def test_long_lines_are_hashed_in_any_chunks(cuts: list[int], ending: bytes) -> None:
    """Of a line over the limit the first bytes are kept, and size and digest are of the whole, without its line end."""
    line = b"ab\r" * 60_000 + ending
    splitter = LineSplitter(70_000, BEGIN)
    at = [0, *sorted(cut % (len(line) + 1) for cut in cuts), len(line)]
    assert not [record for a, b in pairwise(at) for record in splitter.feed(line[a:b])]
    found = seen(splitter.feed(b"\n{}\n"))
    content = line.removesuffix(b"\r")
    assert found[0] == Seen(
        1,
        0,
        content[:DEAD_LETTER_RAW_BYTES_MAX],
        len(content),
        hashlib.sha256(content).digest(),
        Reason.RECORD_TOO_LONG,
        Position(1, len(line) + 1),
    )
    assert [record.data for record in found[1:]] == [b"{}"]


def many_lines() -> bytes:
    """Enough lines to fill several decompressed chunks."""
    return b"".join(
        b'{"id": "%d", "body": "%x"}\n' % (number, hash((number, 7)) & 0xFFFFFFFF) for number in range(20_000)
    )


@packed_forms
@pytest.mark.parametrize("share", [0.3, 0.5, 0.97, 1])
def test_truncated_input_is_read_up_to_the_break(tmp_path: Path, form: Form, share: float) -> None:
    """What can be decompressed is read; the rest is one record with a fault, and is answered only once."""
    packed = form.compress(many_lines())
    cut = packed[: min(int(len(packed) * share), len(packed) - 1)]
    available = form.decompress(cut)
    path = written(tmp_path / "feed", cut)
    found = records(path)
    assert available
    assert b"\n".join(record.data for record in found) == available.removesuffix(b"\n") + (
        b"\n" if available.endswith(b"\n") else b""
    )
    assert [record.reason for record in found] == [None] * (len(found) - 1) + [Reason.TRUNCATED_INPUT]
    assert records(path, start=found[-1].end) == []
    assert records(path, start=found[-2].end) == found[-1:]


@packed_forms
def test_a_packed_file_that_is_being_written_loses_nothing(tmp_path: Path, form: Form) -> None:
    """Wherever it is cut, the line at the cut is told once, and is read when a later run finds it whole."""
    lines = [b'{"id": "%d", "body": "%x"}' % (number, hash((number, 7)) & 0xFFFFFFFF) for number in range(40)]
    data = b"\n".join(lines) + b"\n"
    packed = form.compress(data[:700]) + form.compress(data[700:])
    path = tmp_path / "feed"
    for cut in range(1, len(packed), 7):
        found: list[Seen] = []
        position = BEGIN
        for end in (cut, cut, min(cut + 3, len(packed) - 1), len(packed), len(packed)):
            path.write_bytes(packed[:end])
            more = batches(path, start=position)
            found += seen(record for batch in more for record in batch.records)
            position = behind(more[-1]) if more else position
        read = [(record.line, record.data) for record in found if record.reason is None]
        assert read == list(enumerate(lines, 1)), cut
        assert [record.reason for record in found if record.reason] in [
            [Reason.TRUNCATED_INPUT] * n for n in (0, 1, 2)
        ], cut
        assert position == Position(40, len(data)), cut


@packed_forms
def test_a_cut_that_was_answered_is_answered_once_while_no_line_is_added(tmp_path: Path, form: Form) -> None:
    """The line at the cut may grow meanwhile; its whole text comes at last."""
    packed = form.in_pieces()
    pieces = [packed.add(piece) for piece in (b"{}\n[1", b", 2", b", 3]", b"\n", b"7\n8")]
    path = written(tmp_path / "feed", b"")
    position, found = BEGIN, []
    for piece in (*pieces, packed.end()):
        with path.open("ab") as file:
            file.write(piece)
        more = batches(path, start=position)
        found.append([(record.line, record.data, record.fault is None) for batch in more for record in batch.records])
        position = behind(more[-1]) if more else position
    assert found == [
        [(1, b"{}", True), (2, b"[1", False)],
        [],
        [],
        [(2, b"[1, 2, 3]", True), (3, b"", False)],
        [(3, b"7", True), (4, b"8", False)],
        [(4, b"8", True)],
    ]


@packed_forms
def test_damage_ends_the_input_there(tmp_path: Path, form: Form) -> None:
    """Lines before the damage are read, and everything behind it is answered by one record."""
    packed = bytearray(form.compress(many_lines()))
    packed[len(packed) // 2 : len(packed) // 2 + 40] = b"\xff" * 40
    path = written(tmp_path / "feed", bytes(packed))
    found = records(path)
    lines = many_lines().split(b"\n")
    agreeing = sum(1 for record, line in zip(found, lines, strict=False) if record.data == line)
    assert agreeing > 7_000
    assert [record.reason for record in found[-2:]] == [None, Reason.TRUNCATED_INPUT]
    assert records(path, start=found[-1].end) == []


def test_a_wrong_checksum_is_told_after_the_data(tmp_path: Path) -> None:
    """All lines are there, and a fault says that they do not agree with their checksum."""
    packed = gzip.compress(b"{}\n[]\n")
    found = records(written(tmp_path / "feed.gz", packed[:-8] + b"\0" * 8))
    assert [(record.line, record.data, record.reason) for record in found] == [
        (1, b"{}", None),
        (2, b"[]", None),
        (3, b"", Reason.TRUNCATED_INPUT),
    ]


def test_members_padding_and_garbage(tmp_path: Path) -> None:
    """Members follow each other as one stream, zero bytes are padding, and anything else behind them is told."""
    packed = gzip.compress(b"{}\n[") + b"\0" * 5 + gzip.compress(b"") + gzip.compress(b"]\n7")
    assert [record.data for record in records(written(tmp_path / "a", packed + b"\0" * 1000))] == [b"{}", b"[]", b"7"]
    path = written(tmp_path / "b", packed + b"garbage")
    found = records(path)
    assert [(record.data, record.reason) for record in found] == [
        (b"{}", None),
        (b"[]", None),
        (b"7", None),
        (b"", Reason.TRAILING_GARBAGE),
    ]
    for index, record in enumerate(found):
        assert records(path, start=record.end) == found[index + 1 :]


@example(b"\0\0\0\0\0\0:\0\t\0", [], 1)
@given(st.binary(max_size=60), st.lists(st.integers(1, 9), max_size=20), st.integers(1, 40))
@examples(500)
def test_any_bytes_behind_the_magic_end_in_a_fault(data: bytes, sizes: list[int], chunk_bytes_max: int) -> None:
    """Whatever follows the first bytes of gzip, decompressing ends, with a fault unless it is whole."""
    stream = b"\x1f\x8b\x08\x00" + data
    cuts = [0]
    for size in sizes:
        cuts.append(min(cuts[-1] + size, len(stream)))
    chunks = [stream[a:b] for a, b in zip(cuts, [*cuts[1:], len(stream)], strict=True) if a < b]
    with pytest.raises(BadRecord):
        list(gunzip(iter(chunks), chunk_bytes_max))


@given(st.binary(max_size=2000), st.integers(1, 300), st.integers(0, 2000))
def test_decompressing_gives_all_there_is(data: bytes, chunk_bytes_max: int, cut: int) -> None:
    """In pieces of any size the same bytes come out, also where the stream is cut short."""
    packed = gzip.compress(data * 3)
    assert b"".join(gunzip(iter([packed]), chunk_bytes_max)) == data * 3
    short = packed[: max(2, cut % len(packed))]
    found: list[bytes] = []
    with pytest.raises(BadRecord):
        found.extend(gunzip(iter([short[:2], *([short[2:]] if short[2:] else [])]), chunk_bytes_max))
    assert b"".join(found) == zlib.decompressobj(31).decompress(short)


def test_input_that_cannot_be_opened_is_told_in_a_sentence(tmp_path: Path) -> None:
    """A missing file, a directory and a file without permission are errors of the source, not tracebacks."""
    with pytest.raises(SourceError, match="No such file"):
        FileSource(tmp_path / "missing", LIMITS, BEGIN)
    with pytest.raises(SourceError, match="is a directory"):
        FileSource(tmp_path, LIMITS, BEGIN)
    with pytest.raises(SourceError, match="cannot be read"):
        FileSource(tmp_path / "missing" / "deeper", LIMITS, BEGIN)
    with pytest.raises(SourceError, match="only be read from its beginning"):
        FileSource(None, LIMITS, Position(1, 10))


@in_all_forms
def test_a_file_that_became_shorter_is_refused(tmp_path: Path, form: Form) -> None:
    """A position behind the end means that the file is another one."""
    path = written(tmp_path / "feed", form.compress(b"{}\n"))
    with pytest.raises(SourceError, match="shorter"):
        batches(path, start=Position(2, 4))


def test_a_file_that_grew_gives_its_new_lines(tmp_path: Path) -> None:
    """What is appended after a run is what the next one reads, numbered on."""
    path = written(tmp_path / "feed", b"{}\n")
    end = behind(batches(path)[-1])
    with path.open("ab") as file:
        file.write(b"[]\n")
    assert [(record.line, record.data) for record in records(path, start=end)] == [(2, b"[]")]


@packed_forms
def test_progress_counts_bytes_on_disk(tmp_path: Path, form: Form) -> None:
    """The compressed bytes are counted, so that a bar ends at its end."""
    path = written(tmp_path / "feed", form.compress(many_lines()))
    source = FileSource(path, LIMITS, BEGIN)
    assert source.progress() == (0, path.stat().st_size)
    list(source.batches())
    assert source.progress() == (path.stat().st_size, path.stat().st_size)
    source.close()
    source.close()


@in_all_forms
def test_a_slow_pipe_gives_what_is_there(tmp_path: Path, form: Form) -> None:
    """A record is delivered when its line is whole, without waiting for a full batch or for the end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    go_on = threading.Semaphore(0)
    packed = form.in_pieces()

    def write() -> None:
        with pipe.open("wb", buffering=0) as file:
            for piece in (b"{", b"}\n[", b"]\n7\n", b"8"):
                file.write(packed.add(piece))
                if b"\n" in piece:
                    assert go_on.acquire(timeout=30)
            file.write(packed.end())

    writer = threading.Thread(target=write)
    writer.start()
    source = FileSource(pipe, LIMITS, BEGIN)
    delivered = []
    for batch in source.batches():
        delivered.append([record.data for record in batch.records])
        go_on.release()
    writer.join()
    source.close()
    assert delivered == [[b"{}"], [b"[]", b"7"], [b"8"]]
    assert source.progress()[1] is None


CHILD = """
import resource, sys
from pathlib import Path
from consumer.files.lines import Position
from consumer.model.limits import ReadLimits
from consumer.files.source import FileSource
path = None if sys.argv[1] == "-" else Path(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = [(r.line, len(r.data), r.size_bytes, r.fault and str(r.fault.reason))
         for b in FileSource(path, ReadLimits(), Position()).batches() for r in b.records]
print(found, file=sys.stderr)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@in_all_forms
@pytest.mark.parametrize("size_mb", [200, pytest.param(1_000, marks=pytest.mark.load)])
def test_a_long_line_takes_little_memory(tmp_path: Path, form: Form, size_mb: int) -> None:
    """A line without end, packed or not, is passed over in bounded memory, and its neighbours are read."""
    path = tmp_path / "feed"
    with form.open(path) as file:
        file.write(b"{}\n")
        for _ in range(size_mb):
            file.write(b"x" * 1_000_000)
        file.write(b"\n[]\n")
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)], check=True, capture_output=True, text=True, timeout=120
    )
    assert child.stderr.strip() == str(
        [(1, 2, 2, None), (2, DEAD_LETTER_RAW_BYTES_MAX, size_mb * 1_000_000, "record_too_long"), (3, 2, 2, None)]
    )
    assert int(child.stdout) < 60


def test_standard_input_is_read(tmp_path: Path) -> None:
    """Without a path the records come from standard input, packed or not."""
    for form in (AS_TEXT, AS_GZIP, AS_ZSTD):
        child = subprocess.run(
            [sys.executable, "-c", CHILD, "-"],
            input=form.compress(b"{}\n7"),
            check=True,
            capture_output=True,
            timeout=180,
        )
        assert child.stderr.strip() == b"[(1, 2, 2, None), (2, 1, 1, None)]"


def test_the_beginning_is_that_of_the_file_being_read(tmp_path: Path) -> None:
    """A feed that is rotated away while it is read is still known by its own bytes, not by its successor's."""
    feed = tmp_path / "feed"
    feed.write_bytes(b"old lines\n")
    source = FileSource(feed, ReadLimits(), Position())
    successor = tmp_path / "successor"
    successor.write_bytes(b"new lines\n")
    successor.replace(feed)
    assert source.beginning(3) == b"old"
    source.close()
