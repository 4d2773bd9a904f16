"""Fingerprints that are as hard to find as possible, and what brute force finds among them."""

import hashlib
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from consumer.fingerprint import BlockPlan, Fingerprints, TextKind
from consumer.judge.detector import Detector
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import ArrivalTime, VersionBuilder
from consumer.model.article import Article
from storage.interface import Store
from storage.records import Record, Version
from tests.builders import TIME_MS
from tests.chaos.near_articles import SETTINGS

DISTANCES = {"4x16": range(8), "16x28": range(5)}
"""The distances for which each plan promises exact retrieval."""
ENDS = {"4x16": (3, 7), "16x28": (3, 4)}
"""The greatest of these at each radius. Only the radius decides which rows are read."""
BEYOND = 9
"""Populations have pairs at every distance below this, more than any plan finds."""
BLOCKS, BLOCK_BITS = 4, 16
PARTS, PART_BITS = 4, 12
"""The parts into which `16x28` divides the other three blocks."""
_BUILDERS = {name: VersionBuilder("test/1", BlockPlan.named(name), lane1=False) for name in DISTANCES}


def plain(max_distance: int, plan: str = "4x16") -> JudgeSettings:
    """Return settings of plain SimHash: only the distance decides."""
    return replace(SETTINGS, plan=BlockPlan.named(plan), verify=False, lane1=False, max_distance=max_distance)


def fingerprint_version(
    code: int, number: int, *, plan: str = "4x16", name: str = "", content: bytes = b"", time_ms: int = TIME_MS
) -> Version:
    """Return the ``number``-th article, with this fingerprint and block keys only; its id is unique unless named."""
    fingerprints = Fingerprints(
        codes=np.array([[code]], np.uint64),
        sketches=np.zeros((1, 256), np.uint8),
        one_bits=np.zeros(1, np.uint64),
        bands=np.zeros((1, 4), np.uint64),
        keywords=((),),
        kinds=np.array([TextKind.LONG], np.uint8),
        text_digests=np.frombuffer(hashlib.md5(content, usedforsecurity=False).digest(), np.uint8).reshape(1, 16),
        keyword_counts=np.ones(1, np.int64),
    )
    article = Article(id=name or f"article {number}", body="")
    return _BUILDERS[plan].versions([article], [ArrivalTime(time_ms, number)], fingerprints)[0]


def splits(bits: int) -> Iterator[tuple[int, ...]]:
    """Return every way to spread this many differing bits over four blocks or parts."""
    for a in range(bits + 1):
        for b in range(bits + 1 - a):
            for c in range(bits + 1 - a - b):
                yield a, b, c, bits - a - b - c


def mask_of(split: Sequence[int], chance: random.Random) -> int:
    """Return differing bits, this many in each block."""
    return sum(
        1 << block * BLOCK_BITS + bit
        for block, count in enumerate(split)
        for bit in chance.sample(range(BLOCK_BITS), count)
    )


def all_splits(chance: random.Random) -> list[int]:
    """Return a pair for every split of 0 to 8 bits, far from all other pairs."""
    codes = []
    for bits in range(BEYOND):
        for split in splits(bits):
            base = chance.getrandbits(64)
            codes += [base, base ^ mask_of(split, chance)]
    return codes


def splits_of_parts(chance: random.Random) -> list[int]:
    """Return pairs for every split of 0 to 5 bits over the parts of three blocks, the fourth block being equal."""
    codes = []
    for block in range(BLOCKS):
        for split in (split for bits in range(6) for split in splits(bits)):
            rest = [
                part * PART_BITS + bit
                for part, count in enumerate(split)
                for bit in chance.sample(range(PART_BITS), count)
            ]
            base = chance.getrandbits(64)
            # Bits of the rest that lie from the block on stand one block higher in the fingerprint.
            codes += [base, base ^ sum(1 << bit + BLOCK_BITS * (bit >= block * BLOCK_BITS) for bit in rest)]
    return codes


def at_the_edges(chance: random.Random) -> list[int]:
    """Return runs of differing bits that begin at every bit, so that they cross the borders of blocks."""
    codes = []
    for bits in (1, 3, 4, 7, 8):
        base = chance.getrandbits(64)
        codes += [base, *(base ^ _run(start, bits) for start in range(64))]
    return codes


def _run(start: int, bits: int) -> int:
    return sum(1 << (start + bit) % 64 for bit in range(bits))


def flooded_row(chance: random.Random) -> list[int]:
    """Return hundreds of fingerprints in one row, a few of them near each other."""
    base = chance.getrandbits(64)
    top = base & 0xFFFF << 48
    near = [base ^ mask_of((0, *split), chance) for bits in range(9) for split in _three_way(bits)]
    return [*near, *(top | chance.getrandbits(48) for _ in range(300))]


def _three_way(bits: int) -> list[tuple[int, int, int]]:
    return [(b, c, d) for a, b, c, d in splits(bits) if a == 0]


def one_cloud(chance: random.Random) -> list[int]:
    """Return fingerprints around one, so that there are hundreds of pairs at each distance."""
    base = chance.getrandbits(64)
    return [base, *(base ^ mask_of(_random_split(chance, chance.randrange(6)), chance) for _ in range(80))]


def _random_split(chance: random.Random, bits: int) -> tuple[int, ...]:
    return chance.choice(list(splits(bits)))


POPULATIONS = {
    "all splits": all_splits,
    "splits of parts": splits_of_parts,
    "at the edges": at_the_edges,
    "flooded row": flooded_row,
    "one cloud": one_cloud,
}


def distances_of(codes: Sequence[int]) -> NDArray[np.uint8]:
    """Return the distance of every pair in bits: uint8[n, n]."""
    array = np.array(codes, np.uint64)
    distances: NDArray[np.uint8] = np.bitwise_count(array[:, np.newaxis] ^ array)
    return distances


def brute_force(codes: Sequence[int], max_distance: int) -> list[set[int]]:
    """Return for each fingerprint the numbers of the others within the distance."""
    near = distances_of(codes) <= max_distance
    np.fill_diagonal(near, val=False)
    return [set(np.flatnonzero(row).tolist()) for row in near]


def fill(store: Store, versions: Sequence[Version]) -> None:
    """Store versions and their postings; they stay pending."""
    store.create(versions)
    store.add([version.record for version in versions])


def looked_up(store: Store, versions: Sequence[Version], settings: JudgeSettings) -> list[set[int]]:
    """Return what the judge's own look-up finds near each version, by number in the feed."""
    search = Detector(store, settings, lambda: TIME_MS).attempt().search
    near = search.look_up([version.record for version in versions], created={})
    assert not near.truncated
    return [numbers(other.record for other in near.neighbours[version.record.reference]) for version in versions]


def numbers(records: Iterable[Record]) -> set[int]:
    """Return the positions of these records in the feed."""
    return {record.sequence for record in records}
