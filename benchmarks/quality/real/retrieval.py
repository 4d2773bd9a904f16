"""Published ways to find near fingerprints, side by side: ``python -m benchmarks.quality.real.retrieval DIR``.

Stored are the fingerprints of all texts of the sets in DIR, and more that are drawn from a model of them. Half of those
looked up are stored ones with 0 to 7 bits changed, half are new. *Postings* are what a look-up reads, *recall* is
the share of the stored fingerprints within 3, 4 or 7 bits that it finds.

- brute force compares all.
- one index per bit: a list of the fingerprints that have a 1, for each bit. The lists of the bits that are 1 say how
  many ones two fingerprints share, and so their distance.
- four blocks (Manku, Jain and Das Sarma, WWW 2007): a list for each value of each 16 bits. *With neighbours* also
  reads the values that differ in one bit.
- ``16x28``: each of the four blocks together with each quarter of the rest, so 28 bits select a list. *With
  neighbours* also reads the lists that differ in one of the 28 bits.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import typer

from benchmarks.quality.judging import KEYED, lexicon
from benchmarks.quality.real.layout import LayoutError
from benchmarks.quality.real.sets import NAMES, read_sets
from benchmarks.speed.codes import BITS, CodeModel, bits_of, near_copies
from benchmarks.speed.harness import Contender, take_turns
from benchmarks.speed.machine import keep_to_one_core, single_threaded
from benchmarks.speed.preload import Entries, memory_store
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.fingerprint import BlockPlan
from consumer.workers.engines import chosen_engine, new_engine
from storage.postings import POSTING_DTYPE

PART: Final = "retrieval"
FINGERPRINTS: Final = 200_000
DISTANCES: Final = (3, 4, 7)
BRUTE_FORCE: Final = "brute force"
PER_BIT: Final = "one index per bit"
FOUR_BLOCKS: Final = "four blocks (4x16)"
FOUR_NEIGHBOURS: Final = "four blocks, with neighbours"
SIXTEEN: Final = "16x28"
SIXTEEN_NEIGHBOURS: Final = "16x28, with neighbours"
PLANS: Final = (
    (FOUR_BLOCKS, "4x16", 0),
    (FOUR_NEIGHBOURS, "4x16", 1),
    (SIXTEEN, "16x28", 0),
    (SIXTEEN_NEIGHBOURS, "16x28", 1),
)
_DISTANCE_MAX: Final = max(DISTANCES)
_ROUNDS: Final = 3

Codes = npt.NDArray[np.uint64]


class LookedUp(NamedTuple):
    """How many postings were read, and the distances of the found fingerprints up to the largest that counts."""

    postings: int
    distances: npt.NDArray[np.uint8]


LookUp = Callable[[np.uint64], LookedUp]


class Way(NamedTuple):
    """A way of retrieval."""

    name: str
    look_up: LookUp


def ways(stored: Codes) -> Iterator[Way]:
    """Build every way over these fingerprints."""
    yield Way(BRUTE_FORCE, partial(_by_force, stored))
    yield Way(PER_BIT, _per_bit(stored))
    for name, plan, radius in PLANS:
        yield Way(name, _by_plan(stored, BlockPlan.named(plan), radius))


def _by_force(stored: Codes, code: np.uint64) -> LookedUp:
    return LookedUp(len(stored), _near(np.bitwise_count(stored ^ code)))


def _per_bit(stored: Codes) -> LookUp:
    bits = bits_of(stored).astype(bool)
    lists = [np.flatnonzero(bits[:, place]).astype(np.uint32) for place in range(BITS)]
    ones = bits.sum(axis=1)

    def look_up(code: np.uint64) -> LookedUp:
        read = [lists[place] for place in np.flatnonzero(bits_of(np.array([code]))[0])]
        shared = np.bincount(np.concatenate(read), minlength=len(stored)) if read else np.zeros(len(stored), int)
        return LookedUp(sum(map(len, read)), _near((ones + len(read) - 2 * shared).astype(np.uint8)))

    return look_up


def _by_plan(stored: Codes, plan: BlockPlan, radius: int) -> LookUp:
    store = memory_store(plan, Entries(stored, stored, np.zeros((len(stored), 0), np.uint64)))

    def look_up(code: np.uint64) -> LookedUp:
        keys = plan.probe_keys(np.array([[code]]), radius)[0]
        packed = b"".join(row.packed for row in store.look_up([key.tobytes() for key in keys]))
        read = np.frombuffer(packed, POSTING_DTYPE)
        # A fingerprint under several keys counts once; its number is in the reference, its place in the feed.
        _, first = np.unique(read["sequence"], return_index=True)
        return LookedUp(len(read), _near(np.bitwise_count(read["code"][first].astype(np.uint64) ^ code)))

    return look_up


def _near(distances: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    return distances[distances <= _DISTANCE_MAX]


def rows(found: Sequence[Way], queries: Codes, rounds: int = _ROUNDS) -> list[Row]:
    """Return the figures of each way: postings and recall of a look-up, and its processor time."""
    results = {way.name: [way.look_up(code) for code in queries] for way in found}
    truth = results[BRUTE_FORCE]
    contenders = [Contender(way.name, partial(_work, way, queries)) for way in found]
    timings = take_turns(contenders, rounds, clock=time.process_time)
    return [
        {
            "way": way.name,
            "postings": round(sum(one.postings for one in results[way.name]) / len(queries), 1),
            **{f"recall, {bits} bits": f"{_recall(results[way.name], truth, bits):.3f}" for bits in DISTANCES},
            "µs a look-up": timing.microseconds.median,
        }
        for way, timing in zip(found, timings, strict=True)
    ]


def _work(way: Way, queries: Codes, _: int) -> int:
    for code in queries:
        way.look_up(code)
    return len(queries)


def _recall(found: Sequence[LookedUp], truth: Sequence[LookedUp], bits: int) -> float:
    there, wanted = (sum(int((one.distances <= bits).sum()) for one in of) for of in (found, truth))
    return there / wanted


def fingerprints_of(texts: Sequence[str]) -> Codes:
    """Return the fingerprints of texts by the default scheme."""
    name = chosen_engine("auto", KEYED, lexicon()).name
    engine = new_engine(name, KEYED, lexicon(), sketched=False, parts=False)
    return engine.fingerprint(texts).codes.reshape(-1)


def draw_queries(stored: Codes, model: CodeModel, count: int, rng: np.random.Generator) -> Codes:
    """Draw fingerprints: half are stored ones with 0 to 7 bits changed, in turn, half are new."""
    drawn = stored[rng.integers(0, len(stored), count // 2)]
    changed = [near_copies(drawn[bits :: _DISTANCE_MAX + 1], bits, rng) for bits in range(_DISTANCE_MAX + 1)]
    return rng.permutation(np.concatenate([*changed, model.sample(count - count // 2, rng)]))


def main(
    folder: Annotated[Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="Folder with the sets.")],
    fingerprints: Annotated[int, typer.Option(min=1, help="Stored fingerprints.")] = FINGERPRINTS,
    queries: Annotated[int, typer.Option(min=16, help="Look-ups.")] = 512,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
) -> None:
    """Compare ways of retrieval on the fingerprints of the sets in DIR."""
    single_threaded()
    keep_to_one_core()
    try:
        sets = read_sets(folder).sets
    except LayoutError as error:
        raise typer.BadParameter(str(error)) from error
    texts = list({article.body: None for real in sets for article in real.articles})
    if not texts:
        raise typer.BadParameter(f"{folder} has none of the sets {', '.join(NAMES)}")
    tell(f"{len(texts):,} different texts, {fingerprints:,} fingerprints …")
    rng = np.random.default_rng(1)
    real = fingerprints_of(texts)[:fingerprints]
    model = CodeModel.fitted(real)
    stored = np.concatenate([real, model.sample(fingerprints - len(real), rng)])
    found = rows(list(ways(stored)), draw_queries(stored, model, queries, rng))
    title = f"Look-ups among {len(stored):,} fingerprints, {len(real):,} of real texts, one core"
    publish(PART, title, found, out=out, fingerprints=len(stored), texts=len(real), queries=queries)


if __name__ == "__main__":
    typer.run(main)
