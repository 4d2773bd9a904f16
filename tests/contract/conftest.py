"""The stores that are tested against the contract: one entry of ``STORES`` for each kind in ``storage.kinds``."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from storage.clock import Clock
from storage.hbase import HbaseOptions, parse_place
from storage.hbase.store import HbaseStore
from storage.interface import Store
from storage.kinds import KINDS
from storage.lmdb import LmdbOptions, LmdbStore
from storage.memory import MemoryStore
from storage.postings import POSTING_LAYOUTS
from storage.records import Record
from tests.builders import TIME_MS, make_record
from tests.hbase_server import COMMON, fresh_namespace

ROW_POSTINGS_MAX = 100_000


@dataclass(slots=True)
class SetClock:
    """A clock that a test sets."""

    ms: int = TIME_MS

    def __call__(self) -> int:
        """Return the time that was set."""
        return self.ms


@dataclass(frozen=True, slots=True)
class Kind:
    """An implementation: ``opened`` yields an empty store with this clock and cap.

    ``sweeps`` is false where the store expires what is old by itself, by a clock that no test can set. ``remote`` says
    that it is behind a server, which takes milliseconds a call.
    """

    opened: Callable[[Clock, int], AbstractContextManager[Store]]
    sweeps: bool = True
    remote: bool = False

    @property
    def rounds(self) -> int:
        """Return how often random calls and racing threads are tried."""
        return 3 if self.remote else 40


@contextmanager
def opened_memory(clock: Clock, row_postings_max: int) -> Iterator[Store]:
    """Yield a store in memory."""
    yield MemoryStore(clock=clock, row_postings_max=row_postings_max)


@contextmanager
def opened_lmdb(clock: Clock, row_postings_max: int) -> Iterator[Store]:
    """Yield a store in a directory, whose map is so small at first that most tests make it grow."""
    options = LmdbOptions(durability="process", map_bytes=1 << 16, row_postings_max=row_postings_max, clock=clock)
    with TemporaryDirectory() as directory:
        store = LmdbStore.open(Path(directory) / "store", options)
        try:
            yield store
        finally:
            store.close()


@contextmanager
def opened_hbase(address: str, namespace: str, clock: Clock, row_postings_max: int) -> Iterator[Store]:
    """Yield a store in tables of a real HBase, which uses its own times."""
    place = parse_place(f"hbase://{address}/{fresh_namespace(address, namespace)}")
    store = HbaseStore.open(place, HbaseOptions(row_postings_max=row_postings_max))
    try:
        yield store
    finally:
        store.close()


def _hbase(request: pytest.FixtureRequest) -> Kind:
    """Start a server for the first test that needs it."""
    opened = partial(opened_hbase, request.getfixturevalue("hbase_address"), COMMON)
    return Kind(opened, sweeps=False, remote=True)


MEMORY = Kind(opened_memory)
LMDB = Kind(opened_lmdb)
STORES: Mapping[str, Callable[[pytest.FixtureRequest], Kind]] = {
    "memory": lambda _: MEMORY,
    "LMDB": lambda _: LMDB,
    "HBase": _hbase,
}
"""The implementations by the names of their kinds in ``storage.kinds``."""
Make = Callable[..., Record]
"""``make_record`` for fingerprints of one width."""


NAMES = [
    pytest.param(kind.name, marks=[pytest.mark.servers] if kind.remote else [], id=kind.name.lower()) for kind in KINDS
]


@pytest.fixture(params=NAMES)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Return the implementation under test."""
    return STORES[request.param](request)


@pytest.fixture
def clock() -> SetClock:
    """Return the store's clock."""
    return SetClock()


@pytest.fixture
def store(kind: Kind, clock: SetClock) -> Iterator[Store]:
    """Yield an empty store."""
    with kind.opened(clock, ROW_POSTINGS_MAX) as opened:
        yield opened


@pytest.fixture(params=POSTING_LAYOUTS)
def make(request: pytest.FixtureRequest) -> Make:
    """Return a function that makes records, with fingerprints of 64 bits, and again of 128."""
    return partial(make_record, code_bytes=request.param)
