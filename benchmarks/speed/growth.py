"""How the cost of one article grows with the articles in the window, for each block plan.

``python -m benchmarks.speed.growth --plan 4x16 --plan 16x28 --sizes 10000 …``. For each size an LMDB store is
filled with postings of both lanes, and batches of 256 new articles are looked up (rows read, candidates chosen) and
written.

What a larger window would cost is computed from two things that were measured. Postings read are in proportion to the
articles. A look-up's time is that of its rows, each of which is a walk down a tree that deepens with the logarithm
of the articles, and that of the postings in them: three coefficients, fitted to all plans and sizes at once,
relative errors least. Sizes whose postings would be more than ``--postings-max`` are left out, and named.
"""

import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import typer

from benchmarks.speed.codes import CodeModel
from benchmarks.speed.harness import Contender, Timing, take_turns
from benchmarks.speed.look_up import model_of_texts
from benchmarks.speed.machine import keep_to_one_core, single_threaded
from benchmarks.speed.ours import synthetic_records
from benchmarks.speed.preload import draw_entries, lmdb_store
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.fingerprint import BlockPlan, Scheme
from consumer.judge.candidates import Probe, find_candidates, probe_keys
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import VersionBuilder
from storage.interface import Store
from storage.postings import POSTING
from storage.records import Record

PART: Final = "growth"
SIZES: Final = (10_000, 100_000, 1_000_000, 10_000_000)
QUICK_SIZES: Final = (10_000, 50_000, 200_000)
WINDOWS: Final = {"2^30": 1 << 30, "2^34": 1 << 34, "2^37": 1 << 37}
LOOK_UP: Final = "look up"
WRITE: Final = "write postings"
_BATCH: Final = 256


class Point(NamedTuple):
    """One article's cost at one size of the window."""

    articles: int
    rows_read: float
    postings_read: float
    stored_bytes: float
    look_up: Timing
    write: Timing


