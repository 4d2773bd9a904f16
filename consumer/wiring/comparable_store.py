"""Opens a store to compare its articles with items of banks."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from consumer.config.config import Config
from consumer.config.judging import completed
from consumer.store_tools.bank_matches import ComparableStore
from consumer.store_tools.requested_settings import check_unchanged
from consumer.wiring.components import engine, lexicon_of, version_builder
from consumer.wiring.stores import opened_store, stored_binding
from storage.interface import Store


class BoundStore(NamedTuple):
    """An open store, and the configuration with the settings of the store in it."""

    config: Config
    compared: ComparableStore


@contextmanager
def bound_store(config: Config, *, readonly: bool = True) -> Iterator[BoundStore]:
    """Open the configured store, which judges have filled. Raises ``StoreMismatch`` for other settings than its own."""
    # Opened for writing with banks, a store would get the layout of stores that had banks.
    opening = config.model_copy(update={"banks": config.banks.model_copy(update={"url": None})})
    with opened_store(opening, readonly=True) as store:
        bound = bound_to(config, store)
        if readonly:
            yield bound
            return
    # A store that does not exist is refused above, and is not created here.
    with opened_store(opening) as store:
        yield bound._replace(compared=bound.compared._replace(store=store))


def bound_to(config: Config, store: Store) -> BoundStore:
    """Return an open store with what compares its articles. Raises ``StoreMismatch`` for settings unlike its own."""
    lexicon = lexicon_of(config)
    bound = stored_binding(store, lexicon)
    check_unchanged(config, bound.settings)
    chosen = completed(config, bound.settings)
    compared = ComparableStore(store, bound.settings, version_builder(bound), engine(chosen, bound, lexicon))
    return BoundStore(chosen, compared)
