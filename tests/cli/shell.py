"""bash in which ``dupwatch`` is quick: as a process that is forked off, as in ``tests.prefork``, not a new interpreter.

::

    bash ── starts ──▶ dupwatch, a short script ── arguments, environment, folder, descriptors ──▶ Shell ──▶ Forked
                                                ◀── exit code ─────────────────────────────────────┘
"""

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Final, Self

from tests.cli.command import DUPWATCH, TIMEOUT_S, Outcome, environment
from tests.prefork import Forked

_BYTES_MAX: Final = 1 << 17
_STREAMS: Final = 3
_SCRIPT: Final = f"""#!{sys.executable} -IS
import json, os, socket, sys
shell = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
shell.connect(os.environ.pop("TEST_SHELL"))
request = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode()
socket.send_fds(shell, [request], range({_STREAMS}))
sys.exit(int(shell.recv(16)))
"""


class Shell:
    """Runs scripts of bash; ``close()``, or the end of a ``with`` block, ends it."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory()
        program = Path(self._folder.name) / "dupwatch"
        program.write_text(_SCRIPT)
        program.chmod(0o700)
        self._address = f"{self._folder.name}/shell"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(self._address)
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, name="shell")
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Run no further commands."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        self._folder.cleanup()

    def run(self, script: str, folder: Path) -> Outcome:
        """Run a script in a folder until it ends or a command fails that it does not expect to."""
        path = os.pathsep.join([self._folder.name, str(DUPWATCH.parent), os.environ["PATH"]])
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            stdin=subprocess.DEVNULL, capture_output=True, check=False, cwd=folder, timeout=TIMEOUT_S,
            env=environment(PATH=path, TEST_SHELL=self._address, DUPWATCH_STORE__DURABILITY="process"),
        )  # fmt: skip
        return Outcome(ended.returncode, ended.stdout, ended.stderr.decode())

    def _serve(self) -> None:
        """Take commands until the listener is shut down; those of a pipeline run at the same time."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=_answer, args=(connection,), name="shell-command").start()


def _answer(connection: socket.socket) -> None:
    """Start the command that a script asks for, and report its exit code."""
    with connection:
        request, streams, _, _ = socket.recv_fds(connection, _BYTES_MAX, _STREAMS)
        arguments, variables, folder = json.loads(request)
        stdin, stdout, stderr = streams
        try:
            process = Forked(
                [DUPWATCH, *arguments], stdin=stdin, stdout=stdout, stderr=stderr, env=variables, cwd=folder
            )
        finally:
            for stream in streams:
                os.close(stream)
        connection.send(str(process.wait(TIMEOUT_S)).encode())
