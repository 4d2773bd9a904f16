"""The machine's clock is set while ``dupwatch serve`` runs, and is wrong when one begins: nothing is lost."""

import json
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Final

import pytest

from tests.cli.command import FAST, environment, json_lines, run_process, start_anew, text
from tests.cli.serve.service import serving
from tests.machine_clock import DAY_S, JUMPS_S
from tests.unit.service.serving import WAIT_S

_CLOCK: Final = """
import time
from pathlib import Path

_ahead_s, _time, _time_ns = Path(__file__).with_name("ahead_s"), time.time, time.time_ns
time.time = lambda: _time() + int(_ahead_s.read_text())
time.time_ns = lambda: _time_ns() + int(_ahead_s.read_text()) * 1_000_000_000
"""
"""What Python runs before the command: the wall clock of the process is ahead by what a file says."""


class WallClock:
    """The wall clock of processes that a test starts with these options; the test sets it while they run."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(_CLOCK)
        self._folder = folder
        self.set(0)
        self.environment = environment(PYTHONPATH=str(folder))

    def set(self, ahead_s: int) -> None:
        """Set it ahead of the real one by this, or behind."""
        passing = self._folder / "passing"
        passing.write_text(str(ahead_s))
        passing.replace(self._folder / "ahead_s")


def judged(store: Path, *records: dict[str, str]) -> tuple[list[str | None], str]:
    """Judge a feed in a process of its own; return the originals of what it flags, and its log."""
    feed = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    ended = run_process("run", "--store", f"lmdb:{store}", "--emit", "all", *FAST, given=feed)
    assert ended.code == 0, ended.err
    return [verdict.get("duplicate_of") for verdict in json_lines(ended.out)], ended.err


def copy_of(number: int, name: str) -> dict[str, str]:
    """A near copy of the article of this number."""
    return {"id": f"{name}{number}", "body": f"{text(number)} too"}


def original(number: int) -> dict[str, str]:
    """An article whose text is like no other's."""
    return {"id": f"a{number}", "body": text(number)}


def test_a_service_keeps_its_window_when_the_clock_is_set(tmp_path: Path) -> None:
    """Copies of all that came before are flagged, retractions are known, and every step is counted."""
    clock = WallClock(tmp_path / "clock")
    begin = partial(start_anew, env=clock.environment)
    with serving(f"lmdb:{tmp_path / 'store'}", tmp_path, *FAST, begin=begin) as service:
        service.wait_ready()
        service.store(original(100))
        retracted = service.retract("a100", "key").data
        for number, jump_s in enumerate(JUMPS_S):
            assert service.store(original(number)).json["results"][0]["outcome"] == "unique"
            clock.set(jump_s)
            answers = service.store(*(copy_of(each, f"{number}-") for each in range(number + 1))).json["results"]
            assert [answer["duplicate_of"] for answer in answers] == [f"a{each}" for each in range(number + 1)]
        assert service.retract("a100", "key").data == retracted
        assert service.metric("dupwatch_clock_steps_total") == len(JUMPS_S)
        assert service.metric("dupwatch_clock_ahead_seconds") == pytest.approx(JUMPS_S[-1], abs=1)
        assert service.stop() == 0
    assert service.log.read_text().count("The clock of this machine was set") == len(JUMPS_S)


def test_a_stream_keeps_its_window_when_the_clock_is_set(tmp_path: Path) -> None:
    """As its articles arrive when they are read."""
    clock = WallClock(tmp_path / "clock")
    process = start_anew(
        "run", "--emit", "all", env=clock.environment, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, bufsize=0
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        for number, jump_s in enumerate(JUMPS_S):
            found = []
            for record in (original(number), copy_of(number, "b"), copy_of(0, f"{number}-")):
                process.stdin.write(json.dumps(record).encode() + b"\n")
                found.append(json.loads(process.stdout.readline()).get("duplicate_of"))
                clock.set(jump_s)
            assert found == [None, f"a{number}", "a0"]
        process.stdin.close()
        assert process.wait(WAIT_S) == 0
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def test_a_service_that_begins_with_a_wrong_clock_loses_nothing(tmp_path: Path) -> None:
    """It says what to do, at once; with the right clock again, copies of what was there before are flagged."""
    clock, store = WallClock(tmp_path / "clock"), tmp_path / "store"
    assert judged(store, original(1), original(2))[0] == [None, None]
    clock.set(20 * DAY_S)
    begin = partial(start_anew, env=clock.environment)
    with serving(f"lmdb:{store}", tmp_path, *FAST, begin=begin) as service:
        service.wait_ready()
        assert "is wrong, stop, correct it and start again" in service.log.read_text()
        assert service.store(original(3)).json["results"][0]["outcome"] == "unique"
        assert service.stop() == 0
    found, log = judged(store, copy_of(1, "b"), copy_of(2, "b"), copy_of(3, "b"))
    assert found == ["a1", "a2", None]
    assert "more than the window of 7 days, 0:00:00, so new articles are not compared with it" in log
