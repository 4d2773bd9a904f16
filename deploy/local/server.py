"""A server as an object that can be started, stopped and killed.

It listens on 127.0.0.1, and writes into one folder (``data`` and ``log``). With ``owner``, a process id, it is killed
when that process ends. A server that was stopped or killed can start again with its data.
"""

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from deploy.local.java import environment
from deploy.local.ports import is_free
from deploy.local.process import Process, launch, wait_until

START_WAIT_S: Final = 180.0
_STOP_WAIT_S: Final = 30.0
_CHILD_WAIT_S: Final = 2.0
_LOG_LINES: Final = 30


class ServerFailed(Exception):  # noqa: N818  # it is what the server did
    """A server could not be started; the message says why, or contains the end of its log."""


@dataclass(slots=True, kw_only=True)
class Server(ABC):
    """One server in a process of its own."""

    folder: Path
    owner: int | None = None
    process: Process | None = None
    name: ClassVar[str]
    _log_begins: int = field(default=0, repr=False)

    @property
    def log(self) -> Path:
        """The file with its output since its folder was created."""
        return self.folder / "log"

    @property
    def alive(self) -> bool:
        """Whether its process is running."""
        return self.process is not None and self.process.alive

    def log_tail(self, lines: int = _LOG_LINES) -> str:
        """Return the last lines of the log."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def launch(self) -> None:
        """Start the process without waiting until it is ready. Raises ``ServerFailed``."""
        if self.alive:
            raise ServerFailed(f"{self.name} is already running, in {self.folder}")
        taken = [str(port) for port in self.ports() if not is_free(port)]
        if taken:
            # The other program might answer in place of the server, which would seem to have started.
            raise ServerFailed(f"{self.name} needs port {', '.join(taken)}, which another program uses")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.prepare()
        self._log_begins = self.log.stat().st_size if self.log.exists() else 0
        try:
            self.process = launch(self.program(), self.log, owner=self.owner, environment=environment())
        except (OSError, subprocess.CalledProcessError) as error:
            raise ServerFailed(f"{self.name} did not start: {error}") from error

    def wait(self, wait_s: float = START_WAIT_S) -> None:
        """Wait until it is ready. If it ends or takes too long, kill it and raise ``ServerFailed``."""
        if wait_until(lambda: not self.alive or self.ready(), wait_s) and self.alive:
            return
        why = f"did not become ready within {wait_s:.0f} s" if self.alive else "ended"
        self.kill9()
        raise ServerFailed(f"{self.name} {why}. The end of {self.log}:\n{self.log_tail()}")

    def start(self, wait_s: float = START_WAIT_S) -> None:
        """Start it and wait until it is ready. Raises ``ServerFailed``."""
        self.launch()
        self.wait(wait_s)

    def stop(self) -> None:
        """Terminate it, as an operator would, and wait for its end. Kill it if that takes too long."""
        if self.process is not None:
            self.process.terminate(_STOP_WAIT_S)

    def kill9(self) -> None:
        """Kill it, as a failing machine would."""
        if self.process is not None and self.alive:
            self.process.kill()
            # A child that the server was just starting may keep its sockets for a moment longer.
            wait_until(lambda: all(is_free(port) for port in self.ports()), _CHILD_WAIT_S)

    @abstractmethod
    def ports(self) -> tuple[int, ...]:
        """Return the ports on which it listens. Called before each start, which fails if one is taken."""

    @abstractmethod
    def prepare(self) -> None:
        """Write its configuration into its folder, which exists. Called before each start."""

    @abstractmethod
    def program(self) -> list[str]:
        """Return the program and its arguments. Called for each start, after ``prepare``."""

    @abstractmethod
    def ready(self) -> bool:
        """Return whether it can be used now. Called repeatedly after a start."""

    def logged(self, words: str) -> bool:
        """Return whether these words were logged since the last start."""
        with self.log.open("rb") as file:
            file.seek(self._log_begins)
            return words.encode() in file.read()


def launch_each(servers: Sequence[Server], launched: Callable[[], None] = lambda: None) -> None:
    """Launch several servers, and call ``launched`` after each. Raises ``ServerFailed``."""
    for server in servers:
        server.launch()
        launched()


def start_together(servers: Sequence[Server], wait_s: float = START_WAIT_S) -> None:
    """Start several servers at once; if one fails, kill all of them and raise ``ServerFailed``."""
    try:
        launch_each(servers)
        for server in servers:
            server.wait(wait_s)
    except BaseException:
        for server in servers:
            server.kill9()
        raise
