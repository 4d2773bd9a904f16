"""Stores that cannot be used: every command ends with 4 and one sentence, and creates nothing."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest

from tests.cli.command import FAST, SAMPLE, Command, articles, run_process, write_lines

KNOWN = "zh-food-noodle"
COMMANDS: dict[str, tuple[str, ...]] = {
    "run": ("run", "--source", str(SAMPLE), "--sink", "verdicts.jsonl", *FAST),
    "backfill": ("backfill", str(SAMPLE), *FAST),
    "show": ("show", KNOWN),
    "explain": ("explain", KNOWN, "zh-metro-line"),
    "query": ("query", str(SAMPLE)),
    "stats": ("store", "stats"),
    "verify": ("store", "verify"),
    "export": ("store", "export"),
}


def truncate(store: Path) -> None:
    """Cut the data file in the middle, which raises SIGBUS in a process that maps it."""
    os.truncate(store / "data.mdb", (store / "data.mdb").stat().st_size // 2)


def empty(store: Path) -> None:
    """Leave the data file without any bytes."""
    os.truncate(store / "data.mdb", 0)


def noise(store: Path) -> None:
    """Overwrite all pages except the first two."""
    data = store / "data.mdb"
    with data.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xa5" * (data.stat().st_size - 8192))


def gone(store: Path) -> None:
    """Remove the data file but not the lock file."""
    (store / "data.mdb").unlink()


def foreign(store: Path) -> None:
    """Create an LMDB environment of another program."""
    shutil.rmtree(store)
    with lmdb.open(str(store)) as env, env.begin(write=True) as transaction:
        transaction.put(b"key", b"value")


def a_file(store: Path) -> None:
    """Put a file in place of the directory."""
    shutil.rmtree(store)
    store.write_text("text")


def other_layout(store: Path) -> None:
    """Create a store of a future version."""
    with lmdb.open(str(store), max_dbs=10) as env, env.begin(write=True) as transaction:
        transaction.put(b"layout", b"999", db=env.open_db(b"meta", transaction))


HARM: dict[str, tuple[Callable[[Path], None], str]] = {
    "truncated": (truncate, "is damaged: data.mdb was truncated to"),
    "empty": (empty, "is damaged: data.mdb is empty. Restore the directory from a backup, or name another store."),
    "noise": (noise, "is damaged: "),
    "gone": (gone, "is damaged: data.mdb is missing"),
    "foreign": (foreign, "holds a database that is not a dupwatch store"),
    "a file": (a_file, "is a file, but a store is a directory. Name another path."),
    "other layout": (other_layout, "has layout 999; this program supports only layouts 1, 2, 3 and 4."),
}


@pytest.fixture
def store(judged_sample: Path, tmp_path: Path) -> Path:
    """A store that a test may damage."""
    return Path(shutil.copytree(judged_sample / "store", tmp_path / "store"))


def content(store: Path) -> dict[str, bytes]:
    """Return the bytes of all files except the lock file, which each process writes to."""
    files = [store] if store.is_file() else store.iterdir()
    return {file.name: file.read_bytes() for file in files if file.name != "lock.mdb"}


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_store_that_cannot_be_used_is_told_in_a_sentence(
    dupwatch: Command, store: Path, command: str, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 4 and a message with the fault, the path and the remedy; no byte of the store changes."""
    monkeypatch.chdir(store.parent)
    change, sentence = HARM[harm]
    change(store)
    before = content(store)
    ended = dupwatch(*COMMANDS[command], "--store", f"lmdb:{store}")
    assert ended.code == 4, ended.err
    assert [line for line in ended.err.splitlines() if "dupwatch: " in line] == ended.err.splitlines()
    assert str(store) in ended.err
    assert sentence in ended.err
    assert ended.out == b""
    assert content(store) == before


