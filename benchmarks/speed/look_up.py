"""Look-ups alone: all stored fingerprints within 3 bits of a given one, among up to ten million.

``python -m benchmarks.speed.look_up --sizes 100000 --sizes 1000000``. One lane, postings only, on one core. Stored
fingerprints come from the model in ``codes``; half of those looked up are up to 3 bits from a stored one, half are new.
All contenders must find the same number of fingerprints, or nothing is measured. ``SimhashIndex`` takes part up to
100,000 articles: its rows are sets of strings, 1 kB an article, which it parses one by one.

dupwatch answers through ``Store.look_up`` and the posting layout's distances, as its judge does. LMDB begins a
transaction for each call; *open transaction* reads the same rows within one.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import lmdb
import numpy as np
import numpy.typing as npt
import typer

from benchmarks.speed.codes import CodeModel, near_copies
from benchmarks.speed.harness import Contender, Timing, ratios, take_turns
from benchmarks.speed.machine import keep_to_one_core, resident_bytes, single_threaded
from benchmarks.speed.peers import StockBuild, installed
from benchmarks.speed.preload import Entries, fill_lmdb, memory_store, open_filled
from benchmarks.speed.report import OUT, Row, publish, tell
from consumer.fingerprint import BlockPlan, Fingerprinter, Scheme
from consumer.stress.made_texts import make_feed
from consumer.workers.word_files import load_lexicon
from storage.interface import PostingStore
from storage.lmdb.data_file import DATA_FILE
from storage.lmdb.layout import DATABASES
from storage.postings import POSTING_DTYPE, POSTING_LAYOUTS

PART: Final = "look_up"
SIZES: Final = (100_000, 1_000_000)
DISTANCE_MAX: Final = 3
FAISS: Final = "faiss.IndexBinaryMultiHash"
BRUTE_FORCE: Final = "brute force, numpy"
SIMHASH: Final = "simhash.SimhashIndex"
MEMORY: Final = "dupwatch, memory"
LMDB: Final = "dupwatch, LMDB"
LMDB_OPEN: Final = "dupwatch, LMDB, open transaction"
_SIMHASH_ARTICLES_MAX: Final = 100_000
_MODEL_TEXTS: Final = 4_000
_LAYOUT: Final = POSTING_LAYOUTS[8]
_SLOW_QUERIES: Final = 32

Codes = npt.NDArray[np.uint64]
Search = Callable[[Codes], int]


class Index(NamedTuple):
    """Something that looks up fingerprints and says how many it found; ``bytes_an_article`` is what it takes."""

    name: str
    search: Search
    bytes_an_article: float
    queries_max: int | None = None


def search_store(store: PostingStore, plan: BlockPlan, codes: Codes) -> int:
    """Look fingerprints up one after the other, the rows of all of them read in one call."""
    keys = [[key.tobytes() for key in of_one] for of_one in plan.keys(codes[:, np.newaxis])]
    wanted = list({key: None for of_one in keys for key in of_one})
    packed = dict(zip(wanted, (row.packed for row in store.look_up(wanted)), strict=True))
    wire = codes.astype(">u8").tobytes()
    return sum(
        _count_near(b"".join([packed[key] for key in of_one]), wire[8 * place : 8 * place + 8])
        for place, of_one in enumerate(keys)
    )


def search_open_transaction(cursor: Any, plan: BlockPlan, codes: Codes) -> int:  # noqa: ANN401  # LMDB has no types
    """Look fingerprints up as the LMDB store does, in a transaction that stays open."""
    found = 0
    keyed = np.dtype([("key", f"V{plan.key_bytes}"), ("posting", f"V{POSTING_DTYPE.itemsize}")])
    wire = codes.astype(">u8").tobytes()
    for place, of_one in enumerate(plan.keys(codes[:, np.newaxis])):
        keys = [key.tobytes() for key in of_one]
        fetched = cursor.getmulti(keys, dupdata=True, dupfixed_bytes=POSTING_DTYPE.itemsize, keyfixed=True)
        packed = np.frombuffer(fetched, keyed)["posting"].tobytes()
        found += _count_near(packed, wire[8 * place : 8 * place + 8])
    return found


def search_by_force(stored: Codes, codes: Codes) -> int:
    """Compare with every fingerprint there is."""
    return sum(int(np.count_nonzero(np.bitwise_count(stored ^ code) <= DISTANCE_MAX)) for code in codes)


def draw_queries(stored: Codes, model: CodeModel, count: int, rng: np.random.Generator) -> Codes:
    """Draw fingerprints to look up: half near a stored one, by 0 to 3 bits in turn, half new, mixed."""
    near = stored[rng.integers(0, len(stored), count // 2)]
    copies = [near_copies(near[flips :: DISTANCE_MAX + 1], flips, rng) for flips in range(DISTANCE_MAX + 1)]
    return rng.permutation(np.concatenate([*copies, model.sample(count - count // 2, rng)]))


@contextmanager
def indexes(stored: Codes, plan: BlockPlan, scratch: Path) -> Iterator[list[Index]]:
    """Build every index over these fingerprints, and measure what each takes."""
    with ExitStack() as stack:
        yield [
            Index(BRUTE_FORCE, partial(search_by_force, stored), float(stored.itemsize), _SLOW_QUERIES),
            *_stores(stored, plan, scratch, stack),
            *_peers(stored),
        ]


def _stores(stored: Codes, plan: BlockPlan, scratch: Path, stack: ExitStack) -> Iterator[Index]:
    none = np.zeros((len(stored), 0), np.uint64)
    entries = Entries(stored, stored, none)
    before = resident_bytes()
    memory = memory_store(plan, entries)
    yield Index(MEMORY, partial(search_store, memory, plan), (resident_bytes() - before) / len(stored))
    fill_lmdb(scratch, plan, entries)
    # LMDB opens a file once in a process, and the store does not lend its transactions: a copy for the second reader.
    other = scratch / "copy"
    other.mkdir()
    shutil.copyfile(scratch / DATA_FILE, other / DATA_FILE)
    store = open_filled(scratch)
    stack.callback(store.close)
    size = (store.stats().size_bytes or 0) / len(stored)
    yield Index(LMDB, partial(search_store, store, plan), size)
    environment = stack.enter_context(lmdb.open(str(other), readonly=True, lock=False, max_dbs=len(DATABASES)))
    database = environment.open_db(b"postings", create=False, dupsort=True, dupfixed=True)
    transaction = stack.enter_context(environment.begin(db=database))
    yield Index(LMDB_OPEN, partial(search_open_transaction, transaction.cursor(), plan), size)


def _peers(stored: Codes) -> Iterator[Index]:
    if installed("faiss"):
        before = resident_bytes()
        faiss: Any = import_module("faiss")
        index = faiss.IndexBinaryMultiHash(64, 4, 16)
        index.add(_as_bytes(stored))
        yield Index(FAISS, partial(_search_faiss, index), (resident_bytes() - before) / len(stored))
    if installed("jieba", "simhash") and len(stored) <= _SIMHASH_ARTICLES_MAX:
        stock = StockBuild()
        before = resident_bytes()
        stock.preload(stored)
        size = (resident_bytes() - before) / len(stored)
        yield Index(SIMHASH, lambda codes: sum(len(stock.near(code)) for code in codes.tolist()), size, _SLOW_QUERIES)


def _search_faiss(index: Any, codes: Codes) -> int:  # noqa: ANN401  # the package has no types
    # Its radius is the first distance that is not found.
    limits, _, _ = index.range_search(_as_bytes(codes), DISTANCE_MAX + 1)
    return int(limits[-1])


def _as_bytes(codes: Codes) -> npt.NDArray[np.uint8]:
    return codes.astype(">u8").view(np.uint8).reshape(-1, 8)


def _count_near(packed: bytes, code: bytes) -> int:
    if not packed:
        return 0
    return len(set(map(bytes, _LAYOUT.within(packed, code, DISTANCE_MAX).tails)))


def check(built: Sequence[Index], codes: Codes) -> int:
    """Return how many fingerprints all of them find; ``ValueError`` where they do not agree."""
    found = {index.name: index.search(codes) for index in built}
    if len(set(found.values())) > 1:
        raise ValueError(f"the indexes do not find the same: {found}")
    return next(iter(found.values()))


def measure(built: Sequence[Index], codes: Codes, batch: int, rounds: int) -> list[Timing]:
    """Time all of them on the same fingerprints, ``batch`` at a time; slow ones get fewer."""

    def work(index: Index, _: int) -> int:
        own = codes[: index.queries_max]
        for start in range(0, len(own), batch):
            index.search(own[start : start + batch])
        return len(own)

    return take_turns([Contender(index.name, partial(work, index)) for index in built], rounds)


def rows(built: Sequence[Index], single: Sequence[Timing], batched: Sequence[Timing]) -> list[Row]:
    """Time a look-up, and how many times faster than FAISS that is, for single ones and in batches."""
    faiss = next((place for place, index in enumerate(built) if index.name == FAISS), None)
    return [
        {
            "what": index.name,
            "µs, single": timing.microseconds,
            "times FAISS": None if faiss is None else ratios(timing, single[faiss]),
            "µs, in batches": many.microseconds,
            "times FAISS, batches": None if faiss is None else ratios(many, batched[faiss]),
            "bytes an article": index.bytes_an_article,
        }
        for index, timing, many in zip(built, single, batched, strict=True)
    ]


def model_of_texts(count: int = _MODEL_TEXTS) -> CodeModel:
    """Fit the model to fingerprints of made texts of 500 characters."""
    texts = [text.body for text in make_feed(count, 500, copies_share=0.0, seed=2)]
    codes = Fingerprinter(Scheme(), load_lexicon()).fingerprint(texts).codes
    return CodeModel.fitted(codes.reshape(-1))


def main(
    sizes: Annotated[list[int] | None, typer.Option(help="Articles in the index; may be given several times.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the JSON lines.")] = OUT,
    batch: Annotated[int, typer.Option(help="Look-ups at a time, where they are batched.")] = 256,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="One size, fewer rounds.")] = False,
) -> None:
    """Measure look-ups alone."""
    single_threaded()
    keep_to_one_core()
    plan = BlockPlan.named("4x16")
    model = model_of_texts(_MODEL_TEXTS // 4 if quick else _MODEL_TEXTS)
    queries, rounds = (256, 3) if quick else (1_024, 7)
    for size in sizes or (SIZES[:1] if quick else SIZES):
        tell(f"Building indexes of {size:,} fingerprints …")
        rng = np.random.default_rng(size)
        stored = model.sample(size, rng)
        codes = draw_queries(stored, model, queries, rng)
        with (
            tempfile.TemporaryDirectory(prefix="dupwatch-bench-") as scratch,
            indexes(stored, plan, Path(scratch)) as built,
        ):
            found = check(built, codes[:_SLOW_QUERIES])
            single, batched = measure(built, codes, 1, rounds), measure(built, codes, batch, rounds)
        title = f"Look-up within 3 bits, one core, {size:,} fingerprints"
        arguments = {"size": size, "queries": queries, "rounds": rounds, "batch": batch, "found": found}
        publish(PART, title, rows(built, single, batched), out=out, **arguments)


if __name__ == "__main__":
    typer.run(main)
