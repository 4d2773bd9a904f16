"""The time from arrival to verdict over a real broker: ``python -m benchmarks.kafka.latency --rate 100``.

A broker of its own, a consumer as a process with the defaults, and the load and the measurement of ``dupwatch stress``
(``consumer.stress``). Sending begins when the consumer has answered a first article, so that its start and its warm-up
do not count; nor do the first seconds after that. With ``--hbase`` the store is an HBase of its own, else LMDB.
``--preloaded`` fills it first with the postings of so many articles. A second table has every minute from the first
article on: where a backlog grows, so do its latencies.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from benchmarks.hbase.servers import HEAP_MB, Wanted, empty_store, filled, servers
from benchmarks.kafka.broker import broker, consumer, make_topics
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.decode.article import FieldPaths
from consumer.kafka.client_settings import KafkaOptions, parse_kafka, parse_prefix
from consumer.stress.kafka_load import KafkaLoad
from consumer.stress.load import encoded, prepared_feed
from consumer.stress.made_texts import made_feed
from consumer.stress.schedule import due_times
from consumer.stress.trial import Report, Trial, WaitPercentiles

PART: Final = "kafka_latency"
SECONDS: Final = 60
WARM_UP_S: Final = 10
_WAIT_S: Final = 120.0
_HBASE_HEAP_MB: Final = 1024
_MS: Final = 1_000


def measure(load: KafkaLoad, rate: float, seconds: int, chars: int, warm_up: int) -> Report:
    """Send so many articles a second. Raises ``RuntimeError`` if one has no verdict."""
    # Others each time: a store that is kept has the verdicts of those that were sent before.
    seed = time.time_ns() % (1 << 32)
    trial = Trial(f"latency-{seed}", due_times(rate, warm_up + seconds))
    texts, fields = made_feed(chars, seed=seed, prefix=trial.prefix), FieldPaths()
    first = next(made_feed(chars, seed=seed + 1, prefix="first"))
    with prepared_feed(texts, trial, fields, lambda _: None, lambda: False) as lines:
        load.try_out(first.id, encoded(first, fields))
        load.run(iter(lines), trial, lambda: False)
    report = trial.report(warm_up)
    if report.missing:
        raise RuntimeError(f"{len(report.missing)} of {report.planned} articles got no verdict")
    return report


def row_of(waits: WaitPercentiles) -> Row:
    """How many there are, and their percentiles in milliseconds."""
    return {
        "articles": waits.articles,
        "p50, ms": waits.p50 * _MS,
        "p90, ms": waits.p90 * _MS,
        "p99, ms": waits.p99 * _MS,
        "p99.9, ms": waits.p99_9 * _MS,
        "longest, ms": waits.longest * _MS,
    }


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
    more = ["--set", f"kafka.delivery={delivery}", "--workers", str(workers)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address = stack.enter_context(broker()).address
        store = stack.enter_context(store_of(keep or folder, preloaded, hbase=hbase))
        source, sink = make_topics(address, "feed")
        stack.enter_context(consumer(source, sink, store, more))
        load = KafkaLoad(parse_kafka(source), parse_prefix(sink), KafkaOptions(), _WAIT_S)
        report = measure(stack.enter_context(closing(load)), rate, seconds, chars, warm_up)
    kind = f"HBase, {preloaded:,} articles" if hbase else "LMDB"
    row: Row = {"store": kind, "articles a second": rate, **row_of(report.waits)}
    title = f"Arrival to verdict, {chars:,} characters, {delivery}"
    publish(PART, title, [row], out=out, workers=workers, warm_up=warm_up)
    minutes: list[Row] = [{"minute": number, **row_of(waits)} for number, waits in enumerate(report.minutes, 1)]
    publish(f"{PART}_minutes", f"{title}, {rate} a second", minutes, out=out, workers=workers)
    if report.late:
        tell(f"{report.late} articles were sent late, by up to {report.late_by_s * _MS:.0f} ms")


if __name__ == "__main__":
    typer.run(main)
