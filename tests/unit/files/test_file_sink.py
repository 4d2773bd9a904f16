"""Writing verdicts and dead letters: what was handed over is there, or the run ends with a sentence."""

import io
import json
import os
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from consumer.files.checkpoint import Checkpoint, checkpoint_path, load, save
from consumer.files.letters import FileDeadLetters, dead_letters_path
from consumer.files.lines import Position
from consumer.files.sinks import FileSink, StreamDeadLetters, StreamSink
from consumer.files.source import FileSource
from consumer.model.dead_letter import DeadLetter, LetterPosition, dead_letter
from consumer.model.errors import BadRecord, SinkError
from consumer.model.limits import ReadLimits
from consumer.model.ports import DeadLetterSink, OutputSizes, Rejection, Sink, Source
from storage.files import WriteOptions
from tests.builders import answers, raw_line


def letter(text: str = "x") -> DeadLetter:
    """Some dead letter."""
    return dead_letter(BadRecord("invalid_json", "no JSON"), LetterPosition("feed", 1, 0), text.encode())


def rejections(*letters: DeadLetter) -> list[Rejection]:
    """These letters, and some record each."""
    return [Rejection(raw_line(number), letter) for number, letter in enumerate(letters, 1)]


def opened(path: Path, marks: OutputSizes | None, *, durable: bool = False) -> tuple[FileSink, FileDeadLetters]:
    """Open both files as a run does that resumes at these marks."""
    verdicts_bytes, letters_bytes = (None, None) if marks is None else (marks.verdicts_bytes, marks.dead_letters_bytes)
    sink = FileSink(path, verdicts_bytes, WriteOptions(durable=durable))
    try:
        return sink, FileDeadLetters(dead_letters_path(path), letters_bytes, WriteOptions(durable=durable))
    except SinkError:
        sink.discard()
        raise


def test_verdicts_and_dead_letters_are_lines_of_their_files(tmp_path: Path) -> None:
    """Each goes to its file, the second of which is made when it is needed."""
    path = tmp_path / "out.jsonl"
    sink, letters = opened(path, None, durable=True)
    sink.emit(answers(b"1", b"2"))
    sink.emit([])
    letters.reject([])
    assert not dead_letters_path(path).exists()
    letters.reject(rejections(letter("字\u2028")))
    sink.flush()
    letters.flush()
    assert path.read_bytes() == b"1\n2\n"
    lines = dead_letters_path(path).read_bytes().splitlines(keepends=True)
    assert [json.loads(line)["raw"] for line in lines] == ["字\u2028"]
    assert (sink.size_bytes(), letters.size_bytes()) == (4, dead_letters_path(path).stat().st_size)
    for output in (sink, letters):
        output.close()
        output.close()


def test_a_sink_goes_on_at_its_marks(tmp_path: Path) -> None:
    """What lies beyond the marks is cut off, in both files."""
    path = tmp_path / "out.jsonl"
    path.write_bytes(b"1\n2\n3")
    dead_letters_path(path).write_bytes(b"a\nb\n")
    sink, letters = opened(path, OutputSizes(2, 2))
    sink.emit(answers(b"4"))
    letters.reject(rejections(letter()))
    sink.close()
    letters.close()
    assert path.read_bytes() == b"1\n4\n"
    assert dead_letters_path(path).read_bytes().startswith(b'a\n{"schema"')


def test_letters_of_a_batch_that_was_not_committed_go(tmp_path: Path) -> None:
    """The first letters, too, are cut off when the checkpoint knows of none."""
    path = tmp_path / "out.jsonl"
    dead_letters_path(path).write_bytes(b"a\n")
    sink, letters = opened(path, OutputSizes(0, 0))
    assert (sink.size_bytes(), letters.size_bytes()) == (0, 0)
    sink.close()
    letters.close()
    assert dead_letters_path(path).read_bytes() == b""


@pytest.mark.parametrize("which", ["verdicts", "letters"])
def test_without_a_checkpoint_nothing_is_overwritten(tmp_path: Path, which: str) -> None:
    """Files that hold something, and that no checkpoint tells of, are left alone."""
    path = tmp_path / "out.jsonl"
    taken = path if which == "verdicts" else dead_letters_path(path)
    taken.write_bytes(b"precious\n")
    with pytest.raises(SinkError, match="not empty, and there is no checkpoint"):
        opened(path, None)
    assert taken.read_bytes() == b"precious\n"


