"""Runs ``dupwatch serve`` as its users do, on a free port of this machine."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from deploy.local.ports import free_ports
from tests.cli.command import start, stop, wait_for
from tests.unit.service.serving import WAIT_S, Client


class Process(Client):
    """The process, its standard error, and what asks it."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path, url: str) -> None:
        super().__init__(url)
        self.process = process
        self.log = log

    def wait_ready(self) -> None:
        """Wait until requests are answered."""
        wait_for(lambda: self.process.poll() is not None or self._is_ready(), WAIT_S)
        assert self.process.poll() is None, self.log.read_text()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, and return the exit code."""
        return stop(self.process, number, WAIT_S)

    def _is_ready(self) -> bool:
        try:
            return self.get("/readyz").status == 200
        except OSError:
            return False


@contextmanager
def serving(
    store: str,
    folder: Path,
    *more: str,
    secure: bool = False,
    out: IO[bytes] | None = None,
    begin: Callable[..., "subprocess.Popen[bytes]"] = start,
) -> Iterator[Process]:
    """Serve a store, with this standard output; kill the process at the end if it still runs. ``begin`` starts it."""
    (port,) = free_ports(1)
    log = folder / "serve.log"
    with log.open("wb") as err:
        process = begin(
            "serve", "--store", store, "--set", f"service.listen=127.0.0.1:{port}", "--set", "log.format=json", *more,
            stdout=out, stderr=err,
        )  # fmt: skip
        try:
            yield Process(process, log, f"{'https' if secure else 'http'}://127.0.0.1:{port}")
        finally:
            process.kill()
            process.wait(WAIT_S)
