"""Consumers as processes, as their users start them."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deploy.local import launch
from deploy.local.ports import free_ports
from tests.cli.command import FAST, start, stop
from tests.kafka.topics import Topics

END_S = 120


class Running:
    """One consumer, its log in a file."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path, port: int) -> None:
        self.process = process
        self.log = log
        self.port = port

    def page(self, path: str) -> tuple[int, str]:
        """One of its health pages: status and text; status 0 while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=END_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def reasons(self) -> list[str]:
        """Why it is not ready; if it does not answer, that is the reason."""
        status, text = self.page("/readyz")
        return json.loads(text)["reasons"] if status else ["no answer"]

    def wait_ready(self, *, ready: bool = True, seconds: float = END_S) -> None:
        """Return when it is ready, or is not."""
        until_s = time.monotonic() + seconds
        while (self.page("/readyz")[0] == 200) is not ready:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < until_s, f"{self.reasons()}\n{self.log.read_text()}"
            time.sleep(0.05)

    def metric(self, name: str) -> float:
        """The sum of a metric's samples."""
        lines = self.page("/metrics")[1].splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.split("{")[0].split(" ")[0] == name)

    def stop(self) -> int:
        """Stop it with SIGTERM and return its exit code."""
        return stop(self.process, seconds=END_S)

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait(END_S)


@contextmanager
def running(
    topics: Topics,
    store: str,
    folder: Path,
    *more: str,
    begin: Callable[..., "subprocess.Popen[bytes]"] = start,
    **options: Any,  # noqa: ANN401  # as ``begin`` takes them
) -> Iterator[Running]:
    """Start a consumer, which is killed at the end where it is still there."""
    (port,) = free_ports(1)
    number = len(list(folder.glob("*.log")))
    log = folder / f"consumer-{number}.log"
    with log.open("wb") as file:
        process = begin(
            "run", "--source", topics.url(), "--sink", topics.sink_url(), "--store", store, "--emit", "all", *FAST,
            "--set", f"http.listen=127.0.0.1:{port}", "--set", f"kafka.group={topics.prefix}", *more,
            stdout=file, stderr=file, **options,
        )  # fmt: skip
        consumer = Running(process, log, port)
        # A test run that is killed takes its consumers with it, also where all of its process group is killed.
        leash = subprocess.Popen(
            [sys.executable, "-S", "-E", launch.__file__, "watch", str(os.getpid()), str(process.pid)],
            start_new_session=True,
        )
        try:
            yield consumer
        finally:
            if process.poll() is None:
                consumer.kill()
            assert leash.wait(END_S) == 0
