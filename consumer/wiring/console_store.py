"""The store as the console uses it: opened when it is needed, and again after it could not be."""

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from consumer.config.config import Config
from consumer.console.context import Articles, ArticleView
from consumer.judge.events import storable_reference, version_name
from consumer.model.verdict import decode_verdict
from consumer.store_tools.bank_matches import ComparableStore
from consumer.wiring import stores
from consumer.wiring.comparable_store import bound_to
from storage.errors import StoreUnavailable
from storage.interface import Store
from storage.records import Stored

StoreAccess = Callable[[], Store]
"""Returns a store. Raises ``StoreError`` while it cannot be had."""


class LazyStore:
    """Opens the configured store when it is asked for first. Used by any thread."""

    def __init__(self, config: Config, report: Callable[[object], None], answer_s: float | None) -> None:
        self._config = config
        self._report = report
        self._answer_s = answer_s
        self._lock = threading.Lock()
        self._opened = ExitStack()
        self._store: Store | None = None

    def __call__(self) -> Store:
        """Return the store. Raises ``StoreError`` while it cannot be opened, or is not there yet."""
        with self._lock:
            if self._store is None:
                if stores.is_still_to_come(self._config):
                    # Consumers make it, with the settings that they judge by.
                    raise StoreUnavailable(f"{self._config.store.url} is not there yet")
                opened = stores.opened_store(self._config, report=self._report, quiet=True, answer_s=self._answer_s)
                self._store = self._opened.enter_context(opened)
            return self._store

    def close(self) -> None:
        """Close it."""
        with self._lock:
            self._store = None
            self._opened.close()


class StoredArticles(Articles):
    """Reads articles for pages: versions in one call, and their texts in another."""

    def __init__(self, access: StoreAccess) -> None:
        self._access = access

    def read(self, pairs: Sequence[tuple[str, str]], *, bodies: bool = True) -> list[ArticleView | None]:
        """Return these versions; None for those that the store does not hold, or that no store could."""
        references = [storable_reference(*pair) for pair in pairs]
        wanted = list(dict.fromkeys(reference for reference in references if reference is not None))
        if not wanted:
            return [None] * len(pairs)
        store = self._access()
        found = {stored.record.reference: stored for stored in store.read(wanted) if stored is not None}
        texts: dict[bytes, str | None] = {}
        if bodies and found:
            texts = dict(zip(found, store.bodies(list(found)), strict=True))
        views = {reference: _view(stored, texts.get(reference)) for reference, stored in found.items()}
        return [None if reference is None else views.get(reference) for reference in references]


class ComparableStores:
    """The store of the consumers, and what compares its articles with items. Used by any thread.

    What compares is built when it is needed first, since it may load dictionaries.
    """

    def __init__(self, config: Config, access: StoreAccess) -> None:
        self._config = config
        self._access = access
        self._lock = threading.Lock()
        self._opened: ComparableStore | None = None

    def __call__(self) -> ComparableStore:
        """Return it. Raises ``StoreError`` while the store cannot be had, and ``Fatal`` where it was made otherwise."""
        store = self._access()
        with self._lock:
            if self._opened is None or self._opened.store is not store:
                self._opened = bound_to(self._config, store).compared
            return self._opened


def _view(stored: Stored, body: str | None) -> ArticleView:
    record = stored.record
    return ArticleView(
        id=record.id,
        version=version_name(record.reference),
        title=record.title,
        source=record.source,
        url=record.url,
        lang=record.lang,
        arrived_ms=record.time_ms,
        body=body,
        ended_ms=None if stored.ends_at is None else stored.ends_at.time_ms,
        verdict=None if stored.verdict is None else decode_verdict(stored.verdict),
        keywords=tuple(word for word, _ in record.keywords),
    )
