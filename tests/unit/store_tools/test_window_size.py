"""The estimate of how many articles are in a window: right within its error, and honest where there is too little."""

from collections.abc import Sequence

import numpy as np
import pytest

from consumer.fingerprint import BlockPlan
from consumer.store_tools.store_plan import WindowSize, counted_window, described_size, window_size
from storage.memory import MemoryStore
from storage.postings import POSTING_LAYOUTS, PostingRow
from storage.records import Version
from tests.builders import TIME_MS, make_record, make_tombstone

WINDOW_MS = 1_000_000
PLANS = {
    name: BlockPlan.named(name, bits) for name, bits in (("4x16", 64), ("16x28", 64), ("8x16", 128), ("4x32", 128))
}


class DrawnStore(MemoryStore):
    """Rows with random widths: those of ``articles`` with this many keys, some twice as wide as others."""

    def __init__(self, articles: int, plan: BlockPlan, cap: int = 1 << 30, seed: int = 5) -> None:
        super().__init__()
        self._mean = articles / (1 << plan.key_bits)
        self._layout_of_plan = POSTING_LAYOUTS[plan.code_bytes]
        self._random = np.random.default_rng(seed)
        self._cap = cap
        self.asked = 0

    def look_up(self, keys: Sequence[bytes], bytes_max: int | None = None) -> list[PostingRow]:
        """Draw a row for each key; half of its postings are of the window, half are older."""
        assert len(set(keys)) == len(keys)
        self.asked = len(keys)
        return [self._row(int(self._random.poisson(2 * self._mean * self._random.gamma(2, 0.5)))) for _ in keys]

    def _row(self, width: int) -> PostingRow:
        postings = np.zeros(min(width, self._cap), self._layout_of_plan.dtype)
        postings["time_ms"] = TIME_MS - (WINDOW_MS + 1) * self._random.integers(0, 2, len(postings))
        return PostingRow(postings.tobytes(), width > self._cap, self._layout_of_plan)


@pytest.mark.parametrize(
    ("name", "articles", "error_max"),
    [("4x16", 100_000, 0.3), ("4x16", 10_000_000, 0.12), ("16x28", 20_000_000, 0.3), ("8x16", 1_000_000, 0.2)],
)
def test_the_estimate_lies_within_its_error(name: str, articles: int, error_max: float) -> None:
    """Of 20 samples 17 at least, by what the sample itself says; postings older than the window do not count."""
    right = 0
    for seed in range(20):
        size = window_size(DrawnStore(articles, PLANS[name], seed=seed), PLANS[name], WINDOW_MS, seed)
        assert size.error is not None
        assert 0 < size.error < error_max
        right += abs(size.articles - articles) <= size.error * articles
        assert size.low <= size.articles
    assert right >= 17


@pytest.mark.parametrize(("name", "rows"), [("4x16", 256), ("16x28", 2_048), ("8x16", 256), ("4x32", 2_048)])
def test_how_many_rows_are_read(name: str, rows: int) -> None:
    """No more than one batch of an ordinary feed reads."""
    store = DrawnStore(1, PLANS[name])
    window_size(store, PLANS[name], WINDOW_MS, 1)
    assert rows - 8 <= store.asked <= rows


def test_too_few_postings_give_an_upper_bound() -> None:
    """Of a large key space a sample sees next to nothing."""
    size = window_size(DrawnStore(100_000, PLANS["16x28"]), PLANS["16x28"], WINDOW_MS, 1)
    assert size.error is None
    assert 100_000 < size.articles < 1_000_000
    assert size.low == 0
    assert described_size(size) == f"at most about {size.articles:,} kept articles"


def test_rows_over_the_cap_count_as_far_as_they_are_read() -> None:
    """There are at least so many articles."""
    size = window_size(DrawnStore(10_000_000, PLANS["4x16"], cap=20), PLANS["4x16"], WINDOW_MS, 1)
    assert size.at_least
    assert described_size(size).startswith("at least about ")
    assert described_size(WindowSize(1_200_000, 0.117)) == "about 1,200,000 kept articles (± 12%)"


def test_articles_in_a_real_store_are_found_by_the_keys_of_its_plan() -> None:
    """Each has a posting under the key of each block."""
    store = MemoryStore()
    store.add([make_record(str(number), str(number).encode()) for number in range(20_000)])
    size = window_size(store, PLANS["4x16"], WINDOW_MS, 1)
    assert size.error is not None
    assert abs(size.articles - 20_000) < 2 * size.error * 20_000


def test_an_empty_store_has_next_to_nothing() -> None:
    """A bound, and no warning."""
    assert window_size(MemoryStore(), PLANS["4x16"], WINDOW_MS, 1) == WindowSize(768, None)


def test_kept_articles_of_a_window_are_counted() -> None:
    """Those in force alone, and those within the window before the newest version, whatever that is."""
    store = MemoryStore()
    outcomes = {"kept": "unique", "copy": "duplicate", "gone": "unique", "old": "unique", "edge": "unique"}
    ages_ms = {"old": WINDOW_MS + 1, "edge": WINDOW_MS}
    records = {name: make_record(name, time_ms=TIME_MS - ages_ms.get(name, 1)) for name in (*outcomes, "pending")}
    records["pending"] = make_record("pending", time_ms=TIME_MS)
    store.create([Version(record, None) for record in records.values()])
    store.settle([(records[name].reference, b'{"outcome":"%b"}' % said.encode()) for name, said in outcomes.items()])
    store.retract([make_tombstone("gone", time_ms=TIME_MS + 1)])
    assert counted_window(store, WINDOW_MS, 7) == WindowSize(2, 0.0)
    assert counted_window(store, 10 * WINDOW_MS, 7) == WindowSize(3, 0.0)
    assert counted_window(MemoryStore(), WINDOW_MS, 0) == WindowSize(0, 0.0)
    assert [counted_window(store, WINDOW_MS, most) is None for most in (6, 7)] == [True, False]
    assert described_size(WindowSize(1, 0.0)) == "1 kept article"
