"""Opens the configured store, and binds it to the settings of its verdicts.

Also records the plan that a store is made for, which is checked before the store is bound.
"""

import json
import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from consumer.config.config import Config
from consumer.config.judging import with_plan, with_stored_settings
from consumer.config.printing import flatten
from consumer.fingerprint import PUBLISHED_SECRET, SECRET_BYTES, Lexicon, Secret
from consumer.judge.binding import Binding, secret_in, settings_in
from consumer.judge.settings import JudgeSettings, differences
from consumer.model.errors import ConfigError, Fatal, StoreBroken, StoreMismatch
from consumer.workers.secret_file import read_secret
from storage.errors import StoreError, StoreRefused
from storage.hbase import HbaseOptions, TlsOptions
from storage.interface import Store
from storage.kind import StoreArguments
from storage.kinds import kind_of, lasting_examples
from storage.lmdb import LmdbOptions
from storage.records import CapacityPlan
from storage.watched import StoreReport, WatchedStore

log = logging.getLogger("dupwatch")

STORE_EXAMPLES: Final = f"--store {lasting_examples()}"
"""The option that names a store, for messages."""


@contextmanager
def opened_store(
    config: Config,
    *,
    readonly: bool = False,
    report: StoreReport | None = None,
    quiet: bool = False,
    answer_s: float | None = None,
) -> Iterator[Store]:
    """Open the configured store, and close it afterwards. ``report`` gets the occurrences of the store.

    A wait of more than two seconds is logged unless ``quiet``. With ``answer_s`` a call fails after that time, whatever
    deadlines are configured. Raises ``StoreError``, and ``ConfigError`` for reading a store that ends with its run.
    """
    kind = kind_of(config.store.url)
    if readonly and not kind.outlives_run:
        raise ConfigError(f"a store in {kind.name} exists only while its run lasts; name another: {STORE_EXAMPLES}")
    opening = replace(
        configured_opening(config),
        readonly=readonly,
        answer_s=answer_s,
        report=report,
        tell_wait=None if quiet else _log_wait,
    )
    store = kind.open(config.store.url, opening)
    try:
        yield store if report is None else WatchedStore(store, report)
    finally:
        store.close()


def configured_opening(config: Config) -> StoreArguments:
    """Return the configured arguments for a store of any kind, for writing and without reports."""
    return StoreArguments(
        lifetime_s=config.lifetime_s,
        seen_s=config.seen_s,
        parts=config.judge.parts,
        banks=config.banks.url is not None,
        plan=config.judge.plan,
        row_postings_max=config.store.row_postings_max,
        keep_bodies=config.store.keep_bodies,
        durability=config.store.durability,
        file_mode=config.files.bits,
        own=(_lmdb_options(config), _hbase_options(config)),
    )


def is_missing(config: Config) -> bool:
    """Return whether the configured store is a directory that does not exist yet. Opens nothing."""
    location = kind_of(config.store.url).on_disk(config.store.url)
    return location is not None and not location.directory.exists()


def can_be_created(config: Config) -> bool:
    """Return whether the configured store is a directory that does not exist yet, but could be created."""
    location = kind_of(config.store.url).on_disk(config.store.url)
    if location is None or location.directory.exists():
        return False
    return next(parent for parent in location.directory.absolute().parents if parent.exists()).is_dir()


def _may_exist(config: Config) -> bool:
    location = kind_of(config.store.url).on_disk(config.store.url)
    return location is None or any(file.exists() for file in location.files)


def is_empty(config: Config) -> bool:
    """Return whether the configured store is empty or does not exist yet."""
    if is_missing(config):
        return True
    with opened_store(config, readonly=True) as store:
        return next(store.scan(), None) is None


def is_remote(config: Config) -> bool:
    """Return whether the configured store is accessed over a network, and can be out of reach."""
    return kind_of(config.store.url).remote


def judges_max(config: Config) -> int:
    """Return the number of threads that may judge at a time."""
    return kind_of(config.store.url).judges_max(configured_opening(config))


def warm_up_s(config: Config) -> float:
    """Return the time limit of a run's warm-up."""
    return kind_of(config.store.url).warm_up_s(configured_opening(config))


def outlives_run(config: Config) -> bool:
    """Return whether the configured store still exists after the run."""
    return kind_of(config.store.url).outlives_run


def _lmdb_options(config: Config) -> LmdbOptions:
    """Return the options that only an LMDB store has."""
    map_bytes_max = config.store.map_bytes_max
    return LmdbOptions(map_bytes=min(LmdbOptions().map_bytes, map_bytes_max), map_bytes_max=map_bytes_max)


