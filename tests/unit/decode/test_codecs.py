"""The table of codecs: what input looks like, and that one entry makes another compression readable."""

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.decode import codecs
from consumer.decode.article import FieldMap
from consumer.decode.codecs import (
    CODECS,
    COMPRESSIONS,
    GZIP,
    Codec,
    Compression,
    codec_of,
    compressions_for_help,
    is_undecided,
)
from consumer.decode.feed_format import guess
from consumer.files.lines import Position
from consumer.files.source import FileSource
from consumer.model.limits import ReadLimits


@pytest.mark.parametrize(
    ("opening", "whole", "growing"),
    [
        (b"", None, None),
        (b"{", None, None),
        (b"{\x1f\x8b", None, None),
        (b"\x1f", None, GZIP),
        (b"\x1f{", None, None),
        (b"\x1f\x8b", GZIP, GZIP),
        (b"\x1f\x8b\x08", GZIP, GZIP),
    ],
)
def test_input_is_compressed_if_it_begins_with_a_magic(
    opening: bytes, whole: Codec | None, growing: Codec | None
) -> None:
    """The magic counts only at the start; the beginning of one counts where more may be written."""
    assert (codec_of(opening), codec_of(opening, growing=True)) == (whole, growing)


@pytest.mark.parametrize(("opening", "undecided"), [(b"", True), (b"\x1f", True), (b"\x1f\x8b", False), (b"{", False)])
def test_a_stream_is_read_until_its_codec_is_certain(opening: bytes, undecided: bool) -> None:  # noqa: FBT001
    """One byte that begins no magic is enough."""
    assert is_undecided(opening) == undecided


def test_no_compression_is_taken_for_another() -> None:
    """No magic begins another one."""
    magics = [compression.magic for compression in COMPRESSIONS]
    assert not [(magic, other) for magic in magics for other in magics if magic != other and other.startswith(magic)]


def test_help_texts_name_every_codec(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new one is added to the list."""
    assert compressions_for_help() == "plain, gzip or zstd"
    monkeypatch.setattr(codecs, "CODECS", (*CODECS, Codec("zlib", ".zz", b"\x78\x9c", lambda chunks, _: chunks)))
    assert compressions_for_help() == "plain, gzip, zstd or zlib"


@pytest.mark.parametrize("compression", COMPRESSIONS, ids=[compression.name for compression in COMPRESSIONS])
def test_a_feed_in_a_compression_that_is_not_read_is_recognised(compression: Compression) -> None:
    """Its tool is named. Of one that is read, only a second layer is left."""
    found = guess(compression.magic + b"\0\1", [], FieldMap())
    assert found is not None
    name = compression.name
    within, once = (f" within {name}", " once") if isinstance(compression, Codec) else ("", "")
    assert found.sentence == f"The feed looks like {name} data{within}: unpack it{once}, as with {name} -dc FEED"


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
