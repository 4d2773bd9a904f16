"""Runs the command within this process."""

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from consumer.cli import main
from consumer.fingerprint import Lexicon
from consumer.wiring import components
from consumer.workers.word_files import load_lexicon
from tests.cli.command import FAST, SAMPLE, Command, Outcome, environment, run_process


@pytest.fixture(scope="session")
def lexicon() -> Lexicon:
    """The dictionaries, loaded once instead of by every command."""
    return load_lexicon()


@pytest.fixture
def dupwatch(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], lexicon: Lexicon) -> Command:
    """Run a command in this process until it ends, and return its output."""

    def call(*arguments: str | Path, **variables: str) -> Outcome:
        capfdbinary.readouterr()
        with monkeypatch.context() as patched:
            patched.setattr(sys, "argv", ["dupwatch", *map(str, arguments)])
            for name in [name for name in environment() if name.startswith("DUPWATCH_")]:
                patched.delenv(name)
            for name, value in ({"COLUMNS": "200"} | variables).items():
                patched.setenv(name, value)
            patched.setattr(components, "load_lexicon", lambda *own: load_lexicon(*own) if any(own) else lexicon)
            code = 0
            try:
                main()
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        out, err = capfdbinary.readouterr()
        return Outcome(code, out, err.decode())

    return call


@pytest.fixture(scope="session")
def judged_sample() -> Iterator[Path]:
    """A read-only folder with ``verdicts.jsonl`` and ``store`` from a run over the sample feed."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        ended = run_process(
            "run", "--source", SAMPLE, "--sink", folder / "verdicts.jsonl", "--store", f"lmdb:{folder / 'store'}",
            "--emit", "all", *FAST,
        )  # fmt: skip
        assert ended.code == 0, ended.err
        yield folder
