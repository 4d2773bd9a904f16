"""Programs that run by themselves, with and without an owner; the programs here are small ones."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local import launch as launch_script
from deploy.local.process import Process, launch, wait_until
from tests.hostile_signals import hostile_signals

WAIT_S = 120
_SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
_DEAF = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)",
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where a program's output goes."""
    return tmp_path / "log"


@pytest.fixture
def owner() -> Iterator[subprocess.Popen[bytes]]:
    """A process to which programs may belong."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def launched(command: list[str], log: Path, owner: int) -> Process:
    """A program that has begun."""
    process = launch(command, log, owner=owner, environment=dict(os.environ))
    assert wait_until(lambda: log.exists() and "up" in log.read_text(), WAIT_S)
    return process


def test_a_program_ends_with_its_owner(log: Path, owner: subprocess.Popen[bytes]) -> None:
    """Killing the owner with -9 ends the program, though its owner is not its parent."""
    program = launched(_SLEEP, log, owner.pid)
    assert program.alive
    # Ctrl-C in our terminal goes to our session, and is not meant for it.
    assert os.getsid(program.pid) == program.pid
    owner.kill()
    assert wait_until(lambda: not program.alive, WAIT_S)


def test_a_program_that_runs_already_is_tied_to_an_owner(owner: subprocess.Popen[bytes]) -> None:
    """It ends, killed, when its owner does; where it ends by itself the watch is over."""
    for which in ("program", "owner"):
        program = subprocess.Popen(["sleep", "600"])
        watch = subprocess.Popen([sys.executable, launch_script.__file__, "watch", str(owner.pid), str(program.pid)])
        with pytest.raises(subprocess.TimeoutExpired):
            watch.wait(0.3)
        (program if which == "program" else owner).kill()
        if which == "owner":
            owner.wait()
        assert program.wait(WAIT_S) == -signal.SIGKILL
        assert watch.wait(WAIT_S) == 0


def test_a_program_of_an_owner_that_is_gone_ends(log: Path, owner: subprocess.Popen[bytes]) -> None:
    """A program whose owner ended before it began ends at once, whether or not the launcher still sees it."""
    owner.kill()
    owner.wait()
    programs = [launch(_SLEEP, log, owner=owner.pid, environment=dict(os.environ)) for _ in range(10)]
    assert wait_until(lambda: not any(program.alive for program in programs), WAIT_S)


def test_a_program_without_owner_outlives_who_asked(log: Path) -> None:
    """A program without an owner goes on when the process that launched it has ended."""
    ask = (
        "import os, pathlib, sys; from deploy.local.process import launch; "
        "print(*launch(sys.argv[2:], pathlib.Path(sys.argv[1]), owner=None, environment=dict(os.environ)))"
    )
    printed = subprocess.run([sys.executable, "-c", ask, log, *_SLEEP], check=True, capture_output=True, text=True)
    program = Process(*map(int, printed.stdout.split()))
    try:
        assert wait_until(lambda: log.exists() and "up" in log.read_text(), WAIT_S)
        assert program.alive
        assert program.resident_bytes > 1 << 20
        assert 0 <= program.age_s < 60
    finally:
        program.kill()
    assert not program.alive


def test_a_program_that_does_not_listen_is_killed(log: Path) -> None:
    """A program that ignores being asked to end is killed after the time it was given."""
    program = launched(_DEAF, log, os.getpid())
    program.terminate(0.2)
    assert not program.alive


def test_a_program_is_asked_to_end_whatever_it_inherits(log: Path) -> None:
    """SIGTERM ends it also where it was ignored and blocked when the program was launched."""
    with hostile_signals():
        program = launched(_SLEEP, log, os.getpid())
    try:
        assert program._ended_after(signal.SIGTERM, 20)
    finally:
        program.kill()


def test_another_process_of_the_same_id_is_left_alone(owner: subprocess.Popen[bytes]) -> None:
    """An id that was given out again names another process, which is not killed."""
    mistaken = Process(owner.pid, started=1)
    assert not mistaken.alive
    mistaken.kill()
    mistaken.terminate(1)
    assert owner.poll() is None


def test_a_program_that_cannot_be_run_is_told(log: Path) -> None:
    """A program that is not there ends at once, and its log says what was asked for."""
    try:
        program = launch(["/nowhere/java"], log, owner=None, environment=dict(os.environ))
        assert wait_until(lambda: not program.alive, WAIT_S)
    except OSError as error:
        assert "/nowhere/java" in str(error)  # noqa: PT017  # it may have ended before or after it was looked at
    assert "No such file" in log.read_text()
