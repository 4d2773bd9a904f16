"""The store as the console uses it: opened when it is needed, and again after it could not be."""

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from consumer.config.config import Config
from consumer.console.context import ArticleReader, ArticleView, article_view
from consumer.fingerprint import Lexicon
from consumer.judge.events import storable_reference
from consumer.model.errors import ConfigError, StoreMismatch
from consumer.model.hooks import Hooks
from consumer.store_tools.text_query import QueriedStore
from consumer.wiring import stores
from consumer.wiring.comparable_store import bound_to, checked_binding, queries
from consumer.workers.engines import SerializedEngine
from storage.errors import StoreUnavailable
from storage.files import may_write
from storage.interface import Store
from storage.kinds import kind_of

log = logging.getLogger("dupwatch")

STORE_S: Final = 5.0
"""How long the store may take to answer a page, where it is behind a network."""
StoreAccess = Callable[[], Store]
"""Returns a store. Raises ``StoreError`` while it cannot be had."""


class LazyStore:
    """Opens the configured store when it is asked for first. Used by any thread.

    It is opened for reading where this process may not write it: ``unwritable`` is what it may not write.
    """

    def __init__(self, config: Config, report: Callable[[object], None], answer_s: float | None) -> None:
        self._config = config
        self._report = report
        self._answer_s = answer_s
        self._lock = threading.Lock()
        self._opened = ExitStack()
        self._store: Store | None = None
        self._unwritable: Path | None = None

    def unwritable(self) -> Path | None:
        """Return the file or folder of the store that this process may not write, None where it may write all."""
        return self._unwritable

    def __call__(self) -> Store:
        """Return the store. Raises ``StoreError`` while it cannot be opened, or is not there yet."""
        with self._lock:
            if self._store is None:
                if stores.is_still_to_come(self._config):
                    # Consumers make it, with the settings that they judge by.
                    raise StoreUnavailable(f"{self._config.store.url} is not there yet")
                self._unwritable = unwritable_part(self._config)
                opened = stores.opened_store(
                    self._config,
                    readonly=self._unwritable is not None,
                    report=self._report,
                    quiet=True,
                    answer_s=self._answer_s,
                )
                self._store = self._opened.enter_context(opened)
            return self._store

    def close(self) -> None:
        """Close it."""
        with self._lock:
            self._store = None
            self._opened.close()


def unwritable_path(store_part: Callable[[], Path | None], own: Path | None) -> Path | None:
    """Return what keeps this process from releasing: a part of the store, or the file of the console's own events."""
    return store_part() or (own if own is not None and not may_write(own) else None)


def opened_stores(
    config: Config, hooks: Hooks, store: Store | None, resources: ExitStack
) -> tuple[StoreAccess, StoreAccess, Callable[[], Path | None]]:
    """Return the store for pages, the one for releases, and what says which part of the latter may not be written.

    They are one, unless the store is behind a network: a process opens an embedded store once.
    """
    if store is not None:
        return (lambda: store), (lambda: store), (lambda: None)
    check_store(config)
    writes = LazyStore(config, hooks.report, None)
    resources.callback(writes.close)
    if not stores.is_remote(config):
        return writes, writes, writes.unwritable
    reads = LazyStore(config, hooks.report, STORE_S)
    resources.callback(reads.close)
    return reads, writes, writes.unwritable


def check_store(config: Config) -> None:
    """Raise ``ConfigError`` where the configured store ends with its run, so that a console could not read it."""
    if not stores.outlives_run(config):
        raise ConfigError(f"the console reads articles from the consumers' store; name it: {stores.STORE_EXAMPLES}")


def unwritable_part(config: Config) -> Path | None:
    """Return the file or folder of the configured store that this process may not write, None if it may write all."""
    place = kind_of(config.store.url).on_disk(config.store.url)
    if place is None:
        return None
    return next((path for path in (place.directory, *place.files) if not may_write(path)), None)


class StoredArticleReader(ArticleReader):
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


class SettingsCheck:
    """Refuses a store that was made with other settings, or another secret, than the configured ones.

    A store without settings passes: consumers bind it. For one thread at a time.
    """

    def __init__(self, config: Config, lexicon: Lexicon) -> None:
        self._config = config
        self._lexicon = lexicon
        self._passed: bytes | None = None

    def __call__(self, store: Store) -> None:
        """Raise ``StoreMismatch`` with the settings that differ. What has passed is compared again when it changes."""
        stored = store.settings()
        if stored in (None, self._passed):
            return
        try:
            checked_binding(self._config, store, self._lexicon)
        except StoreMismatch as error:
            url = self._config.store.url
            raise StoreMismatch(f"the console's settings are not those of the store {url}: {error}") from error
        self._passed = stored


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
                compared = compared._replace(engine=SerializedEngine(compared.engine))
                self._opened = QueriedStore(compared, queries(config, store, compared.settings))
            return self._opened


def completed_config(config: Config) -> Config:
    """Return the configuration with what the store was made with, or as it is while the store does not say it."""
    try:
        return stores.completed_config(config, answer_s=STORE_S)
    except StoreUnavailable as error:
        log.warning("The store does not say yet what it was made with: %s", error)
        return config
