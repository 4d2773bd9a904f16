"""From the producer's timestamp to the verdict in a reader's hands: ``python -m benchmarks.kafka.latency --rate 100``.

A broker of its own, a consumer as a process with the defaults, a producer that sends so many articles a second, and a
reader of the topic of all verdicts. An article's latency is from the timestamp that its producer gave it to the moment
at which the reader has the verdict, by the clock of one machine. Sending begins when the consumer has answered a first
article, so that its start and its warm-up do not count; nor do the first seconds after that. With ``--hbase``
the store is an HBase of its own, else LMDB. ``--preloaded`` fills it first with the postings of so many articles. A
second table has every minute from the first article on: where a backlog grows, so do its latencies.
"""

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import msgspec
import numpy as np
import numpy.typing as npt
import typer
from confluent_kafka import Consumer

from benchmarks.hbase.servers import HEAP_MB, Wanted, empty_store, filled, servers
from benchmarks.kafka.broker import articles, broker, consumer, make_topics, send
from benchmarks.speed.report import OUT, publish
from consumer.model.verdict import decode_verdict

PART: Final = "kafka_latency"
SECONDS: Final = 60
WARM_UP_S: Final = 10
_END_S: Final = 60.0
_HBASE_HEAP_MB: Final = 1024


def latencies(address: str, topic: str, wanted: int) -> npt.NDArray[np.float64]:
    """Read this many verdicts; arrival and latency of each in seconds, in the order of reading: float64[n, 2]."""
    reader = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "latency",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 10,
        }
    )
    reader.subscribe([topic])
    found: list[tuple[float, float]] = []
    until_s = time.monotonic() + _END_S + wanted
    try:
        while len(found) < wanted:
            if time.monotonic() > until_s:
                raise RuntimeError(f"{len(found)} of {wanted} verdicts came")
            for message in reader.consume(100, 0.01):
                error, value, now_s = message.error(), message.value(), time.time()
                if error is not None:
                    raise RuntimeError(error.str())
                verdict = decode_verdict(value if isinstance(value, bytes) else b"")
                arrived_s = _seconds(verdict.arrived_at)
                found.append((arrived_s, now_s - arrived_s))
    finally:
        reader.close()
    return np.array(found)


def row_of(latencies_s: npt.NDArray[np.float64]) -> dict[str, float]:
    """How many there are, and their percentiles in milliseconds."""
    found_ms = latencies_s * 1_000
    percentiles = {f"p{percent:g}, ms": float(np.percentile(found_ms, percent)) for percent in (50, 90, 99, 99.9)}
    return {"articles": len(found_ms), **percentiles, "longest, ms": float(found_ms.max())}


def minutes(found: npt.NDArray[np.float64]) -> Iterator[dict[str, float]]:
    """A row for each minute in which articles arrived, those before the warm-up was over included."""
    minute = ((found[:, 0] - found[:, 0].min()) // 60).astype(int)
    for number in np.unique(minute):
        yield {"minute": int(number) + 1, **row_of(found[minute == number, 1])}


def _seconds(timestamp: str) -> float:
    return msgspec.convert(timestamp, datetime).timestamp()


@contextmanager
def store_of(folder: Path, preloaded: int, *, hbase: bool) -> Iterator[str]:
    """The URL of a store that is empty, or has the postings of so many articles."""
    if not hbase:
        yield f"lmdb:{folder / 'store'}"
        return
    with servers(folder / "hbase", heap_mb=HEAP_MB if preloaded else _HBASE_HEAP_MB) as running:
        yield filled(running, Wanted("4x16", preloaded, packed=False)) if preloaded else empty_store(running)


def main(  # noqa: PLR0913  # options of a command
    rate: Annotated[int, typer.Option(min=1, help="Articles a second.")] = 100,
    seconds: Annotated[int, typer.Option(min=1)] = SECONDS,
    chars: Annotated[int, typer.Option(min=50)] = 2_000,
    delivery: Annotated[str, typer.Option(help="at-least-once or exactly-once.")] = "at-least-once",
    workers: Annotated[int, typer.Option(min=0)] = 0,
    warm_up: Annotated[int, typer.Option(min=0, help="Seconds before that do not count.")] = WARM_UP_S,
    *,
    hbase: Annotated[bool, typer.Option("--hbase", help="An HBase of its own in place of LMDB.")] = False,
    preloaded: Annotated[int, typer.Option(min=0, help="Articles in the HBase before the first.")] = 0,
    keep: Annotated[Path | None, typer.Option(help="Where a filled HBase stays for the next time.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Measure latency at one rate."""
    if preloaded and not hbase:
        raise typer.BadParameter("--preloaded needs --hbase")
    # Others each time: a store that is kept has the verdicts of those that were sent before.
    first, *records = articles(1 + rate * (warm_up + seconds), chars, time.time_ns() % (1 << 32))
    more = ["--set", f"kafka.delivery={delivery}", "--workers", str(workers)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address = stack.enter_context(broker()).address
        store = stack.enter_context(store_of(keep or folder, preloaded, hbase=hbase))
        source, sink = make_topics(address, "feed")
        stack.enter_context(consumer(source, sink, store, more))
        verdicts = f"{sink.rsplit('/', 1)[1]}.verdicts"
        send(address, "feed", [first])
        latencies(address, verdicts, 1)
        sending = threading.Thread(target=send, args=(address, "feed", records, rate))
        sending.start()
        found = latencies(address, verdicts, 1 + len(records))
        sending.join()
    found = found[np.argsort(found[:, 0])][1:]
    counted = found[found[:, 0] > found[:, 0].min() + warm_up][:, 1]
    row = {
        "store": f"HBase, {preloaded:,} articles" if hbase else "LMDB",
        "articles a second": rate,
        **row_of(counted),
    }
    title = f"Producer's timestamp to verdict, {chars:,} characters, {delivery}"
    publish(PART, title, [row], out=out, workers=workers, warm_up=warm_up)
    publish(f"{PART}_minutes", f"{title}, {rate} a second", list(minutes(found)), out=out, workers=workers)


if __name__ == "__main__":
    typer.run(main)