def fit(columns: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Fit values[n] as a sum of columns[n, m] × coefficients[m], none below nought, relative errors (squared) least.

    ``ValueError`` where a value is not positive.
    """
    if values.min(initial=np.inf) <= 0:
        raise ValueError("relative errors need positive values")
    relative = columns / values[:, np.newaxis]
    coefficients = np.zeros(columns.shape[1])
    used = list(range(columns.shape[1]))
    while used:
        found = np.linalg.lstsq(relative[:, used], np.ones(len(values)), rcond=None)[0]
        if found.min() >= 0:
            coefficients[used] = found
            break
        del used[int(found.argmin())]
    return coefficients


def measure(plan: BlockPlan, size: int, model: CodeModel, rounds: int, scratch: Path) -> Point:
    """Fill a store with this many articles, and time batches of new ones."""
    rng = np.random.default_rng(size)
    store = lmdb_store(scratch, plan, draw_entries(model, size, rng))
    try:
        settings = JudgeSettings(plan=plan, scheme_digest="", scheme=Scheme())
        builder = VersionBuilder(settings.scheme.name, plan, settings.lane1)
        batches = [
            synthetic_records(builder, draw_entries(model, _BATCH, rng), f"new-{number}", 0, rng)
            for number in range(rounds + 1)
        ]
        stored_bytes = (store.stats().size_bytes or 0) / size
        counted = [_look_up(store, settings, batch) for batch in batches]
        timings = take_turns(
            [
                Contender(
                    LOOK_UP, lambda number: len(batches[number]) * bool(_look_up(store, settings, batches[number]))
                ),
                Contender(WRITE, partial(_write, store, batches)),
            ],
            rounds,
        )
    finally:
        store.close()
    rows_read, postings_read = np.array(counted).sum(axis=0) / (_BATCH * len(batches))
    return Point(size, float(rows_read), float(postings_read), stored_bytes, *timings)


def _look_up(store: Store, settings: JudgeSettings, records: Sequence[Record]) -> tuple[int, int]:
    """Do what the judge does between writing postings and reading records; rows and postings that were read."""
    probes = [Probe(record, probe_keys(record, settings)) for record in records]
    keys = sorted({key for probe in probes for key in probe.keys})
    rows = dict(zip(keys, store.look_up(keys), strict=True))
    find_candidates(probes, rows, settings)
    read = [rows[key] for probe in probes for key in probe.keys]
    return len(read), sum(len(row.packed) for row in read) // POSTING.itemsize


def _write(store: Store, batches: Sequence[Sequence[Record]], number: int) -> int:
    store.add(batches[number])
    return len(batches[number])


def point_rows(points: Sequence[Point]) -> list[Row]:
    """What was measured, a row a size."""
    return [
        {
            "articles": point.articles,
            "rows read": point.rows_read,
            "postings read": point.postings_read,
            "bytes read": point.postings_read * POSTING.itemsize,
            "bytes stored": point.stored_bytes,
            "look up, µs": point.look_up.microseconds,
            "write postings, µs": point.write.microseconds,
        }
        for point in points
    ]


def window_rows(points: Mapping[str, Sequence[Point]]) -> list[Row]:
    """What each plan would cost in windows that no machine here holds, as far as it was measured."""
    every = [point for of_plan in points.values() for point in of_plan]
    columns = np.array([_columns(point.rows_read, point.postings_read, point.articles) for point in every])
    times = np.array([point.look_up.microseconds.median for point in every])
    coefficients = fit(columns, times)
    worst = float(np.abs(columns @ coefficients / times - 1).max())
    found: list[Row] = []
    for name, of_plan in points.items():
        # The largest sizes count most: at the smallest nearly all rows are empty.
        an_article = sum(point.postings_read for point in of_plan) / sum(point.articles for point in of_plan)
        for window, articles in WINDOWS.items():
            postings = an_article * articles
            row = _columns(of_plan[-1].rows_read, postings, articles)
            found.append(
                {
                    "plan, window": f"{name}, {window}",
                    "articles": articles,
                    "rows read": of_plan[-1].rows_read,
                    "postings read": postings,
                    "bytes read": postings * POSTING.itemsize,
                    "look up, µs": float(row @ coefficients),
                    "fit off by, at most, %": 100 * worst,
                    "bytes stored, all": of_plan[-1].stored_bytes * articles,
                }
            )
    return found


def _columns(rows_read: float, postings_read: float, articles: float) -> npt.NDArray[np.float64]:
    return np.array([rows_read, rows_read * np.log2(articles), postings_read])


def main(
    plans: Annotated[list[str] | None, typer.Option("--plan", help="Block plan; may be given several times.")] = None,
    sizes: Annotated[list[int] | None, typer.Option(help="Articles; may be given several times.")] = None,
    postings_max: Annotated[int, typer.Option(help="No store with more postings than this.")] = 90_000_000,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller sizes, fewer rounds.")] = False,
) -> None:
    """Measure how the cost of one article grows."""
    single_threaded()
    keep_to_one_core()
    model = model_of_texts(1_000) if quick else model_of_texts()
    rounds = 3 if quick else 9
    points: dict[str, list[Point]] = {}
    for name in plans or [name for name in BlockPlan.NAMES if _fits(name)]:
        plan = BlockPlan.named(name)
        points[name] = []
        for size in sizes or (QUICK_SIZES if quick else SIZES):
            if size * _keys_an_article(plan) > postings_max:
                tell(f"{name}: {size:,} articles are left out, more than --postings-max {postings_max:,} postings")
                continue
            tell(f"{name}: filling a store with {size:,} articles …")
            with tempfile.TemporaryDirectory(prefix="dupwatch-bench-") as scratch:
                points[name].append(measure(plan, size, model, rounds, Path(scratch)))
        publish(PART, f"One article, plan {name}, LMDB", point_rows(points[name]), out=out, plan=name, rounds=rounds)
    measured = {name: of_plan for name, of_plan in points.items() if of_plan}
    if measured:
        publish(PART, "Computed for larger windows", window_rows(measured), out=out, rounds=rounds)


def _keys_an_article(plan: BlockPlan) -> int:
    entries = np.zeros((1, 1), np.uint64)
    return int(plan.keys(entries).shape[1]) + Scheme().sketch.bands


def _fits(name: str) -> bool:
    try:
        BlockPlan.named(name)
    except ValueError:
        return False
    return True


if __name__ == "__main__":
    typer.run(main)
