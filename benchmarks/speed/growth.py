"""How the cost of one article grows with the articles in the window, for each block plan.

``python -m benchmarks.speed.growth --plan 4x16 --plan 16x28 --sizes 10000 …``. For each size an LMDB store is
filled with postings of both lanes, and batches of 256 new articles are looked up (rows read, candidates chosen) and
written. Fingerprints are drawn from a model, and bands at random. With ``--profile`` both are those of generated posts
of 140 characters, in a store of that profile.

What a larger window would cost is computed from two things that were measured. Postings read are in proportion to the
articles. A look-up's time is that of its rows, each of which is a walk down a tree that deepens with the logarithm
of the articles, and that of the postings in them: three coefficients, fitted to all plans and sizes at once,
relative errors least. Sizes whose postings would be more than ``--postings-max`` are left out, and named.
``--plot FILE`` draws the points and the fit, from 10⁴ to 10⁷ articles.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import typer

from benchmarks.quality.judging import lexicon
from benchmarks.speed.harness import Contender, Timing, take_turns
from benchmarks.speed.look_up import model_of_texts
from benchmarks.speed.machine import keep_to_one_core, single_threaded
from benchmarks.speed.ours import synthetic_records
from benchmarks.speed.preload import Entries, draw_entries, lmdb_store
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.config.profiles import settings_by_profile
from consumer.fingerprint import BlockPlan, Scheme
from consumer.judge.candidates import Probe, find_candidates, probe_keys
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import VersionBuilder
from consumer.stress.made_texts import make_feed
from consumer.workers.engines import chosen_engine, new_engine
from storage.interface import Store
from storage.postings import POSTING_DTYPE
from storage.records import Record

PART: Final = "growth"
SIZES: Final = (10_000, 100_000, 1_000_000, 10_000_000)
QUICK_SIZES: Final = (10_000, 50_000, 200_000)
WINDOWS: Final = {"2^30": 1 << 30, "2^34": 1 << 34, "2^37": 1 << 37}
LOOK_UP: Final = "look up"
WRITE: Final = "write postings"
_BATCH: Final = 256
_COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#000000")
"""Okabe and Ito's colours, which colour-blind readers can distinguish."""
_DRAWN: Final = np.logspace(4, 7, 61)
"""The articles for which the fit is drawn."""
_POST_CHARS: Final = 140
_POSTS_AT_ONCE: Final = 10_000

_WINDOW_MS: Final = 1 << 42
"""Postings are as old as ``preload`` makes them: all of them are in the window."""

Draw = Callable[[int, np.random.Generator], Entries]
"""Draws this many articles."""


class Point(NamedTuple):
    """One article's cost at one size of the window."""

    articles: int
    rows_read: float
    postings_read: float
    candidates: float
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


def settings_of(plan: BlockPlan, profile: str | None) -> JudgeSettings:
    """Return the default settings of the judge, in a profile if one is named."""
    settings = JudgeSettings(plan=plan, scheme_digest="", window_ms=_WINDOW_MS)
    return settings if profile is None else settings_by_profile(settings)[profile]


def draw_posts(scheme: Scheme, count: int, rng: np.random.Generator) -> Entries:
    """Generate different posts and fingerprint them."""
    words = lexicon()
    engine = new_engine(chosen_engine("auto", scheme, words).name, scheme, words, sketched=True, parts=False)
    parts = []
    for start in range(0, count, _POSTS_AT_ONCE):
        some, seed = min(_POSTS_AT_ONCE, count - start), int(rng.integers(1 << 62))
        posts = make_feed(some, _POST_CHARS, copies_share=0.0, seed=seed)
        found = engine.fingerprint([post.body for post in posts])
        parts.append(Entries(found.codes[:, 0], found.one_bits, found.bands))
    return Entries(*map(np.concatenate, zip(*parts, strict=True)))


def measure(settings: JudgeSettings, size: int, draw: Draw, rounds: int, scratch: Path) -> Point:
    """Fill a store with this many articles, and time batches of new ones."""
    rng = np.random.default_rng(size)
    plan = settings.plan
    store = lmdb_store(scratch, plan, draw(size, rng))
    try:
        builder = VersionBuilder(settings.scheme.name, plan, settings.lane1)
        batches = [
            synthetic_records(builder, draw(_BATCH, rng), f"new-{number}", 0, rng) for number in range(rounds + 1)
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
    rows_read, postings_read, candidates = (
        sum(counts) / (_BATCH * len(batches)) for counts in zip(*counted, strict=True)
    )
    return Point(size, rows_read, postings_read, candidates, stored_bytes, *timings)


def _look_up(store: Store, settings: JudgeSettings, records: Sequence[Record]) -> tuple[int, int, int]:
    """Do what the judge does between writing postings and reading records.

    Return how many rows and postings were read, and how many candidates were found in them.
    """
    probes = [Probe(record, probe_keys(record, settings)) for record in records]
    keys = sorted({key for probe in probes for key in probe.keys})
    rows = dict(zip(keys, store.look_up(keys), strict=True))
    found = sum(candidates.found for candidates in find_candidates(probes, rows, settings))
    read = [rows[key] for probe in probes for key in probe.keys]
    return len(read), sum(len(row.packed) for row in read) // POSTING_DTYPE.itemsize, found


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
            "candidates": point.candidates,
            "bytes read": point.postings_read * POSTING_DTYPE.itemsize,
            "bytes stored": point.stored_bytes,
            "look up, µs": point.look_up.microseconds,
            "write postings, µs": point.write.microseconds,
        }
        for point in points
    ]


