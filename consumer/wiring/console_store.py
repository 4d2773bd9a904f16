"""The console's access to the store, which is opened on first use. If that fails, the next use tries again."""

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
from consumer.wiring.comparable_store import bound_store_of, checked_binding, queries
from consumer.workers.engines import SerializedEngine
from storage.errors import StoreUnavailable
from storage.files import may_write
from storage.interface import Store
from storage.kinds import kind_of

log = logging.getLogger("dupwatch")

STORE_S: Final = 5.0
"""The time limit for each answer of a remote store, except to releases and rebuilds."""
StoreAccess = Callable[[], Store]
"""Returns a store. Raises ``StoreError`` while the store is not available."""


class LazyStore:
    """The configured store, opened on first use. Used by any thread.

    A store that this process may not write is opened for reading. Then ``unwritable`` returns the unwritable path.
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
        """Return the file or folder of the open store that this process may not write; None without such a path."""
        return self._unwritable

    def __call__(self) -> Store:
        """Return the store. Raises ``StoreError`` while it cannot be opened, or does not exist yet."""
        with self._lock:
            if self._store is None:
                if stores.can_be_created(self._config):
                    # Consumers create it, with the settings that they judge by.
                    raise StoreUnavailable(f"{self._config.store.url} does not exist yet")
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
        """Close the store."""
        with self._lock:
            self._store = None
            self._opened.close()


def unwritable_path(store_part: Callable[[], Path | None], own: Path | None) -> Path | None:
    """Return an unwritable path that prevents releases: one in the store, or the console's ``own`` file; else None."""
    return store_part() or (own if own is not None and not may_write(own) else None)


def opened_stores(
    config: Config, hooks: Hooks, store: Store | None, resources: ExitStack
) -> tuple[StoreAccess, StoreAccess, Callable[[], Path | None]]:
    """Return the store for pages, the store for releases and rebuilds, and the function ``unwritable`` of the latter.

    Both stores are the same unless the store is remote, because a process can open an embedded store only once.
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
    """Raise ``ConfigError`` if the configured store ends with its run, so that a console could not read it."""
    if not stores.outlives_run(config):
        raise ConfigError(f"the console reads articles from the consumers' store; name it: {stores.STORE_EXAMPLES}")


def unwritable_part(config: Config) -> Path | None:
    """Return the file or folder of the configured store that this process may not write; None without such a path."""
    location = kind_of(config.store.url).on_disk(config.store.url)
    if location is None:
        return None
    return next((path for path in (location.directory, *location.files) if not may_write(path)), None)


class StoredArticleReader(ArticleReader):
    """A reader of articles for pages, which reads versions in one call and their texts in another."""

    def __init__(self, access: StoreAccess) -> None:
        self._access = access

    def read(self, pairs: Sequence[tuple[str, str]], *, bodies: bool = True) -> list[ArticleView | None]:
        """Return these versions, given by id and name; None for a version that is not stored or has an invalid name."""
        references = [storable_reference(*pair) for pair in pairs]
        valid = list(dict.fromkeys(reference for reference in references if reference is not None))
        if not valid:
            return [None] * len(pairs)
        store = self._access()
        versions = {stored.record.reference: stored for stored in store.read(valid) if stored is not None}
        texts: dict[bytes, str | None] = {}
        if bodies and versions:
            texts = dict(zip(versions, store.bodies(list(versions)), strict=True))
        views = {reference: article_view(stored, texts.get(reference)) for reference, stored in versions.items()}
        return [None if reference is None else views.get(reference) for reference in references]


class SettingsCheck:
    """A check that refuses a store whose settings or secret differ from the configured ones.

    A store without settings passes, since consumers bind it. For one thread at a time.
    """

    def __init__(self, config: Config, lexicon: Lexicon) -> None:
        self._config = config
        self._lexicon = lexicon
        self._passed: bytes | None = None

    def __call__(self, store: Store) -> None:
        """Raise ``StoreMismatch`` with the settings that differ. Settings that passed are not checked again."""
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
    """The consumers' store, ready to compare texts with its articles. Used by any thread.

    The comparison is built on first use, since it may load dictionaries.
    """

    def __init__(self, config: Config, access: StoreAccess) -> None:
        self._config = config
        self._access = access
        self._lock = threading.Lock()
        self._opened: QueriedStore | None = None

    def __call__(self) -> QueriedStore:
        """Return the store.

        Raises ``StoreError`` while it is not available, and ``StoreMismatch`` if its settings differ.
        """
        store = self._access()
        with self._lock:
            if self._opened is None or self._opened.compared.store is not store:
                config, compared = bound_store_of(self._config, store)
                # Pages use the engine one at a time, but a thread may prepare the items of banks in the meantime.
                compared = compared._replace(engine=SerializedEngine(compared.engine))
                self._opened = QueriedStore(compared, queries(config, store, compared.settings))
            return self._opened


def completed_config(config: Config) -> Config:
    """Return the configuration completed with the store's settings; unchanged while the store is unavailable.

    Raises other kinds of ``StoreError``.
    """
    try:
        return stores.completed_config(config, answer_s=STORE_S)
    except StoreUnavailable as error:
        log.warning("The settings of the store cannot be read yet: %s", error)
        return config
