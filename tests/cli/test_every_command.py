"""How every command behaves if its surroundings fail: files, streams, terminal, locale, Ctrl-C.

Add an entry to ``every_command.py`` for each new command.
"""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from consumer.banks.bank import Bank, BankItem
from consumer.banks.exchange import lines_of
from consumer.reviews.database import open_database
from consumer.reviews.flag_events import add_events
from tests.cli.command import (
    FAST,
    SAMPLE,
    TIMEOUT_S,
    Command,
    Outcome,
    articles,
    environment,
    run_process,
    start,
    start_anew,
    text,
    wait_for,
    write_lines,
)
from tests.cli.every_command import EVERY, NOWHERE, Name, commands, filled, options_of, sentence_of
from tests.cli.test_looking_without_rights import look
from tests.examples import drawn
from tests.prefork import forkserver
from tests.unit.reviews.made import flagged

WORKING = [name for name, entry in EVERY.items() if entry.works]
READING = [(name, code, given) for name, entry in EVERY.items() for code, given in entry.reads]
WRITING = [(name, code, given) for name, entry in EVERY.items() for code, given in entry.writes]
UNREADABLE = {"nowhere": "No such file", "a-folder": "irectory", "text/x": "Not a directory"}
UNWRITABLE = {"nowhere/x": "No such file", "a-folder": "irectory", "text/x": "Not a directory"}
FROM_STDIN = [(name, entry.from_stdin) for name, entry in EVERY.items() if entry.from_stdin is not None]
DOCUMENTED = set(range(8)) | {130, 143}
SAYS_IT_ITSELF = {("doctor",)}
"""Its findings are its results, a configuration that is wrong among them."""
BROKERS_FIRST = {("replay",), ("migrate",)}
"""They look at their store when brokers have answered."""
OPENS_NO_STORE = {("size",)}
"""It names the kind of a store that is to come."""
UNTIL_STOPPED = {("demo",), ("serve",), ("console",), ("top",)}
"""They work without arguments, until they are stopped."""
PRINTS_NOTHING = {("run",), ("backfill",), ("demo",), ("idf", "build"), ("store", "secret", "export")}
"""On standard output, given as in the table."""
COLOUR = re.compile(r"\x1b\[[0-9;]*(?<![0-9])(?:3[0-7]|9[0-7]|38|4[0-7])(?:;|m)")
STYLES = re.compile(r"\x1b\[\??[0-9;]*[A-Za-z]")
COLUMNS = 60
PIPE_BYTES = 4096
BEGUN_BYTES = 1000
"""In the pipe: the next lines do not fit."""
FULL = Path("/dev/full")


