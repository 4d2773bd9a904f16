"""A ``dupwatch serve`` of a measurement's own, as a process on a free port."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple
from urllib.request import urlopen

from deploy.local.ports import HOST, free_ports

_READY_S: Final = 120.0
_END_S: Final = 60.0


class Service(NamedTuple):
    """A service that is ready."""

    url: str
    pid: int


def dupwatch() -> str:
    """The command that is installed beside this Python."""
    return str(Path(sys.executable).with_name("dupwatch"))


@contextmanager
def serving(store: str, sink: str, more: Sequence[str] = ()) -> Iterator[Service]:
    """Run the service while this is entered; its log is not kept. Raises ``RuntimeError`` where it is not ready."""
    url = f"{HOST}:{free_ports(1)[0]}"
    command = [dupwatch(), "serve", "--store", store, "--sink", sink, "--set", f"service.listen={url}", *more]
    with tempfile.TemporaryFile() as log, subprocess.Popen(command, stderr=log) as process:
        try:
            if not _is_ready(process, f"http://{url}"):
                log.seek(0)
                raise RuntimeError(f"the service is not ready after {_READY_S:.0f} s: {log.read()[-2000:].decode()}")
            yield Service(f"http://{url}", process.pid)
        finally:
            process.terminate()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def _is_ready(process: "subprocess.Popen[bytes]", url: str) -> bool:
    until_s = time.monotonic() + _READY_S
    while time.monotonic() < until_s and process.poll() is None:
        try:
            with urlopen(f"{url}/readyz", timeout=1):
                return True
        except OSError:
            time.sleep(0.1)
    return False
