"""Modes of written files: readable by the owner only unless a setting says otherwise, whatever the umask."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import FAST, SAMPLE, Command, write_lines

ARTICLES = SAMPLE.read_bytes().splitlines()
UMASKS = [0o000, 0o022, 0o077, 0o777]


@pytest.fixture(params=UMASKS, ids=oct)
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    """Return the modes of everything below a folder."""
    return {str(path.relative_to(folder)): path.stat().st_mode & 0o7777 for path in folder.rglob("*")}


def feed(folder: Path) -> Path:
    """Two articles and an invalid record; ``pairs.jsonl`` has a label for the articles."""
    first, second = (json.loads(line)["id"] for line in ARTICLES[:2])
    write_lines(folder / "pairs.jsonl", [[first, second, True]])
    return write_lines(folder / "feed.jsonl", [*ARTICLES[:2], b"none"])


WRITES: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "run": (
        ("run", "--source", "FEED", "--sink", "made/out", "--store", "lmdb:made/new/store"),
        {"new", "new/store", "new/store/data.mdb", "new/store/lock.mdb", "out", "out.dead-letters.jsonl"}
        | {"out.checkpoint.json"},
    ),
    "backfill": (
        ("backfill", "FEED", "--state", "made/state", "--store", "lmdb:made/store"),
        {"store", "store/data.mdb", "store/lock.mdb", "state", "state.dead-letters.jsonl", "state.checkpoint.json"},
    ),
    "idf": (("idf", "build", "FEED", "--output", "made/idf.txt"), {"idf.txt"}),
    "plot": (
        ("evaluate", str(SAMPLE), "--pairs", "pairs.jsonl", "--plot", "made/curves.svg"),
        {"curves.svg"},
    ),
}


@pytest.mark.usefixtures("_umask")
@pytest.mark.parametrize("command", ["run", "backfill", "idf"])
def test_what_is_made_is_the_owners_alone(
    dupwatch: Command, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file and folder that a command writes, with a permissive and with a strict umask."""
    _check(dupwatch, tmp_path, command, monkeypatch, (), (0o600, 0o700))


@pytest.mark.parametrize(("setting", "expected"), [("0640", (0o640, 0o750)), ("0666", (0o666, 0o777))])
@pytest.mark.parametrize("command", WRITES)
def test_a_setting_lets_others_in(
    dupwatch: Command,
    tmp_path: Path,
    command: str,
    setting: str,
    expected: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Files get its bits, and folders can be entered by those who may read."""
    more = ("--set", f"files.mode={setting}")
    _check(dupwatch, tmp_path, command, monkeypatch, more, expected)


def _check(
    dupwatch: Command,
    tmp_path: Path,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    more: tuple[str, ...],
    expected: tuple[int, int],
) -> None:
    monkeypatch.chdir(tmp_path)
    umask = os.umask(0o022)
    (tmp_path / "made").mkdir()
    given = feed(tmp_path)
    os.umask(umask)
    arguments, names = WRITES[command]
    durable = () if command in {"idf", "plot"} else FAST
    ended = dupwatch(*(str(given) if argument == "FEED" else argument for argument in arguments), *durable, *more)
    assert ended.code == 0, ended.err
    found = modes(tmp_path / "made")
    assert {name: oct(mode) for name, mode in found.items()} == {
        name: oct(expected[(tmp_path / "made" / name).is_dir()]) for name in names
    }


def test_what_exists_keeps_its_mode(dupwatch: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both files that are written to, and files that are replaced, like a checkpoint."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made").mkdir()
    given = feed(tmp_path)
    for command in ("run", "idf", "plot"):
        arguments = [str(given) if name == "FEED" else name for name in WRITES[command][0]]
        assert dupwatch(*arguments).code == 0
        before = {name: 0o755 if (tmp_path / "made" / name).is_dir() else 0o644 for name in modes(tmp_path / "made")}
        for name, mode in before.items():
            (tmp_path / "made" / name).chmod(mode)
        with given.open("ab") as file:
            file.write(ARTICLES[5] + b"\n")
        assert dupwatch(*arguments).code == 0
        assert modes(tmp_path / "made") == before


@pytest.mark.parametrize("mode", ["0700", "0400", "600", "0602", "1600", ""])
def test_modes_that_make_no_sense_are_refused(dupwatch: Command, mode: str) -> None:
    """Owners can write, nobody can execute, and only those who may read may write."""
    ended = dupwatch("config", "check", "--set", f"files.mode={mode}")
    assert ended.code == 2
    assert "files.mode" in ended.err
