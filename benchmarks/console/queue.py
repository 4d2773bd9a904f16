"""How long pages of the console's data take with a million flags: ``python -m benchmarks.console.queue``.

A database of its own, SQLite in a file or with ``--postgresql`` a server of its own, is filled
(``benchmarks.console.flags``). Then every order is asked for with every choice of state and kind, and with filters of
every sort: that many rows have, few, or none; several together; and such whose rows are all at the end of the order.
Each is asked for its first page and for one in the middle. A row sums up the queries of one sort: the median of all,
and the slowest query with the median of its rounds.
"""

import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from statistics import median
from typing import Annotated, Final, NamedTuple, get_args

import typer

from benchmarks.console.flags import DAY_MS, LARGE_STORY, NOW_MS, Filled, fill
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.console.story_chart import bar_length_ms
from consumer.reviews import queue, stories
from consumer.reviews.database import Connection, Database, open_database
from consumer.reviews.flag_row import STATES
from consumer.reviews.kinds.rules import KINDS
from consumer.reviews.paging import Cursor, encode_cursor
from consumer.reviews.queue import ORDERS, Filters, Order
from deploy.local.ports import free_ports
from deploy.local.postgres import Postgres

PART: Final = "console_queue"
PAGE_ROWS: Final = 50
HOUR_MS: Final = 3_600_000
_MIDDLE: Final[dict[Order, float]] = {
    "certainty": 0.95,
    "similarity": 0.95,
    "newest": NOW_MS - 45 * DAY_MS,
    "oldest": NOW_MS - 45 * DAY_MS,
}

Chosen = dict[str, object]


class Times(NamedTuple):
    """What one query took, and what it is."""

    median_ms: float
    name: str


@contextmanager
def opened(folder: Path, *, postgresql: bool) -> Iterator[Database]:
    """Open an empty database of this measurement's own."""
    if not postgresql:
        database = open_database(f"sqlite:///{folder / 'console.db'}")
        try:
            yield database
        finally:
            database.close()
        return
    # The user that the server runs as has to reach its folder.
    folder.chmod(0o711)
    server = Postgres(folder=folder / "postgres", port=free_ports(1)[0], password=secrets.token_hex(), fsync=True)
    server.start()
    try:
        database = open_database(server.url("postgres"), server.password)
        try:
            yield database
        finally:
            database.close()
    finally:
        server.stop()


def sorts(filled: Filled) -> dict[str, list[Filters]]:
    """The filters of each sort, without state and kind."""
    narrow: Chosen = {"similarity_min": 0.9, "similarity_max": 0.9001}
    wide: Chosen = {"similarity_min": 0.75, "similarity_max": 0.95}
    hour: Chosen = {"arrived_from_ms": NOW_MS - 30 * DAY_MS, "arrived_to_ms": NOW_MS - 30 * DAY_MS + HOUR_MS}
    week: Chosen = {"arrived_from_ms": NOW_MS - 60 * DAY_MS, "arrived_to_ms": NOW_MS - 53 * DAY_MS}
    common: Chosen = {"source": filled.common}
    rare: Chosen = {"source": filled.rare}
    silent: Chosen = {"source": filled.silent}
    chosen: dict[str, list[Chosen]] = {
        "nothing else": [{}],
        "source": [common, rare, silent],
        "original source": [{"original_source": name} for name in filled],
        "both sources": [{"source": a, "original_source": b} for a, b in product(filled, repeat=2)],
        "story": [{"story_id": LARGE_STORY}, {"story_id": 77}],
        "story, source": [{"story_id": LARGE_STORY, "source": name} for name in filled],
        "similarity": [narrow, wide, {"similarity_min": 0.9}, {"similarity_max": 0.7001}, {"similarity_min": 0.1}],
        "time": [hour, week, {"arrived_to_ms": NOW_MS - 85 * DAY_MS}, {"arrived_from_ms": NOW_MS - 2 * DAY_MS}],
        "time, similarity": [{**span, **range_} for span in (hour, week) for range_ in (narrow, wide)],
        "source, time": [{**name, **span} for name in (common, rare, silent) for span in (hour, week)],
        "source, similarity": [{**name, **range_} for name in (common, rare, silent) for range_ in (narrow, wide)],
        "everything": [{**common, "original_source": filled.rare, **week, **wide, "story_id": LARGE_STORY}],
    }
    return {name: [Filters(**values) for values in each] for name, each in chosen.items()}  # type: ignore[arg-type]


