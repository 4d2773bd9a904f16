"""Processes that are forked off a prepared one are processes like others."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import prefork
from tests.cli.command import SAMPLE, TIMEOUT_S, environment, run_process, start, start_anew
from tests.examples import drawn
from tests.hostile_signals import INHERITED, hostile_signals

RUN = ("run", "--source", "-", "--sink", "out.jsonl", "--emit", "all")


def test_it_ends_as_one_that_was_started_anew() -> None:
    """Exit code and both streams are the same, of a command that succeeds and of two that do not."""
    for command in (["--version"], ["config", "check", "--set", "no.such=1"], ["show"]):
        anew = start_anew(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = anew.communicate(timeout=TIMEOUT_S)
        assert run_process(*command) == (anew.returncode, out, err.decode())


def test_what_it_is_given_is_its_own(tmp_path: Path) -> None:
    """Standard input, folder and environment are those that were asked for, and no other's."""
    given = SAMPLE.read_bytes().splitlines(keepends=True)[0]
    ended = run_process(*RUN, given=given, cwd=tmp_path, env=environment(DUPWATCH_JUDGE__WINDOW_S="86400"))
    assert ended.code == 0, ended.err
    assert (tmp_path / "out.jsonl").read_bytes().count(b"\n") == 1
    wrong = run_process(*RUN, given=given, cwd=tmp_path, env=environment(DUPWATCH_JUDGE__NO_SUCH="1"))
    assert wrong.code == 2
    assert "no_such" in wrong.err


def test_it_has_a_session_and_is_stopped_by_signals(tmp_path: Path) -> None:
    """While it runs there is no exit code; a signal ends it with its own, and a second question says the same."""
    for number, code in ((signal.SIGTERM, 143), (signal.SIGKILL, -9)):
        process = start(*RUN, cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdin is not None
        process.stdin.write(SAMPLE.read_bytes())
        process.stdin.flush()
        while not (tmp_path / "out.jsonl").exists():
            assert process.poll() is None
        assert os.getsid(process.pid) == process.pid
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.05)
        process.send_signal(number)
        assert process.wait(TIMEOUT_S) == process.poll() == code
        process.communicate()
        (tmp_path / "out.jsonl").unlink()


def test_many_at_once_are_kept_apart() -> None:
    """Threads that start commands at the same time each get their own."""
    with ThreadPoolExecutor(4) as threads:
        ended = list(threads.map(lambda number: run_process("show", f"--no-such-{number}"), range(8)))
    assert [f"--no-such-{number}" in process.err for number, process in enumerate(ended)] == [True] * 8


Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture(params=drawn(["forked", "anew"], 2))
def start_under_hostile_signals(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts commands off a preparer, or in an interpreter of their own; both inherit signals ignored and blocked."""
    if request.param == "forked":
        with hostile_signals():
            preparer = prefork._Preparer(environment())
        monkeypatch.setattr(prefork, "_preparer", lambda: preparer)
        yield start
        preparer.close()
        return

    def start_one(*arguments: str, **options: Any) -> "subprocess.Popen[bytes]":  # noqa: ANN401  # as Popen takes them
        with hostile_signals():
            return start_anew(*arguments, **options)

    yield start_one


@contextmanager
def ended_at_last(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Kill it where the block fails."""
    try:
        yield
    except BaseException:
        os.kill(process.pid, signal.SIGKILL)
        raise
    finally:
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def test_signals_that_were_inherited_ignored_and_blocked(start_under_hostile_signals: Start, tmp_path: Path) -> None:
    """SIGINT and SIGTERM still end a command, the end of each is heard of, and nohup still protects from SIGHUP."""
    for number in (signal.SIGINT, signal.SIGTERM):
        process = start_under_hostile_signals(
            *RUN, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        with ended_at_last(process):
            assert process.stdin is not None
            process.stdin.write(SAMPLE.read_bytes())
            process.stdin.flush()
            while not (tmp_path / "out.jsonl").exists():
                assert process.poll() is None
            process.send_signal(signal.SIGHUP)
            process.send_signal(number)
            _, err = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 128 + number, err
        (tmp_path / "out.jsonl").unlink()


def test_ctrl_c_that_was_inherited_ignored(start_under_hostile_signals: Start) -> None:
    """A command without an end of its own is left by Ctrl-C, which is not only for those that finish their work."""
    nobody = "http://127.0.0.1:9"
    process = start_under_hostile_signals("top", nobody, "--interval", "0.1", stdout=subprocess.PIPE)
    with ended_at_last(process):
        assert process.stdout is not None
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0


def test_a_failed_test_leaves_no_process(tmp_path: Path) -> None:
    """What was begun before the test, by a fixture for many of them, is left alone."""
    earlier = start(*RUN, cwd=tmp_path, stdin=subprocess.PIPE)
    assert isinstance(earlier, prefork.Forked)
    since_s = time.time()
    later = start(*RUN, cwd=tmp_path, stdin=subprocess.PIPE)
    prefork.kill_those_begun(since_s)
    assert later.returncode == -signal.SIGKILL
    assert later.stdin is not None
    assert later.stdin.closed
    assert earlier.poll() is None
    prefork.kill_those_begun(earlier.begun_s)
    assert earlier.returncode == -signal.SIGKILL


def test_this_process_is_left_as_it_was() -> None:
    """Hostile signals end with their block."""
    before = [signal.getsignal(number) for number in INHERITED]
    with hostile_signals():
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    assert [signal.getsignal(number) for number in INHERITED] == before
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ()) & set(INHERITED)
