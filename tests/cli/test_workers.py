"""Worker processes that are killed, or whose parent is killed."""

import os
import signal
import subprocess
from concurrent.futures import Future
from pathlib import Path

import pytest

from consumer.fingerprint import Scheme
from consumer.lifecycle.thread_progress import WorkerProgressed
from consumer.model.errors import Fatal
from consumer.model.hooks import Hooks
from consumer.workers.pool import ProcessFingerprinting, TimedFingerprints
from consumer.workers.word_files import WordFiles
from tests.cli.command import (
    FAST,
    TIMEOUT_S,
    articles,
    json_lines,
    line_count,
    run_process,
    start,
    text,
    wait_for,
    write_lines,
)

ON_PROCESSES = ("--set", "fingerprint.engine=python")
"""With the compiled engine, workers are threads."""


def processes_of(group: int) -> dict[int, str]:
    """Return the live processes of a process group, with their command lines."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
            command = status.with_name("cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found[int(status.parent.name)] = command
    return found


def workers_of(group: int) -> list[int]:
    """Return its workers."""
    return [number for number, command in processes_of(group).items() if "spawn_main" in command]


def begin(folder: Path) -> tuple[list[str], "subprocess.Popen[bytes]", list[str]]:
    """Start a run with two workers, wait until mid-feed, and return its arguments, its process and the feed's ids."""
    feed = articles(range(1_500))
    source = write_lines(folder / "feed.jsonl", feed)
    arguments = [
        "run", "--source", str(source), "--sink", str(folder / "out.jsonl"), "--store", f"lmdb:{folder / 'store'}",
        "--emit", "all", "--set", "source.batch_records_max=10", *ON_PROCESSES, *FAST,
    ]  # fmt: skip
    process = start(*arguments, "--workers", "2", stderr=subprocess.PIPE)
    wait_for(lambda: line_count(folder / "out.jsonl") >= 50)
    assert len(workers_of(process.pid)) == 2
    return arguments, process, [article["id"] for article in feed]


def ids(folder: Path) -> list[str]:
    """Return the ids of the verdicts in the sink."""
    return [verdict["id"] for verdict in json_lines((folder / "out.jsonl").read_bytes())]


def test_killed_parent_leaves_no_worker(tmp_path: Path) -> None:
    """After kill -9 all its processes end soon, and the run can be resumed."""
    arguments, process, expected = begin(tmp_path)
    process.kill()
    process.communicate(timeout=TIMEOUT_S)
    wait_for(lambda: not processes_of(process.pid))
    assert run_process(*arguments, "--set", "source.batch_records_max=1000").code == 0
    assert ids(tmp_path) == expected


def test_killed_worker_ends_the_run(tmp_path: Path) -> None:
    """After kill -9 of a worker the run fails with a sentence; nothing is half written, and it can be resumed."""
    arguments, process, expected = begin(tmp_path)
    os.kill(workers_of(process.pid)[0], signal.SIGKILL)
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1
    assert b"Traceback" not in err
    assert err.decode().splitlines()[-1].startswith("dupwatch: a worker process ended")
    wait_for(lambda: not processes_of(process.pid))
    done = ids(tmp_path)
    assert done == expected[: len(done)]
    assert len(done) % 10 == 0
    assert run_process(*arguments, "--set", "source.batch_records_max=1000").code == 0
    assert ids(tmp_path) == expected


@pytest.fixture
def fingerprinting() -> ProcessFingerprinting:
    """A worker that has already done something."""
    workers = ProcessFingerprinting(Scheme(), WordFiles(), 1, sketched=True)
    workers.submit(["begin"], [""]).result(TIMEOUT_S)
    return workers


def long_work(fingerprinting: ProcessFingerprinting) -> "Future[TimedFingerprints]":
    """Submit half a second of work."""
    return fingerprinting.submit([text(seed, 2_000) for seed in range(60)], [""] * 60)


def test_worker_outlives_a_signal(fingerprinting: ProcessFingerprinting) -> None:
    """SIGTERM and SIGINT, which a supervisor sends to the whole group, let a worker finish its work."""
    (worker,) = fingerprinting._pool._processes
    future = long_work(fingerprinting)
    os.kill(worker, signal.SIGTERM)
    os.kill(worker, signal.SIGINT)
    result = future.result(TIMEOUT_S)
    assert len(result.fingerprints.codes) == 60
    assert result.work_s > 0
    fingerprinting.close()


def test_each_piece_of_a_worker_is_reported() -> None:
    """A batch of many texts is split into pieces, and listeners learn of each."""
    pieces: list[WorkerProgressed] = []
    hooks = Hooks()
    hooks.on(WorkerProgressed, pieces.append)
    fingerprinting = ProcessFingerprinting(Scheme(), WordFiles(), 1, sketched=True, hooks=hooks)
    result = long_work(fingerprinting).result(TIMEOUT_S)
    assert len(result.fingerprints.codes) == 60
    assert len(pieces) > 2
    fingerprinting.close()


def test_killed_worker_is_told_of(fingerprinting: ProcessFingerprinting) -> None:
    """The current and all later work of a killed worker fails with a readable sentence."""
    (worker,) = fingerprinting._pool._processes
    future = long_work(fingerprinting)
    os.kill(worker, signal.SIGKILL)
    with pytest.raises(Fatal, match="a worker process ended"):
        future.result(TIMEOUT_S)
    with pytest.raises(Fatal, match="a worker process ended"):
        long_work(fingerprinting)
    fingerprinting.close()
