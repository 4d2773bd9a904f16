"""Fill an HBase store with the postings of synthetic articles, as fast as it takes them.

``python -m benchmarks.hbase.load --store hbase://HOST:PORT/NAMESPACE --articles 1000000 --plan 4x16 --packed``. The
tables have to be there and empty (``dupwatch store init --apply``). Fingerprints come from the model in
``benchmarks.speed.codes``; there are postings only, since a look-up reads nothing else. References look like digests
and arrivals are spread over the last days, for what repeats itself would be packed and sent for less than it costs in
a store that has lived. *Hot* is a cell a posting.
*Packed* is what ``dupwatch store pack`` would have left: postings spread evenly over the last days, a set a day, and
cells where a day has too few for one.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final

import numpy as np
import numpy.typing as npt
import typer

from benchmarks.speed.codes import CodeModel
from benchmarks.speed.look_up import model_of_texts
from benchmarks.speed.preload import Entries, KeyColumn, draw_entries, key_columns
from benchmarks.speed.report import tell
from consumer.cli import render
from consumer.fingerprint import BlockPlan
from storage.clock import now_ms
from storage.hbase import HbaseOptions, parse_place
from storage.hbase.calls import Gateways
from storage.hbase.connection import CellChange
from storage.hbase.meta import CODE_BYTES_ROW, Meta, PackMeta
from storage.hbase.packing import BUCKET_S, ROW_POSTINGS_MIN
from storage.hbase.posting_cells import PACKED, SetName, fresh_cell
from storage.hbase.set_plans import split_evenly
from storage.hbase.store import HbaseStore
from storage.postings import POSTING_DTYPE, POSTING_LAYOUTS
from storage.records import REFERENCE_BYTES

DAYS: Final = 7
SEED: Final = 1
_AT_ONCE: Final = 40_000
_BUCKET_MS: Final = BUCKET_S * 1000
_LAYOUT: Final = POSTING_LAYOUTS[8]
_WORDS: Final = REFERENCE_BYTES // 8


def entries_of(model: CodeModel, articles: int, seed: int = SEED, density_bits: int = 0) -> Entries:
    """The articles of a store of this size: the same each time.

    With ``density_bits`` so many leading bits of every block and band are 0. There are fewer rows then, each as full as
    those of a store ``2**density_bits`` times as large: so a look-up there can be measured without filling one.
    """
    return denser(draw_entries(model, articles, np.random.default_rng(seed)), density_bits)


def denser(entries: Entries, density_bits: int) -> Entries:
    """The same articles with so many leading bits of every block and band 0."""
    blocks = entries.codes.view(np.uint16) >> np.uint16(density_bits)
    return entries._replace(codes=blocks.view(np.uint64), bands=entries.bands >> np.uint64(density_bits))


def fill(url: str, plan: BlockPlan, entries: Entries, days: int) -> Iterator[tuple[int, int]]:
    """Write all postings, packed into a set for each of this many days; without sets if ``days`` is 0.

    Yields how many postings are done, and how many there are in all.
    """
    gateways = Gateways(parse_place(url), HbaseOptions())
    namespace = gateways.place.namespace.encode()
    # Not for its calls: it refuses tables that are not as they have to be.
    HbaseStore.open(gateways.place).close()
    try:
        Meta(namespace + b":meta").agree(gateways.calls(), CODE_BYTES_ROW, b"%d" % _LAYOUT.code_bytes)
        if days:
            PackMeta(namespace + b":meta").bind_bucket(gateways.calls(), _BUCKET_MS)
        done = 0
        total = len(entries.codes) * (len(plan.keys(entries.codes[:1, np.newaxis])[0]) + entries.bands.shape[1])
        today_ms = now_ms() // _BUCKET_MS * _BUCKET_MS
        for column in key_columns(plan, entries):
            lived = column._replace(postings=as_lived(column.postings, days or DAYS, today_ms))
            for count, changes in _chunks(lived, days, today_ms):
                gateways.calls().change(namespace + b":postings", changes)
                done += count
                yield done, total
    finally:
        gateways.close()


def as_lived(postings: npt.NDArray[Any], days: int, today_ms: int) -> npt.NDArray[Any]:
    """The same postings with references as digests are, and arrivals on one of the days before ``today_ms``."""
    lived = postings.copy()
    numbers = postings["sequence"].astype(np.uint64)
    words = np.stack([_mixed(numbers * np.uint64(_WORDS) + np.uint64(word)) for word in range(_WORDS)], axis=1)
    lived["reference"] = words.view(f"V{REFERENCE_BYTES}")[:, 0]
    at_ms = _mixed(~numbers) % np.uint64(_BUCKET_MS)
    lived["time_ms"] = np.uint64(today_ms) - (numbers % np.uint64(days) + np.uint64(1)) * np.uint64(_BUCKET_MS) + at_ms
    return lived


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Spread numbers over 64 bits: the finalizer of SplitMix64 (Steele, Lea and Flood, 2014)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return mixed ^ mixed >> np.uint64(31)


def _chunks(column: KeyColumn, days: int, today_ms: int) -> Iterator[tuple[int, list[CellChange]]]:
    """The changes that write a column, some rows at a time, each with its number of postings."""
    rows = _rows(column)
    while True:
        changes: list[CellChange] = []
        count = 0
        for key, postings in rows:
            changes += _packed(key, postings, days, today_ms) if days else _hot(key, postings)
            count += len(postings)
            if count >= _AT_ONCE:
                break
        if not count:
            return
        yield count, changes


def _rows(column: KeyColumn) -> Iterator[tuple[bytes, npt.NDArray[Any]]]:
    spans = zip(column.keys, column.starts[:-1].tolist(), column.starts[1:].tolist(), strict=True)
    for key, start, end in spans:
        yield key.tobytes(), column.postings[start:end]


def _hot(key: bytes, postings: npt.NDArray[Any]) -> Iterable[CellChange]:
    packed = postings.tobytes()
    width = POSTING_DTYPE.itemsize
    return (fresh_cell(key, packed[place : place + width]) for place in range(0, len(packed), width))


def _packed(key: bytes, postings: npt.NDArray[Any], days: int, today_ms: int) -> Iterator[CellChange]:
    day_of = postings["sequence"] % days
    for day in range(days):
        mine = postings[day_of == day]
        if len(mine) < ROW_POSTINGS_MIN:
            yield from _hot(key, mine)
            continue
        for number, value in enumerate(split_evenly(mine.tobytes(), _LAYOUT)):
            name = SetName(today_ms - (day + 1) * _BUCKET_MS, today_ms, number.to_bytes(8, "big"))
            yield CellChange(key, PACKED + name.qualifier(), value)


def main(
    store: Annotated[str, typer.Option(help="hbase://HOST:PORT/NAMESPACE, its tables empty.")],
    articles: Annotated[int, typer.Option(min=1)],
    plan: Annotated[str, typer.Option(help="4x16 or 16x28.")] = "4x16",
    days: Annotated[int, typer.Option(min=1, help="Over how many days' sets packed postings are spread.")] = DAYS,
    *,
    density_bits: Annotated[int, typer.Option(min=0, max=12, help="Rows as full as at 2**N times the articles.")] = 0,
    packed: Annotated[bool, typer.Option("--packed/--hot", help="Posting sets, or a cell a posting.")] = False,
) -> None:
    """Fill a store."""
    began_s = time.perf_counter()
    entries = entries_of(model_of_texts(), articles, density_bits=density_bits)
    total = 0
    with render.progress(render.console(stderr=True)) as bar:
        task = bar.add_task("writing postings")
        for done, total in fill(store, BlockPlan.named(plan), entries, days if packed else 0):
            bar.update(task, completed=done, total=total)
    took_s = time.perf_counter() - began_s
    tell(f"{articles:,} articles, {total:,} postings in {took_s:,.1f} s: {total / took_s:,.0f} postings/s")


if __name__ == "__main__":
    typer.run(main)
