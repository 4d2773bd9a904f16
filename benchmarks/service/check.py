"""How long ``POST /v1/check`` takes at some rates: ``python -m benchmarks.service.check --rate 200``.

A service of its own with the defaults, over LMDB with a window that was judged into it, or with ``--hbase`` over an
HBase of its own with the postings of so many articles; the load comes from the same machine
(``benchmarks.service.vegeta``). Every request asks for one text of 2,000 characters, which is sent once; nine in ten
are new. A latency is from the moment at which a request is due to the end of its answer, by vegeta. The first seconds
at each rate do not count.

A rate is held if every answer is a 200, and 99 of 100 come within a second.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from benchmarks.hbase.servers import HEAP_MB, Wanted, filled, servers
from benchmarks.service.serving import serving
from benchmarks.service.vegeta import Answers, Request, VegetaOption, attack
from benchmarks.service.window import CHARS, COPIED_EVERY, filled_window, questions
from benchmarks.speed.report import OUT, Row, publish, tell

PART: Final = "service_check"
_HELD_MS: Final = 1_000
_SEEDS: Final = 1 << 31


def requests(url: str, texts: Sequence[str]) -> list[Request]:
    """A question for each text."""
    return [Request(f"{url}/v1/check", msgspec.json.encode({"articles": [{"body": text}]})) for text in texts]


def row_of(rate: int, answers: Answers) -> Row:
    """What was found at a rate."""
    duplicates = sum(b'"outcome":"duplicate"' in body for body in answers.bodies)
    held = not answers.failed and answers.percentile(99) <= _HELD_MS
    return {
        "requests a second": rate,
        "sent": len(answers.statuses),
        "not a 200": answers.failed,
        "duplicates, %": 100 * duplicates / len(answers.bodies),
        **{f"p{percent:g}, ms": answers.percentile(percent) for percent in (50, 90, 99, 99.9)},
        "longest, ms": float(answers.latencies_ms.max()),
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
    program: VegetaOption = "vegeta",
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
            asked = requests(
                service.url, questions(each * (warm_up + seconds), CHARS, time.time_ns() % _SEEDS, articles)
            )
            tell(f"{each} a second …")
            attack(program, asked[: each * warm_up], rate=each)
            answers = attack(program, asked[each * warm_up :], rate=each)
            rows.append(row_of(each, answers))
            for error in answers.errors:
                tell(error)
    kind = "HBase" if hbase else "LMDB"
    title = (
        f"Checks over HTTP, {kind}, {articles:,} articles, texts of {CHARS:,} characters, one in {COPIED_EVERY} a copy"
    )
    publish(PART, title, rows, out=out, articles=articles, hbase=hbase, seconds=seconds, warm_up=warm_up)


if __name__ == "__main__":
    typer.run(main)
