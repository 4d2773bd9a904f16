"""Look-ups alone, in batches, hot against packed: ``python -m benchmarks.hbase.look_up --articles 1000000``.

Starts an HBase and a gateway of its own, and fills two stores with the same articles (``benchmarks.hbase.load``). The
rows of a batch of articles are read in one call and compared with their codes; the stores take turns. Both must
find the same.
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import typer

from benchmarks.hbase.load import entries_of
from benchmarks.hbase.servers import Wanted, filled, servers
from benchmarks.speed.harness import Contender, ratios, take_turns
from benchmarks.speed.look_up import model_of_texts
from benchmarks.speed.preload import Entries
from benchmarks.speed.report import Row, publish, tell
from consumer.fingerprint import BlockPlan
from storage.hbase import parse_place
from storage.hbase.store import HbaseStore

PART: Final = "hbase_look_up"
_SEED: Final = 2
_ROUNDS: Final = 7
_WARM_UP: Final = 3
_BATCHES: Final = 4
_DISTANCE_MAX: Final = 10


class Queries(NamedTuple):
    """Articles to be looked up: their keys, and their codes by lane."""

    keys: Sequence[Sequence[bytes]]
    codes: Sequence[tuple[bytes, bytes]]


def queries_of(plan: BlockPlan, entries: Entries) -> Queries:
    """The keys of these articles in both lanes."""
    blocks, bands = plan.keys(entries.codes[:, np.newaxis]), plan.band_keys(entries.bands)
    keys = [[key.tobytes() for key in (*lane_0, *lane_1)] for lane_0, lane_1 in zip(blocks, bands, strict=True)]
    return Queries(keys, list(zip(_wire(entries.codes), _wire(entries.one_bits), strict=True)))


def look_up(store: HbaseStore, queries: Queries, batch: int) -> tuple[int, int]:
    """Look all of them up; returns how many postings were read, and how many are near."""
    read = near = 0
    for start in range(0, len(queries.keys), batch):
        keys = queries.keys[start : start + batch]
        wanted = list(dict.fromkeys(key for of_one in keys for key in of_one))
        rows = dict(zip(wanted, store.look_up(wanted), strict=True))
        for of_one, codes in zip(keys, queries.codes[start : start + batch], strict=True):
            for lane, code in enumerate(codes):
                some = [rows[key] for key in of_one if key[0] >> 4 == lane]
                joined = b"".join(row.packed for row in some)
                read += len(joined) // some[0].layout.posting_bytes
                near += len(set(map(bytes, some[0].layout.within(joined, code, _DISTANCE_MAX).tails))) if joined else 0
    return read, near


def _wire(codes: npt.NDArray[Any]) -> list[bytes]:
    packed = codes.astype(">u8").tobytes()
    return [packed[place : place + 8] for place in range(0, len(packed), 8)]


def measure(stores: Mapping[str, HbaseStore], queries: Queries, batch: int) -> tuple[list[Row], float, float]:
    """Time both stores in turn; beside the rows of the table, postings met and postings near an article."""
    found = {name: look_up(store, queries, batch) for name, store in stores.items()}
    if len(set(found.values())) > 1:
        raise SystemExit(f"the stores do not hold the same: {found}")
    count = len(queries.keys)
    python_s = dict.fromkeys(stores, 0.0)

    def work(name: str, _: int) -> int:
        began_s = time.process_time()
        look_up(stores[name], queries, batch)
        python_s[name] += time.process_time() - began_s
        return count

    timings = take_turns([Contender(name, partial(work, name)) for name in stores], _ROUNDS, warm_up_rounds=_WARM_UP)
    rows: list[Row] = [
        {
            "what": timing.name,
            "µs an article": timing.microseconds,
            "times hot": ratios(timing, timings[0]),
            "of that Python, µs": 1e6 * python_s[timing.name] / (_ROUNDS + _WARM_UP) / count,
        }
        for timing in timings
    ]
    read, near = found[timings[0].name]
    return rows, read / count, near / count


def main(
    articles: Annotated[int, typer.Option(min=1, help="Articles in each store.")] = 1_000_000,
    plan: Annotated[str, typer.Option(help="4x16 or 16x28.")] = "4x16",
    batch: Annotated[list[int] | None, typer.Option(help="Articles looked up at once; may be given again.")] = None,
    density_bits: Annotated[int, typer.Option(min=0, max=12, help="Rows as full as at 2**N times the articles.")] = 0,
    folder: Annotated[Path | None, typer.Option(help="Where filled stores stay for the next time.")] = None,
) -> None:
    """Measure look-ups in batches."""
    with servers(folder) as running:
        wanted = {name: Wanted(plan, articles, name == "packed", density_bits) for name in ("hot", "packed")}
        stores = {name: HbaseStore.open(parse_place(filled(running, url))) for name, url in wanted.items()}
        for size in batch or [128]:
            entries = entries_of(model_of_texts(), size * _BATCHES, _SEED, density_bits)
            rows, met, near = measure(stores, queries_of(BlockPlan.named(plan), entries), size)
            title = (
                f"Look-up on HBase, {articles:,} articles, {plan}, in batches of {size}; {met:,.0f} postings an article"
            )
            publish(
                PART, title, rows, articles=articles, plan=plan, density_bits=density_bits, batch=size, postings=met
            )
            tell(f"{near:,.2f} postings near an article")
        for store in stores.values():
            store.close()


if __name__ == "__main__":
    typer.run(main)