def fitted_look_up(points: Mapping[str, Sequence[Point]]) -> tuple[npt.NDArray[np.float64], float]:
    """Return the coefficients of a look-up's time in microseconds, float64[3], and the largest relative error."""
    every = [point for of_plan in points.values() for point in of_plan]
    columns = np.array([_columns(point.rows_read, point.postings_read, point.articles) for point in every])
    times = np.array([point.look_up.microseconds.median for point in every])
    coefficients = fit(columns, times)
    return coefficients, float(np.abs(columns @ coefficients / times - 1).max())


def _postings_an_article(points: Sequence[Point]) -> float:
    """Return the postings read for each article in the window."""
    # The largest sizes count most: at the smallest nearly all rows are empty.
    return sum(point.postings_read for point in points) / sum(point.articles for point in points)


def draw_growth(path: Path, points: Mapping[str, Sequence[Point]]) -> None:
    """Draw the cost of an article's look-up for each plan into a PNG or SVG file: measured, and as fitted."""
    coefficients, _ = fitted_look_up(points)
    figure: Any = import_module("matplotlib.figure").Figure(figsize=(7.0, 4.4), dpi=120, layout="constrained")
    panel = figure.subplots()
    for (name, of_plan), colour in zip(points.items(), _COLOURS, strict=False):
        postings = _postings_an_article(of_plan)
        model = [_columns(of_plan[-1].rows_read, postings * size, size) @ coefficients for size in _DRAWN]
        spreads = [point.look_up.microseconds for point in of_plan]
        medians = np.array([spread.median for spread in spreads])
        ends = np.array([[spread.low for spread in spreads], [spread.high for spread in spreads]])
        panel.errorbar(
            [point.articles for point in of_plan], medians, np.abs(ends - medians),
            fmt="o", capsize=3, color=colour, label=f"{name}, measured",
        )  # fmt: skip
        panel.plot(_DRAWN, model, "--", color=colour, label=f"{name}, model")
    panel.set_xscale("log")
    panel.set_ylim(bottom=0)
    panel.set_xlabel("articles in the window")
    panel.set_ylabel("look-up of an article, µs")
    panel.grid(color="0.9")
    panel.legend(frameon=False)
    figure.savefig(path)


def window_rows(points: Mapping[str, Sequence[Point]]) -> list[Row]:
    """What each plan would cost in windows that no machine here holds, as far as it was measured."""
    coefficients, worst = fitted_look_up(points)
    found: list[Row] = []
    for name, of_plan in points.items():
        an_article = _postings_an_article(of_plan)
        for window, articles in WINDOWS.items():
            postings = an_article * articles
            row = _columns(of_plan[-1].rows_read, postings, articles)
            found.append(
                {
                    "plan, window": f"{name}, {window}",
                    "articles": articles,
                    "rows read": of_plan[-1].rows_read,
                    "postings read": postings,
                    "bytes read": postings * POSTING_DTYPE.itemsize,
                    "look up, µs": float(row @ coefficients),
                    "fit off by, at most, %": 100 * worst,
                    "bytes stored, all": of_plan[-1].stored_bytes * articles,
                }
            )
    return found


def _columns(rows_read: float, postings_read: float, articles: float) -> npt.NDArray[np.float64]:
    return np.array([rows_read, rows_read * np.log2(articles), postings_read])


def main(  # noqa: PLR0913  # options of a command
    plans: Annotated[list[str] | None, typer.Option("--plan", help="Block plan; may be given several times.")] = None,
    sizes: Annotated[list[int] | None, typer.Option(help="Articles; may be given several times.")] = None,
    profile: Annotated[
        str | None, typer.Option(help="Generate posts for a store of this profile, news or posts.")
    ] = None,
    postings_max: Annotated[int, typer.Option(help="No store with more postings than this.")] = 90_000_000,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
    plot: Annotated[Path | None, typer.Option(help="Draw points and fit into this PNG or SVG file.")] = None,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller sizes, fewer rounds.")] = False,
) -> None:
    """Measure how the cost of one article grows."""
    single_threaded()
    keep_to_one_core()
    rounds = 3 if quick else 9
    points: dict[str, list[Point]] = {}
    draw: Draw | None = None
    for name in plans or [name for name in BlockPlan.NAMES if _fits(name)]:
        settings = settings_of(BlockPlan.named(name), profile)
        draw = draw or _draw(settings, profile, quick=quick)
        points[name] = []
        for size in sizes or (QUICK_SIZES if quick else SIZES):
            if size * _keys_an_article(settings) > postings_max:
                tell(f"{name}: {size:,} articles are left out, more than --postings-max {postings_max:,} postings")
                continue
            tell(f"{name}: filling a store with {size:,} articles …")
            with tempfile.TemporaryDirectory(prefix="dupwatch-bench-") as scratch:
                points[name].append(measure(settings, size, draw, rounds, Path(scratch)))
        arguments = {"plan": name, "profile": profile, "rounds": rounds}
        publish(PART, f"One article, plan {name}, LMDB", point_rows(points[name]), out=out, **arguments)
    measured = {name: of_plan for name, of_plan in points.items() if of_plan}
    if measured:
        publish(PART, "Computed for larger windows", window_rows(measured), out=out, rounds=rounds)
        if plot is not None:
            draw_growth(plot, measured)


def _draw(settings: JudgeSettings, profile: str | None, *, quick: bool) -> Draw:
    if profile is not None:
        return partial(draw_posts, settings.scheme)
    return partial(draw_entries, model_of_texts(1_000) if quick else model_of_texts())


def _keys_an_article(settings: JudgeSettings) -> int:
    return settings.plan.probes(0) + settings.scheme.sketch.bands


def _fits(name: str) -> bool:
    try:
        BlockPlan.named(name)
    except ValueError:
        return False
    return True


if __name__ == "__main__":
    typer.run(main)
