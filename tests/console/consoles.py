"""Runs ``dupwatch console`` as its users do, on a free port of this machine."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from consumer.reviews.database import Database, open_database
from deploy.local.ports import free_ports
from tests.cli.command import FAST, run_process, start, stop, wait_for
from tests.kafka.topics import Topics
from tests.unit.console.serving import Browser

WAIT_S = 120
_FLAG = re.compile(r'href="/flags/(\d+)')


class Place(NamedTuple):
    """A database for consoles: where it is, and the settings that say so."""

    url: str
    password: str | None
    settings: tuple[str, ...]

    def opened(self) -> Database:
        """Look into it as the console does."""
        return open_database(self.url, self.password)


def sqlite_place(folder: Path) -> Place:
    """A database in a folder."""
    url = f"sqlite:///{folder / 'console.db'}"
    return Place(url, None, ("--set", f"console.database={url}"))


def postgres_place(url: str, password: str, folder: Path) -> Place:
    """A database of a server."""
    file = folder / "password"
    file.write_text(f"{password}\n")
    return Place(url, password, ("--set", f"console.database={url}", "--set", f"console.password_file={file}"))


class Running(Browser):
    """A console as a process, and the browser of somebody who looks at it."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path, url: str, cookies: dict[str, str]) -> None:
        super().__init__(url)
        self.cookies = cookies
        self.process = process
        self.log = log

    def wait_ready(self, seconds: float = WAIT_S) -> None:
        """Return when it is ready."""
        wait_for(lambda: self.process.poll() is not None or self._is_ready(), seconds)
        assert self.process.poll() is None, self.log.read_text()

    def readiness(self) -> tuple[int, list[str]]:
        """The status of its readiness, and the reasons."""
        answer = self.get("/readyz")
        return answer.status, json.loads(answer.text)["reasons"]

    def metric(self, sample: str) -> float:
        """A sample of its metrics, 0 where it is not there."""
        lines = self.get("/metrics").text.splitlines()
        return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{sample} ")), 0)

    def open_flags(self, order: str = "newest", source: str = "") -> list[int]:
        """The flags on the first page of the queue, of one source if it is given."""
        page = self.get(f"/?order={order}&source={source}").text
        return [int(number) for number in dict.fromkeys(_FLAG.findall(page))]

    def decide(self, flag_id: int, decision: str, note: str = "") -> int:
        """Decide by the form of a flag's page; the status of the answer."""
        page = f"/flags/{flag_id}"
        return self.send(f"{page}/decide", page, decision=decision, note=note).status

    def stop(self) -> int:
        """Stop it with SIGTERM and return its exit code."""
        return stop(self.process, seconds=WAIT_S)

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait(WAIT_S)

    def _is_ready(self) -> bool:
        try:
            return self.get("/readyz").status == 200
        except OSError:
            return False


def consoling(
    topics: Topics,
    store: str,
    place: Place,
    folder: Path,
    *more: str,
    cookies: dict[str, str] | None = None,
    **settings: Any,  # noqa: ANN401  # of the section
) -> AbstractContextManager[Running]:
    """Start a console over topics, which is killed at the end where it is still there.

    ``cookies`` are those of an earlier one.
    """
    given = ("--set", f"source.url={topics.url()}", "--set", "kafka.unique=true", "--set", "sink.emit=all", *more)
    settings = {"group": f"{topics.prefix}-console"} | settings
    return console_over(topics.sink_url(), store, place, folder, *given, cookies=cookies, **settings)


@contextmanager
def console_over(
    sink: Path | str,
    store: str,
    place: Place,
    folder: Path,
    *more: str,
    cookies: dict[str, str] | None = None,
    begin: Callable[..., "subprocess.Popen[bytes]"] = start,
    **settings: Any,  # noqa: ANN401  # of the section
) -> Iterator[Running]:
    """Start a console over any sink; otherwise as ``consoling``. ``begin`` starts the process."""
    (port,) = free_ports(1)
    log = folder / "console.log"
    own = {"undo_s": 0, "listen": f"127.0.0.1:{port}"} | settings
    given = [word for name, value in own.items() for word in ("--set", f"console.{name}={value}")]
    with log.open("ab") as file:
        process = begin(
            "console", "--sink", sink, "--store", store, *FAST, *place.settings, *given, *more, stdout=file, stderr=file
        )
        try:
            yield Running(process, log, f"http://127.0.0.1:{port}", {} if cookies is None else cookies)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait(WAIT_S)


def add_person(place: Place, name: str, role: str = "reviewer", more: Sequence[str] = ()) -> str:
    """Add somebody on the command line; their password."""
    ended = run_process("people", "add", name, "--role", role, *place.settings, *more)
    assert ended.code == 0, ended.err
    return ended.out.decode().strip()
