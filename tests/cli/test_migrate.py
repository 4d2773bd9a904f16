"""What ``dupwatch migrate`` refuses before it connects to anything, and what it prints."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from consumer.cli import render
from consumer.cli.runs import migrate as command
from consumer.cli.runs.migrate import Reporter
from consumer.judge.tally import Tally
from consumer.migration.adopting import AdoptionCounts
from consumer.migration.migration import WindowGap
from consumer.model.hooks import Hooks
from consumer.pipeline.batches import BatchCommitted
from tests.cli.command import Command

SOURCE = ("--source", "kafka://127.0.0.1:1/articles")
NEW = ("--store", "lmdb:new", "--group", "new")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*SOURCE, *NEW, "--from-group", "old"), "--without-old-store"),
        ((*SOURCE, *NEW, "--from-group", "old", "--from-store", "lmdb:old", "--anew"), "--without-old-store"),
        ((*SOURCE, *NEW, "--from-group", "new", "--from-store", "lmdb:old"), "the group of the old consumers"),
        ((*SOURCE, *NEW, "--from-group", "old", "--from-store", "lmdb:./new"), "is the old store"),
        ((*SOURCE, "--group", "new", "--from-group", "old", "--anew"), "new store"),
        (("--source", "feed.jsonl", *NEW, "--from-group", "old", "--anew"), "follows topics"),
    ],
)
def test_what_cannot_be_meant(
    dupwatch: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    """One of the stores missing, the same group or store twice, a store in memory, and a file."""
    monkeypatch.chdir(tmp_path)
    ended = dupwatch("migrate", *arguments)
    assert (ended.code, message in ended.err) == (2, True), ended
    assert list(tmp_path.iterdir()) == []


class Run:
    """A migration as its report sees it."""

    tally = Tally(versions=1_200, kept=700, duplicates=500, replays=100)
    adopted = AdoptionCounts(kept=600, duplicates=400, flagged_now=30, kept_now=20)
    adopted_ahead = 7

    def progress(self) -> tuple[int, int]:
        """Return the progress."""
        return 1_200, 4_000


def printed(terminal: bool, what: Callable[[Console, Reporter], None]) -> str:  # noqa: FBT001  # a test's fact
    """Return what is printed about a run, on a terminal or in a log."""
    console = Console(file=StringIO(), force_terminal=terminal, width=120, markup=False)
    progress = render.progress(console)
    reporter = Reporter(console, progress, "old")
    run: Any = Run()
    with progress:
        reporter.watch(run)
        what(console, reporter)
        progress.refresh()
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_the_report_says_what_came_of_it() -> None:
    """It has the messages filled and taken over, the changed verdicts, and what is missing."""
    run: Any = Run()

    def report(console: Console, reporter: Reporter) -> None:
        Hooks(reporter).report(WindowGap("articles [0] has messages since noon only"))
        console.print(command.table(run, reporter, 2.0))

    shown = " ".join(printed(terminal=False, what=report).split())
    for words in (
        "articles filled 1,200", "with the old verdict 1,000", "unique 600", "duplicate by the new settings 30",
        "duplicate 400", "unique by the new settings 20", "not committed by the old group 7", "already filled 100",
        "judged again, no old verdict 100", "articles per second 600", "gap articles [0] has messages since noon only",
    ):  # fmt: skip
        assert words in shown


def test_a_log_is_written_now_and_then_and_a_terminal_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of messages filled so far; a log does not have it for every batch."""
    # A dumb terminal has no bar.
    monkeypatch.setenv("TERM", "xterm")

    def batch(_: Console, reporter: Reporter) -> None:
        Hooks(reporter).report(BatchCommitted([], []))

    assert "Filled" not in printed(terminal=False, what=batch)
    monkeypatch.setattr(command, "REPORT_EVERY_S", 0.0)
    assert "Filled 1,200 of 4,000 messages." in printed(terminal=False, what=batch)
    bar = printed(terminal=True, what=batch)
    assert "filling" in bar
    assert "30 %" in bar
