"""A store whose user has a say before each call."""

from collections.abc import Callable, Iterator, Sequence

from storage.interface import Stats, Store
from storage.postings import KeyedCode, Row
from storage.records import Record, Release, Stored, Tombstone, Version


class InterruptibleStore:
    """Calls ``turn`` before each call of the store; what that raises is raised instead of the call.

    A batch may be many calls, each of them fast enough. Between two of them its thread turns, and may stop: what was
    written so far is found again when the batch is judged again (docs/protocol.md).
    """

    def __init__(self, store: Store, turn: Callable[[], None]) -> None:
        self._store = store
        self._turn = turn

    def create(self, versions: Sequence[Version]) -> list[Stored]:
        """See ``Records.create``."""
        self._turn()
        return self._store.create(versions)

    def retract(self, tombstones: Sequence[Tombstone]) -> list[Tombstone]:
        """See ``Records.retract``."""
        self._turn()
        return self._store.retract(tombstones)

    def read(self, references: Sequence[bytes]) -> list[Stored | None]:
        """See ``Records.read``."""
        self._turn()
        return self._store.read(references)

    def history(self, id_hash: bytes) -> list[Stored | Tombstone]:
        """See ``Records.history``."""
        self._turn()
        return self._store.history(id_hash)

    def bodies(self, references: Sequence[bytes]) -> list[str | None]:
        """See ``Records.bodies``."""
        self._turn()
        return self._store.bodies(references)

    def add(self, records: Sequence[Record]) -> None:
        """See ``Postings.add``."""
        self._turn()
        self._store.add(records)

    def look_up(self, keys: Sequence[bytes]) -> list[Row]:
        """See ``Postings.look_up``."""
        self._turn()
        return self._store.look_up(keys)

    def seek(self, places: Sequence[KeyedCode], postings_max: int) -> list[Row]:
        """See ``Postings.seek``."""
        self._turn()
        return self._store.seek(places, postings_max)

    def remove(self, records: Sequence[Record]) -> None:
        """See ``Postings.remove``."""
        self._turn()
        self._store.remove(records)

    def settle(self, verdicts: Sequence[tuple[bytes, bytes]]) -> list[bool]:
        """See ``Verdicts.settle``."""
        self._turn()
        return self._store.settle(verdicts)

    def release(self, releases: Sequence[Release]) -> list[bytes | None]:
        """See ``Verdicts.release``."""
        self._turn()
        return self._store.release(releases)

    def agree(self, settings: bytes) -> bytes:
        """See ``Binding.agree``."""
        self._turn()
        return self._store.agree(settings)

    def settings(self) -> bytes | None:
        """See ``Binding.settings``."""
        self._turn()
        return self._store.settings()

    def sweep(self, before_ms: int, versions_max: int) -> int:
        """See ``Upkeep.sweep``."""
        self._turn()
        return self._store.sweep(before_ms, versions_max)

    def scan(self) -> Iterator[Stored | Tombstone]:
        """See ``Upkeep.scan``."""
        self._turn()
        return self._store.scan()

    def stats(self) -> Stats:
        """See ``Upkeep.stats``."""
        self._turn()
        return self._store.stats()

    def close(self) -> None:
        """See ``Upkeep.close``."""
        self._store.close()
