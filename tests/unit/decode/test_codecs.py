"""The table of codecs: what input looks like, and that one entry makes another compression readable."""

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.decode import codecs
from consumer.decode.codecs import GZIP, Codec, codec_of, is_undecided
from consumer.model.limits import ReadLimits
from consumer.model.record import Position
from consumer.sources.file import FileSource


@pytest.mark.parametrize(
    ("opening", "codec"),
    [(b"", None), (b"{", None), (b"{\x1f\x8b", None), (b"\x1f", GZIP), (b"\x1f\x8b", GZIP), (b"\x1f\x8b\x08", GZIP)],
)
def test_input_is_compressed_if_it_begins_with_a_magic(opening: bytes, codec: Codec | None) -> None:
    """The beginning of a magic counts where there is nothing more; the magic itself counts only at the start."""
    assert codec_of(opening) == codec


@pytest.mark.parametrize(("opening", "undecided"), [(b"", True), (b"\x1f", True), (b"\x1f\x8b", False), (b"{", False)])
def test_a_stream_is_read_until_its_codec_is_certain(opening: bytes, undecided: bool) -> None:  # noqa: FBT001
    """One byte that begins no magic is enough."""
    assert is_undecided(opening) == undecided


def test_one_entry_makes_a_codec_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source of files takes its codecs from the table."""

    def inflate(compressed: Iterator[bytes], chunk_bytes_max: int) -> Iterator[bytes]:
        assert chunk_bytes_max > 0
        yield zlib.decompress(b"".join(compressed))

    monkeypatch.setattr(codecs, "CODECS", (GZIP, Codec("zlib", ".zz", b"\x78\x9c", inflate)))
    path = tmp_path / "feed"
    path.write_bytes(zlib.compress(b"one\ntwo\n"))
    source = FileSource(path, ReadLimits(), Position())
    assert [record.data for batch in source.batches() for record in batch.records] == [b"one", b"two"]
    source.close()
