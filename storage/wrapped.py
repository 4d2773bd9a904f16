"""A store around another one: what a subclass does at each call is written once."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal, TypeVar

from typing_extensions import override

from storage.interface import Answer, Stats, Store
from storage.planned import Planned
from storage.postings import KeyedCode, Row
from storage.records import Record, Release, Stored, Tombstone, Version
from storage.seen import Seen, SeenChange

Result = TypeVar("Result")

Operation = Literal[
    "agree",
    "retract",
    "create",
    "read",
    "sketches",
    "bodies",
    "add",
    "look_up",
    "seek",
    "remove",
    "settle",
    "seen",
    "change_seen",
    "sweep",
    "forget_seen",
]
"""The calls that a run makes."""
StoreCall = Literal[
    Operation, "history", "release", "settings", "planned", "newest_ms", "scan", "scan_seen", "check", "stats"
]
"""All calls but ``together`` and ``close``. Those added are made by commands, and by a run that opens its store."""


class WrappedStore(Store):
    """Passes each call to another store, by way of ``_around``.

    So do the calls within ``together``: they are calls of the outermost store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    @abstractmethod
    def _around(self, name: StoreCall, items: int, call: Callable[[], Result]) -> Result:
        """Make this call, about this number of items, and return its result.

        Called for every call but ``together`` and ``close``.
        """

    @override
    def create(self, versions: Sequence[Version]) -> list[Stored]:
        return self._around("create", len(versions), partial(self._store.create, versions))

    @override
    def retract(self, tombstones: Sequence[Tombstone]) -> list[Tombstone]:
        return self._around("retract", len(tombstones), partial(self._store.retract, tombstones))

    @override
    def read(self, references: Sequence[bytes]) -> list[Stored | None]:
        return self._around("read", len(references), partial(self._store.read, references))

    @override
    def sketches(self, references: Sequence[bytes]) -> list[bytes]:
        return self._around("sketches", len(references), partial(self._store.sketches, references))

    @override
    def history(self, id_hash: bytes) -> list[Stored | Tombstone]:
        return self._around("history", 1, partial(self._store.history, id_hash))

    @override
    def bodies(self, references: Sequence[bytes]) -> list[str | None]:
        return self._around("bodies", len(references), partial(self._store.bodies, references))

    @override
    def add(self, records: Sequence[Record]) -> None:
        self._around("add", len(records), partial(self._store.add, records))

    @override
    def look_up(self, keys: Sequence[bytes], bytes_max: int | None = None) -> list[Row]:
        return self._around("look_up", len(keys), partial(self._store.look_up, keys, bytes_max))

    @override
    def seek(self, codes: Sequence[KeyedCode], postings_max: int) -> list[Row]:
        return self._around("seek", len(codes), partial(self._store.seek, codes, postings_max))

    @override
    def remove(self, records: Sequence[Record]) -> None:
        self._around("remove", len(records), partial(self._store.remove, records))

    @override
    def settle(self, verdicts: Sequence[tuple[bytes, bytes]], removing: Sequence[Record] = ()) -> list[bool]:
        items = len(verdicts) + len(removing)
        return self._around("settle", items, partial(self._store.settle, verdicts, removing))

    @override
    def release(self, releases: Sequence[Release]) -> list[bytes | None]:
        return self._around("release", len(releases), partial(self._store.release, releases))

    @override
    def seen(self, digests: Sequence[bytes]) -> list[Seen | None]:
        return self._around("seen", len(digests), partial(self._store.seen, digests))

    @override
    def change_seen(self, changes: Sequence[SeenChange]) -> list[bool]:
        return self._around("change_seen", len(changes), partial(self._store.change_seen, changes))

    @override
    def forget_seen(self, before_ms: int, texts_max: int) -> int:
        return self._around("forget_seen", texts_max, partial(self._store.forget_seen, before_ms, texts_max))

    @override
    def scan_seen(self) -> Iterator[tuple[bytes, Seen]]:
        return self._around("scan_seen", 1, self._store.scan_seen)

    @override
    def agree(self, settings: bytes) -> bytes:
        return self._around("agree", len(settings), partial(self._store.agree, settings))

    @override
    def settings(self) -> bytes | None:
        return self._around("settings", 1, self._store.settings)

    @override
    def planned(self) -> Planned | None:
        return self._around("planned", 1, self._store.planned)

    @override
    def together(self, work: Callable[[], Answer]) -> Answer:
        return self._store.together(work)

    @override
    def sweep(self, before_ms: int, versions_max: int) -> int:
        return self._around("sweep", versions_max, partial(self._store.sweep, before_ms, versions_max))

    @override
    def newest_ms(self, before_ms: int) -> int | None:
        return self._around("newest_ms", 1, partial(self._store.newest_ms, before_ms))

    @override
    def scan(self) -> Iterator[Stored | Tombstone]:
        return self._around("scan", 1, self._store.scan)

    @override
    def check(self) -> None:
        self._around("check", 1, self._store.check)

    @override
    def stats(self) -> Stats:
        return self._around("stats", 1, self._store.stats)

    @override
    def close(self) -> None:
        self._store.close()