def _hbase_options(config: Config) -> HbaseOptions:
    """Return the options that only an HBase store has."""
    section = config.store.hbase
    return HbaseOptions(
        deadline_s=section.deadline_s,
        call_s=section.call_s,
        connect_s=section.connect_s,
        connections_max=section.connections_max,
        retire_s=section.retire_s,
        tls=TlsOptions(section.tls_ca, section.tls_certificate, section.tls_key) if section.tls else None,
        judges_max=section.judges_max,
        warm_up_s=section.warm_up_s,
    )


def completed_config(config: Config, *, answer_s: float | None = None) -> Config:
    """Return the configuration completed with the settings of the configured store, and log the added ones.

    A bound store has all settings of its verdicts; a store that was only made for a plan has that plan. The store is
    opened for reading; with ``answer_s`` waits are not logged, and calls fail after that time. Raises ``StoreError``.
    """
    if not outlives_run(config) or not _may_exist(config):
        return config
    with opened_store(config, readonly=True, quiet=answer_s is not None, answer_s=answer_s) as store:
        stored = store.settings()
        # Once a store has settings, they decide.
        planned = None if stored is not None else store.planned()
    try:
        if stored is not None:
            complete = with_stored_settings(config, JudgeSettings.decode(settings_in(stored)))
        elif planned is not None:
            complete = with_plan(config, planned.plan)
        else:
            return config
    except ValueError:
        # The stored settings cannot be read, or contradict the configuration. ``bind`` reports that.
        return config
    if complete != config:
        added = "; ".join(_changes(config, complete))
        log.info("Settings of the store, which the configuration does not name: %s", added)
    return complete


def _changes(config: Config, complete: Config) -> Iterator[str]:
    before = dict(flatten(config))
    return (f"{name} = {value}" for name, value in flatten(complete) if before.get(name) != value)


def bind(store: Store, settings: JudgeSettings, config: Config, preferred_secret: Secret | None = None) -> Binding:
    """Bind the store to these settings.

    Raises ``StoreMismatch``, with the differences, if it is bound to other settings, or not to the configured secret.

    A new store of a keyed scheme gets the configured secret, else ``preferred_secret``, else a random one; a store in
    memory gets the published one instead of a random one. A store without settings is refused if it was made for
    another plan. Once it has settings, they decide, because a consumer that does not know plans may have bound it.
    Raises ``ConfigError`` if the configured secret cannot be read.
    """
    planned = None if store.settings() is not None else store.planned()
    if planned is not None and planned.plan != settings.plan.name:
        raise StoreMismatch(
            f"the store is made for the plan {planned.plan} and {planned.articles:,} articles in the window, but "
            f'judge.plan is {settings.plan.name}. Set judge.plan to "{planned.plan}", or name another store; a group '
            "that judges already moves with dupwatch migrate (docs/operate/migration.md)."
        )
    configured = configured_secret(config)
    default = Secret(secrets.token_bytes(SECRET_BYTES)) if outlives_run(config) else PUBLISHED_SECRET
    new_binding = Binding(settings, configured or preferred_secret or default)
    if settings.scheme.definition.compares_letters and new_binding.secret is PUBLISHED_SECRET:
        log.info("Sketches are keyed with the published secret, because the store is in memory")
    stored = store.agree(new_binding.encode())
    try:
        stored_settings = settings_in(stored)
        phrases = differences(stored_settings, settings)
        if not phrases:
            return with_configured_secret(Binding.decode(stored), configured)
        # The digest follows from the other settings of the scheme, so it is only shown if nothing else differs.
        differing = "; ".join([phrase for phrase in phrases if not phrase.startswith("scheme_digest ")] or phrases)
        if any(phrase.startswith("extractor ") for phrase in phrases):
            differing += " (source.body_format, source.extractor and source.reader_revision decide how bodies are read)"
    except ValueError as error:
        raise StoreMismatch(
            f"the store is damaged: the settings that it was created with cannot be read ({error}). Restore it from a "
            "copy, or name another store."
        ) from error
    raise StoreMismatch(
        f"the store was created with other settings: {differing}. Use the same settings, name another store, or "
        "move to a new one with dupwatch migrate (docs/operate/migration.md)."
    )


