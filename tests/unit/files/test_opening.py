"""Files as sinks of runs: where their dead letters are, and what of earlier runs is kept."""

import io
from dataclasses import replace
from pathlib import Path

import pytest

from consumer.files.letters import dead_letters_path
from consumer.files.opening import Continuation, open_file, open_source, open_stream
from consumer.files.sinks import NullSink
from consumer.model.errors import BadRecord, SinkError
from consumer.model.ports import DeadLetterSink, OutputSizes
from consumer.pipeline.dead_letter_policy import DeadLetterPolicy
from consumer.pipeline.feed_kind import SinkArguments, SourceArguments, Streams
from tests.builders import answers, raw_line

EVENT = b'{"schema":"dupwatch.verdict/1"}'


def opening(*own: object) -> SinkArguments:
    """How a sink is opened, with these options of its kind."""
    return SinkArguments(own=own)


def reject_to(letters: DeadLetterSink) -> None:
    """Write the dead letter of a line that is not JSON."""
    fault = BadRecord("invalid_json", "not JSON")
    letters.reject([DeadLetterPolicy("feed", NullSink()).reject(raw_line(1, b"{"), fault)])
    letters.flush()
    letters.close()


def record_name(path: Path) -> bytes:
    """The name of a record in the first line of a file."""
    opened = open_source(str(path), SourceArguments())
    opened.source.close()
    return opened.arrivals.record_name(raw_line(1))


def test_a_file_is_told_from_another_one_of_its_name(tmp_path: Path) -> None:
    """By its first line, or in a table by the first row too: the header of every export is the same."""
    for name, begins, row, other in (
        ("feed.csv", b"id,body\n", b"1,one\n", b"1,other\n"),
        ("feed.jsonl", b"", b'{"id": "1"}\n', b'{"id": "2"}\n'),
    ):
        path = tmp_path / name
        path.write_bytes(begins + row)
        first = record_name(path)
        path.write_bytes(begins + row + other)
        assert record_name(path) == first
        path.write_bytes(begins + other)
        assert record_name(path) != first


def test_letters_are_in_a_file_beside_the_verdicts_and_cut_back_with_them(tmp_path: Path) -> None:
    """To what earlier runs committed."""
    verdicts = tmp_path / "verdicts.jsonl"
    letters = dead_letters_path(verdicts)
    verdicts.write_bytes(b"committed\nnot committed\n")
    letters.write_bytes(b"committed\nnot committed\n")
    opened = open_file(str(verdicts), opening(Continuation(OutputSizes(10, 10), "unused")))
    reject_to(opened.dead_letters())
    opened.sink.close()
    first, second = letters.read_bytes().splitlines()
    assert (first, b'"reason":"invalid_json"' in second, verdicts.read_bytes()) == (b"committed", True, b"committed\n")


def test_letters_of_another_run_are_refused_with_the_reason(tmp_path: Path) -> None:
    """A run that cannot resume begins with empty files."""
    verdicts = tmp_path / "verdicts.jsonl"
    dead_letters_path(verdicts).write_bytes(b"precious\n")
    opened = open_file(str(verdicts), opening(Continuation(None, "nobody knows which run wrote it")))
    with pytest.raises(SinkError, match="nobody knows which run wrote it"):
        opened.dead_letters()
    opened.sink.close()


def test_without_a_continuation_whole_lines_are_kept(tmp_path: Path) -> None:
    """Of verdicts and letters, up to what was being written when a process was killed."""
    verdicts = tmp_path / "verdicts.jsonl"
    letters = dead_letters_path(verdicts)
    for _ in range(2):
        opened = open_file(str(verdicts), opening())
        opened.sink.emit(answers(EVENT))
        opened.sink.close()
        reject_to(opened.dead_letters())
        for path in (verdicts, letters):
            with path.open("ab") as file:
                file.write(b'{"schema":"dupw')
    opened = open_file(str(verdicts), opening())
    opened.dead_letters().close()
    opened.sink.close()
    assert verdicts.read_bytes() == 2 * (EVENT + b"\n")
    assert [b'"invalid_json"' in line for line in letters.read_bytes().splitlines()] == [True, True]


def test_letters_of_something_else_are_not_cut(tmp_path: Path) -> None:
    """Their first line would be that of a letter."""
    verdicts = tmp_path / "verdicts.jsonl"
    dead_letters_path(verdicts).write_bytes(b"precious")
    opened = open_file(str(verdicts), opening())
    with pytest.raises(SinkError, match="is not a file of dead letters"):
        opened.dead_letters()
    opened.sink.close()
    assert dead_letters_path(verdicts).read_bytes() == b"precious"


def test_letters_of_a_stream_are_on_standard_error() -> None:
    """Standard output has verdicts only."""
    out, err = io.BytesIO(), io.BytesIO()
    reject_to(open_stream("-", replace(opening(), streams=Streams(out, err))).dead_letters())
    assert (out.getvalue(), b'"reason":"invalid_json"' in err.getvalue()) == (b"", True)
