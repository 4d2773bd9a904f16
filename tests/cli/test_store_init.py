"""``dupwatch store init`` with a fake HBase shell."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from consumer.cli.operations.store_init import posting_shares
from consumer.config.loading import load_config
from consumer.fingerprint import BlockPlan, Lexicon
from consumer.judge import plan_choice
from consumer.judge.binding import Binding
from consumer.wiring.components import judge_settings
from storage.hbase.schema import PrefixLoad
from storage.lmdb import LmdbOptions, LmdbStore
from tests.builders import make_record
from tests.cli.command import FAST, SAMPLE, Command

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
        (["--store", STORE], "add --print, to print the script for the HBase shell, or --apply"),
        (["--store", STORE, "--print", "--apply"], "add --print, to print the script for the HBase shell, or --apply"),
        (["--store", "lmdb:store", "--print"], "hbase://HOST:PORT"),
        (["--store", STORE, "--print", "--set", "judge.plan=2x32"], "unknown block plan"),
        (["--store", STORE, "--articles", "9", "--set", "judge.plan=2x32"], "unknown block plan"),
        (["--store", STORE, "--articles", "9", "--set", "judge.max_distance=8"], "no plan for 64 bits supports more"),
        (["--store", STORE, "--articles", "0"], "--articles': must be at least 1"),
        (["--store", STORE, "--articles", "9", "--print", "--apply"], "add --print, to print the script for"),
        (["--store", "memory:", "--articles", "9", "--apply"], "a store in memory keeps no plan"),
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


def test_a_plan_is_shown_and_nothing_is_done(dupwatch: Command, tmp_path: Path) -> None:
    """Plan, reason, size, regions and cuts, on standard output; the same lines are comments of the script."""
    asked = ("store", "init", "--store", STORE, "--articles", "10000000")
    ended = dupwatch(*asked, PATH=str(tmp_path))
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.decode().splitlines()
    assert lines == [
        "For 10,000,000 articles in the window of 7 days:",
        (
            "  plan      16x28: with 4x16 an article would read about 2,136 postings; 16x28 is faster from 1,000,000"
            " articles on"
        ),
        "  look-up   reads 20 rows with about 1.6 postings; a kept article writes 20 postings",
        (
            "  size      11,428,572 articles with the slack: postings 12.6 GB, articles 47.8 GB (texts of 2,000"
            " characters), before HDFS replicates them"
        ),
        "  regions   postings 16, articles 16: by default one for each 5 GB, at least 16",
        (
            "  cuts      postings: 005000 00a000 00f000 014000 019000 01e000 023000 028000 02d000 032000 037000 03c000"
            " 104000 118000 12c000"
        ),
        "            articles: 1000 2000 3000 4000 5000 6000 7000 8000 9000 a000 b000 c000 d000 e000 f000",
        "  settings  consumers without judge.plan use 16x28; consumers with another plan are refused",
        "The limits were measured on one machine (docs/operate/sizing.md).",
    ]
    script = dupwatch(*asked, "--print").out.decode()
    assert script.splitlines()[2 : 2 + len(lines)] == [f"# {line}" for line in lines]
    assert """value = '{"articles":10000000,"plan":"16x28"}'""" in script
    assert script.count("'\\x10\\x40\\x00'") == 1
    assert script.isascii()


def test_tables_are_made_only_after_the_plan_is_recorded(dupwatch: Command) -> None:
    """So no consumer can start before; without --articles the script records nothing."""
    asked = ("store", "init", "--store", STORE, "--print")
    script = dupwatch(*asked, "--articles", "10").out.decode()
    places = [
        script.index(part) for part in ("puts 'refused: '", "feed:meta'\nfam", "recording", "feed:postings'\nfam")
    ]
    assert places == sorted(places)
    assert "refused" not in dupwatch(*asked).out.decode()


@pytest.mark.parametrize(
    ("options", "postings", "articles"),
    [
        ((), 51, 192),
        (("--servers", "100"), 100, 192),
        (("--regions", "5"), 5, 5),
        (("--set", "store.keep_bodies=false"), 51, 52),
    ],
)
def test_regions_follow_from_the_articles(
    dupwatch: Command, options: tuple[str, ...], postings: int, articles: int
) -> None:
    """One for 5 GB of each table, and for each server; a number that is given is taken."""
    ended = dupwatch("store", "init", "--store", STORE, "--articles", "200000000", *options)
    assert f"  regions   postings {postings}, articles {articles}: " in ended.out.decode()
    if articles > 16:
        assert f"and {articles - 17} more" in ended.out.decode()


@pytest.mark.parametrize(
    ("setting", "says", "needed"),
    [
        ("judge.plan=4x16", "4x16: judge.plan names it; the articles suggest 16x28: with 4x16 an article", False),
        ("judge.plan=16x28", "16x28: with 4x16 an article would read", False),
        ("judge.max_distance=5", "4x16: 16x28 finds pairs up to 4 bits apart, not 5", False),
        ("judge.window_s=5400", "in the window of 1.5 hours:", True),
        ("fingerprint.scheme=md5-128/1", "4x32: it reads fewer rows", True),
        ("judge.profile=posts", "16x28: with 4x16 an article would read about 3,662 postings and 408 candidates", True),
    ],
)
def test_the_plan_follows_from_the_settings(
    dupwatch: Command,
    setting: str,
    says: str,
    needed: bool,  # noqa: FBT001  # a parameter
) -> None:
    """A plan that the configuration names is taken; the distance, the window and the scheme count."""
    ended = dupwatch("store", "init", "--store", STORE, "--articles", "10000000", "--set", setting)
    assert (ended.code, ended.err) == (0, "")
    assert says in ended.out.decode()
    assert ("consumers without judge.plan" in ended.out.decode()) is needed


@pytest.mark.parametrize(
    ("profile", "place", "plan"),
    [
        ("news", STORE, "16x28"), ("news", "lmdb:store", "4x16"),
        ("posts", STORE, "16x28"), ("posts", "lmdb:store", "16x28"),
        ("mixed", STORE, "16x28"), ("mixed", "lmdb:store", "16x28"),
    ],
)  # fmt: skip
def test_the_plan_of_a_million(dupwatch: Command, profile: str, place: str, plan: str) -> None:
    """Posts need long keys where news in an embedded store do not."""
    asked = ("store", "init", "--store", place, "--articles", "1000000", "--set", f"judge.profile={profile}")
    assert f"  plan      {plan}: " in dupwatch(*asked).out.decode()


def test_a_plan_is_applied(dupwatch: Command, shell: Shell) -> None:
    """It is shown before the lines of the script, of which one says that it was recorded."""
    says = "recording the plan 4x16 for 9 articles in feed:meta\nThe tables are correct."
    ended = dupwatch("store", "init", "--store", STORE, "--articles", "9", "--apply", "--shell", shell(says))
    assert (ended.code, ended.out) == (0, b"")
    assert ended.err.startswith("For 9 articles in the window of 7 days:\n  plan      4x16: ")
    assert ended.err.endswith("recording the plan 4x16 for 9 articles in feed:meta\nThe tables are correct.\n")


def test_a_store_with_another_plan_is_refused(dupwatch: Command, shell: Shell) -> None:
    """With the exit code of a consumer that is refused, and with both ways out."""
    says = "refused: the store is bound to the plan 4x16, not 16x28\nERROR: nothing was changed"
    ended = dupwatch("store", "init", "--store", STORE, "--articles", "9999999", "--apply", "--shell", shell(says, 1))
    assert ended.code == 4
    assert (
        "the store is bound to the plan 4x16, not 16x28, and nothing was changed. Keep its plan (judge.plan), or name "
        "another store and move to it with dupwatch migrate (docs/operate/migration.md)."
    ) in ended.err


def test_an_embedded_store_is_made_for_a_plan(dupwatch: Command, tmp_path: Path) -> None:
    """It has no regions; consumers take its plan, are refused with another, and doctor says how far it is filled."""
    store = ("--store", f"lmdb:{tmp_path / 'store'}")
    asked = ("store", "init", *store, "--articles", "7000000")
    shown = dupwatch(*asked)
    assert (shown.code, (tmp_path / "store").exists()) == (0, False)
    assert "plan      16x28: with 4x16 an article would read about 1,495 postings" in shown.out.decode()
    assert "regions" not in shown.out.decode()
    applied = dupwatch(*asked, "--apply")
    assert (applied.code, applied.out) == (0, b"")
    assert applied.err.endswith(f"lmdb:{tmp_path / 'store'} is made for the plan 16x28.\n")
    run = ("run", "--source", SAMPLE, "--sink", tmp_path / "out.jsonl", *store, *FAST)
    other = ("--set", "judge.plan=4x16")
    refused = dupwatch(*run, *other)
    assert refused.code == 4
    assert "the store is made for the plan 16x28 and 7,000,000 articles in the window, but judge.plan is 4x16" in (
        refused.err
    )
    doctor = dupwatch("doctor", "--source", SAMPLE, *store, *other)
    assert doctor.code == 4
    assert "The store is made for the plan 16x28, but judge.plan is 4x16." in doctor.out.decode()
    assert "Skipped because the check 'settings of the store' failed." in doctor.out.decode()
    doctor = dupwatch("doctor", "--source", SAMPLE, *store)
    assert "The store is empty: no articles have been judged with it yet." in doctor.out.decode()
    judged = dupwatch(*run)
    assert judged.code == 0, judged.err
    doctor = dupwatch("doctor", "--source", SAMPLE, *store)
    assert doctor.code == 0, doctor.out
    assert "kept articles, of 7,000,000 expected; the plan 16x28 fits." in doctor.out.decode()
    assert dupwatch("store", "init", *store, "--articles", "9", "--apply").code == 4


def test_an_outgrown_store_is_named_with_the_commands_that_move_it(
    dupwatch: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lexicon: Lexicon
) -> None:
    """By the doctor, from a sample of its postings; it stays a warning."""
    url = f"lmdb:{tmp_path / 'store'}"
    opened = LmdbStore.open(tmp_path / "store", LmdbOptions(durability="process"))
    opened.agree(Binding(judge_settings(load_config(None, {}), lexicon)).encode())
    opened.add([make_record(str(number), str(number).encode()) for number in range(20_000)])
    opened.close()
    asked = ("doctor", "--source", SAMPLE, "--store", url)
    assert "the plan 4x16 fits." in dupwatch(*asked).out.decode()
    monkeypatch.setattr(plan_choice, "_OUTGROWN_POSTINGS", {False: 1})
    ended = dupwatch(*asked)
    assert ended.code == 0
    assert "and has outgrown the plan 4x16: a look-up reads about" in ended.out.decode()
    assert "Judge the window again, with a new store" in ended.out.decode()


def test_postings_by_first_byte() -> None:
    """A block has as many postings as the plan has parts, a band one; first bytes are lane and number."""
    assert posting_shares(BlockPlan.named("16x28"), 2) == [
        PrefixLoad(0, 4), PrefixLoad(1, 4), PrefixLoad(2, 4), PrefixLoad(3, 4),
        PrefixLoad(0x10, 1), PrefixLoad(0x11, 1),
    ]  # fmt: skip
    assert posting_shares(BlockPlan.named("8x16", 128), 0) == [PrefixLoad(block, 1) for block in range(8)]
