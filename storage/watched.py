"""A store, and somebody who is told how its calls went."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, Literal, Protocol, TypeVar

from storage.errors import StoreFull, StoreRefused, StoreUnavailable
from storage.interface import Stats, Store
from storage.postings import KeyedCode, Row
from storage.records import Record, Release, Stored, Tombstone, Version

_Result = TypeVar("_Result")

Operation = Literal[
    "agree", "retract", "create", "read", "bodies", "add", "look_up", "seek", "remove", "settle", "sweep"
]
"""The calls that a run makes; the others are for those who look into a store."""
Ending = Literal["ok", "unavailable", "full", "refused", "error"]
Connecting = Literal["opened", "refused", "lost"]

_ENDINGS: Final[tuple[tuple[type[Exception], Ending], ...]] = (
    (StoreUnavailable, "unavailable"),
    (StoreFull, "full"),
    (StoreRefused, "refused"),
)


class StoreWatcher(Protocol):
    """Is told how a store does; called from the threads that use it, and from its own."""

    def store_called(self, operation: Operation, ending: Ending, seconds: float) -> None:
        """A call has ended."""
        ...

    def store_connected(self, what: Connecting) -> None:
        """A connection was made, could not be made, or broke. A store that has none tells nothing."""
        ...

    def store_repeated(self, operation: Operation) -> None:
        """What a call asks is asked again within the call. A store that answers at once or never tells nothing."""
        ...


class WatchedStore:
    """The calls of a run are timed and told; a call about nothing asks nothing of a store, and is not told."""

    def __init__(self, store: Store, watcher: StoreWatcher) -> None:
        self._store = store
        self._watcher = watcher

    def create(self, versions: Sequence[Version]) -> list[Stored]:
        """See ``Records.create``."""
        return self._told("create", versions, partial(self._store.create, versions))

    def retract(self, tombstones: Sequence[Tombstone]) -> list[Tombstone]:
        """See ``Records.retract``."""
        return self._told("retract", tombstones, partial(self._store.retract, tombstones))

    def read(self, references: Sequence[bytes]) -> list[Stored | None]:
        """See ``Records.read``."""
        return self._told("read", references, partial(self._store.read, references))

    def history(self, id_hash: bytes) -> list[Stored | Tombstone]:
        """See ``Records.history``."""
        return self._store.history(id_hash)

    def bodies(self, references: Sequence[bytes]) -> list[str | None]:
        """See ``Records.bodies``."""
        return self._told("bodies", references, partial(self._store.bodies, references))

    def add(self, records: Sequence[Record]) -> None:
        """See ``Postings.add``."""
        self._told("add", records, partial(self._store.add, records))

    def look_up(self, keys: Sequence[bytes]) -> list[Row]:
        """See ``Postings.look_up``."""
        return self._told("look_up", keys, partial(self._store.look_up, keys))

    def seek(self, places: Sequence[KeyedCode], postings_max: int) -> list[Row]:
        """See ``Postings.seek``."""
        return self._told("seek", places, partial(self._store.seek, places, postings_max))

    def remove(self, records: Sequence[Record]) -> None:
        """See ``Postings.remove``."""
        self._told("remove", records, partial(self._store.remove, records))

    def settle(self, verdicts: Sequence[tuple[bytes, bytes]]) -> list[bool]:
        """See ``Verdicts.settle``."""
        return self._told("settle", verdicts, partial(self._store.settle, verdicts))

    def release(self, releases: Sequence[Release]) -> list[bytes | None]:
        """See ``Verdicts.release``."""
        return self._store.release(releases)

    def agree(self, settings: bytes) -> bytes:
        """See ``Binding.agree``."""
        return self._told("agree", settings, partial(self._store.agree, settings))

    def settings(self) -> bytes | None:
        """See ``Binding.settings``."""
        return self._store.settings()

    def sweep(self, before_ms: int, versions_max: int) -> int:
        """See ``Upkeep.sweep``."""
        return self._told("sweep", range(versions_max), partial(self._store.sweep, before_ms, versions_max))

    def scan(self) -> Iterator[Stored | Tombstone]:
        """See ``Upkeep.scan``."""
        return self._store.scan()

    def stats(self) -> Stats:
        """See ``Upkeep.stats``."""
        return self._store.stats()

    def close(self) -> None:
        """See ``Upkeep.close``."""
        self._store.close()

    def _told(self, operation: Operation, about: Sequence[object], call: Callable[[], _Result]) -> _Result:
        if not about:
            return call()
        ending: Ending = "error"
        began_s = time.perf_counter()
        try:
            result = call()
            ending = "ok"
        except Exception as error:
            ending = _ending(error)
            raise
        finally:
            self._watcher.store_called(operation, ending, time.perf_counter() - began_s)
        return result


def _ending(error: Exception) -> Ending:
    return next((ending for kind, ending in _ENDINGS if isinstance(error, kind)), "error")
