"""Opens a store to compare its articles with items of banks, and texts with both."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from consumer.config.config import Config
from consumer.config.judging import with_stored_settings
from consumer.fingerprint import Lexicon
from consumer.judge.binding import Binding
from consumer.judge.detector import Detector
from consumer.judge.settings import JudgeSettings
from consumer.store_tools.bank_matches import ComparableStore
from consumer.store_tools.requested_settings import check_unchanged
from consumer.store_tools.text_query import Matcher, Query
from consumer.wiring.components import common_hashes, engine, lexicon_of, version_builder
from consumer.wiring.stores import configured_secret, opened_store, stored_binding, with_configured_secret
from storage.clock import MS_PER_S, now_ms
from storage.interface import Store


class BoundStore(NamedTuple):
    """An open store, and the configuration completed with the store's settings."""

    config: Config
    compared: ComparableStore


@contextmanager
def bound_store(config: Config, *, readonly: bool = True) -> Iterator[BoundStore]:
    """Open the configured store, and never create it. Raises ``StoreMismatch`` if the settings are not the store's."""
    # With banks configured, opening the store for writing would give it the layout of a store with banks.
    opening = config.model_copy(update={"banks": config.banks.model_copy(update={"url": None})})
    with opened_store(opening, readonly=True) as store:
        bound = bound_store_of(config, store)
        if readonly:
            yield bound
            return
    # A store that does not exist was refused above, so none is created here.
    with opened_store(opening) as store:
        yield bound._replace(compared=bound.compared._replace(store=store))


def bound_store_of(config: Config, store: Store) -> BoundStore:
    """Return an open store, ready to compare its articles. Raises ``StoreMismatch`` if settings are not the store's."""
    lexicon = lexicon_of(config)
    bound = checked_binding(config, store, lexicon)
    chosen = with_stored_settings(config, bound.settings)
    compared = ComparableStore(store, bound.settings, version_builder(bound), engine(chosen, bound, lexicon))
    return BoundStore(chosen, compared)


def checked_binding(config: Config, store: Store, lexicon: Lexicon) -> Binding:
    """Return the binding of an open store. Raises ``StoreMismatch`` if settings or the secret are not the store's."""
    bound = stored_binding(store, lexicon)
    check_unchanged(config, bound.settings)
    return with_configured_secret(bound, configured_secret(config))


def queries(config: Config, store: Store, settings: JudgeSettings) -> Callable[[Matcher], Query]:
    """Return a function that builds queries of a store from a matcher of known texts."""

    def query(with_bank_matches: Matcher) -> Query:
        return Detector(
            store,
            settings,
            now_ms,
            seen_ms=config.seen_s * MS_PER_S,
            common=common_hashes(config),
            with_bank_matches=with_bank_matches,
        ).query

    return query
