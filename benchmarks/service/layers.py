"""What one check costs from socket to answer, by layer: ``python -m benchmarks.service.layers --rate 400``.

The service and its load are those of ``benchmarks.service.check``. The processor time (user and system) of the service
is read from ``/proc`` and divided by the checks. `py-spy <https://github.com/benfred/py-spy>`_ (``pip install py-spy``;
it may need root) samples its running threads 500 times a second, and each sample counts for the layer of the innermost
frame that has one. Natively compiled code counts for the Python code that calls it. Sampling itself slows the service
down, so the processor time comes from a second attack without it.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from benchmarks.service.check import store_of
from benchmarks.service.serving import Service, serving
from benchmarks.service.vegeta import Request, VegetaOption, attack
from benchmarks.service.window import CHARS, questions
from benchmarks.speed.report import OUT, Row, publish, tell

PART: Final = "service_profile"
OTHER: Final = "other"
LAYERS: Final = {
    "socket and HTTP (uvicorn, h11)": ("/uvicorn/", "/h11/", "consumer/web/connections.py", "consumer/web/server.py"),
    "routing and ASGI (FastAPI, Starlette)": ("/starlette/", "/fastapi/", "consumer/service/routes.py"),
    "access, limits, request id": (
        "consumer/web/front.py",
        "consumer/web/access.py",
        "consumer/service/access.py",
        "consumer/service/receiving.py",
    ),
    "logs": ("consumer/telemetry/logs.py", "consumer/text/", "/logging/"),
    "metrics": ("consumer/telemetry/", "/prometheus_client/", "consumer/model/hooks.py"),
    "waiting for a thread": (
        "consumer/web/request_threads.py",
        "consumer/service/context.py",
        "/concurrent/futures/",
        "/threading.py",
    ),
    "JSON and articles": ("consumer/decode/",),
    "fingerprint": ("consumer/fingerprint/", "consumer/workers/", "consumer/judge/versions.py"),
    "store": ("/storage/",),
    "candidates and comparison": ("consumer/judge/", "consumer/banks/", "consumer/store_tools/"),
    "answer": ("consumer/service/checking.py", "consumer/service/", "consumer/model/"),
    "event loop": ("/asyncio/", "/selectors.py"),
}
"""The layers, each with parts of the paths of its files."""
_HZ: Final = 500
_SEEDS: Final = 1 << 31
_END_S: Final = 60.0
_INSTALL: Final = "pip install py-spy"


def _found(name: str) -> str:
    program = shutil.which(name)
    if program is None:
        raise typer.BadParameter(f"there is no {name}; install it with {_INSTALL}, or name the program with --py-spy")
    return program


def _check_of(text: str) -> bytes:
    return msgspec.json.encode({"articles": [{"body": text}]})


def layer_of(stack: str) -> str:
    """Return the layer of a stack, as py-spy writes it with the whole names of files: outermost frame first."""
    for frame in reversed(stack.split(";")):
        for layer, parts in LAYERS.items():
            if any(part in frame for part in parts):
                return layer
    return OTHER


def layer_shares(lines: Iterable[str]) -> dict[str, float]:
    """Return the share of each layer in raw samples: lines of a stack and a count."""
    samples: Counter[str] = Counter()
    for line in lines:
        stack, _, count = line.rpartition(" ")
        samples[layer_of(stack)] += int(count)
    total = samples.total()
    return {layer: samples[layer] / total for layer in (*LAYERS, OTHER)} if total else {}


def processor_s(pid: int) -> float:
    """Return the processor time of a process so far, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sampled(sampler: str, program: str, service: Service, asked: Sequence[Request], rate: int) -> dict[str, float]:
    """Return the share of each layer while the service answers these requests."""
    with tempfile.TemporaryDirectory(prefix="dupwatch-bench-") as folder:
        raw = Path(folder, "raw")
        command = [sampler, "record", "--pid", str(service.pid), "--rate", str(_HZ), "--format", "raw"]
        command += ["--full-filenames", "--nonblocking", "--duration", "100000", "--output", str(raw)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as sampling:
            attack(program, asked, rate=rate)
            sampling.send_signal(signal.SIGINT)
            sampling.wait(_END_S)
        return layer_shares(raw.read_text().splitlines())


def main(  # noqa: PLR0913  # options of a command
    program: VegetaOption = "vegeta",
    sampler: Annotated[str, typer.Option("--py-spy", help="The program.", callback=_found)] = "py-spy",
    rate: Annotated[int, typer.Option(min=1, help="Checks a second.")] = 400,
    seconds: Annotated[int, typer.Option(min=1, help="Length of each attack.")] = 30,
    articles: Annotated[int, typer.Option(min=1, help="Articles in the window.")] = 1_000_000,
    keep: Annotated[Path | None, typer.Option(help="Where the filled store stays for the next time.")] = None,
    *,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Measure the processor time of a check by layer."""
    with (
        tempfile.TemporaryDirectory(prefix="dupwatch-bench-") as folder,
        store_of(keep or Path(folder), articles, hbase=False) as store,
        serving(store, "nowhere:") as service,
    ):
        texts = questions(3 * rate * seconds, CHARS, time.time_ns() % _SEEDS, articles)
        asked = [Request(f"{service.url}/v1/check", _check_of(text)) for text in texts]
        warm_up, plain, watched = (asked[place * rate * seconds :][: rate * seconds] for place in range(3))
        attack(program, warm_up, rate=rate)
        before_s = processor_s(service.pid)
        answers = attack(program, plain, rate=rate)
        micros = 1e6 * (processor_s(service.pid) - before_s) / len(answers.statuses)
        shares = sampled(sampler, program, service, watched, rate)
    tell(f"{micros:,.0f} µs of processor time a check; {answers.failed} of {len(answers.statuses)} not a 200")
    rows: list[Row] = [{"layer": layer, "µs": micros * share, "%": 100 * share} for layer, share in shares.items()]
    rows.append({"layer": "all", "µs": micros, "%": 100.0})
    publish(PART, f"A check, LMDB, {articles:,} articles, {rate} a second", rows, out=out, rate=rate, seconds=seconds)


if __name__ == "__main__":
    typer.run(main)