@pytest.mark.parametrize("marks", [OutputSizes(3, 0), OutputSizes(2, 1)])
def test_files_shorter_than_their_marks_are_refused(tmp_path: Path, marks: OutputSizes) -> None:
    """Verdicts that the checkpoint counts on and that are gone are not written over."""
    path = tmp_path / "out.jsonl"
    path.write_bytes(b"1\n")
    with pytest.raises(SinkError, match="its checkpoint says"):
        opened(path, marks)
    assert path.read_bytes() == b"1\n"


def test_two_runs_cannot_write_one_sink(tmp_path: Path) -> None:
    """The second is refused, and may have the sink once the first one has closed it."""
    path = tmp_path / "out.jsonl"
    first = FileSink(path, None, WriteOptions(durable=False))
    with pytest.raises(SinkError, match="another process"):
        FileSink(path, None, WriteOptions(durable=False))
    first.close()
    FileSink(path, None, WriteOptions(durable=False)).close()


def test_places_that_cannot_be_written_are_told_in_a_sentence(tmp_path: Path) -> None:
    """A folder that is missing, a folder in the file's place, a pipe and a device are refused."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "a" / "b", tmp_path / "folder", tmp_path / "pipe"):
        with pytest.raises(SinkError, match="cannot be written"):
            FileSink(path, None, WriteOptions(durable=False))
    with pytest.raises(SinkError, match=f"No such file or directory; create the directory {tmp_path}/a, or"):
        FileSink(tmp_path / "a" / "b", None, WriteOptions(durable=False))
    with pytest.raises(SinkError, match="not a regular file"):
        FileSink(Path(os.devnull), None, WriteOptions(durable=False))


def test_a_full_disk_is_told_and_a_later_run_goes_on(tmp_path: Path) -> None:
    """Half a line may be written; the marks do not count it, and the next run cuts it off."""
    path = tmp_path / "out.jsonl"
    code = """
import resource, signal, sys
from pathlib import Path
from consumer.model.errors import SinkError
from consumer.files.sinks import FileSink
from storage.files import WriteOptions
from tests.builders import answers
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
sink = FileSink(Path(sys.argv[1]), None, WriteOptions(durable=True))
sink.emit(answers(b"x" * 59))
try:
    sink.emit(answers(b"y" * 59))
except SinkError as error:
    print(error, sink.size_bytes())
sink.close()
"""
    child = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, timeout=180)
    assert child.stdout.endswith(b"cannot be written: File too large 60\n")
    assert path.stat().st_size == 100
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 100
    FileSink(path, 60, WriteOptions(durable=False)).close()
    assert path.read_bytes() == b"x" * 59 + b"\n"


def test_a_device_without_room_is_told() -> None:
    """A stream that takes no more is an error of the sink."""
    with open("/dev/full", "wb") as full, pytest.raises(SinkError, match="No space left"):  # noqa: PTH123
        StreamSink(full).emit(answers(b"1"))
    with open("/dev/full", "wb") as full, pytest.raises(SinkError, match="dead letters cannot be written"):  # noqa: PTH123
        StreamDeadLetters(full).reject(rejections(letter()))


def test_streams_get_their_lines_at_once() -> None:
    """Verdicts go to one stream, dead letters to the other, and there is nothing to cut back."""
    out, err = io.BytesIO(), io.BytesIO()
    sink: Sink = StreamSink(out)
    letters: DeadLetterSink = StreamDeadLetters(err)
    sink.emit(answers(b"1", b"2"))
    letters.reject(rejections(letter()))
    for output in (sink, letters):
        output.flush()
        output.close()
    assert out.getvalue() == b"1\n2\n"
    assert json.loads(err.getvalue())["reason"] == "invalid_json"
    assert (sink.size_bytes(), letters.size_bytes()) == (None, None)


def test_a_closed_pipe_ends_in_one_sentence(tmp_path: Path) -> None:
    """A reader such as ``head`` that has enough causes neither a traceback nor a complaint at exit."""
    code = """
import sys
from consumer.model.errors import SinkError
from consumer.files.sinks import StreamSink
from tests.builders import answers
sink = StreamSink(sys.stdout.buffer)
try:
    while True:
        sink.emit(answers(b"x" * 1000))
