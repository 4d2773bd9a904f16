"""A program that runs by itself, known by its process id and by when it started: an id alone may be given out again."""

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
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_BYTES_PER_KIB: Final = 1024


class Process(NamedTuple):
    """A program's process id, and its start in clock ticks since the machine's."""

    pid: int
    started: int

    @property
    def alive(self) -> bool:
        """Whether it still runs. One that has ended and that nobody has asked after counts as ended."""
        fields = _fields(self.pid)
        return bool(fields) and int(fields[_STARTED]) == self.started and fields[_STATE] not in "ZX"

    @property
    def age_s(self) -> float:
        """Since when it runs."""
        with Path("/proc/uptime").open() as file:
            uptime_s = float(file.read().split()[0])
        return uptime_s - self.started / _TICKS_PER_S

    @property
    def resident_bytes(self) -> int:
        """How much memory it has just now; 0 where it has ended."""
        with suppress(OSError):
            for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * _BYTES_PER_KIB
        return 0

    def terminate(self, wait_s: float) -> None:
        """Ask it to end, wait for that, and kill it where it takes too long."""
        if not self._ended_after(signal.SIGTERM, wait_s):
            self.kill()

    def kill(self) -> None:
        """End it now, as ``kill -9``, and wait until it has ended. Raises TimeoutError where the kernel cannot."""
        if not self._ended_after(signal.SIGKILL, _KILL_WAIT_S):
            raise TimeoutError(f"process {self.pid} does not end")

    def _ended_after(self, which: signal.Signals, wait_s: float) -> bool:
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        try:
            # What the descriptor stands for stays what is checked here, whatever happens to the id.
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
    """Start a program by itself; it is killed when the process ``owner`` ends, or never where that is None.

    Raises OSError where it could not be started; the log says why.
    """
    launcher = [sys.executable, "-I", "-S", str(_LAUNCH), str(owner or 0), str(log), *command]
    told = subprocess.run(launcher, check=True, capture_output=True, text=True, env=environment)  # noqa: S603  # our own
    pid = int(told.stdout)
    fields = _fields(pid)
    if not fields:
        raise OSError(f"{command[0]} ended at once; see {log}")
    return Process(pid, int(fields[_STARTED]))


def _fields(pid: int) -> list[str]:
    """What the kernel tells of a process, from its state on; nothing where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    # The program's name stands before, in parentheses, and may have anything in it.
    return text.rpartition(")")[2].split()


def wait_until(holds: Callable[[], bool], wait_s: float, pause_s: float = 0.05) -> bool:
    """Whether it comes to hold within that time."""
    until = time.monotonic() + wait_s
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(pause_s)
    return True
