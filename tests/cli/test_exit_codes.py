"""Each error is one sentence, with the documented exit code."""

import fcntl
import mmap
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import (
    DUPWATCH,
    FAST,
    SAMPLE,
    TIMEOUT_S,
    Command,
    Outcome,
    articles,
    line_count,
    start,
    write_lines,
)

WRONG_OPTIONS = [
    ("--emit", "most", "sink.emit"),
    ("--workers", "-1", "workers"),
    ("--store", "redis:", "store.url"),
    ("--set", "judge.max_distance=abc", "judge.max_distance"),
    ("--set", "judge.max_distance=9", "4x16"),
    ("--set", "judge.similarity_min=nan", "judge.similarity_min"),
    ("--set", "judge.nope=1", "judge.nope"),
    ("--set", "nope=1", "nope"),
    ("--set", "judge", "NAME=VALUE"),
    ("--set", "judge=3", "judge"),
    ("--set", "a b=3", "a b"),
    ("--set", "judge.verify=false", "lane1"),
    ("--set", "judge.plan=5x5", "5x5"),
    ("--set", "fingerprint.scheme=other/1", "other/1"),
    ("--set", "rules.wire.similarity_min=0.1", "rules.wire.similarity_min"),
    ("--config", "no-such.toml", "no-such.toml"),
]


def error_of(ended: Outcome, code: int) -> str:
    """Return the only line that a command printed as it ended."""
    assert ended.code == code, ended.err
    lines = ended.err.splitlines()
    assert len(lines) == 1, ended.err
    assert lines[0].startswith("dupwatch: ")
    return lines[0]


@pytest.mark.parametrize(("option", "value", "named"), WRONG_OPTIONS)
def test_wrong_option(dupwatch: Command, option: str, value: str, named: str) -> None:
    """A wrong setting ends a run with 2 before anything is read, and the message names it."""
    assert named in error_of(dupwatch("run", "--source", SAMPLE, option, value), 2)


@pytest.mark.parametrize("arguments", [("run", "--nope"), ("nope",), ("show",), ("run", "--workers", "two")])
def test_wrong_command_line(dupwatch: Command, arguments: tuple[str, ...]) -> None:
    """A command line that cannot be parsed ends with 2 and a hint, without a traceback."""
    ended = dupwatch(*arguments)
    assert ended.code == 2
    assert "Traceback" not in ended.err
    assert "Usage" in ended.err


def test_section_and_flag(dupwatch: Command) -> None:
    """A section that was set to a value is named, even if a flag also sets something in it."""
    assert "store" in error_of(dupwatch("run", "--set", "store=3", "--store", "memory:"), 2)


@pytest.mark.parametrize(
    ("name", "value", "named"),
    [
        ("DUPWATCH_NOPE", "1", "DUPWATCH_NOPE"),
        ("DUPWATCH_RULES__Wire__FLAG", "never", "capital letters"),
        ("DUPWATCH_SOURCE__BATCH_RECORDS_MAX", "1025", "verifications_max"),
        ("DUPWATCH_JUDGE__NOPE", "1", "judge.nope"),
        ("DUPWATCH_JUDGE__MAX_DISTANCE", "two", "judge.max_distance"),
        ("DUPWATCH_JUDGE", "two", "DUPWATCH_JUDGE"),
        ("DUPWATCH_WORKERS", "two", "workers"),
    ],
)
def test_wrong_environment(dupwatch: Command, name: str, value: str, named: str) -> None:
    """A wrong variable ends with 2, and the message names it."""
    assert named in error_of(dupwatch("config", "check", **{name: value}), 2)


@pytest.mark.parametrize(
    ("toml", "named"),
    [("[judge]\nnope = 1\n", "judge.nope"), ("[judge\n", "TOML"), ("workers = 'two'\n", "workers"), ("\xff", "TOML")],
)
def test_wrong_file(dupwatch: Command, tmp_path: Path, toml: str, named: str) -> None:
    """A wrong file ends with 2, and the message says where it is wrong."""
    path = tmp_path / "dupwatch.toml"
    path.write_bytes(toml.encode("latin-1"))
    assert named in error_of(dupwatch("config", "check", "--config", path), 2)


@pytest.mark.parametrize(("name", "why"), [("nowhere.jsonl", "No such file"), (".", "directory"), ("x" * 300, "long")])
def test_unreadable_source(dupwatch: Command, tmp_path: Path, name: str, why: str) -> None:
    """A source that is missing, or a directory, ends with 3."""
    assert why in error_of(dupwatch("run", "--source", tmp_path / name), 3)


@pytest.mark.parametrize("arguments", [("fingerprint", "nowhere.txt"), ("compare", __file__, "nowhere.txt")])
def test_unreadable_text(dupwatch: Command, arguments: tuple[str, ...]) -> None:
    """A text that does not exist ends with 3, like a source."""
    assert "No such file" in error_of(dupwatch(*arguments), 3)


