"""A flood of copies of one article: the last costs no more than the first, and leaves no trace in the index."""

import gc
import random
import time
from collections.abc import Sequence
from statistics import median

from consumer.detector import Detector
from consumer.verdict import decode_verdict
from storage.clock import now_ms
from storage.interface import Store
from storage.records import Record, Version
from tests.chaos.near_articles import SETTINGS, new_text, version_of

COPIES = 20_000
BATCH = 100
SLOWER_MAX = 2.0


def costs_s(detector: Detector, versions: Sequence[Version]) -> tuple[list[float], list[bytes]]:
    """The processor time of each batch, and the verdicts."""
    costs: list[float] = []
    events: list[bytes] = []
    gc.collect()
    gc.disable()
    try:
        for at in range(0, len(versions), BATCH):
            began_s = time.process_time()
            events += detector.judge(versions[at : at + BATCH])
            costs.append(time.process_time() - began_s)
    finally:
        gc.enable()
    return costs, events


def test_the_last_of_twenty_thousand_copies_costs_what_the_first_did(store: Store) -> None:
    """The last 1,000 copies take at most twice the time of the first; one is kept, and only it has postings."""
    text = new_text(random.Random("flood"))
    versions = [version_of(f"copy {number}", text, number) for number in range(COPIES)]
    costs, events = costs_s(Detector(store, SETTINGS, now_ms), versions)
    per_thousand = 1_000 // BATCH
    # The median of ten: a pause of the machine in one of them says nothing of the flood.
    assert median(costs[-per_thousand:]) <= SLOWER_MAX * median(costs[:per_thousand])
    assert [decode_verdict(event).outcome for event in events] == ["unique"] + ["duplicate"] * (COPIES - 1)
    assert store.stats().postings == len(text.keys())


class _Counting:
    """Passes everything on to a store, and counts for how many records postings were written or deleted."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.posted = 0
        self.removed = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def add(self, records: Sequence[Record]) -> None:
        """Count them."""
        self.posted += len(records)
        self._store.add(records)

    def remove(self, records: Sequence[Record]) -> None:
        """Count them."""
        self.removed += len(records)
        self._store.remove(records)


def test_copies_of_a_known_original_never_get_postings(store: Store) -> None:
    """Beyond the batch that the original came in, no posting is written, so none has to be deleted."""
    text = new_text(random.Random("flood"))
    versions = [version_of(f"copy {number}", text, number) for number in range(10 * BATCH)]
    counting = _Counting(store)
    costs_s(Detector(counting, SETTINGS, now_ms), versions)  # type: ignore[arg-type]  # it has all that a store has
    assert (counting.posted, counting.removed) == (BATCH, BATCH - 1)
