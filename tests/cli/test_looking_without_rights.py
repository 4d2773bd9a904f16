"""Commands that read a store need no write permission."""

import ctypes
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from consumer.cli import main
from tests.cli.command import SAMPLE, Outcome, environment
from tests.prefork import forkserver

COMMANDS: dict[str, tuple[str, ...]] = {
    "show": ("show", "zh-metro-line"),
    "explain": ("explain", "zh-metro-line.zero_width", "zh-metro-line"),
    "query": ("query", str(SAMPLE)),
    "stats": ("store", "stats"),
    "verify": ("store", "verify"),
    "export": ("store", "export"),
}


@pytest.fixture(scope="module")
def store(judged_sample: Path) -> Iterator[Path]:
    """A store that everybody may read, and nobody may write."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        store = Path(shutil.copytree(judged_sample / "store", Path(name) / "store"))
        for file in store.iterdir():
            file.chmod(0o444)
        store.chmod(0o555)
        yield store
        store.chmod(0o755)


def obey_modes() -> None:
    """Make the modes of files apply to root in this process. It stays root: Python may be readable by root only.

    ``capset(2)``, with what ``capabilities(7)`` calls CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH taken away.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, data) == 0
    for word in range(3):
        data[word] &= ~0b110
    assert libc.capset(header, data) == 0


def look(commands: list[tuple[str, ...]], folder: Path) -> list[Outcome]:
    """Run these commands in this process, where modes apply to root; pass their output through ``folder``."""
    for name in [name for name in os.environ if name not in environment()]:
        del os.environ[name]
    out, err = (os.open(folder / name, os.O_RDWR | os.O_CREAT) for name in ("out", "err"))
    os.dup2(out, 1)
    os.dup2(err, 2)
    obey_modes()
    outcomes = []
    for arguments in commands:
        sys.argv = ["dupwatch", *arguments]
        code = 0
        with suppress(SystemExit):
            try:
                main()
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
        printed = []
        for descriptor in (out, err):
            printed.append(os.pread(descriptor, 1 << 24, 0))
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
        outcomes.append(Outcome(code, printed[0], printed[1].decode()))
    return outcomes


def test_a_store_is_looked_into_without_permission_to_write(store: Path, judged_sample: Path, tmp_path: Path) -> None:
    """Each command prints the same as for the owner, and changes nothing."""
    url = ("--store", f"lmdb:{store}")
    before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in store.iterdir()}
    with forkserver().Pool(1) as pool:
        found = pool.apply(look, ([(*arguments, *url) for arguments in COMMANDS.values()], tmp_path))
    assert {name: ended.code for name, ended in zip(COMMANDS, found, strict=True)} == dict.fromkeys(COMMANDS, 0), found
    assert all(ended.out for ended in found)
    assert {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in store.iterdir()} == before


def test_what_would_write_is_refused_there(store: Path, tmp_path: Path) -> None:
    """The exit code is 4, and the message names the directory."""
    run = ("run", "--source", str(SAMPLE), "--store", f"lmdb:{store}")
    with forkserver().Pool(1) as pool:
        (ended,) = pool.apply(look, ([run], tmp_path))
    assert ended.code == 4
    assert f"This user may not write to the directory {store}." in ended.err
