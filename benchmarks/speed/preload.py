"""Fills stores by the million: postings in the order of their keys, as a store has them after this many articles.

Only what a measurement reads is there. ``tests/unit/test_benchmarks.py`` compares the rows with those that the store's
own ``add`` makes.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import lmdb
import numpy as np
import numpy.typing as npt

from benchmarks.speed.codes import CodeModel
from consumer.fingerprint import BlockPlan
from storage.lmdb import LmdbOptions, LmdbStore
from storage.lmdb.layout import CODE_BYTES_KEY, DATABASES
from storage.memory import MemoryStore
from storage.postings import POSTING_DTYPE, POSTING_LAYOUTS
from storage.records import REFERENCE_BYTES

TIME_MS: Final = 1_700_000_000_000
BANDS: Final = 4
_MAP_BYTES: Final = 1 << 36
_OPTIONS: Final = LmdbOptions(
    durability="process", keep_bodies=False, row_postings_max=1 << 40, map_bytes=_MAP_BYTES, map_bytes_max=_MAP_BYTES
)


class Entries(NamedTuple):
    """Articles as postings know them: fingerprints uint64[n], one-bit minima uint64[n], bands uint64[n, bands]."""

    codes: npt.NDArray[np.uint64]
    one_bits: npt.NDArray[np.uint64]
    bands: npt.NDArray[np.uint64]


class KeyColumn(NamedTuple):
    """The postings of all articles under the keys that have one first byte, in order.

    ``keys`` uint8[rows, key bytes]: the rows there are; row r has the postings ``starts[r]:starts[r + 1]``.
    """

    keys: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    postings: npt.NDArray[Any]


def draw_entries(model: CodeModel, count: int, rng: np.random.Generator, *, bands: int = BANDS) -> Entries:
    """Draw articles: fingerprints from the model; minima at random, as those of unrelated texts are."""
    return Entries(
        model.sample(count, rng),
        rng.integers(0, 1 << 64, count, dtype=np.uint64),
        rng.integers(0, 1 << 64, (count, bands), dtype=np.uint64),
    )


def key_columns(plan: BlockPlan, entries: Entries) -> Iterator[KeyColumn]:
    """Sort the postings of all articles by key, the keys with one first byte together, first bytes rising."""
    postings = np.zeros(len(entries.codes), POSTING_DTYPE)
    postings["code"] = entries.codes
    # In the first bytes, which are the hash of an id: each article has an id of its own.
    numbers = np.arange(len(entries.codes), dtype=">u8").view("V8")
    postings["reference"] = np.concatenate(
        [numbers.view(np.uint8).reshape(-1, 8), np.zeros((len(numbers), REFERENCE_BYTES - 8), np.uint8)], axis=1
    ).view(f"V{REFERENCE_BYTES}")[:, 0]
    postings["time_ms"] = TIME_MS
    postings["sequence"] = np.arange(len(postings))
    yield from _columns(plan.keys(entries.codes[:, np.newaxis]), postings, entries.codes)
    if entries.bands.size:
        postings["code"] = entries.one_bits
        yield from _columns(plan.band_keys(entries.bands), postings, entries.one_bits)


def _columns(
    keys: npt.NDArray[np.uint8], postings: npt.NDArray[Any], codes: npt.NDArray[np.uint64]
) -> Iterator[KeyColumn]:
    """Group the keys of one lane by their first byte: only keys of one group can be in each other's way."""
    firsts = keys[0, :, 0] if len(keys) else np.zeros(0, np.uint8)
    for first in np.unique(firsts):
        columns = np.flatnonzero(firsts == first)
        together = keys[:, columns].reshape(-1, keys.shape[2])
        owners = np.repeat(np.arange(len(keys)), len(columns))
        values = _as_numbers(together)
        # Stable, and owners rise: equal codes stay in the order of their references.
        order = np.lexsort((codes[owners], values))
        values = values[order]
        changes = np.flatnonzero(np.diff(values, prepend=values[:1] + np.uint64(1)) != 0)
        starts = np.append(changes, len(values))
        yield KeyColumn(together[order[changes]], starts, postings[owners[order]])


def _as_numbers(keys: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    padded = np.zeros((len(keys), 8), np.uint8)
    padded[:, 8 - keys.shape[1] :] = keys
    return padded.view(">u8").astype(np.uint64).reshape(-1)


def memory_store(plan: BlockPlan, entries: Entries) -> MemoryStore:
    """Build a store in memory with these postings, and nothing else."""
    store = MemoryStore(row_postings_max=len(entries.codes) + 1)
    # Adding ten million postings by the store's own call takes minutes, and what is measured is reading them.
    rows = store._rows  # noqa: SLF001
    width = POSTING_DTYPE.itemsize
    for keys, starts, postings in key_columns(plan, entries):
        packed = postings.tobytes()
        names = [key.tobytes() for key in keys]
        for name, start, end in zip(names, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            rows[name] = packed[start * width : end * width]
    return store


def lmdb_store(path: Path, plan: BlockPlan, entries: Entries) -> LmdbStore:
    """Build a store at ``path`` with these postings, and nothing else."""
    fill_lmdb(path, plan, entries)
    return open_filled(path)


def open_filled(path: Path) -> LmdbStore:
    """Open what ``fill_lmdb`` wrote."""
    return LmdbStore.open(path, _OPTIONS)


def fill_lmdb(path: Path, plan: BlockPlan, entries: Entries) -> None:
    """Write a store's files with these postings, and nothing else; a kill may leave them damaged."""
    open_filled(path).close()
    with lmdb.open(str(path), map_size=_MAP_BYTES, max_dbs=len(DATABASES), sync=False) as environment:
        meta = environment.open_db(b"meta")
        database = environment.open_db(b"postings", dupsort=True, dupfixed=True)
        for column in key_columns(plan, entries):
            with environment.begin(write=True) as transaction:
                transaction.cursor(database).putmulti(_items(column), append=True)
        with environment.begin(write=True) as transaction:
            transaction.put(CODE_BYTES_KEY, str(POSTING_LAYOUTS[8].code_bytes).encode(), db=meta)


def _items(column: KeyColumn) -> Iterator[tuple[bytes, bytes]]:
    packed = column.postings.tobytes()
    width = POSTING_DTYPE.itemsize
    spans = zip(column.keys, column.starts[:-1].tolist(), column.starts[1:].tolist(), strict=True)
    for key, start, end in spans:
        name = key.tobytes()
        for place in range(start * width, end * width, width):
            yield name, packed[place : place + width]
