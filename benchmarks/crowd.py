"""What an article of a crowd costs beside an ordinary one: ``python -m benchmarks.crowd --store lmdb --plan 4x16``.

A crowd are articles with one fingerprint and nothing else in common, as from one text whose words are shuffled. So many
postings of them are written first, and records of those that a look-up would choose. Then batches of fresh articles
and of further ones of the crowd are judged in turn, in one run: the ratio is what counts. An HBase and a gateway are
started for it.
"""

import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Annotated, Final

import msgspec
import numpy as np
import typer

from benchmarks.hbase.servers import Wanted, servers
from benchmarks.speed.report import Row, publish
from consumer.cli.operations.store_init import posting_shares
from consumer.fingerprint import BlockPlan, Fingerprints, TextKind
from consumer.judge.detector import Detector
from consumer.judge.settings import JudgeSettings
from consumer.judge.versions import ArrivalTime, VersionBuilder
from consumer.model.article import Article
from deploy.local import shell
from storage.clock import now_ms
from storage.hbase import HbaseOptions, parse_place
from storage.hbase.options import ROW_POSTINGS_MAX
from storage.hbase.schema import schema_of
from storage.hbase.store import HbaseStore
from storage.hbase.table_script import render_script
from storage.interface import Store
from storage.lmdb import LmdbOptions, LmdbStore
from storage.records import Version

PART: Final = "crowd"
_CODE: Final = 0x0123_4567_89AB_CDEF
_CHUNK: Final = 2_000
_RECORDS: Final = 2_000
_BANDS: Final = 4
_TTL_S: Final = 30 * 86_400
_HEAP_MB: Final = 2_048

Make = Callable[[int], list[Version]]


class Maker:
    """Makes versions with random sketches: ``crowd`` with one fingerprint, ``ordinary`` with one each."""

    def __init__(self, settings: JudgeSettings) -> None:
        self._builder = VersionBuilder(settings.scheme.name, settings.plan, settings.lane1)
        self._chance = np.random.default_rng(secrets.randbits(64))
        self._count = 0

    def crowd(self, count: int) -> list[Version]:
        """This many versions of the crowd."""
        return self._versions(np.full((count, 1), _CODE, np.uint64))

    def ordinary(self, count: int) -> list[Version]:
        """This many versions that resemble no other."""
        return self._versions(self._random((count, 1)))

    def _random(self, shape: tuple[int, ...]) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint64]]":
        return self._chance.integers(0, 2**64 - 1, shape, np.uint64)

    def _versions(self, codes: "np.ndarray[tuple[int, ...], np.dtype[np.uint64]]") -> list[Version]:
        count = len(codes)
        fingerprints = Fingerprints(
            codes=codes,
            sketches=self._chance.integers(0, 255, (count, 256), np.uint8),
            one_bits=self._random((count,)),
            bands=self._random((count, _BANDS)),
            keywords=((("harbour", 2.5), ("ferry", 1.25)),) * count,
            kinds=np.full(count, TextKind.LONG, np.uint8),
            text_digests=self._chance.integers(0, 255, (count, 16), np.uint8),
            keyword_counts=np.full(count, 2, np.int64),
        )
        numbers = range(self._count, self._count + count)
        self._count += count
        articles = [Article(id=f"article {number}", body="") for number in numbers]
        return self._builder.versions(articles, [ArrivalTime(now_ms(), number) for number in numbers], fingerprints)


@contextmanager
def opened(kind: str, plan: BlockPlan, cap: int | None) -> Iterator[Callable[[], Store]]:
    """Opens the store again at each call, as another process would."""
    with tempfile.TemporaryDirectory(prefix="dupwatch-crowd-") as folder:
        if kind == "lmdb":
            options = LmdbOptions(map_bytes=4 << 30, row_postings_max=cap or LmdbOptions().row_postings_max)
            store = LmdbStore.open(Path(folder) / "store", options)
            yield lambda: store
            store.close()
            return
        with servers(Path(folder), heap_mb=_HEAP_MB) as running:
            wanted = Wanted(plan.name, 0, packed=False)
            schema = schema_of(wanted.namespace, _TTL_S, posting_shares(plan, _BANDS), 4)
            shell.run(running.hbase.conf, render_script(schema))
            hbase = HbaseOptions(
                row_postings_max=cap or ROW_POSTINGS_MAX.get(plan.name, HbaseOptions().row_postings_max)
            )
            yield lambda: HbaseStore.open(parse_place(running.url(wanted)), hbase)


def fill(store: Store, maker: Maker, postings: int) -> None:
    """Write this many postings of lane 0 under each key of the crowd, and the records that are chosen later."""
    versions = maker.crowd(postings)
    for start in range(0, postings, _CHUNK):
        # Lane 1 has rows of its own for each, which nobody reads.
        some = versions[start : start + _CHUNK]
        store.add([msgspec.structs.replace(version.record, keys=version.record.keys[:-_BANDS]) for version in some])
    lowest = sorted(versions, key=lambda version: version.record.reference)[:_RECORDS]
    store.create(lowest)


def measured(detector: Detector, make: Make, batch: int, count: int) -> list[float]:
    """Seconds an article, batch by batch."""
    took = []
    for _ in range(count):
        versions = make(batch)
        began_s = time.perf_counter()
        detector.judge(versions)
        took.append((time.perf_counter() - began_s) / batch)
    return took


def rows(detector: Detector, maker: Maker, batches: Sequence[tuple[int, int]]) -> list[Row]:
    """One for each size of a batch; the first article of the crowd stands by itself."""
    first = measured(detector, maker.crowd, 1, 1)[0]
    found: list[Row] = [{"batch of": "first", "ordinary, ms": None, "crowded, ms": 1e3 * first, "times": None}]
    for size, rounds in batches:
        measured(detector, maker.ordinary, size, 2)
        both = [
            (measured(detector, maker.ordinary, size, 1)[0], measured(detector, maker.crowd, size, 1)[0])
            for _ in range(rounds)
        ]
        ordinary, crowded = (
            median(measurement for measurement, _ in both),
            median(measurement for _, measurement in both),
        )
        found.append(
            {
                "batch of": size,
                "ordinary, ms": 1e3 * ordinary,
                "crowded, ms": 1e3 * crowded,
                "times": crowded / ordinary,
            }
        )
    return found


def main(
    store: Annotated[str, typer.Option(help="lmdb or hbase.")] = "lmdb",
    plan: Annotated[str, typer.Option(help="4x16 or 16x28.")] = "4x16",
    postings: Annotated[int, typer.Option(min=1, help="Of the crowd, in each of its rows.")] = 500_000,
    cap: Annotated[int | None, typer.Option(help="row_postings_max; the store's own when left out.")] = None,
) -> None:
    """Measure what an article of a crowd costs."""
    settings = JudgeSettings(plan=BlockPlan.named(plan), scheme_digest="")
    maker = Maker(settings)
    with opened(store, settings.plan, cap) as open_store:
        began_s = time.perf_counter()
        fill(open_store(), maker, postings)
        filled_s = time.perf_counter() - began_s
        detector = Detector(open_store(), settings, now_ms)
        found = rows(detector, maker, [(256, 5), (1, 15)])
    title = f"An article of a crowd of {postings:,}, {store}, {plan}"
    publish(PART, title, found, store=store, plan=plan, postings=postings, cap=cap, filled_s=filled_s)


if __name__ == "__main__":
    typer.run(main)
