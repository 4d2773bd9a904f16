"""Opens the store that the configuration names, and says what can be told of it by its URL."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from consumer.config.config import Config
from consumer.fingerprint import Lexicon
from consumer.judge.settings import JudgeSettings, differences
from consumer.lifecycle.wait_notice import tell_store_wait
from consumer.model.errors import ConfigError, Fatal, StoreBroken, StoreMismatch
from consumer.telemetry.store_probe import ANSWER_S
from storage.errors import StoreError, StoreRefused
from storage.hbase import HbaseOptions, TlsOptions, parse_place
from storage.hbase.options import ROW_POSTINGS_MAX as HBASE_ROW_POSTINGS_MAX
from storage.interface import Store
from storage.lmdb import LmdbOptions, LmdbStore
from storage.memory import ROW_POSTINGS_MAX, MemoryStore
from storage.watched import StoreWatcher, WatchedStore

LMDB = "lmdb:"


HBASE = "hbase://"


@contextmanager
def opened_store(
    config: Config, *, readonly: bool = False, watcher: StoreWatcher | None = None, quiet: bool = False
) -> Iterator[Store]:
    """The store that is configured, closed afterwards; ``watcher`` is told how it does.

    A wait for its answer is announced after two seconds unless it is to be ``quiet``.
    """
    section = config.store
    store: Store
    if section.url.startswith(LMDB):
        options = LmdbOptions(
            durability=section.durability,
            keep_bodies=section.keep_bodies,
            row_postings_max=section.row_postings_max or LmdbOptions().row_postings_max,
            map_bytes=min(LmdbOptions().map_bytes, section.map_bytes_max),
            map_bytes_max=section.map_bytes_max,
            readonly=readonly,
            file_mode=config.files.bits,
        )
        store = LmdbStore.open(Path(section.url.removeprefix(LMDB)), options)
    elif section.url.startswith(HBASE):
        from storage.hbase.store import HbaseStore  # noqa: PLC0415  # 0.1 s that other stores must not cost

        tell_wait = None if quiet else tell_store_wait
        store = HbaseStore.open(parse_place(section.url), _hbase_options(config, readonly=readonly), watcher, tell_wait)
    elif readonly:
        raise ConfigError(
            "a store in memory ends with its run; name the one to look into: --store lmdb:PATH or hbase://HOST:PORT/NAMESPACE"
        )
    else:
        store = MemoryStore(row_postings_max=section.row_postings_max or ROW_POSTINGS_MAX)
    try:
        yield store if watcher is None else WatchedStore(store, watcher)
    finally:
        store.close()


def is_empty(config: Config) -> bool:
    """Whether the store that is configured holds nothing, or is yet to be made."""
    url = config.store.url
    if url.startswith(LMDB) and not Path(url.removeprefix(LMDB)).exists():
        return True
    with opened_store(config, readonly=True) as store:
        return next(store.scan(), None) is None


def is_remote(config: Config) -> bool:
    """Whether the store is behind a network, and may be out of reach."""
    return config.store.url.startswith(HBASE)


def impatient(config: Config) -> Config:
    """The same configuration for one who asks whether the store answers, and does not wait for it."""
    hbase = config.store.hbase.model_copy(update={"deadline_s": ANSWER_S, "call_s": ANSWER_S})
    return config.model_copy(update={"store": config.store.model_copy(update={"hbase": hbase})})


def outlives_run(config: Config) -> bool:
    """Whether what is judged can be looked into, and gone on with, after the run."""
    return config.store.url.startswith((LMDB, HBASE))


def _hbase_options(config: Config, *, readonly: bool) -> HbaseOptions:
    section = config.store.hbase
    tls = TlsOptions(section.tls_ca, section.tls_certificate, section.tls_key) if section.tls else None
    # Who only looks does not write what could expire too early.
    ttl_min_s = HbaseOptions().ttl_min_s if readonly else config.judge.window_s + config.store.slack_s
    return HbaseOptions(
        keep_bodies=config.store.keep_bodies,
        row_postings_max=config.store.row_postings_max
        or HBASE_ROW_POSTINGS_MAX.get(config.judge.plan, HbaseOptions().row_postings_max),
        deadline_s=section.deadline_s,
        call_s=section.call_s,
        connect_s=section.connect_s,
        connections_max=section.connections_max,
        retire_s=section.retire_s,
        tls=tls,
        ttl_min_s=ttl_min_s,
        readonly=readonly,
    )


def bind(store: Store, settings: JudgeSettings) -> None:
    """Bind the store to these settings, or find that it is bound to others: StoreMismatch says which."""
    stored = store.agree(settings.encode())
    if stored == settings.encode():
        return
    try:
        found = list(differences(stored, settings))
        # It follows from the scheme's settings, and says something only where they are the same.
        differing = "; ".join([one for one in found if not one.startswith("scheme_digest ")] or found)
    except (ValueError, AttributeError) as error:
        raise StoreMismatch(
            f"the store is damaged: the settings that it was made with cannot be read ({error}). Restore it from a "
            "copy, or name another store."
        ) from error
    raise StoreMismatch(f"the store was made with other settings: {differing}. Use those, or name another store.")


def stored_settings(store: Store, lexicon: Lexicon) -> JudgeSettings:
    """The settings that the store is bound to, for commands that look into it."""
    stored = store.settings()
    if stored is None:
        raise StoreMismatch("the store is empty: nothing was ever judged into it")
    try:
        settings = JudgeSettings.decode(stored)
    except (ValueError, TypeError, KeyError) as error:
        raise StoreMismatch(f"the store was made by another version of dupwatch: {error}") from error
    if settings.scheme.digest(lexicon) != settings.scheme_digest:
        raise StoreMismatch("the store was made with another dictionary or another version of the scheme")
    return settings


def fatal(error: StoreError) -> Fatal:
    """What a store's error means for a run."""
    return StoreMismatch(str(error)) if isinstance(error, StoreRefused) else StoreBroken(str(error))
