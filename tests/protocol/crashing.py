"""A process that is killed between two calls of its store."""

from itertools import count

from storage.interface import Store
from storage.watched import WatchedStore


class Crashed(Exception):  # noqa: N818  # not an error of the judge
    """The process was killed at this call."""


def crashing(store: Store, at: int) -> Store:
    """Return a store that raises ``Crashed`` in place of the call of this number, once; 0 for never."""
    calls = count(1)

    def proceed() -> None:
        if next(calls) == at:
            raise Crashed

    return WatchedStore.interruptible(store, proceed)
