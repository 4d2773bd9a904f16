"""``dupwatch store init`` with a fake HBase shell."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from consumer.cli.store_init import posting_shares
from consumer.fingerprint import BlockPlan
from storage.hbase.schema import Share
from tests.cli.command import Command

STORE = "hbase://127.0.0.1:9/feed"
_SHELL = """
import pathlib, sys
pathlib.Path({heard!r}).write_text(repr(sys.argv[1:]) + sys.stdin.read())
print({says!r})
sys.exit({code})
"""

Shell = Callable[..., str]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Create a command that prints this, ends with this code, and saves its input to a file."""

    def make(says: str, code: int = 0) -> str:
        program = tmp_path / "shell.py"
        program.write_text(_SHELL.format(heard=str(tmp_path / "heard"), says=says, code=code))
        return f"'{sys.executable}' '{program}' shell"

    return make


def test_print(dupwatch: Command) -> None:
    """The script goes to standard output, with a TTL from window and slack, and the requested regions."""
    ended = dupwatch(
        "store", "init", "--store", STORE, "--print", "--regions", "8",
        "--set", "judge.window_s=1000", "--set", "store.slack_s=234",
    )  # fmt: skip
    assert (ended.code, ended.err) == (0, "")
    script = ended.out.decode()
    assert "table = 'feed:postings'" in script
    assert "'TTL' => '1234'" in script
    assert script.count("'\\x13\\x00\\x00'") == 1
    assert script.count("'\\xE0\\x00'") == 1


def test_regions_follow_the_plan(dupwatch: Command) -> None:
    """Another plan, or no bands, splits postings at other keys, each at the start of a first byte."""
    ended = dupwatch("store", "init", "--store", STORE, "--print", "--regions", "4", "--set", "judge.lane1=false")
    script = ended.out.decode()
    assert all(f"'\\x0{block}\\x00\\x00'" in script for block in (1, 2, 3))
    assert "'\\x1" not in script


def test_apply(dupwatch: Command, shell: Shell, tmp_path: Path) -> None:
    """The shell gets the script on standard input; of its output only the script's own lines are printed."""
    says = "hbase:001:0> puts\ncreating feed:meta\nTook 1 second\nThe tables are correct."
    ended = dupwatch("store", "init", "--store", STORE, "--apply", "--shell", shell(says))
    assert (ended.code, ended.out) == (0, b"")
    assert ended.err == "creating feed:meta\nThe tables are correct.\n"
    printed = dupwatch("store", "init", "--store", STORE, "--print").out.decode()
    assert (tmp_path / "heard").read_text() == "['shell', '-n']" + printed


def test_the_shell_from_the_environment(dupwatch: Command, shell: Shell) -> None:
    """HBASE_SHELL names the shell too."""
    command = shell("The tables are correct.")
    assert dupwatch("store", "init", "--store", STORE, "--apply", HBASE_SHELL=command).code == 0


@pytest.mark.parametrize(
    ("says", "code"),
    [
        ("ERROR: no master", 1),
        ("The tables are correct.", 1),
        ("puts 'The tables are correct.'", 0),
    ],
)
def test_a_shell_that_fails(dupwatch: Command, shell: Shell, says: str, code: int) -> None:
    """If it fails, or ends before the script does, that is a store error with its output."""
    ended = dupwatch("store", "init", "--store", STORE, "--apply", "--shell", shell(says, code))
    assert ended.code == 5
    assert says in ended.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--store", STORE], "use either --print, to print the script, or --apply"),
        (["--store", STORE, "--print", "--apply"], "use either --print, to print the script, or --apply"),
        (["--store", "lmdb:store", "--print"], "hbase://HOST:PORT"),
        (["--store", STORE, "--print", "--set", "judge.plan=2x32"], "unknown block plan"),
        (["--store", STORE, "--print", "--set", "judge.window_s=3000000000"], "is 1 to 2147483647 seconds"),
        (["--store", STORE, "--apply", "--shell", "/nowhere/hbase shell"], "/nowhere/hbase: No such file"),
        (["--store", STORE, "--apply", "--shell", "'"], "No closing quotation"),
    ],
)
def test_what_cannot_be(dupwatch: Command, arguments: list[str], says: str) -> None:
    """Impossible options are reported in one sentence, with the exit code of a wrong option."""
    ended = dupwatch("store", "init", *arguments)
    assert ended.code == 2
    assert says in ended.err


def test_no_shell_at_all(dupwatch: Command, tmp_path: Path) -> None:
    """Without a shell the message says how to name one, and how to do without."""
    ended = dupwatch("store", "init", "--store", STORE, "--apply", PATH=str(tmp_path))
    assert ended.code == 2
    assert "HBASE_SHELL" in ended.err
    assert "--print" in ended.err


def test_the_shell_of_the_local_servers_is_named(dupwatch: Command, tmp_path: Path) -> None:
    """In a checkout the message ends with the command for the HBase of make stack-up, from any folder."""
    ended = dupwatch("store", "init", "--store", STORE, "--apply", PATH=str(tmp_path))
    options = shlex.split(ended.err.partition("For the HBase of make stack-up: ")[2])
    again = dupwatch("store", "init", "--store", STORE, "--apply", *options, XDG_CACHE_HOME=str(tmp_path))
    assert again.code == 5
    assert "There is no local HBase yet; start it with: make stack-up" in again.err


def test_postings_by_first_byte() -> None:
    """A block has as many postings as the plan has parts, a band one; first bytes are lane and number."""
    assert posting_shares(BlockPlan.named("16x28"), 2) == [
        Share(0, 4), Share(1, 4), Share(2, 4), Share(3, 4), Share(0x10, 1), Share(0x11, 1),
    ]  # fmt: skip
    assert posting_shares(BlockPlan.named("8x16", 128), 0) == [Share(block, 1) for block in range(8)]
