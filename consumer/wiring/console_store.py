"""The store as the console uses it: opened when it is needed, and again after it could not be."""

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from consumer.config.config import Config
from consumer.console.context import Articles, ArticleView, article_view
from consumer.judge.events import storable_reference
from consumer.store_tools.text_query import QueriedStore
from consumer.wiring import stores
from consumer.wiring.comparable_store import bound_to, queries
from consumer.workers.engines import InTurns
from storage.errors import StoreUnavailable
from storage.interface import Store

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
        views = {reference: article_view(stored, texts.get(reference)) for reference, stored in found.items()}
        return [None if reference is None else views.get(reference) for reference in references]


class ComparableStores:
    """The store of the consumers, and what compares texts with its articles. Used by any thread.

    What compares is built when it is needed first, since it may load dictionaries.
    """

    def __init__(self, config: Config, access: StoreAccess) -> None:
        self._config = config
        self._access = access
        self._lock = threading.Lock()
        self._opened: QueriedStore | None = None

    def __call__(self) -> QueriedStore:
        """Return it. Raises ``StoreError`` while the store cannot be had, and ``Fatal`` where it was made otherwise."""
        store = self._access()
        with self._lock:
            if self._opened is None or self._opened.compared.store is not store:
                config, compared = bound_to(self._config, store)
                # Pages ask one at a time, but the items of banks are prepared beside them.
                compared = compared._replace(engine=InTurns(compared.engine))
                self._opened = QueriedStore(compared, queries(config, store, compared.settings))
            return self._opened