@pytest.mark.parametrize("command", COMMANDS)
def test_a_truncated_store_ends_no_process_by_a_signal(store: Path, command: str) -> None:
    """Runs in a separate process, since LMDB would kill it."""
    truncate(store)
    ended = run_process(*COMMANDS[command], "--store", f"lmdb:{store}", cwd=store.parent)
    assert (ended.code, ended.err.count("\n")) == (4, 1), ended.err


@pytest.mark.parametrize("command", ["show", "stats", "verify", "export"])
def test_verdicts_that_are_none_are_damage(dupwatch: Command, store: Path, command: str) -> None:
    """Every command that reads stored events and settings reports the same fault."""
    with lmdb.open(str(store), max_dbs=10) as env:
        verdicts, meta = env.open_db(b"verdicts"), env.open_db(b"meta")
        with env.begin(write=True) as transaction:
            for key in list(transaction.cursor(verdicts).iternext(values=False)):
                transaction.put(key, b"{\xff", db=verdicts)
            if command != "verify":
                transaction.put(b"settings", b"{\xff", db=meta)
    more = ("--json",) if command == "stats" else ()
    ended = dupwatch(*COMMANDS[command], *more, "--store", f"lmdb:{store}")
    if command == "export":
        # What cannot be read is exported as it is.
        assert ended.code == 0
    else:
        assert ended.code == 4, ended.err
        assert "the store is damaged: " in ended.err


def test_other_settings_that_are_none_are_damage(dupwatch: Command, store: Path, tmp_path: Path) -> None:
    """A run does not bind the store again."""
    with lmdb.open(str(store), max_dbs=10) as env, env.begin(write=True) as transaction:
        transaction.put(b"settings", b"{", db=env.open_db(b"meta", transaction))
    ended = dupwatch(*COMMANDS["run"][:3], "--sink", tmp_path / "out", "--store", f"lmdb:{store}")
    assert ended.code == 4, ended.err
    assert "the settings that it was created with cannot be read" in ended.err


def expiry(store: Path) -> None:
    """Shorten a key that only a sweep reads."""
    with lmdb.open(str(store), max_dbs=10) as env, env.begin(write=True) as transaction:
        database = env.open_db(b"expiry", transaction)
        key, value = next(iter(transaction.cursor(database).iternext()))
        transaction.delete(key, db=database)
        transaction.put(key[:-3], value, db=database)


def width(store: Path) -> None:
    """Say that postings are wider than they are."""
    with lmdb.open(str(store), max_dbs=10) as env, env.begin(write=True) as transaction:
        transaction.put(b"code_bytes", b"16", db=env.open_db(b"meta", transaction))


def page_of_texts(store: Path) -> None:
    """Overwrite the last page of texts: only a command which shows them would read it, or a run that appends some."""
    data = store / "data.mdb"
    with lmdb.open(str(store), max_dbs=10, readonly=True) as env, env.begin() as transaction:
        bodies = env.open_db(b"bodies", transaction, create=False)
        # A longer one has pages of its own, without a key beside it.
        *_, text = (value for _, value in transaction.cursor(bodies) if len(value) < 1_000)
    content = bytearray(data.read_bytes())
    while (at := content.find(text)) >= 0:
        page = at // 4_096 * 4_096
        content[page : page + 4_096] = bytes(4_096)
    data.write_bytes(content)


@pytest.mark.parametrize("harm", [expiry, width, page_of_texts])
def test_what_stops_a_run_is_found_by_verifying(
    dupwatch: Command, store: Path, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    """Also where the command that verifies has no need of it."""
    harm(store)
    ended = dupwatch("store", "verify", "--store", f"lmdb:{store}")
    assert (ended.code, ended.err.count("\n")) == (4, 1), ended.err
    assert "is damaged: " in ended.err
    feed = write_lines(tmp_path / "feed.jsonl", articles(range(300)))
    run = run_process("run", "--source", feed, "--sink", tmp_path / "out", "--store", f"lmdb:{store}", *FAST)
    assert run.code == 4, run.err
