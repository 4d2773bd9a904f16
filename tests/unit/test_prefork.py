"""Processes that are forked off a prepared one are processes like others."""

import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cli.command import SAMPLE, environment, run_process, start, start_anew

RUN = ("run", "--source", "-", "--sink", "out.jsonl", "--emit", "all")


def test_it_ends_as_one_that_was_started_anew() -> None:
    """Exit code and both streams are the same, of a command that succeeds and of two that do not."""
    for command in (["--version"], ["config", "check", "--set", "no.such=1"], ["show"]):
        anew = start_anew(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = anew.communicate(timeout=60)
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
        assert process.wait(30) == process.poll() == code
        process.communicate()
        (tmp_path / "out.jsonl").unlink()


def test_many_at_once_are_kept_apart() -> None:
    """Threads that start commands at the same time each get their own."""
    with ThreadPoolExecutor(4) as threads:
        ended = list(threads.map(lambda number: run_process("show", f"--no-such-{number}"), range(8)))
    assert [f"--no-such-{number}" in one.err for number, one in enumerate(ended)] == [True] * 8