class Files:
    """A folder with input for commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        feed = write_lines(folder / "feed", [*articles(range(5)), {"id": 1.5}])
        (folder / "text").write_text(f"苍浦地铁 {text(1)}", encoding="utf-8")
        write_lines(folder / "pairs", [["a3", "a4", "duplicate"], ["a1", "a2", "unique"]])
        (folder / "empty").touch()
        (folder / "items.csv").write_text("text\nletters enough\n")
        items = [BankItem(bank="spam", item="offer", text="Win a ferry ticket")]
        items += [BankItem(bank="spam", item="stored", text=text(3))]
        banks = [Bank(bank=name, action="deny") for name in ("spam", "off")]
        (folder / "banks").write_bytes(lines_of([*banks, *items]))
        (folder / "a-folder").mkdir()
        ended = run_process(
            "run", "--source", feed, "--sink", folder / "verdicts", "--store", f"lmdb:{folder / 'store'}", *FAST
        )
        assert ended.code == 0, ended.err
        tokens = ("--tokens", folder / "tokens")
        ended = run_process("tokens", "add", "crawler", "--role", "reader", "--owner", "An Na", *tokens)
        assert ended.code == 0, ended.err
        for name, role in (("Ann", "admin"), ("Bo", "reviewer")):
            database = ("--set", f"console.database=sqlite:///{folder / 'people.db'}")
            ended = run_process("people", "add", name, "--role", role, *database)
            assert ended.code == 0, ended.err
        reviews = open_database(f"sqlite:///{folder / 'people.db'}")
        reviews.write(lambda connection: add_events(connection, [flagged("a1", "a0")]))
        reviews.close()
        self._places = {
            "folder": str(folder), "feed": str(feed), "store": f"lmdb:{folder / 'store'}", "kafka": f"kafka://{NOWHERE}/t",
        }  # fmt: skip
        self._there = self._listed()

    def given(self, name: Name, arguments: Name | None = None, path: Path | str = "") -> list[str]:
        """Return a full command line; without arguments, that of the table."""
        return [*name, *filled(EVERY[name].given if arguments is None else arguments, **self._places, path=path)]

    def left(self) -> set[Path]:
        """Remove what a command left behind, and return it."""
        left = self._listed() - self._there
        for path in sorted(left, reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        return left

    def _listed(self) -> set[Path]:
        return set(self.folder.rglob("*"))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """A small feed, its verdicts, and other input for commands."""
    return Files(tmp_path_factory.mktemp("every"))


def refused(files: Files, ended: Outcome, code: int, *named: str) -> None:
    """Check that a command ended with this code and a reason, without results and without leaving files."""
    assert ended.code == code, ended
    sentence = sentence_of(ended)
    assert [name for name in named if name not in sentence] == [], sentence
    assert ended.out == b""
    # A database of the console is made before it is known whether a password can be printed.
    assert {path.name for path in files.left()} <= {"new-people.db"}


def test_every_command_is_in_the_table() -> None:
    """The table has no other entries."""
    assert set(EVERY) == set(commands())


@pytest.mark.parametrize("name", [name for name in EVERY if name not in UNTIL_STOPPED], ids=" ".join)
def test_no_arguments(files: Files, name: Name) -> None:
    """Every command ends with a documented exit code, and a sentence unless it is 0."""
    ended = run_process(*name)
    assert ended.code in DOCUMENTED
    if ended.code and name != ("health",):
        sentence_of(ended)
        assert ended.out == b""
    assert files.left() == set()


@pytest.mark.parametrize("name", EVERY, ids=" ".join)
def test_a_wrong_option(dupwatch: Command, files: Files, name: Name) -> None:
    """The message names it and refers to --help; the exit code is 2."""
    refused(files, dupwatch(*files.given(name), "--nope"), 2, "--nope", f"Usage: dupwatch {' '.join(name)}", "--help")


@pytest.mark.parametrize("name", [name for name in EVERY if "--set" in options_of(name)], ids=" ".join)
def test_a_wrong_setting(dupwatch: Command, files: Files, name: Name) -> None:
    """The exit code is 2, before anything else is checked."""
    ended = dupwatch(*files.given(name), "--set", "judge.max_distanc=2")
    if name in SAYS_IT_ITSELF:
        assert ended.code == 2
        assert b"judge.max_distance" in ended.out
    else:
        refused(files, ended, 2, "judge.max_distanc", "judge.max_distance?", "dupwatch config show")


@pytest.mark.parametrize("name", [name for name in EVERY if "--config" in options_of(name)], ids=" ".join)
def test_a_configuration_that_is_a_folder(dupwatch: Command, files: Files, name: Name) -> None:
    """The exit code is 2."""
    ended = dupwatch(*files.given(name), "--config", files.folder)
    if name in SAYS_IT_ITSELF:
        assert ended.code == 2
    else:
        refused(files, ended, 2, f"{files.folder} cannot be read: Is a directory")


@pytest.mark.parametrize(
    "name",
    [name for name in EVERY if "--store" in options_of(name) and name not in BROKERS_FIRST | OPENS_NO_STORE],
    ids=" ".join,
)
@pytest.mark.parametrize("place", ["text", "text/x"])
def test_a_store_that_is_a_file(files: Files, name: Name, place: str) -> None:
    """Or a path below a file: commands that use stores in folders exit with 4, and name the file."""
    ended = run_process(*files.given(name), "--store", f"lmdb:{files.folder / place}")
    if name[0] == "store" and name[1] in {"init", "pack", "unpack"}:
        refused(files, ended, 2, "hbase://")
    elif name in SAYS_IT_ITSELF:
        assert ended.code == 4
        assert str(files.folder / "text").encode() in ended.out
    elif name in {("serve",), ("console",)}:
        # A service writes lines of a log, and nothing else.
        assert (ended.code, f"{files.folder / 'text'} is a file" in ended.err) == (4, True)
    else:
        assert "Kafka, during" not in ended.err
        refused(files, ended, 4, f"{files.folder / 'text'} is a file")


@pytest.mark.parametrize(("use", "place"), drawn([*product(READING, UNREADABLE)], 3))
def test_what_cannot_be_read(files: Files, use: tuple[Name, int, Name], place: str) -> None:
    """The message names it, with the reason."""
    (name, code, given), why = use, UNREADABLE[place]
    if "dead-letters.jsonl" in given[-1] and place == "a-folder":
        pytest.skip("the folder would have another name")
    if name == ("query",) and place != "a-folder":
        # It may be an article's id.
        why = "no file named"
    if given[-2:] == ("--banks", "{path}") and place == "nowhere":
        why = "does not exist"
    if name == ("dead-letters", "list") and given[-1].endswith("/verdicts"):
        why = "does not exist"
    path = files.folder / place
    refused(files, run_process(*files.given(name, given, path)), code, str(path), why)


@pytest.mark.parametrize(("use", "place"), drawn([*product(WRITING, UNWRITABLE)], 3))
def test_what_cannot_be_written(files: Files, use: tuple[Name, int, Name], place: str) -> None:
    """The message names it, with the reason."""
    (name, code, given), why, path = use, UNWRITABLE[place], files.folder / place
    refused(files, run_process(*files.given(name, given, path)), code, str(path), why)


@pytest.mark.parametrize(("name", "code", "given"), READING)
def test_an_empty_file(files: Files, name: Name, code: int, given: Name) -> None:
    """It counts as a feed without articles, or is refused in a sentence."""
    del code
    if name in {("top",), ("produce",)} or name[0] == "dead-letters":
        pytest.skip("it goes on to a server, or the file has another name")
    ended = run_process(*files.given(name, given, files.folder / "empty"))
    assert ended.code in DOCUMENTED - {1}
    if ended.code:
        sentence_of(ended)
    files.left()


def test_without_permission(files: Files, tmp_path: Path) -> None:
    """The message names what may not be read or written. As root, the test drops the capability to ignore modes."""
    secret = files.folder / "a-folder"
    secret.chmod(0)
    try:
        cases = [(files.given(name, given, secret / "x"), code) for name, code, given in [*READING, *WRITING]]
        with forkserver().Pool(1) as pool:
            found = pool.apply_async(look, ([tuple(case) for case, _ in cases], tmp_path)).get(TIMEOUT_S)
    finally:
        secret.chmod(0o755)
    for (_, code), ended in zip(cases, found, strict=True):
        refused(files, ended, code, str(secret), "Permission denied")


@pytest.mark.parametrize(
    ("name", "gone"),
    drawn([*product(sorted(set(WORKING) - PRINTS_NOTHING), (True, False))], 2),
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else ("closed-pipe" if value else "full-disk"),
)
def test_standard_output_that_cannot_be_written(files: Files, name: Name, *, gone: bool) -> None:
    """The exit code is 6, with a sentence."""
    ended = with_stream(files.given(name), "stdout", gone=gone)
    # What was said before the results.
    last = Outcome(ended.code, b"", ended.err[ended.err.index("dupwatch: ") :])
    refused(files, last, 6, "standard output", "Broken pipe" if gone else "No space left")


@pytest.mark.parametrize("name", [(), *EVERY], ids=lambda name: " ".join(name) or "dupwatch")
def test_help_that_cannot_be_written(name: Name) -> None:
    """Help is a result like any other."""
    assert sentence_of(with_stream([*name, "--help"], "stdout", gone=False))
    if not name:
        assert with_stream(["--help"], "stdout", gone=True).code == 6


@pytest.mark.parametrize("name", drawn(sorted(WORKING), 2), ids=" ".join)
def test_standard_error_that_cannot_be_written(files: Files, name: Name) -> None:
    """Messages are lost, results are not: the exit code is the usual one."""
    ended = with_stream(files.given(name), "stderr", gone=False)
    assert ended.code == 0
    assert bool(ended.out) is (name not in PRINTS_NOTHING)
    files.left()


def with_stream(arguments: list[str], stream: str, *, gone: bool) -> Outcome:
    """Run a command with one of its streams connected to a closed pipe or a full disk."""
    if gone:
        reading, into = os.pipe()
        os.close(reading)
    else:
        into = os.open(FULL, os.O_WRONLY)
    try:
        streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | {stream: into}
        process = start(*arguments, stdin=subprocess.DEVNULL, **streams)
    finally:
        os.close(into)
    out, err = process.communicate(timeout=TIMEOUT_S)
    return Outcome(process.returncode, out or b"", (err or b"").decode())


@pytest.mark.parametrize(("name", "given"), FROM_STDIN)
def test_interrupted_while_it_reads(files: Files, name: Name, given: Name) -> None:
    """Ctrl-C ends it with 130 and no traceback, possibly with a summary."""
    process = start(*files.given(name, given), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b'{"id')
    process.stdin.flush()
    # From here on it reads.
    wait_for(lambda: _in_pipe(process.stdin) == 0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130, err
    assert out == b""
    assert b"Traceback" not in err
    files.left()


@pytest.mark.parametrize("name", [("query",), ("store", "export"), ("store", "init")], ids=" ".join)
def test_interrupted_while_it_writes(judged_sample: Path, name: Name) -> None:
    """Ctrl-C ends it even if nobody reads the results, which are complete lines or none."""
    store = f"lmdb:{judged_sample / 'store'}"
    given = {
        "query": (SAMPLE, "--store", store),
        "export": ("--store", store),
        "init": ("--store", f"hbase://{NOWHERE}/feed", "--print"),
    }
    reading, into = os.pipe()
    fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    try:
        process = start(*name, *given[name[-1]], stdin=subprocess.DEVNULL, stdout=into, stderr=subprocess.PIPE)
        os.close(into)
        wait_for(lambda: _in_pipe(reading) > BEGUN_BYTES)
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) == 130
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
        process.stderr.close()
    finally:
        os.close(reading)


def _in_pipe(pipe: Any) -> int:  # noqa: ANN401  # a file, or its descriptor
    answer = fcntl.ioctl(pipe, termios.FIONREAD, struct.pack("i", 0))
    return int(struct.unpack("i", answer)[0])


def test_interrupted_while_modules_are_imported() -> None:
    """Ctrl-C prints no traceback even before the command runs."""
    begin = (
        "import os, signal, sys\n"
        # Whatever this test inherited: a program that is loading has not touched its signals yet.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'consumer.config.config':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from consumer.cli import main\n"
        "print('imported')\n"
    )
    ended = subprocess.run([sys.executable, "-c", begin], capture_output=True, timeout=TIMEOUT_S, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, b"", b"")


@pytest.mark.parametrize("name", drawn(WORKING, 2), ids=" ".join)
def test_a_narrow_terminal_without_colours(files: Files, name: Name) -> None:
    """No line exceeds a terminal of 60 columns, and NO_COLOR disables colours; except for JSON and scripts."""
    shown = on_terminal(files.given(name))
    files.left()
    assert "Traceback" not in shown
    assert COLOUR.search(shown) is None
    if name not in NOT_MADE_FOR_COLUMNS:
        lines = [STYLES.sub("", line.split("\r")[-1]) for line in shown.replace("\r\n", "\n").split("\n")]
        assert [line for line in lines if cell_len(line) > COLUMNS] == []


def test_a_sentence_is_wrapped_between_words(files: Files) -> None:
    """Words are not split, whatever the width of the terminal."""
    shown = on_terminal(["run", "--set", "judge.plan=4x17"]).replace("\r\n", "\n")
    assert len(lines := shown.splitlines()) > 1
    assert all(len(line) <= COLUMNS for line in lines)
    whole = run_process("run", "--set", "judge.plan=4x17").err
    assert " ".join(shown.split()) == " ".join(whole.split())


def on_terminal(arguments: list[str]) -> str:
    """Return what a command writes to a terminal of 60 columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    own = environment(TERM="xterm-256color", NO_COLOR="1")
    del own["COLUMNS"]
    # At a terminal a demo would stay, for its console.
    stdin = subprocess.DEVNULL if arguments[0] == "demo" else slave
    process = start(*arguments, stdin=stdin, stdout=slave, stderr=slave, env=own)
    os.close(slave)
    shown = bytearray()
    try:
        while part := os.read(master, 1 << 16):
            shown += part
    except OSError:
        # The other end is closed.
        pass
    finally:
        os.close(master)
    assert process.wait(TIMEOUT_S) is not None
    return shown.decode()


NOT_MADE_FOR_COLUMNS = {
    ("bank", "export"),
    ("bank", "scan"),
    ("bank", "test"),
    ("demo",),
    ("query",),
    ("store", "export"),
    ("store", "init"),
    ("topics", "init"),
    ("tokens", "add"),
    ("people", "add"),
    ("people", "password"),
    ("reviews",),
    ("config", "show"),
}
"""JSON, scripts, settings that can be read back, a secret, and a log."""
LATIN = {"PYTHONIOENCODING": "latin-1"}
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("locale", [LATIN, ASCII], ids=["latin-1", "ascii"])
def test_a_locale_that_is_not_utf_8(files: Files, locale: dict[str, str]) -> None:
    """Characters that the locale does not have are escaped."""
    process = start_anew(
        *files.given(("fingerprint",)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(**locale)
    )
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, err) == (0, b"")
    assert b"\\u82cd" in out
    assert "苍".encode() not in out
