"""Whether a consumer's memory grows: ``python -m benchmarks.kafka.soak --minutes 30``.

A broker of its own, a consumer as a process with the defaults and LMDB, and a producer that sends fresh articles all
the time. The consumer begins with a backlog, as after an outage: full batches and full buffers take the memory that
they need at once, and every table that has a limit reaches it. What grows after that is what is looked for. The
process's resident memory is read twelve times a minute: what it has for itself (RssAnon), and all of it, in which the
pages of the store's file are counted that the system happens to hold (VmRSS). A minute's figure is the median of its
readings.
"""

import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from statistics import median
from typing import Annotated, Final, NamedTuple

import typer

from benchmarks.kafka.broker import articles, broker, consumer, make_topics, send
from benchmarks.speed.report import OUT, Row, publish, tell

PART: Final = "kafka_soak"
_READ_S: Final = 5.0
_PORTION: Final = 2_000
_END_S: Final = 60.0
_MB: Final = 1024


class Reading(NamedTuple):
    """Resident memory in MB, ``at_s`` seconds after the start."""

    at_s: float
    own: float
    all: float


def read(pid: int, began_s: float) -> Reading:
    """Read a process's memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    kilobytes = {name: rest.split()[0] for name, _, rest in (line.partition(":") for line in lines) if rest.strip()}
    return Reading(time.monotonic() - began_s, int(kilobytes["RssAnon"]) / _MB, int(kilobytes["VmRSS"]) / _MB)


def produce(address: str, chars: int, rate: int, seeds: Iterator[int], stop: threading.Event) -> None:
    """Send new articles until asked to stop."""
    while not stop.is_set():
        send(address, "feed", articles(_PORTION, chars, next(seeds)), rate)


def readings(process: "subprocess.Popen[bytes]", minutes: int) -> Iterator[Reading]:
    """Read for so long."""
    began_s = time.monotonic()
    while time.monotonic() - began_s < minutes * 60:
        time.sleep(_READ_S)
        if process.poll() is not None:
            raise RuntimeError(f"the consumer ended with {process.returncode}")
        yield read(process.pid, began_s)


def of_minute(found: list[Reading], minute: int) -> tuple[float, float]:
    """The medians of the minute that ends there."""
    some = [reading for reading in found if minute - 1 <= reading.at_s / 60 < minute]
    return median(reading.own for reading in some), median(reading.all for reading in some)


def main(
    minutes: Annotated[int, typer.Option(min=3)] = 30,
    rate: Annotated[int, typer.Option(min=1, help="Articles a second.")] = 200,
    chars: Annotated[int, typer.Option(min=50)] = 1_000,
    backlog: Annotated[int, typer.Option(min=0, help="Articles that wait when the consumer starts.")] = 100_000,
    delivery: Annotated[str, typer.Option(help="at-least-once or exactly-once.")] = "at-least-once",
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Measure a consumer's memory over some time."""
    with tempfile.TemporaryDirectory() as name, broker() as running:
        source, sink = make_topics(running.address, "feed")
        seeds = count(1)
        for start in range(0, backlog, _PORTION):
            send(running.address, "feed", articles(min(_PORTION, backlog - start), chars, next(seeds)))
        stop = threading.Event()
        sending = threading.Thread(target=produce, args=(running.address, chars, rate, seeds, stop), daemon=True)
        with consumer(source, sink, f"lmdb:{name}/store", ["--set", f"kafka.delivery={delivery}"]) as process:
            sending.start()
            try:
                found = []
                for last in readings(process, minutes):
                    found.append(last)
                    if len(found) % 60 == 0:
                        tell(f"{last.at_s / 60:.0f} minutes: {last.own:.1f} MB of its own, {last.all:.1f} MB in all")
            finally:
                # It sends what it had begun to, while its broker is there.
                stop.set()
                sending.join(_END_S)
    marks = sorted({max(2, minutes // 3), 2 * minutes // 3, minutes})
    first = of_minute(found, marks[0])
    rows: list[Row] = [
        {
            "minute": str(minute),
            "own, MB": (now := of_minute(found, minute))[0],
            "in all, MB": now[1],
            "own, % more": 100 * (now[0] / first[0] - 1),
            "in all, % more": 100 * (now[1] / first[1] - 1),
        }
        for minute in marks
    ]
    publish(
        PART,
        f"{rate} articles of {chars:,} characters a second, {delivery}",
        rows,
        out=out,
        minutes=minutes,
        backlog=backlog,
    )


if __name__ == "__main__":
    typer.run(main)
