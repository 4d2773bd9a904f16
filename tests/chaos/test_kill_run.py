"""kill -9 on a run, many times: what comes out in the end is what an unharmed run gives."""

import random
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from consumer.files.letters import dead_letters_path
from consumer.judge.binding import Binding
from consumer.judge.events import reference_in
from consumer.model.verdict import Verdict, decode_verdict
from consumer.store_tools.inspection import verify
from storage.lmdb import LmdbOptions, LmdbStore
from tests.chaos.written_feed import write_feed
from tests.cli.command import FAST, start

LINES = 2_000
KILLS_MANY = 50
KILLS = 8
KILLS_WITH_WORKERS = 3
RUN_TIMEOUT_S = 120
POLL_S = 0.0005
DELAY_MAX_S = 0.02
"""Longer than a batch takes, so that kills come anywhere between two flushes."""


class Place(NamedTuple):
    """Where a run reads and writes."""

    source: Path
    sink: Path
    store: Path

    def start(self, workers: int = 0) -> "subprocess.Popen[bytes]":
        """Start the command that a person would start."""
        return start(
            "run", "--emit", "all", "--source", self.source, "--sink", self.sink, "--store", f"lmdb:{self.store}",
            "--set", "source.batch_records_max=16", *FAST, "--workers", str(workers), stderr=subprocess.PIPE,
        )  # fmt: skip

    def finish(self, workers: int = 0) -> None:
        """Run to the end of the feed."""
        run = self.start(workers)
        _, complaint = run.communicate(timeout=RUN_TIMEOUT_S)
        assert run.returncode == 0, complaint.decode()

    def sink_bytes(self) -> int:
        """How much was written so far."""
        return self.sink.stat().st_size if self.sink.exists() else 0

    def events(self) -> list[bytes]:
        """The lines of the sink."""
        data = self.sink.read_bytes()
        assert data.endswith(b"\n")
        return data.splitlines()

    def letters(self) -> list[bytes]:
        """The lines of the dead letters."""
        return dead_letters_path(self.sink).read_bytes().splitlines()


def kill_when_written(place: Place, target_bytes: int, delay_s: float, workers: int) -> bool:
    """Start a run, and kill it a moment after new verdicts appeared and the sink has reached this size.

    Return whether it was killed: on a busy machine it may come to its end before.
    """
    enough_bytes = max(target_bytes, place.sink_bytes() + 1)
    run = place.start(workers)
    deadline_s = time.monotonic() + RUN_TIMEOUT_S
    try:
        while place.sink_bytes() < enough_bytes and run.poll() is None:
            assert time.monotonic() < deadline_s
            time.sleep(POLL_S)
        time.sleep(delay_s)
    finally:
        run.kill()
        run.communicate()
    assert run.returncode in {-9, 0}
    return run.returncode == -9


def run_killed(place: Place, kills: int, total_bytes: int, seed: str, workers: int = 0) -> None:
    """Kill a run at moments that a seed picks all over the feed, then let it come to its end."""
    chance = random.Random(seed)
    # One in each stretch, so that the last of them leaves something to do; less what a killed run goes on to write.
    stretch_bytes = total_bytes * 9 // 10 // kills
    killed = 0
    for number in range(kills):
        target_bytes = number * stretch_bytes + chance.randrange(stretch_bytes)
        if not kill_when_written(place, target_bytes, chance.uniform(0, DELAY_MAX_S), workers):
            break
        killed += 1
    assert killed > kills / 2
    place.finish(workers)


def by_version(verdicts: Sequence[Verdict]) -> dict[tuple[str, str | None], str]:
    """The outcome of each version; a retraction has none, and is told by its time alone."""
    return {(verdict.id, verdict.version): verdict.outcome for verdict in verdicts}


def check_same(harmed: Place, unharmed: Place) -> None:
    """The same kept set; no verdict repeated or missing, each as the store has it; the same for dead letters."""
    events = harmed.events()
    verdicts = [decode_verdict(event) for event in events]
    expected = [decode_verdict(event) for event in unharmed.events()]
    assert [(verdict.id, verdict.version) for verdict in verdicts] == [
        (verdict.id, verdict.version) for verdict in expected
    ]
    assert len(set(events)) == len(events) == LINES - len(harmed.letters())
    assert by_version(verdicts) == by_version(expected)
    assert len({verdict.arrived_at for verdict in verdicts}) == 1, (
        "a record's time is when its run began, also after a kill"
    )
    assert harmed.letters() == unharmed.letters()
    store = LmdbStore.open(harmed.store, LmdbOptions(readonly=True))
    versions = [(verdict, event) for verdict, event in zip(verdicts, events, strict=True) if verdict.version]
    stored = store.read([reference_in(verdict.id, verdict.version) for verdict, _ in versions])
    assert [entry and entry.verdict for entry in stored] == [event for _, event in versions]
    *_, findings = verify(store, Binding.decode(store.settings() or b"").settings)
    assert findings.wrong == []
    assert (findings.pending, findings.versions) == (0, len(versions))
    store.close()


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A feed, and a run over it that was not killed."""
    folder = tmp_path_factory.mktemp("unharmed")
    place = Place(folder / "feed.jsonl", folder / "verdicts.jsonl", folder / "store")
    write_feed(place.source, LINES, "kill run")
    place.finish()
    outcomes = [decode_verdict(event).outcome for event in place.events()]
    assert min(outcomes.count("unique"), outcomes.count("duplicate")) > LINES // 5
    return place


@pytest.mark.parametrize("kills", [KILLS, pytest.param(KILLS_MANY, marks=pytest.mark.load)])
def test_a_run_killed_many_times_gives_what_an_unharmed_one_gives(unharmed: Place, tmp_path: Path, kills: int) -> None:
    """A run that is killed at any moment resumes: nothing is lost, repeated or changed."""
    harmed = Place(unharmed.source, tmp_path / "verdicts.jsonl", tmp_path / "store")
    run_killed(harmed, kills, unharmed.sink_bytes(), "kills")
    check_same(harmed, unharmed)


def test_a_run_with_a_worker_may_be_killed_as_well(unharmed: Place, tmp_path: Path) -> None:
    """What was read ahead and fingerprinted when the kill came is read again."""
    harmed = Place(unharmed.source, tmp_path / "verdicts.jsonl", tmp_path / "store")
    run_killed(harmed, KILLS_WITH_WORKERS, unharmed.sink_bytes(), "kills with a worker", workers=1)
    check_same(harmed, unharmed)