def pages(database: Database, filters: Filters, rounds: int) -> Iterator[Times]:
    """Ask for pages with these filters, in every order, state and kind."""
    for order, state, kind in product(get_args(Order), [*STATES, None], [*KINDS, None]):
        wanted = Filters(
            **{**{name: getattr(filters, name) for name in filters.__slots__}, "state": state, "kind": kind}
        )
        middle = encode_cursor(Cursor("after", _MIDDLE[order], 1 << 40 if ORDERS[order].is_descending else 0))
        for after, place in ((None, "first page"), (middle, "in the middle")):
            wall_ms, _ = took(database, lambda c: queue.page(c, wanted, order, PAGE_ROWS, after), rounds)  # noqa: B023
            yield Times(wall_ms, f"{order}, {place}, {wanted}")


def whole_pages(database: Database, rounds: int) -> list[tuple[str, Times]]:
    """Ask for what pages show besides flags of the queue."""
    since_ms = NOW_MS - DAY_MS

    def large_story(connection: Connection) -> None:
        story = stories.story(connection, LARGE_STORY)
        stories.copies(connection, LARGE_STORY, None, PAGE_ROWS)
        if story is not None:
            stories.timeline(connection, story, bar_length_ms(story.first_ms, story.last_ms))

    asked: dict[str, Callable[[Connection], object]] = {
        "the largest story: itself, copies, timeline": large_story,
        "counts of the queue": queue.counts,
        "names of sources": lambda c: queue.source_names(c, 1_000),
        "the largest stories": lambda c: stories.largest_stories(c, 0, PAGE_ROWS),
        "the largest stories of a day": lambda c: stories.largest_stories(c, since_ms, PAGE_ROWS),
        "what spreads fastest": lambda c: stories.fastest_stories(c, since_ms, PAGE_ROWS),
        "who copies whom": lambda c: stories.pairs_of_sources(c, 0, PAGE_ROWS),
    }
    return [(name, Times(took(database, work, rounds)[0], "")) for name, work in asked.items()]


def took(database: Database, work: Callable[[Connection], object], rounds: int) -> tuple[float, float]:
    """Return the medians of the wall time and of this process's own time that some work takes, in milliseconds."""
    walls, own = [], []
    for _ in range(rounds):
        began_s, began_own_s = time.perf_counter(), time.process_time()
        with database.read_connection() as connection:
            work(connection)
        walls.append(1_000 * (time.perf_counter() - began_s))
        own.append(1_000 * (time.process_time() - began_own_s))
    return median(walls), median(own)


def main(  # options of a command
    flags: Annotated[int, typer.Option(min=1_000)] = 1_000_000,
    rounds: Annotated[int, typer.Option(min=1)] = 3,
    seed: int = 1,
    *,
    postgresql: Annotated[
        bool, typer.Option("--postgresql", help="A PostgreSQL of its own in place of SQLite.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Measure the queries of the console's pages."""
    rows: list[Row] = []
    with (
        tempfile.TemporaryDirectory(prefix="dupwatch-bench-") as folder,
        opened(Path(folder), postgresql=postgresql) as database,
    ):
        filled = fill(database, flags, seed)
        for name, choices in sorts(filled).items():
            tell(f"{name} …")
            found = [times for filters in choices for times in pages(database, filters, rounds)]
            worst = max(found)
            rows.append(
                {
                    "pages of the queue, filtered by": name,
                    "queries": len(found),
                    "median, ms": median(times.median_ms for times in found),
                    "slowest, ms": worst.median_ms,
                }
            )
            tell(f"slowest: {worst.name}")
        rows += [
            {"pages of the queue, filtered by": name, "queries": 1, "median, ms": times.median_ms}
            for name, times in whole_pages(database, rounds)
        ]
    kind = "PostgreSQL" if postgresql else "SQLite"
    publish(PART, f"{flags:,} flags in {kind}", rows, out=out, flags=flags, rounds=rounds, postgresql=postgresql)


if __name__ == "__main__":
    typer.run(main)
