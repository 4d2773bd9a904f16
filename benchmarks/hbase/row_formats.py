"""Look-ups by block size, encoding and bloom filter: ``python -m benchmarks.hbase.row_formats --articles 1000000``.

Starts an HBase and a gateway of its own, and fills a store of fresh postings for each format with the same articles.
The stores take turns, first as they were written, then after a major compaction. All must find the same. Beside the
time of a look-up stand the processor time of gateway and server, and the bytes on disk.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from benchmarks.hbase.load import entries_of
from benchmarks.hbase.look_up import Queries, look_up, queries_of
from benchmarks.hbase.servers import RowFormat, Servers, Wanted, compact, servers, written
from benchmarks.speed.harness import Contender, ratios, take_turns
from benchmarks.speed.look_up import model_of_texts
from benchmarks.speed.report import Row, publish
from consumer.fingerprint import BlockPlan
from storage.hbase import parse_place
from storage.hbase.store import HbaseStore

PART: Final = "hbase_row_formats"
FORMATS: Final = (
    RowFormat(65_536, "FAST_DIFF", "ROW"),
    RowFormat(16_384, "FAST_DIFF", "ROW"),
    RowFormat(8_192, "FAST_DIFF", "ROW"),
    RowFormat(65_536, "ROW_INDEX_V1", "ROW"),
    RowFormat(16_384, "ROW_INDEX_V1", "ROW"),
    RowFormat(16_384, "NONE", "ROW"),
    RowFormat(16_384, "FAST_DIFF", "NONE"),
)
"""The first is what HBase and the first schema of dupwatch have; the others are compared with the first of a run."""
_SEED: Final = 2
_ROUNDS: Final = 5
_WARM_UP: Final = 3
_BATCHES: Final = 4


def measure(running: Servers, stores: Mapping[RowFormat, HbaseStore], queries: Queries, batch: int) -> list[Row]:
    """Time all stores in turn."""
    found = {look_up(store, queries, batch) for store in stores.values()}
    if len(found) > 1:
        raise SystemExit(f"the stores do not hold the same: {found}")
    count = len(queries.keys)
    spent_s = {row_format: [0.0, 0.0] for row_format in stores}

    def work(row_format: RowFormat, number: int) -> int:
        before = running.processor_s()
        look_up(stores[row_format], queries, batch)
        if number >= _WARM_UP:
            for place, after in enumerate(running.processor_s()):
                spent_s[row_format][place] += after - before[place]
        return count

    contenders = [Contender(row_format.name, partial(work, row_format)) for row_format in stores]
    timings = take_turns(contenders, _ROUNDS, warm_up_rounds=_WARM_UP)
    return [
        {
            "row format": timing.name,
            "µs an article": timing.microseconds,
            "times the first": ratios(timing, timings[0]),
            "gateway, µs": 1e6 * spent_s[row_format][0] / _ROUNDS / count,
            "server, µs": 1e6 * spent_s[row_format][1] / _ROUNDS / count,
        }
        for timing, row_format in zip(timings, stores, strict=True)
    ]


def disk_bytes(running: Servers, wanted: Wanted) -> int:
    """How many bytes the postings of this store take on disk."""
    place = running.hbase.folder / "data" / "hbase" / "data" / wanted.namespace / "postings"
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


def main(
    articles: Annotated[int, typer.Option(min=1, help="Articles in each store.")] = 1_000_000,
    plan: Annotated[str, typer.Option(help="4x16 or 16x28.")] = "4x16",
    batch: Annotated[int, typer.Option(min=1, help="Articles looked up at once.")] = 256,
    only: Annotated[list[str] | None, typer.Option("--format", help="Only these, such as 64k_fast_diff_row.")] = None,
    density_bits: Annotated[int, typer.Option(min=0, max=12, help="Rows as full as at 2**N times the articles.")] = 0,
    folder: Annotated[Path | None, typer.Option(help="Where filled stores stay for the next time.")] = None,
) -> None:
    """Measure look-ups by row format."""
    formats = [each for each in FORMATS if not only or each.name in only]
    if only and len(formats) < len(only):
        raise typer.BadParameter(f"the formats are {', '.join(each.name for each in FORMATS)}")
    entries = entries_of(model_of_texts(), batch * _BATCHES, _SEED, density_bits)
    queries = queries_of(BlockPlan.named(plan), entries)
    with servers(folder) as running:
        wanted = {
            each: Wanted(plan, articles, packed=False, density_bits=density_bits, row_format=each) for each in formats
        }
        stores = {each: HbaseStore.open(parse_place(written(running, store))) for each, store in wanted.items()}
        for moment in ("as written", "compacted"):
            if moment == "compacted":
                for store in wanted.values():
                    compact(running, store)
            measured = measure(running, stores, queries, batch)
            sizes = [disk_bytes(running, store) / 1e6 for store in wanted.values()]
            rows = [{**row, "MB on disk": size_mb} for row, size_mb in zip(measured, sizes, strict=True)]
            dense = f", rows as at {articles << density_bits:,}" if density_bits else ""
            title = (
                f"Look-up on HBase by row format, {articles:,} articles{dense}, {plan}, {moment}, in batches of {batch}"
            )
            publish(
                PART,
                title,
                rows,
                articles=articles,
                plan=plan,
                density_bits=density_bits,
                batch=batch,
                moment=moment,
            )
        for opened in stores.values():
            opened.close()


if __name__ == "__main__":
    typer.run(main)
