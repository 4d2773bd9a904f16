"""A detached program, identified by its process id and start time, since ids are reused."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_LAUNCH: Final = Path(__file__).with_name("launch.py")
_KILL_WAIT_S: Final = 20.0
_STATE: Final = 0
_STARTED: Final = 19
_NEVER: Final = -1
"""The start time of a program that had ended before its start time could be read."""
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_BYTES_PER_KIB: Final = 1024


class Process(NamedTuple):
    """The process id of a program, and its start in clock ticks since the machine's start."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> "Process":
        """Return the program that has this process id now."""
        fields = _fields(pid)
        return cls(pid, int(fields[_STARTED]) if fields else _NEVER)

    @property
    def alive(self) -> bool:
        """Whether the program is running; a zombie is not."""
        fields = _fields(self.pid)
        return _is_running(fields) and int(fields[_STARTED]) == self.started

    @property
    def age_s(self) -> float:
        """How long it has been running."""
        with Path("/proc/uptime").open() as file:
            uptime_s = float(file.read().split()[0])
        return uptime_s - self.started / _TICKS_PER_S

    @property
    def resident_bytes(self) -> int:
        """Its current resident memory, 0 if it has ended."""
        with suppress(OSError):
            for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * _BYTES_PER_KIB
        return 0

    def terminate(self, wait_s: float) -> None:
        """Send SIGTERM, wait for the program to end, and kill it if that takes longer than ``wait_s``.

        Raises ``TimeoutError`` as ``kill`` does.
        """
        if not self._ended_after(signal.SIGTERM, wait_s):
            self.kill()

    def kill(self) -> None:
        """Send SIGKILL and wait until the program has ended. Raises ``TimeoutError`` if it does not end."""
        if not self._ended_after(signal.SIGKILL, _KILL_WAIT_S):
            raise TimeoutError(f"process {self.pid} does not end")

    def _ended_after(self, which: signal.Signals, wait_s: float) -> bool:
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        try:
            # The descriptor keeps referring to the process that is checked here, even if the id is reused.
            if not self.alive:
                return True
            signal.pidfd_send_signal(descriptor, which)
            ended, _, _ = select.select([descriptor], [], [], wait_s)
        except ProcessLookupError:
            return True
        finally:
            os.close(descriptor)
        return bool(ended)


def launch(command: Sequence[str], log: Path, *, owner: int | None, environment: Mapping[str, str]) -> Process:
    """Start a detached program, which is killed when the process ``owner`` ends, unless ``owner`` is None.

    If the owner has already ended, the program is killed at once. Raises ``OSError`` if the program ended at once for
    another reason, which the log shows, and ``CalledProcessError`` if the launcher failed.
    """
    launcher = [sys.executable, "-I", "-S", str(_LAUNCH), str(owner or 0), str(log), *command]
    ran = subprocess.run(launcher, check=True, capture_output=True, text=True, env=environment)  # noqa: S603  # our own
    pid = int(ran.stdout)
    program = Process.of(pid)
    if program.started == _NEVER and (owner is None or _is_running(_fields(owner))):
        raise OSError(f"{command[0]} ended immediately; see {log}")
    return program


def _fields(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on, none if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    # The program's name comes before the state, in parentheses, and may contain any characters.
    return text.rpartition(")")[2].split()


def _is_running(fields: Sequence[str]) -> bool:
    return bool(fields) and fields[_STATE] not in "ZX"


def wait_until(holds: Callable[[], bool], wait_s: float, pause_s: float = 0.05) -> bool:
    """Wait until ``holds`` returns True; return whether it did within ``wait_s`` seconds."""
    until = time.monotonic() + wait_s
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(pause_s)
    return True
