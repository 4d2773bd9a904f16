"""Runs that are stopped and resumed, and runs that must not be resumed."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.command import (
    FAST,
    TIMEOUT_S,
    Command,
    Outcome,
    articles,
    json_lines,
    line_count,
    run_process,
    start,
    text,
    wait_for,
    write_lines,
)
from tests.cli.faulty_command import start_faulty


class Place:
    """A feed, its sink and its store in one folder."""

    def __init__(self, folder: Path, dupwatch: Command) -> None:
        self.folder = folder
        self.feed = folder / "feed.jsonl"
        self.sink = folder / "out.jsonl"
        self.checkpoint = folder / "out.jsonl.checkpoint.json"
        self._dupwatch = dupwatch

    def options(self, *more: str) -> list[str]:
        """Return the whole command line."""
        named = {"--source": self.feed, "--sink": self.sink, "--store": f"lmdb:{self.folder / 'store'}"}
        return ["run", *(str(part) for pair in named.items() for part in pair), "--emit", "all", *FAST, *more]

    def run(self, *more: str) -> Outcome:
        """Run until the end; later options override earlier ones."""
        return self._dupwatch(*self.options(*more))

    def ids(self) -> list[str]:
        """Return the ids of the verdicts in the sink."""
        return [verdict["id"] for verdict in json_lines(self.sink.read_bytes())]


@pytest.fixture
def place(tmp_path: Path, dupwatch: Command) -> Place:
    """A place with a feed of twenty articles."""
    here = Place(tmp_path, dupwatch)
    write_lines(here.feed, articles(range(20)))
    return here


@pytest.mark.parametrize(
    ("number", "code", "more"),
    [(signal.SIGTERM, 143, ("--workers", "1")), (signal.SIGINT, 130, ())],
    ids=["SIGTERM with a worker", "SIGINT"],
)
def test_stopped_run_goes_on(place: Place, number: signal.Signals, code: int, more: Sequence[str]) -> None:
    """A run stopped by a signal to its whole group resumes after its last verdict, and repeats none."""
    feed = articles(range(2_000))
    write_lines(place.feed, feed)
    arguments = place.options("--set", "source.batch_records_max=20", *more)
    process = start(*arguments, stderr=subprocess.PIPE)
    wait_for(lambda: line_count(place.sink) >= 100)
    os.killpg(process.pid, number)
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == code, err
    assert b"Traceback" not in err
    before = place.ids()
    assert 100 <= len(before) < len(feed)
    assert place.run("--set", "source.batch_records_max=1000").code == 0
    assert place.ids() == [article["id"] for article in feed]
    outcomes = [verdict["outcome"] for verdict in json_lines(place.sink.read_bytes())]
    assert outcomes == ["duplicate" if number % 5 == 4 else "unique" for number in range(len(feed))]


def test_a_slow_store_holds_up_no_end(place: Place, tmp_path: Path) -> None:
    """A stop abandons a batch between two store calls, which together would take a minute; it is judged later."""
    versions = [{"id": "a", "body": text(number)} for number in range(256)]
    write_lines(place.feed, versions)
    process = start_faulty(
        "slow-store", *place.options("--set", "kafka.drain_s=0.5"), stderr=subprocess.PIPE, cwd=tmp_path
    )
    wait_for(lambda: line_count(tmp_path / "store-calls") > 10, TIMEOUT_S)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=40)
    assert process.returncode == 143, err
    assert place.ids() == []
    assert place.run().code == 0
    assert place.ids() == ["a"] * len(versions)


@pytest.mark.parametrize("delay_s", [0.0, 0.15])
def test_signal_to_workers_that_are_starting(place: Place, delay_s: float) -> None:
    """Ctrl-C to the whole group while the worker processes start ends the run without a traceback."""
    on_processes = ("--workers", "2", "--set", "fingerprint.engine=python")
    process = start(*place.options(*on_processes), stderr=subprocess.PIPE)
    wait_for(place.checkpoint.exists)
    time.sleep(delay_s)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode in {130, 0}
    assert b"Traceback" not in err


def test_finished_run_has_nothing_to_do(place: Place) -> None:
    """A finished run that is started again adds nothing, and names no article to look up."""
    first = place.run()
    assert first.code == 0
    assert "Look up an article" in first.err
    before = place.sink.read_bytes()
    again = place.run()
    assert again.code == 0
    assert "Look up an article" not in again.err
    assert "after line 20" in again.err
    assert place.sink.read_bytes() == before


def test_grown_source(place: Place) -> None:
    """Only the added lines are judged, against those before them."""
    assert place.run().code == 0
    before = place.sink.read_bytes()
    write_lines(place.feed, [*articles(range(20)), {"id": "late", "body": articles([3])[0]["body"]}])
    assert place.run().code == 0
    assert place.sink.read_bytes().startswith(before)
    added = json_lines(place.sink.read_bytes()[len(before) :])
    assert [(article["id"], article["duplicate_of"]) for article in added] == [("late", "a3")]


def one_sentence(ended: Outcome) -> str:
    """Return the only line on standard error, which is not a traceback."""
    lines = ended.err.splitlines()
    assert len(lines) == 1, ended.err
    return lines[0]


def test_replaced_source(place: Place) -> None:
    """Another feed with the same name is refused, and the sink is not changed."""
    assert place.run().code == 0
    before = place.sink.read_bytes()
    write_lines(place.feed, articles(range(100, 130)))
    ended = place.run()
    assert ended.code == 2
    assert "is not the file" in one_sentence(ended)
    assert place.sink.read_bytes() == before


def test_sink_without_checkpoint(place: Place) -> None:
    """A sink that has content but no checkpoint is refused."""
    place.sink.write_bytes(b"somebody's\n")
    ended = place.run()
    assert ended.code == 6
    assert "not empty" in one_sentence(ended)
    assert place.sink.read_bytes() == b"somebody's\n"


def test_emptied_store(place: Place) -> None:
    """A run does not resume with a store that no longer has what it judged."""
    assert place.run().code == 0
    write_lines(place.feed, articles(range(30)))
    ended = place.run("--store", f"lmdb:{place.folder / 'other'}")
    assert ended.code == 2
    assert "the store is empty" in one_sentence(ended)


def test_changed_settings(place: Place) -> None:
    """A run does not resume with settings that differ from those of its store and sink."""
    assert place.run().code == 0
    assert place.run("--set", "judge.similarity_min=0.9").code == 4
    ended = place.run("--set", "judge.similarity_min=0.9", "--store", f"lmdb:{place.folder / 'other'}")
    assert ended.code == 2
    assert "other settings" in one_sentence(ended)


def test_memory_with_an_existing_sink(place: Place) -> None:
    """A store in memory is lost with its process, so an existing sink is refused."""
    assert place.run("--store", "memory:").code == 0
    before = place.sink.read_bytes()
    ended = place.run("--store", "memory:")
    assert ended.code == 6
    assert "not empty" in one_sentence(ended)
    assert place.sink.read_bytes() == before


def test_busy_sink(place: Place) -> None:
    """A second run into the same sink is refused while the first one writes."""
    first = start(*place.options()[:2], "-", *place.options()[3:], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        wait_for(place.sink.exists)
        ended = run_process(*place.options())
        assert ended.code == 6
        assert "another process" in one_sentence(ended)
    finally:
        first.communicate(timeout=TIMEOUT_S)
