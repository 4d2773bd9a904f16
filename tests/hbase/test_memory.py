"""Memory has a bound, however wide rows are: of a process that judges whole batches and does nothing else."""

import logging
from collections.abc import Iterator, Sequence
from itertools import product
from multiprocessing import get_context
from typing import Final, NamedTuple

import numpy as np
import pytest

from consumer.judge.search import LOOK_UP_BYTES_MAX
from storage.hbase import HbaseOptions, parse_place
from storage.hbase.calls import Gateways
from storage.hbase.connection import CellChange
from storage.hbase.meta import CODE_BYTES_ROW, Meta, PackMeta
from storage.hbase.posting_cells import PACKED, SetName, fresh_cell
from storage.hbase.posting_rows import ANSWER_BYTES_MAX
from storage.hbase.row_widths import WideRows
from storage.hbase.set_plans import split_evenly
from storage.postings import DEFAULT_LAYOUT
from storage.records import REFERENCE_BYTES
from tests.builders import TIME_MS, make_key
from tests.examples import drawn
from tests.hbase.judging_apart import BATCH, Done, judge_apart
from tests.kafka.memory import MB, MemoryWatch

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

ABOVE_ORDINARY_MB_MAX: Final = (LOOK_UP_BYTES_MAX + HbaseOptions().connections_max * ANSWER_BYTES_MAX) / MB
"""How much more than with ordinary rows: what a look-up may have in memory, and an answer on each connection."""
CAP: Final = HbaseOptions().row_postings_max
GROUPS: Final = 72
BELOW_CAP: Final = CAP - 2 * -(-BATCH // GROUPS)
"""Of rows that are read whole, also with the postings of two batches in so many groups."""
_BUCKET_MS: Final = 86_400_000
_CELLS_AT_ONCE: Final = 20_000
_WIDTH: Final = DEFAULT_LAYOUT.posting_bytes
_log = logging.getLogger(__name__)

Rows = Sequence[tuple[bytes, ...]]


class Wide(NamedTuple):
    """So many rows, eight for each group of articles, with so many postings: in sets, or a cell each.

    All of them together are more than the bound.
    """

    groups: int
    postings: int
    packed: bool


CASES: Final = [
    *drawn(
        [
            pytest.param(Wide(3, 100_000, packed=True), id="packed"),
            pytest.param(Wide(GROUPS, BELOW_CAP, packed=True), id="below the cap"),
        ],
        2,
    ),
    pytest.param(Wide(3, 100_000, packed=False), id="hot", marks=pytest.mark.load),
]


def rows_of(groups: int, first: int) -> Rows:
    """The keys of each group of articles: four of either lane."""
    return [
        tuple(make_key(value, lane=lane, number=number) for lane in (0, 1) for number in range(4))
        for value in range(first, first + groups)
    ]


def crowd(count: int) -> bytes:
    """As many postings of a crowd: articles with one fingerprint that nobody else has, in the order of arrival."""
    postings = np.zeros(count, DEFAULT_LAYOUT.dtype)
    references = np.random.default_rng(3).bytes(count * REFERENCE_BYTES)
    postings["reference"] = np.frombuffer(references, f"V{REFERENCE_BYTES}")
    postings["time_ms"] = TIME_MS + np.arange(count)
    return postings.tobytes()


def fill(gateways: Gateways, keys: Sequence[bytes], wide: Wide) -> None:
    """Write each of these rows as a packer has left it, or as cells, and mark them as who fills or sees one does."""
    namespace, postings = gateways.place.namespace, crowd(wide.postings)
    meta, table = f"{namespace}:meta".encode(), f"{namespace}:postings".encode()
    Meta(meta).agree(gateways.calls(), CODE_BYTES_ROW, b"%d" % DEFAULT_LAYOUT.code_bytes)
    if wide.packed:
        PackMeta(meta).bind_bucket(gateways.calls(), _BUCKET_MS)
        sets = [
            (PACKED + SetName(0, number, bytes(8)).qualifier(), value)
            for number, value in enumerate(split_evenly(postings, DEFAULT_LAYOUT))
        ]
        gateways.calls().change(table, (CellChange(key, column, value) for key in keys for column, value in sets))
    else:
        cells = [postings[at : at + _WIDTH] for at in range(0, len(postings), _WIDTH)]
        for key, start in product(keys, range(0, len(cells), _CELLS_AT_ONCE)):
            gateways.calls().change(table, [fresh_cell(key, cell) for cell in cells[start : start + _CELLS_AT_ONCE]])
    WideRows(meta, readonly=False).remember(gateways.calls(), keys)


def judged(url: str, rows: Rows, batches: int) -> tuple[float, list[Done]]:
    """The most own memory that a new process has taken since it was ready, in MB, and what its batches came to."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=judge_apart, args=(url, theirs, rows), daemon=True)
    process.start()
    theirs.close()
    try:
        ours.recv()
        assert process.pid is not None
        done = []
        with MemoryWatch() as memory:
            memory.watch("judge", process.pid)
            for number in range(batches):
                ours.send(f"{rows[0][0].hex()} {number}")
                done.append(ours.recv())
        ours.send(None)
        process.join()
        return memory.peaks_mb["judge"], done
    finally:
        process.kill()


@pytest.fixture
def gateways(hbase_address: str, hbase_namespace: str) -> Iterator[Gateways]:
    """The test's own way to the tables."""
    made = Gateways(parse_place(f"hbase://{hbase_address}/{hbase_namespace}"), HbaseOptions())
    yield made
    made.close()


@pytest.mark.parametrize("wide", CASES)
def test_a_whole_batch_among_wide_rows(gateways: Gateways, wide: Wide) -> None:
    """Rows over the cap are cut before the next ones are read; of those below it no more are read than fit."""
    wide_rows, ordinary_rows = rows_of(wide.groups, 1), rows_of(wide.groups, 1 + wide.groups)
    fill(gateways, [key for keys in wide_rows for key in keys], wide)
    url = f"hbase://{','.join(map(str, gateways.place.addresses))}/{gateways.place.namespace}"
    ordinary_mb, _ = judged(url, ordinary_rows, 2)
    wide_mb, done = judged(url, wide_rows, 2)
    crowded = BATCH * len(wide_rows[0]) if wide.postings > CAP else 0
    assert wide.groups * len(wide_rows[0]) * wide.postings * _WIDTH / MB > 1.2 * ABOVE_ORDINARY_MB_MAX
    assert [(batch.verdicts, batch.crowded_rows) for batch in done] == [(BATCH, crowded)] * 2
    _log.info("%s: %.0f MB, ordinary rows %.0f MB", wide, wide_mb, ordinary_mb)
    assert wide_mb - ordinary_mb < ABOVE_ORDINARY_MB_MAX
