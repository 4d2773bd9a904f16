"""How long searches of the console take, and how large their index is: ``python -m benchmarks.console.search``.

A database of its own, SQLite in a file or with ``--postgresql`` a server of its own, is filled
(``benchmarks.console.flags``). The console's own worker indexes texts of 2,000 Chinese characters, made one for each
open flag (``consumer.stress.made_texts``), and merges the parts. Then words that all, many, few and no texts have are
searched for, alone and together, in every order, with filters, on the first page and in the middle.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import Annotated, Final, NamedTuple, get_args

import typer
from sqlalchemy import text

from benchmarks.console.flags import DAY_MS, NOW_MS, Filled, fill
from benchmarks.console.queue import PAGE_ROWS, opened, took
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.console.context import ArticleReader, ArticleView
from consumer.console.intake.indexing import Indexer, IndexerDependencies
from consumer.reviews import queue
from consumer.reviews.database import Database
from consumer.reviews.paging import Cursor, encode_cursor
from consumer.reviews.queue import ORDERS, Filters, Order
from consumer.reviews.word_index import parts
from consumer.reviews.word_index.results import QueueSearch
from consumer.reviews.word_index.words import TEXT_CHARS_MAX, WordCutter
from consumer.stress.made_texts import make_feed
from consumer.wiring import components
from consumer.workers.word_files import load_lexicon

PART: Final = "console_search"
EVERY: Final = "everywhere"
SHARES: Final = {"tenth": 10, "hundredth": 100, "thousandth": 1_000}
"""Words that one in so many texts has."""
_SEARCHES: Final = {
    "in every text": EVERY,
    "in every text, one character": "的",
    "in one of 10": "tenth",
    "in one of 1,000": "thousandth",
    "in one text": "number7",
    "in no text": "zeppelin",
    "in no text, by its characters": "的一是在",
    "five words": f"{EVERY} tenth 的 不 人",
    "in every text and in no text": f"{EVERY} zeppelin",
    "32 characters": "的一是不在有人这中大为上个国我以要他时来用们生到作地于出就分对成",
    "an id": "article-000000007",
    "the beginning of many ids": "article-",
    "a source": "source-0",
}


class MadeTexts(ArticleReader):
    """A store that has a text for every article; ``read_count`` counts them."""

    def __init__(self) -> None:
        self.read_count = 0

    def read(self, pairs: Sequence[tuple[str, str]], *, bodies: bool = True) -> list[ArticleView | None]:  # noqa: ARG002  # the port's
        """Make texts, each with a word that all have, one that it alone has, and some that others have too."""
        feed = make_feed(len(pairs), TEXT_CHARS_MAX, copies_share=0.2, seed=self.read_count + 1)
        views: list[ArticleView | None] = []
        for (article_id, version), made in zip(pairs, feed, strict=True):
            number, self.read_count = self.read_count, self.read_count + 1
            shared = [word for word, one_in in SHARES.items() if number % one_in == 0]
            title = " ".join([EVERY, f"number{number}", *shared])
            views.append(ArticleView(article_id, version, title, "", "", "zh", 0, made.body, None, None, ()))
        return views


class Took(NamedTuple):
    """What one page took, in milliseconds, and how much of that in this process."""

    wall_ms: float
    own_ms: float
    name: str


def build(database: Database, cutter: WordCutter) -> dict[str, float]:
    """Index all open flags; return how many there are, how long it took this process, and what the index takes."""
    now = [NOW_MS]
    before = _bytes(database)
    indexing = Indexer(IndexerDependencies(database, MadeTexts(), cutter, lambda: now[0], lambda: None))
    began_s, turns = time.process_time(), 0
    while indexing.work():
        turns += 1
        # Parts that were replaced are deleted, as they are while a console runs.
        now[0] += 2_000
        if turns % 20 == 0:
            # What autovacuum does by itself.
            _vacuum(database)
            tell(f"{turns} turns …")
    took_s = time.process_time() - began_s
    now[0] += parts.REPLACED_MS
    indexing.work()
    with database.read_connection() as connection:
        flags, made = parts.indexed_count(connection), len(parts.parts(connection))
        held = connection.execute(text("SELECT sum(length(content)) FROM search_pages")).scalar_one()
        held += connection.execute(text("SELECT sum(length(flag_ids)) FROM search_parts")).scalar_one()
    taken = _bytes(database) - before
    # Without the space that PostgreSQL keeps for what comes next.
    _vacuum(database, "FULL")
    filled_bytes = _bytes(database) - before
    return {
        "flags": flags,
        "parts": made,
        "packed bytes/flag": held / flags,
        "bytes on disk/flag": taken / flags,
        "of these filled": filled_bytes / flags,
        "indexing, ms/flag": 1_000 * took_s / flags,
    }


def _bytes(database: Database) -> int:
    """Return what the index takes on disk, with what surrounds it."""
    _vacuum(database)
    with database.read_connection() as connection:
        if connection.dialect.name == "postgresql":
            sizes = "pg_total_relation_size('search_{}')"
            tables = " + ".join(sizes.format(name) for name in ("pages", "parts", "waiting"))
            return int(connection.execute(text(f"SELECT {tables}")).scalar_one())
        pages, free, size = (
            int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size


def _vacuum(database: Database, how: str = "") -> None:
    with database.read_connection() as connection:
        if connection.dialect.name == "postgresql":
            connection.rollback()
            connection.connection.driver_connection.autocommit = True  # type: ignore[union-attr]
            connection.exec_driver_sql(f"VACUUM {how} search_pages, search_parts, search_waiting")
            connection.connection.driver_connection.autocommit = False  # type: ignore[union-attr]


def searches(database: Database, filled: Filled, cutter: WordCutter, rounds: int) -> Iterator[tuple[str, list[Took]]]:
    """Search for words of each sort: in every order, with and without filters, the first page and one in the middle."""
    week = {"arrived_from_ms": NOW_MS - 60 * DAY_MS, "arrived_to_ms": NOW_MS - 53 * DAY_MS}
    filters = [{}, {"source": filled.common}, {"source": filled.silent}, {"kind": "flag"}, week, {"state": None}]
    for name, searched in _SEARCHES.items():
        found: list[Took] = []
        for order, fields in product(get_args(Order), filters):
            wanted = Filters(search=QueueSearch(searched, cutter.terms_of(searched)), **fields)  # type: ignore[arg-type]
            for place in (None, _middle(order)):
                page = took(database, lambda c: queue.page(c, wanted, order, PAGE_ROWS, place), rounds)  # noqa: B023
                found.append(Took(*page, f"{order}, {'first page' if place is None else 'in the middle'}, {fields}"))
        tell(f"{name}: slowest: {max(found)}")
        yield name, found


def _middle(order: Order) -> str:
    key = NOW_MS - 45 * DAY_MS if order in {"newest", "oldest"} else 0.95
    return encode_cursor(Cursor("after", key, 1 << 40 if ORDERS[order].is_descending else 0))


def main(  # options of a command
    flags: Annotated[int, typer.Option(min=1_000)] = 1_000_000,
    open_share: Annotated[float, typer.Option(min=0.001, max=0.9)] = 0.1,
    rounds: Annotated[int, typer.Option(min=1)] = 3,
    seed: int = 1,
    *,
    postgresql: Annotated[
        bool, typer.Option("--postgresql", help="A PostgreSQL of its own in place of SQLite.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Measure the console's search."""
    cutter = components.word_cutter(load_lexicon())
    kind = "PostgreSQL" if postgresql else "SQLite"
    with (
        tempfile.TemporaryDirectory(prefix="dupwatch-bench-") as folder,
        opened(Path(folder), postgresql=postgresql) as database,
    ):
        filled = fill(database, flags, seed, open_share)
        arguments = {"flags": flags, "open_share": open_share, "rounds": rounds, "postgresql": postgresql}
        index: Row = {"index": kind, **build(database, cutter)}
        publish(PART, f"The index of words in {kind}", [index], out=out, **arguments)
        rows: list[Row] = [
            {
                "search for what is": name,
                "pages": len(found),
                "median, ms": median(page.wall_ms for page in found),
                "slowest, ms": max(page.wall_ms for page in found),
                "median in the console, ms": median(page.own_ms for page in found),
                "slowest in the console, ms": max(page.own_ms for page in found),
            }
            for name, found in searches(database, filled, cutter, rounds)
        ]
    publish(PART, f"Searches among {flags:,} flags in {kind}", rows, out=out, **arguments)


if __name__ == "__main__":
    typer.run(main)
