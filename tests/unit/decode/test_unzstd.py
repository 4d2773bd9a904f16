"""Decompressing zstd: frames, what follows them, damage, and how much memory a frame may ask for."""

import random
import struct
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as some

from consumer.decode.decompression import WINDOW_BITS_MAX, ZSTD_MAGIC, unzstd
from consumer.model.article import Reason
from consumer.model.errors import BadRecord
from tests.examples import examples
from tests.zstandard import zstd

SKIPPED = struct.pack("<II", 0x184D2A57, 5) + b"hello"
NOISE = random.Random("zstd").randbytes(20_000)


def read(*chunks: bytes, chunk_bytes_max: int = 65_536) -> tuple[bytes, str | None]:
    """What comes out, and why it ended early."""
    found: list[bytes] = []
    try:
        for piece in unzstd(iter(chunks), chunk_bytes_max):
            assert 0 < len(piece) <= chunk_bytes_max
            found.append(piece)
    except BadRecord as error:
        return b"".join(found), error.reason
    return b"".join(found), None


def test_frames_follow_each_other_as_one_stream() -> None:
    """Also empty ones, and those that are there to be skipped."""
    packed = zstd.compress(b"{}\n[") + SKIPPED + zstd.compress(b"") + zstd.compress(b"]\n7") + SKIPPED
    assert read(packed) == (b"{}\n[]\n7", None)
    assert read() == (b"", None)


@pytest.mark.parametrize("behind", [b"garbage", b"\0\0\0\0", b"{", ZSTD_MAGIC[:3] + b"x", b"\x50\x2a\x4d\x19"])
def test_what_is_no_frame_is_told(behind: bytes) -> None:
    """With all that came before it; zero bytes are no padding, as for zstd itself."""
    assert read(zstd.compress(b"{}\n") + behind) == (b"{}\n", Reason.TRAILING_GARBAGE)


@pytest.mark.parametrize(
    "begun", [ZSTD_MAGIC[:1], ZSTD_MAGIC[:3], ZSTD_MAGIC, b"\x5f", SKIPPED[:3], SKIPPED[:6], SKIPPED[:-1]]
)
def test_a_frame_that_has_only_begun_may_go_on(begun: bytes) -> None:
    """The file may still be written."""
    assert read(zstd.compress(b"{}\n") + begun) == (b"{}\n", Reason.TRUNCATED_INPUT)


@given(
    data=some.binary(max_size=3_000),
    piece=some.integers(1, 300),
    chunk_bytes_max=some.integers(1, 300),
    cut=some.integers(0),
)
def test_the_same_comes_out_however_it_is_cut_into_pieces(
    data: bytes, piece: int, chunk_bytes_max: int, cut: int
) -> None:
    """Also where it is cut short: as much as zstd gives."""
    packed = zstd.compress(data * 3)
    for stream in (packed, packed[: max(4, cut % len(packed))]):
        pieces = [stream[at : at + piece] for at in range(0, len(stream), piece)]
        fault = None if stream == packed else Reason.TRUNCATED_INPUT
        expected = zstd.ZstdDecompressor().decompress(stream)
        assert read(*pieces, chunk_bytes_max=chunk_bytes_max) == (expected, fault)


@given(data=some.binary(max_size=80), chunk_bytes_max=some.integers(1, 40))
@examples(500)
def test_any_bytes_behind_the_magic_end(data: bytes, chunk_bytes_max: int) -> None:
    """With a fault, unless they are a whole frame; no other error is raised."""
    _, fault = read(ZSTD_MAGIC + data, chunk_bytes_max=chunk_bytes_max)
    assert fault in {None, Reason.TRUNCATED_INPUT, Reason.TRAILING_GARBAGE}


def test_what_comes_before_damage_is_read() -> None:
    """But for a piece; a wrong checksum comes behind the data."""
    packed = bytearray(zstd.compress(NOISE, options={zstd.CompressionParameter.checksum_flag: 1}))
    packed[-1] ^= 1
    found, fault = read(bytes(packed))
    assert NOISE.startswith(found)
    assert fault is Reason.TRUNCATED_INPUT
    # Two blocks; the type of the second is a reserved one.
    damaged = frame(17, 2)[:-4] + b"\7\0\0" + b"y" * 9_000
    assert read(damaged[:10], damaged[10:]) == (b"x" * 131_072, Reason.TRUNCATED_INPUT)
    # Many small blocks, in one chunk.
    blocks = b"".join((1_000 << 3).to_bytes(3, "little") + NOISE[at : at + 1_000] for at in range(0, len(NOISE), 1_000))
    found, fault = read(ZSTD_MAGIC + b"\0\x38" + blocks + b"\7\0\0")
    assert (NOISE.startswith(found), len(found) > len(NOISE) - 5_000, fault) == (True, True, Reason.TRUNCATED_INPUT)


def frame(window_bits: int, repeated: int) -> bytes:
    """A frame with this window, of 128 KiB blocks that repeat one byte: RFC 8878, 3.1.1."""
    block, end = ((131_072 << 3 | 1 << 1 | last).to_bytes(3, "little") + b"x" for last in (False, True))
    return ZSTD_MAGIC + b"\0" + bytes([(window_bits - 10) << 3]) + block * (repeated - 1) + end


def test_a_window_that_zstd_would_refuse_is_refused() -> None:
    """With the limit in the message: nothing was allocated for it."""
    assert read(frame(WINDOW_BITS_MAX, 3)) == (3 * 131_072 * b"x", None)
    with pytest.raises(BadRecord, match="nor a window above 128 MB"):
        list(unzstd(iter([frame(WINDOW_BITS_MAX + 1, 3)]), 65_536))


def test_a_frame_that_needs_a_dictionary_is_told() -> None:
    """Nobody here has it."""
    samples = [b'{"id": "%d", "body": "%x"}' % (number, number * 7919) for number in range(2_000)]
    packed = zstd.compress(samples[0], zstd_dict=zstd.train_dict(samples, 2_000))
    with pytest.raises(BadRecord, match="must not need a dictionary"):
        list(unzstd(iter([packed]), 65_536))


CHILD = """
import resource, sys
from pathlib import Path
from consumer.decode.decompression import unzstd
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(sum(map(len, unzstd(iter([Path(sys.argv[1]).read_bytes()]), 65_536))))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("window_bits", [20, WINDOW_BITS_MAX])
def test_memory_is_that_of_the_window(tmp_path_factory: pytest.TempPathFactory, window_bits: int) -> None:
    """However much comes out: 4 bytes become 131,072 here."""
    path = tmp_path_factory.mktemp("zstd") / "packed"
    path.write_bytes(frame(window_bits, 8_000))
    child = subprocess.run([sys.executable, "-c", CHILD, str(path)], check=True, capture_output=True, text=True)
    size_bytes, grown_mb = map(int, child.stdout.split())
    assert size_bytes == 8_000 * 131_072
    assert grown_mb < (1 << window_bits >> 20) + 20
