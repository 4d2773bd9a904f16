"""A file of verdicts without a checkpoint: whole lines stay, half a line goes, and nothing else is cut."""

from pathlib import Path

import pytest

from consumer.files import line_file
from consumer.files.sinks import WHOLE_VERDICTS, FileSink
from consumer.model.errors import SinkError
from consumer.model.verdict import SCHEMA
from storage.files import WriteOptions
from tests.builders import answers

LINE = b'{"schema":"%s","id":"a"}' % SCHEMA.encode()


def append(path: Path, *events: bytes) -> None:
    """Append events as a service does that was started anew."""
    sink = FileSink(path, WHOLE_VERDICTS, WriteOptions(durable=False))
    sink.emit(answers(*events))
    sink.flush()
    sink.close()


@pytest.mark.parametrize("torn", [b"", LINE[:1], LINE[:20], LINE, LINE + b"x" * 200_000])
@pytest.mark.parametrize("whole", [0, 1, 3])
def test_what_is_torn_is_cut_off(tmp_path: Path, whole: int, torn: bytes) -> None:
    """However long it is, also where no line is whole."""
    path = tmp_path / "verdicts.jsonl"
    path.write_bytes((LINE + b"\n") * whole + torn)
    append(path, LINE, LINE)
    assert path.read_bytes() == (LINE + b"\n") * (whole + 2)


@pytest.mark.parametrize("block_bytes", [1, 7, len(LINE), len(LINE) + 1])
def test_the_last_line_end_is_found_wherever_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    """At the border of what is read at once, too."""
    monkeypatch.setattr(line_file, "_BLOCK_BYTES", block_bytes)
    path = tmp_path / "verdicts.jsonl"
    for torn in range(30):
        path.write_bytes((LINE + b"\n") * 3 + LINE[:torn])
        assert WHOLE_VERDICTS.kept_bytes(path) == 3 * (len(LINE) + 1)


@pytest.mark.parametrize(
    "content",
    [b"\0" * 100, b'{"id": "a", "body": "b"}', b"a\nb", b"{", b'{"schema":"other"}\n'],
    ids=["database", "feed", "text", "beginning", "other events"],
)
def test_another_file_is_left_alone(tmp_path: Path, content: bytes) -> None:
    """It is someone's feed, or a database; what could be the beginning of a verdict is one."""
    path = tmp_path / "verdicts.jsonl"
    path.write_bytes(content)
    if LINE.startswith(content):
        append(path, LINE)
        assert path.read_bytes() == LINE + b"\n"
        return
    with pytest.raises(SinkError, match="is not a file of verdicts"):
        append(path, LINE)
    assert path.read_bytes() == content


def test_a_file_that_another_process_writes_is_not_cut(tmp_path: Path) -> None:
    """Its last line may be whole in a moment."""
    path = tmp_path / "verdicts.jsonl"
    path.write_bytes(LINE)
    first = FileSink(path, len(LINE), WriteOptions(durable=False))
    with pytest.raises(SinkError, match="is being written by another process"):
        append(path, LINE)
    assert path.read_bytes() == LINE
    first.close()
