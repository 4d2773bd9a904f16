"""``dupwatch dead-letters`` over the file beside the verdicts, and what it refuses."""

from pathlib import Path

import pytest

from consumer.files.letters import FileLetterReader, dead_letters_path
from consumer.model.errors import SourceError
from consumer.model.letter import Letter, LetterFilter
from tests.cli.command import FAST, Command, json_lines, write_lines

COMMANDS = {
    ("dead-letters",): ("list", "show", "replay"),
    ("dead-letters", "list"): ("--sink", "--reason", "--since", "--until", "--key", "--limit", "--json", "--config"),
    ("dead-letters", "show"): ("POSITION", "--sink", "--json", "--config", "--set"),
    ("dead-letters", "replay"): (
        "--sink", "--to", "--reason", "--since", "--until", "--key", "--limit", "--rate", "--dry-run", "--json",
    ),
}  # fmt: skip


@pytest.fixture
def sink(dupwatch: Command, tmp_path: Path) -> Path:
    """A sink into which a run wrote verdicts, with three dead letters beside it."""
    feed = write_lines(
        tmp_path / "feed.jsonl",
        [{"id": "a1", "body": 1}, b'{"id": "\x1b[2J', {"id": "a2", "body": "a body"}, b"\xff" * 70_000],
    )
    path = tmp_path / "verdicts.jsonl"
    assert dupwatch("run", "--source", feed, "--sink", path, "--store", f"lmdb:{tmp_path / 'store'}", *FAST).code == 0
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_help(dupwatch: Command, command: tuple[str, ...]) -> None:
    """The help of each command names its options."""
    ended = dupwatch(*command, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert [name for name in COMMANDS[command] if name not in ended.out.decode()] == []


def test_list_a_file(dupwatch: Command, sink: Path) -> None:
    """The dead letters beside a sink are listed by line, with the record's id if it has one, and filtered."""
    ended = dupwatch("dead-letters", "list", "--sink", sink)
    assert ended.code == 0, ended.err
    _, *rows = [line.split() for line in ended.out.decode().splitlines()]
    assert [row[:2] for row in rows] == [["1", "body_wrong_type"], ["2", "invalid_json"], ["3", "invalid_utf8"]]
    assert rows[0][2] == "a1"
    ended = dupwatch("dead-letters", "list", "--sink", sink, "--reason", "invalid_json", "--json")
    assert [line["position"] for line in json_lines(ended.out)] == ["2"]
    for named in ((dead_letters_path(sink),), (sink,), ("--sink", dead_letters_path(sink))):
        ended = dupwatch("dead-letters", "list", *named, "--key", "a1", "--json")
        assert [line["position"] for line in json_lines(ended.out)] == ["1"]
    refused = dupwatch("dead-letters", "list", sink, "--sink", sink)
    assert (refused.code, "the argument and --sink cannot be used together" in refused.err) == (2, True)


def test_show_one_of_a_file(dupwatch: Command, sink: Path) -> None:
    """The record is shown unchanged but escaped, with the stored share if it is not complete."""
    ended = dupwatch("dead-letters", "show", "2", "--sink", sink)
    assert ended.code == 0, ended.err
    assert '{"id": "\ufffd[2J\n' in ended.out.decode()
    assert b"\x1b" not in ended.out
    ended = dupwatch("dead-letters", "show", "3", sink)
    assert b"70,000 bytes, truncated to the first 65536" in ended.out
    (shown,) = json_lines(dupwatch("dead-letters", "show", "1", "--sink", sink, "--json").out)
    assert (shown["value"], shown["place"].endswith("feed.jsonl:1")) == ('{"id": "a1", "body": 1}', True)
    assert (shown["origin"], shown["key"], shown["time"], shown["cut"]) == (None, None, None, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "4"), "no dead letter at 4"),
        (("show", "0:1"), "write a line number for a letter in a file"),
        (("list", "--since", "2026-11-21T00:00:00Z"), "dead letters in a file have no time"),
        (("list", "--reason", "nonsense"), "--reason nonsense: unknown reason. docs/use/events.md"),
        (("replay",), "is not a topic; name one with --sink kafka://"),
    ],
)
def test_what_a_file_cannot_do(dupwatch: Command, sink: Path, arguments: tuple[str, ...], message: str) -> None:
    """The message is one sentence, with the exit code of a wrong option."""
    ended = dupwatch("dead-letters", *arguments, "--sink", sink)
    assert (ended.code, ended.out) == (2, b"")
    assert message in ended.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("list",), 2, "name the dead letters: --sink"),
        (("list", "--sink", "none.jsonl"), 3, "neither does none.jsonl.dead-letters.jsonl next to it"),
        (("list", "--sink", "kafka://h:1/"), 2, "does not name a topic"),
        (("list", "--sink", "kafka://h:1/a,b"), 2, "names several prefixes"),
        (("replay", "--sink", "kafka://h:1/a", "--since", "yesterday"), 2, "--since: 'yesterday' is not a time; write"),
        (("replay", "--sink", "kafka://h:1/a", "--until", "1969-12-31"), 2, "--until: '1969-12-31' is before 1970"),
    ],
)
def test_what_is_refused(dupwatch: Command, arguments: tuple[str, ...], code: int, message: str) -> None:
    """An invalid position or time is reported before anything is contacted."""
    ended = dupwatch("dead-letters", *arguments)
    assert (ended.code, ended.out) == (code, b"")
    assert message in ended.err


