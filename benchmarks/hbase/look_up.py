"""Look-ups alone, in batches, hot against packed: ``python -m benchmarks.hbase.look_up --hot URL --packed URL``.

Both stores were filled by ``benchmarks.hbase.load`` with the same number of articles. The rows of a batch of
articles are read in one call, as the judge does, and compared with their codes; the stores take turns. Both must find
the same.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import typer

from benchmarks.hbase.load import entries_of
from benchmarks.speed.harness import Contender, ratios, take_turns
from benchmarks.speed.look_up import model_of_texts
from benchmarks.speed.preload import Entries
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.fingerprint import BlockPlan
from storage.hbase import HbaseStore, parse_place

PART: Final = "hbase_look_up"
_SEED: Final = 2
_ROUNDS: Final = 5
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
                near += len(some[0].layout.within(joined, code, _DISTANCE_MAX)) if joined else 0
    return read, near


def _wire(codes: npt.NDArray[Any]) -> list[bytes]:
    packed = codes.astype(">u8").tobytes()
    return [packed[place : place + 8] for place in range(0, len(packed), 8)]


def main(
    hot: Annotated[str, typer.Option(help="A store filled with --hot.")],
    packed: Annotated[str, typer.Option(help="A store filled with --packed.")],
    *,
    plan: Annotated[str, typer.Option(help="The plan they were filled by.")] = "4x16",
    density_bits: Annotated[int, typer.Option(min=0, max=12, help="As they were filled.")] = 0,
    batch: Annotated[int, typer.Option(min=1, help="Articles looked up at once.")] = 128,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Measure look-ups in batches."""
    entries = entries_of(model_of_texts(), batch * _BATCHES, _SEED, density_bits)
    queries = queries_of(BlockPlan.named(plan), entries)
    stores = {name: HbaseStore.open(parse_place(url)) for name, url in (("hot", hot), ("packed", packed))}
    found = {name: look_up(store, queries, batch) for name, store in stores.items()}
    if len(set(found.values())) > 1:
        raise SystemExit(f"the stores do not hold the same: {found}")
    count = len(queries.keys)

    def work(store: HbaseStore, _: int) -> int:
        look_up(store, queries, batch)
        return count

    timings = take_turns([Contender(name, partial(work, store)) for name, store in stores.items()], _ROUNDS)
    rows: list[Row] = [
        {"what": one.name, "µs an article": one.microseconds, "times hot": ratios(one, timings[0])} for one in timings
    ]
    postings = found["hot"][0] / count
    title = (
        f"Look-up in batches of {batch}, {len(queries.keys[0])} rows an article, {postings:,.0f} postings an article"
    )
    arguments = {"plan": plan, "density_bits": density_bits, "batch": batch, "rounds": _ROUNDS, "postings": postings}
    publish(PART, title, rows, out=out, **arguments)
    for store in stores.values():
        store.close()
    tell(f"{found['hot'][1] / count:,.2f} postings near an article")


if __name__ == "__main__":
    typer.run(main)
