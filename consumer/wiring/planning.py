"""What a store is made for: recorded by ``dupwatch store init``, and checked before a store is bound to settings."""

import json

from consumer.config.config import Config
from consumer.model.errors import ConfigError, StoreMismatch
from consumer.wiring import stores
from storage.interface import Store
from storage.kinds import kind_of
from storage.records import Planned


def record_plan(config: Config, planned: Planned) -> None:
    """Record what the configured store is made for, and create the store if there is none.

    Raises ``StoreMismatch``, and changes nothing, if it has another plan, and ``ConfigError`` if it is of a kind that
    cannot be created like that.
    """
    kind = kind_of(config.store.url)
    if kind.plan_for is None:
        raise ConfigError(f"a store in {kind.name} keeps no plan; leave out --apply to see it")
    bound = None if stores.is_missing(config) else _bound_to(config)
    if bound not in (None, planned.plan):
        raise other_plan(f"the store is bound to the plan {bound}, not {planned.plan}")
    stored = kind.plan_for(config.store.url, stores.configured_opening(config), planned)
    if stored.plan != planned.plan:
        raise other_plan(f"the store is made for the plan {stored.plan}, not {planned.plan}")


def other_plan(why: str) -> StoreMismatch:
    """Return the error for a store that exists with another plan; ``why`` names both plans."""
    return StoreMismatch(
        f"{why}, and nothing was changed. Keep its plan (judge.plan), or name another store and move to it with "
        "dupwatch migrate (docs/migration.md)."
    )


def _bound_to(config: Config) -> str | None:
    with stores.opened_store(config, readonly=True) as store:
        return bound_plan(store)


def bound_plan(store: Store) -> str | None:
    """Return the plan in the settings of a store, None if it has no settings yet. Raises ``StoreMismatch``."""
    settings = store.settings()
    try:
        return None if settings is None else str(json.loads(settings)["plan"])
    except (ValueError, LookupError, TypeError) as error:
        raise StoreMismatch(f"the settings of the store cannot be read ({error})") from error
