"""Load by vegeta: so many requests a second, sent when they are due, whether or not earlier ones were answered.

`vegeta <https://github.com/tsenart/vegeta>`_ is a program in Go. Install it with ``go install
github.com/tsenart/vegeta/v12@v12.12.0``; it has to be on ``PATH``, or be named with ``--vegeta``.
"""

import base64
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import typer

INSTALL: Final = "go install github.com/tsenart/vegeta/v12@v12.12.0"
_NS_A_MS: Final = 1e6
_OK: Final = 200
_AT_THE_END: Final = "no targets to attack"
"""The error of requests that vegeta would have sent after the last one."""
_END_S: Final = 120.0
_ENCODER: Final = msgspec.json.Encoder()
_JSON: Final = MappingProxyType({"Content-Type": "application/json"})


def _found(name: str) -> str:
    program = shutil.which(name)
    if program is None:
        raise typer.BadParameter(f"there is no {name}; install it with {INSTALL}, or name the program with --vegeta")
    return program


VegetaOption = Annotated[str, typer.Option("--vegeta", help="The program.", callback=_found)]


class Request(NamedTuple):
    """A request, by default with a JSON body."""

    url: str
    body: bytes = b""
    method: str = "POST"
    headers: Mapping[str, str] = _JSON


class _Hit(msgspec.Struct):
    """What vegeta says of an answer: status (0 without one), when it was asked, nanoseconds, the body in base64."""

    code: int
    timestamp: str
    latency: int
    body: str | None = None
    error: str = ""


class Answers(NamedTuple):
    """The answers of an attack: statuses int64[n], latencies in milliseconds float64[n], bodies, and its length."""

    statuses: npt.NDArray[np.int64]
    latencies_ms: npt.NDArray[np.float64]
    bodies: tuple[bytes, ...]
    errors: tuple[str, ...]
    took_s: float

    @property
    def failed(self) -> int:
        """How many requests had no answer, or one with another status than 200."""
        return int((self.statuses != _OK).sum())

    def percentile(self, percent: float) -> float:
        """The latency in milliseconds that this share of the requests stay under."""
        return float(np.percentile(self.latencies_ms, percent))


def attack(program: str, requests: Sequence[Request], *, rate: int = 0, workers: int | None = None) -> Answers:
    """Send these requests, ``rate`` a second; with 0 as fast as ``workers`` connections get answers.

    Raises ``RuntimeError`` where vegeta does not send them all.
    """
    options = ["attack", "-lazy", "-format=json", f"-rate={rate}"]
    if workers is not None:
        options += [f"-workers={workers}", f"-max-workers={workers}"]
    with tempfile.TemporaryDirectory(prefix="dupwatch-bench-") as folder:
        targets, found = Path(folder, "targets"), Path(folder, "answers")
        _write(targets, requests)
        deadline_s = _END_S + (len(requests) / rate if rate else 600)
        subprocess.run([program, *options, f"-targets={targets}", f"-output={found}"], check=True, timeout=deadline_s)
        answers = answers_of(subprocess.run([program, "encode", str(found)], check=True, stdout=subprocess.PIPE).stdout)
    if len(answers.statuses) != len(requests):
        raise RuntimeError(f"{len(answers.statuses)} of {len(requests)} requests were sent")
    return answers


def _write(path: Path, requests: Iterable[Request]) -> None:
    with path.open("wb") as lines:
        for request in requests:
            target = {
                "method": request.method,
                "url": request.url,
                "header": {name: [value] for name, value in request.headers.items()},
                "body": base64.b64encode(request.body).decode(),
            }
            lines.write(_ENCODER.encode(target) + b"\n")


def answers_of(lines: bytes) -> Answers:
    """Read what ``vegeta encode`` prints: a JSON object for each answer."""
    found = [msgspec.json.decode(line, type=_Hit) for line in lines.splitlines()]
    hits = [hit for hit in found if hit.error != _AT_THE_END]
    began = np.array([np.datetime64(_without_zone(hit.timestamp)) for hit in hits])
    latencies_ns = np.array([hit.latency for hit in hits])
    ends = began + latencies_ns.astype("timedelta64[ns]")
    return Answers(
        np.array([hit.code for hit in hits]),
        latencies_ns / _NS_A_MS,
        tuple(base64.b64decode(hit.body or "") for hit in hits),
        tuple(sorted({hit.error for hit in hits if hit.error})),
        float((ends.max() - began.min()) / np.timedelta64(1, "s")),
    )


def _without_zone(timestamp: str) -> str:
    """The time of an RFC 3339 timestamp as numpy reads it: all are of one machine, and so of one zone."""
    date, _, time = timestamp.partition("T")
    for sign in "Z+-":
        time = time.partition(sign)[0]
    return f"{date}T{time}"