except SinkError as error:
    print("what a caller may still say there")
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.read(1)
    child.stdout.close()
    complaint = child.stderr.read()
    child.stderr.close()
    assert child.wait(timeout=180) == 6
    assert complaint == b"the verdicts cannot be written: the pipe was closed at the other end\n"


def run(feed: Path, out: Path, crash_at: int | None) -> None:
    """A run of the whole: each record's bytes are its verdict; it dies between emit and commit of one batch."""
    checkpoint = load(checkpoint_path(out)) or Checkpoint(source=str(feed), began_ms=1, settings="")
    save(checkpoint_path(out), checkpoint, WriteOptions(durable=False))
    sink, letters = opened(out, checkpoint.marks)
    source: Source = FileSource(feed, ReadLimits(record_bytes_max=9, batch_records_max=3), checkpoint.position)
    position = Position()
    for index, batch in enumerate(source.batches()):
        sink.emit(answers(*(record.data for record in batch.records if record.fault is None)))
        letters.reject(rejections(*(letter(str(record.line)) for record in batch.records if record.fault is not None)))
        sink.flush()
        letters.flush()
        if index == crash_at:
            break
        assert isinstance(batch.end, Position)
        position = batch.end
        marks = OutputSizes(sink.size_bytes(), letters.size_bytes())
        done = Checkpoint(source=str(feed), began_ms=1, settings="", position=position, marks=marks)
        save(checkpoint_path(out), done, WriteOptions(durable=False))
    source.close()
    sink.close()
    letters.close()


@pytest.mark.parametrize("crash_at", range(5))
def test_a_crash_between_emit_and_commit_leaves_no_trace(tmp_path: Path, crash_at: int) -> None:
    """After resuming the sink is the same as that of a run that was never stopped."""
    feed = tmp_path / "feed"
    feed.write_bytes(b"".join(b"x" * (number % 12 + 1) + b"\n" for number in range(20)))
    run(feed, tmp_path / "straight", None)
    run(feed, tmp_path / "crashed", crash_at)
    run(feed, tmp_path / "crashed", crash_at=0)
    run(feed, tmp_path / "crashed", None)
    assert (tmp_path / "crashed").read_bytes() == (tmp_path / "straight").read_bytes()
    assert dead_letters_path(tmp_path / "crashed").read_bytes() == dead_letters_path(tmp_path / "straight").read_bytes()
    assert load(checkpoint_path(tmp_path / "crashed")) is not None


def test_only_duplicates_are_written_when_asked(tmp_path: Path) -> None:
    """With emit = duplicates the unique and the retracted are judged and not written, to a file nor to a stream."""
    judged = answers(b"1", b"2", b"3")
    event = judged[1].event
    flag = msgspec.structs.replace(event.verdict, outcome="duplicate")
    judged[1] = replace(judged[1], event=msgspec.structs.replace(event, verdict=flag))
    sink = FileSink(tmp_path / "out.jsonl", None, WriteOptions(durable=False), emit="duplicates")
    sink.emit(judged)
    sink.close()
    assert (tmp_path / "out.jsonl").read_bytes() == b"2\n"
    out = io.BytesIO()
    StreamSink(out, emit="duplicates").emit(judged)
    assert out.getvalue() == b"2\n"
    out = io.BytesIO()
    StreamSink(out, emit="none").emit(judged)
    assert out.getvalue() == b""


def test_a_sink_that_is_refused_leaves_no_file(tmp_path: Path) -> None:
    """Verdicts that were made before the letters were refused are gone again; a link to them stays."""
    path, target = tmp_path / "out.jsonl", tmp_path / "target"
    path.symlink_to(target)
    dead_letters_path(path).write_bytes(b"precious\n")
    with pytest.raises(SinkError, match="not empty"):
        opened(path, None)
    assert path.is_symlink()
    assert not target.exists()


def test_a_sink_that_was_there_stays(tmp_path: Path) -> None:
    """Also where it is empty: somebody else made it."""
    path = tmp_path / "out.jsonl"
    path.touch()
    dead_letters_path(path).write_bytes(b"precious\n")
    with pytest.raises(SinkError, match="not empty"):
        opened(path, None)
    assert path.exists()


def test_a_sink_that_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    """Its checkpoint counts on what it had."""
    with pytest.raises(SinkError, match=r"out\.jsonl is gone, but its checkpoint says that it has 3 bytes"):
        FileSink(tmp_path / "out.jsonl", 3, WriteOptions(durable=False))
    assert not (tmp_path / "out.jsonl").exists()