def test_a_sink_without_letters(dupwatch: Command, tmp_path: Path) -> None:
    """Verdicts without dead letters are distinguished from a wrong path."""
    path = tmp_path / "verdicts.jsonl"
    path.write_bytes(b"")
    ended = dupwatch("dead-letters", "list", "--sink", path)
    assert ended.code == 2
    assert "has no dead letters" in ended.err


@pytest.mark.parametrize("name", [".", "..", "/"])
def test_a_folder_has_no_letters(dupwatch: Command, name: str) -> None:
    """Nor does one without a name of its own, which no run can write to."""
    ended = dupwatch("dead-letters", "list", name)
    assert (ended.code, f"{name} has no dead letters" in ended.err) == (2, True)
    ended = dupwatch("run", "--source", "/dev/null", "--sink", name)
    assert (ended.code, f"{name} cannot be written: Is a directory" in ended.err) == (6, True)


def test_a_file_that_is_being_written(sink: Path) -> None:
    """An incomplete line is not a letter yet, and lines added after the reader was created are not read."""
    path = dead_letters_path(sink)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert [letter.position for letter in FileLetterReader(path).letters()] == ["1", "2"]
    path.write_bytes(whole)
    letters = FileLetterReader(path)
    path.write_bytes(whole + whole)
    assert [letter.position for letter in letters.letters()] == ["1", "2", "3"]
    assert letters.progress() == (len(whole), len(whole))
    found = [letters.letter(position) for position in ("3", "4")]
    assert [letter and letter.position for letter in found] == ["3", None], "one letter can be read after all letters"


@pytest.mark.parametrize("line", [b"{}", b"\xff", b'{"id": "a1"}', b"[" * 100_000, b""])
def test_a_line_that_is_no_letter(tmp_path: Path, line: bytes) -> None:
    """The message names the file and the line."""
    path = tmp_path / "x.dead-letters.jsonl"
    path.write_bytes(line + b"\n")
    with pytest.raises(SourceError, match=r"x\.dead-letters\.jsonl, line 1 is not a dead letter"):
        list(FileLetterReader(path).letters())


def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of another kind is not read into memory as a whole."""
    monkeypatch.setattr("consumer.files.letters.LINE_BYTES_MAX", 1000)
    path = tmp_path / "x.dead-letters.jsonl"
    path.write_bytes(bytes(5000))
    with pytest.raises(SourceError, match="too long for a dead letter"):
        list(FileLetterReader(path).letters())


def test_times_and_letters_without_one() -> None:
    """A time range includes its start and excludes its end; a letter without a time is in no range."""
    letters = [
        Letter(str(time_ms), time_ms, None, "empty_id", "", None, "", None, None, 0, None, cut=False)
        for time_ms in (None, 1, 2, 3)
    ]
    assert [letter.position for letter in filter(LetterFilter(since_ms=2).takes, letters)] == ["2", "3"]
    assert [letter.position for letter in filter(LetterFilter(until_ms=2).takes, letters)] == ["1"]
    assert len(list(filter(LetterFilter().takes, letters))) == 4
