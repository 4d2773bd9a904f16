"""Scans of a store for items of banks, with a progress bar and counts."""

from collections.abc import Iterator

from consumer.banks.bank import Banks
from consumer.banks.known_texts import KnownTexts
from consumer.cli import render
from consumer.store_tools.bank_matches import ComparedVersions
from consumer.store_tools.bank_scan import ScanCounts, scan_store
from consumer.wiring.comparable_store import BoundStore
from consumer.wiring.stores import is_remote
from storage.clock import now_ms


def compare_versions(opened: BoundStore, items: Banks, counts: ScanCounts) -> Iterator[ComparedVersions]:
    """Yield all versions of a store in batches, with the items that they repeat. Show the progress on a terminal."""
    known = KnownTexts(opened.compared.engine, opened.compared.settings, now_ms)
    known.replace(items.entries())
    # Counting the versions of a remote store takes as long as reading them.
    total = None if is_remote(opened.config) else opened.compared.store.stats().versions
    with render.progress(render.console(stderr=True)) as progress:
        update = render.follow(progress, "comparing", lambda: (counts.versions, total))
        for compared in scan_store(opened.compared.store, known, counts):
            yield compared
            update()


def show_counts(counts: ScanCounts) -> None:
    """Print how many versions were compared, how many repeat an item, and how many were compared only in part."""
    errors = render.console(stderr=True)
    errors.print(f"Compared versions: {counts.versions:,}. Of these, {counts.repeating:,} repeat an item.")
    if counts.without_text:
        errors.print(
            f"Not searched for parts, because they have no stored text (store.keep_bodies): {counts.without_text:,}."
        )
    show_limited(counts.limited)


def show_limited(articles: int) -> None:
    """Print how many articles, if any, were compared with only some items or repeat more items than are named."""
    if articles:
        render.console(stderr=True).print(
            f"Compared with only some of the items, or repeating more items than the ten that are named: {articles:,}."
        )