def with_configured_secret(bound: Binding, configured: Secret | None) -> Binding:
    """Return the binding of a store unchanged. Raises ``StoreMismatch`` if another secret is configured."""
    if configured is not None and bound.settings.scheme.definition.compares_letters and bound.secret != configured:
        raise StoreMismatch(
            f"the store's secret has the id {bound.secret.id}, but the one in fingerprint.secret_file {configured.id}. "
            "Leave the setting out, since the store has its secret; name another store; or move to one with that "
            "secret with dupwatch migrate (docs/operate/migration.md)."
        )
    return bound


def unstored_binding(config: Config, settings: JudgeSettings) -> Binding:
    """Return a binding without a store, with the configured secret or else the published one."""
    return Binding(settings, configured_secret(config) or PUBLISHED_SECRET)


def secret_of_store(config: Config, url: str) -> Secret | None:
    """Return the secret of the store at ``url``; None if it has none. Raises ``StoreError`` and ``StoreMismatch``."""
    other = config.model_copy(update={"store": config.store.model_copy(update={"url": url})})
    with opened_store(other, readonly=True) as store:
        stored = store.settings()
    return None if stored is None else stored_secret(stored)


def stored_secret(cell: bytes) -> Secret | None:
    """Return the secret in a store's cell; None if it has none. Raises ``StoreMismatch`` if it cannot be read."""
    try:
        return secret_in(cell)
    except ValueError as error:
        raise StoreMismatch(f"the store is damaged: its secret cannot be read ({error})") from error


def configured_secret(config: Config) -> Secret | None:
    """Read ``fingerprint.secret_file``; None if it is not configured. Raises ``ConfigError``."""
    path = config.fingerprint.secret_file
    if path is None:
        return None
    try:
        return read_secret(Path(path))
    except (OSError, ValueError) as error:
        raise ConfigError(f"fingerprint.secret_file: {error}") from error


def stored_binding(store: Store, lexicon: Lexicon) -> Binding:
    """Return the binding of the store, for commands that read it.

    Raises ``StoreMismatch`` if the store has no binding, or another version of dupwatch or another lexicon made it.
    """
    stored = store.settings()
    if stored is None:
        raise StoreMismatch("the store is empty: nothing was ever judged into it")
    try:
        bound = Binding.decode(stored)
    except ValueError as error:
        raise StoreMismatch(f"the store was created by another version of dupwatch: {error}") from error
    if bound.settings.scheme.digest(lexicon) != bound.settings.scheme_digest:
        raise StoreMismatch("the store was created with another dictionary or another version of the scheme")
    return bound


def _log_wait(awaited: str | None) -> None:
    if awaited is None:
        log.warning("The store answers again")
    else:
        log.warning("Waiting for %s", awaited)


def fatal_error(error: StoreError) -> Fatal:
    """Return the error that ends a run after a failure of its store."""
    return StoreMismatch(str(error)) if isinstance(error, StoreRefused) else StoreBroken(str(error))


def record_plan(config: Config, planned: CapacityPlan) -> None:
    """Record the plan that the configured store is made for, and create the store if there is none.

    Raises ``StoreMismatch`` if the store has another plan, which is not changed, and ``ConfigError`` if its kind keeps
    no plan.
    """
    kind = kind_of(config.store.url)
    if kind.plan_for is None:
        raise ConfigError(f"a store in {kind.name} keeps no plan; leave out --apply to see it")
    bound = None if is_missing(config) else _configured_bound_plan(config)
    if bound not in (None, planned.plan):
        raise other_plan(f"the store is bound to the plan {bound}, not {planned.plan}")
    stored = kind.plan_for(config.store.url, configured_opening(config), planned)
    if stored.plan != planned.plan:
        raise other_plan(f"the store is made for the plan {stored.plan}, not {planned.plan}")


def other_plan(why: str) -> StoreMismatch:
    """Return the error for a store that exists with another plan; ``why`` names both plans."""
    return StoreMismatch(
        f"{why}, and nothing was changed. Keep its plan (judge.plan), or name another store and move to it with "
        "dupwatch migrate (docs/operate/migration.md)."
    )


def _configured_bound_plan(config: Config) -> str | None:
    with opened_store(config, readonly=True) as store:
        return bound_plan(store)


def bound_plan(store: Store) -> str | None:
    """Return the plan in the settings of a store; None if it has no settings yet. Raises ``StoreMismatch``."""
    settings = store.settings()
    try:
        return None if settings is None else str(json.loads(settings)["plan"])
    except (ValueError, LookupError, TypeError) as error:
        raise StoreMismatch(f"the settings of the store cannot be read ({error})") from error