def test_the_sink_of_services_alone(dupwatch: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run does not take the sink that keeps nothing for the name of a file."""
    monkeypatch.chdir(tmp_path)
    assert "dupwatch serve" in error_of(dupwatch("run", "--source", SAMPLE, "--sink", "nowhere:"), 2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--source", "--sink"])
@pytest.mark.parametrize("url", ["http://localhost/a", "file:///a", "KAFKA://localhost:9092/a", "s3://bucket/a"])
def test_a_place_of_no_kind_that_there_is(dupwatch: Command, option: str, url: str) -> None:
    """An unknown kind of URL is not taken for a file name: it ends with 2, and the message lists the kinds."""
    assert f"{option.removeprefix('--')}.url" in (sentence := error_of(dupwatch("run", option, url), 2))
    kafka = "kafka://HOST:PORT/PREFIX" if option == "--sink" else "kafka://HOST:PORT/TOPIC"
    assert f"a file, - or {kafka}" in sentence


def test_other_settings(dupwatch: Command, judged_sample: Path) -> None:
    """A store made with other settings is refused with 4; the message has the setting and both values."""
    sentence = error_of(
        dupwatch("run", "--source", SAMPLE, "--store", f"lmdb:{judged_sample / 'store'}",
                 "--set", "judge.max_distance=2"), 4)  # fmt: skip
    assert "max_distance is 3 in the store and 2 here" in sentence


@pytest.mark.parametrize("command", [("run", "--source", str(SAMPLE)), ("store", "stats"), ("show", "x")])
def test_no_store(dupwatch: Command, tmp_path: Path, command: tuple[str, ...]) -> None:
    """A directory with other content is refused with 4, and nothing is written there."""
    (tmp_path / "letter.txt").touch()
    assert str(tmp_path) in error_of(dupwatch(*command, "--store", f"lmdb:{tmp_path}"), 4)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("command", [("store", "stats"), ("store", "verify"), ("show", "x"), ("query", "-")])
def test_looking_into_memory(dupwatch: Command, command: tuple[str, ...]) -> None:
    """A command that reads a store requires its URL."""
    assert "--store lmdb:PATH" in error_of(dupwatch(*command), 2)


def test_full_store(dupwatch: Command, tmp_path: Path) -> None:
    """A store at its size limit ends the run with 5; with a higher limit, the run completes."""
    feed = write_lines(tmp_path / "feed.jsonl", articles(range(400)))
    run = ("run", "--source", feed, "--sink", tmp_path / "out", "--store", f"lmdb:{tmp_path / 'store'}", *FAST)
    ended = dupwatch(*run, "--set", "store.map_bytes_max=300000", "--set", "source.batch_records_max=20")
    assert "reached its limit" in error_of(ended, 5)
    assert dupwatch(*run, "--emit", "duplicates").code == 0
    assert line_count(tmp_path / "out") == 80


@pytest.mark.parametrize("sink", ["nowhere/out.jsonl", ".", "/dev/full"])
def test_unwritable_sink(dupwatch: Command, tmp_path: Path, sink: str) -> None:
    """A sink that cannot be written ends with 6."""
    assert str(tmp_path / sink) in error_of(dupwatch("run", "--source", SAMPLE, "--sink", tmp_path / sink), 6)


@pytest.mark.parametrize("command", ["run", "query"])
def test_reader_that_goes(judged_sample: Path, command: str) -> None:
    """When the reader of standard output exits (``| head -1``), the command ends with 6 and one sentence."""
    store = ("--store", f"lmdb:{judged_sample / 'store'}")
    arguments = ("run", "--emit", "all", "--source", SAMPLE) if command == "run" else ("query", SAMPLE, *store)
    process = start(*arguments, "--set", "source.batch_records_max=8", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    # A pipe holds 64 KiB by default: a quick command would have ended before its reader goes.
    fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, mmap.PAGESIZE)
    assert process.stdout.readline()
    process.stdout.close()
    _, err = process.communicate(timeout=TIMEOUT_S)
    sentence = error_of(Outcome(process.returncode, b"", err.decode()), 6)
    assert "the pipe was closed" in sentence or "Broken pipe" in sentence


@pytest.mark.parametrize("command", ["run", "show", "config"])
def test_full_standard_output(judged_sample: Path, command: str) -> None:
    """When standard output is a full disk the command ends with 6 and one sentence."""
    arguments = {
        "run": ("run", "--source", SAMPLE),
        "show": ("show", "zh-food-noodle", "--store", f"lmdb:{judged_sample / 'store'}"),
        "config": ("config", "show"),
    }[command]
    with Path("/dev/full").open("wb") as full:
        process = start(*arguments, stdout=full, stderr=subprocess.PIPE)
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert "No space left" in error_of(Outcome(process.returncode, b"", err.decode()), 6)


def test_closed_standard_output(tmp_path: Path) -> None:
    """With standard output closed nothing runs: verdicts would be lost, or end up in a file of the store."""
    feed = write_lines(tmp_path / "feed.jsonl", articles([0]))
    command = 'exec "$0" run --source "$1" --store "lmdb:$2" --emit all >&-'
    ended = subprocess.run(["sh", "-c", command, DUPWATCH, feed, tmp_path / "store"], capture_output=True, check=False)
    assert ended.returncode == 6
    assert b"Traceback" not in ended.stderr
    assert not (tmp_path / "store").exists()
