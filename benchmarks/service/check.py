"""How long ``POST /v1/check`` takes at some rates: ``python -m benchmarks.service.check --rate 200``.

A service of its own with the defaults, over LMDB with a window that was judged into it, or with ``--hbase`` over an
HBase of its own with the postings of so many articles. Load and measurement are those of ``dupwatch stress``
(``consumer.stress``), on the same machine. Every request asks for one text of 2,000 characters, which is sent once;
nine in ten are new. A latency is from the moment at which a request is due to the end of its answer. The first seconds
at each rate do not count.

A rate is held if every answer is a 200, and 99 of 100 come within a second.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from benchmarks.hbase.servers import HEAP_MB, Wanted, filled, servers
from benchmarks.kafka.latency import row_of as row_of_waits
from benchmarks.service.serving import serving
from benchmarks.service.window import CHARS, COPIED_EVERY, filled_window, questions
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.stress.schedule import due_times
from consumer.stress.service_load import CHECK, ServiceAddress, ServiceLoad
from consumer.stress.trial import Report, Trial

PART: Final = "service_check"
CONNECTIONS: Final = 64
_HELD_S: Final = 1.0
_WAIT_S: Final = 30.0
_SEEDS: Final = 1 << 31


def row_of(rate: int, report: Report) -> Row:
    """What was found at a rate."""
    held = not report.missing and report.waits.p99 <= _HELD_S
    return {
        "requests a second": rate,
        "sent": report.sent,
        "sent late": report.late,
        "not a 200": len(report.missing),
        "duplicates, %": 100 * report.originals_flagged / report.sent,
        **row_of_waits(report.waits),
        "held": "yes" if held else "no",
    }


@contextmanager
def store_of(folder: Path, articles: int, *, hbase: bool) -> Iterator[str]:
    """The URL of a store with so many articles in its window."""
    if not hbase:
        yield filled_window(folder, articles)
        return
    with servers(folder / "hbase", heap_mb=HEAP_MB) as running:
        yield filled(running, Wanted("4x16", articles, packed=False))


def main(  # noqa: PLR0913  # options of a command
    rate: Annotated[list[int] | None, typer.Option(min=1, help="Requests a second; may be repeated.")] = None,
    seconds: Annotated[int, typer.Option(min=1)] = 60,
    warm_up: Annotated[int, typer.Option(min=1, help="Seconds at each rate that do not count.")] = 10,
    articles: Annotated[int, typer.Option(min=1, help="Articles in the window.")] = 1_000_000,
    keep: Annotated[Path | None, typer.Option(help="Where the filled store stays for the next time.")] = None,
    *,
    hbase: Annotated[bool, typer.Option("--hbase", help="An HBase of its own in place of LMDB.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Measure checks over HTTP."""
    rows: list[Row] = []
    with (
        tempfile.TemporaryDirectory(prefix="dupwatch-bench-") as folder,
        store_of(keep or Path(folder), articles, hbase=hbase) as store,
        serving(store, "nowhere:") as service,
    ):
        for each in rate or [200]:
            trial = Trial("check", due_times(each, warm_up + seconds))
            texts = questions(len(trial.due_s), CHARS, time.time_ns() % _SEEDS, articles)
            bodies = [msgspec.json.encode({"body": text}) for text in texts]
            tell(f"{each} a second …")
            ServiceLoad(ServiceAddress(service.url), CHECK, CONNECTIONS, _WAIT_S).run(
                iter(bodies), trial, lambda: False
            )
            report = trial.report(warm_up)
            rows.append(row_of(each, report))
            for reason, count in [*report.refused.items(), *report.failed.items()]:
                tell(f"{count} times: {reason}")
    kind = "HBase" if hbase else "LMDB"
    title = (
        f"Checks over HTTP, {kind}, {articles:,} articles, texts of {CHARS:,} characters, one in {COPIED_EVERY} a copy"
    )
    publish(PART, title, rows, out=out, articles=articles, hbase=hbase, seconds=seconds, warm_up=warm_up)


if __name__ == "__main__":
    typer.run(main)
