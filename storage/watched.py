"""The events that stores report, and a wrapper that reports a store's calls and can prevent them."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, Literal, NamedTuple, TypeGuard, TypeVar, get_args

from typing_extensions import override

from storage.errors import StartAgain, StoreFull, StoreRefused, StoreUnavailable
from storage.interface import Answer, Stats, Store
from storage.postings import KeyedCode, PostingRow
from storage.records import CapacityPlan, Record, Release, StoredVersion, Tombstone, Version
from storage.seen import SeenChange, SeenTimes

Result = TypeVar("Result")

Operation = Literal[
    "agree",
    "retract",
    "create",
    "read",
    "sketches",
    "latest",
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
"""The calls that are reported."""
StoreCall = Literal[
    Operation, "history", "release", "settings", "planned", "newest_ms", "scan", "scan_seen", "check", "stats"
]
"""All calls except ``together`` and ``close``, including those of commands and of a run that opens its store."""
TimedOperation = Literal[Operation, "commit"]
"""``commit`` stands for the waits of a batch outside its calls: for its turn to write, and for the flushed commit."""
Ending = Literal["ok", "unavailable", "full", "refused", "error"]
ConnectionChange = Literal["opened", "refused", "lost"]

_ENDINGS: Final[tuple[tuple[type[Exception], Ending], ...]] = (
    (StoreUnavailable, "unavailable"),
    (StoreFull, "full"),
    (StoreRefused, "refused"),
)
_OPERATIONS: Final = frozenset(get_args(Operation))


class StoreCalled(NamedTuple):
    """A call that is reported has ended, or a batch was committed."""

    operation: TimedOperation
    ending: Ending
    seconds: float


class StoreConnected(NamedTuple):
    """A connection was opened, could not be opened, or was lost. Stores without connections never report this."""

    change: ConnectionChange


class StoreRepeated(NamedTuple):
    """A call repeats a request, after an error or for lack of an answer. Embedded stores never report this."""

    operation: Operation


StoreReport = Callable[[StoreCalled | StoreConnected | StoreRepeated], None]
"""Receives the events of a store; called from the threads that use it, and from its own."""


class WatchedStore(Store):
    """A store that passes each call to another one, including the calls made within ``together``.

    ``proceed`` is called before each call and prevents it by raising an error, which the caller gets. ``report``
    receives the outcome and duration of each ``Operation``. Calls without items are not reported, since they cost
    nothing; nor are calls that end an attempt with ``StartAgain``.
    """

    def __init__(
        self, store: Store, report: StoreReport | None = None, proceed: Callable[[], None] | None = None
    ) -> None:
        self.inner = store
        self.report = report
        self.proceed = proceed

    @classmethod
    def interruptible(cls, store: Store, proceed: Callable[[], None]) -> "WatchedStore":
        """Return a store that calls ``proceed`` before each call.

        A watched store without ``proceed`` is not wrapped again.

        A batch may need many calls. Between any two of them its thread can report progress or stop: what was written
        so far is found when the batch is judged again (docs/contributing/protocol.md).
        """
        if type(store) is cls and store.proceed is None:
            return cls(store.inner, store.report, proceed)
        return cls(store, proceed=proceed)

    def _call(self, name: StoreCall, items: int, call: Callable[[], Result]) -> Result:
        """Make a call with this many items, and return its result. Not for ``together`` and ``close``."""
        if self.proceed is not None:
            self.proceed()
        report = self.report
        if report is None or not items or not _is_operation(name):
            return call()
        began_s = time.perf_counter()
        try:
            result = call()
        except StartAgain:
            raise
        except BaseException as error:
            report(StoreCalled(name, ending_of(error), time.perf_counter() - began_s))
            raise
        report(StoreCalled(name, "ok", time.perf_counter() - began_s))
        return result

    @override
    def create(self, versions: Sequence[Version]) -> list[StoredVersion]:
        return self._call("create", len(versions), partial(self.inner.create, versions))

    @override
    def retract(self, tombstones: Sequence[Tombstone]) -> list[Tombstone]:
        return self._call("retract", len(tombstones), partial(self.inner.retract, tombstones))

    @override
    def read(self, references: Sequence[bytes]) -> list[StoredVersion | None]:
        return self._call("read", len(references), partial(self.inner.read, references))

    @override
    def sketches(self, references: Sequence[bytes]) -> list[bytes]:
        return self._call("sketches", len(references), partial(self.inner.sketches, references))

    @override
    def latest(self, id_hashes: Sequence[bytes]) -> list[StoredVersion | Tombstone | None]:
        return self._call("latest", len(id_hashes), partial(self.inner.latest, id_hashes))

    @override
    def history(self, id_hash: bytes) -> list[StoredVersion | Tombstone]:
        return self._call("history", 1, partial(self.inner.history, id_hash))

    @override
    def bodies(self, references: Sequence[bytes]) -> list[str | None]:
        return self._call("bodies", len(references), partial(self.inner.bodies, references))

    @override
    def add(self, records: Sequence[Record]) -> None:
        self._call("add", len(records), partial(self.inner.add, records))

    @override
    def look_up(self, keys: Sequence[bytes], bytes_max: int | None = None) -> list[PostingRow]:
        return self._call("look_up", len(keys), partial(self.inner.look_up, keys, bytes_max))

    @override
    def seek(self, codes: Sequence[KeyedCode], postings_max: int) -> list[PostingRow]:
        return self._call("seek", len(codes), partial(self.inner.seek, codes, postings_max))

    @override
    def remove(self, records: Sequence[Record]) -> None:
        self._call("remove", len(records), partial(self.inner.remove, records))

    @override
    def settle(self, verdicts: Sequence[tuple[bytes, bytes]], removing: Sequence[Record] = ()) -> list[bool]:
        items = len(verdicts) + len(removing)
        return self._call("settle", items, partial(self.inner.settle, verdicts, removing))

    @override
    def release(self, releases: Sequence[Release]) -> list[bytes | None]:
        return self._call("release", len(releases), partial(self.inner.release, releases))

    @override
    def seen(self, digests: Sequence[bytes]) -> list[SeenTimes | None]:
        return self._call("seen", len(digests), partial(self.inner.seen, digests))

    @override
    def change_seen(self, changes: Sequence[SeenChange]) -> list[bool]:
        return self._call("change_seen", len(changes), partial(self.inner.change_seen, changes))

    @override
    def forget_seen(self, before_ms: int, texts_max: int) -> int:
        return self._call("forget_seen", texts_max, partial(self.inner.forget_seen, before_ms, texts_max))

    @override
    def scan_seen(self) -> Iterator[tuple[bytes, SeenTimes]]:
        return self._call("scan_seen", 1, self.inner.scan_seen)

    @override
    def agree(self, settings: bytes) -> bytes:
        return self._call("agree", len(settings), partial(self.inner.agree, settings))

    @override
    def settings(self) -> bytes | None:
        return self._call("settings", 1, self.inner.settings)

    @override
    def planned(self) -> CapacityPlan | None:
        return self._call("planned", 1, self.inner.planned)

    @override
    def together(self, work: Callable[[], Answer]) -> Answer:
        return self.inner.together(work)

    @override
    def sweep(self, before_ms: int, versions_max: int) -> int:
        return self._call("sweep", versions_max, partial(self.inner.sweep, before_ms, versions_max))

    @override
    def newest_ms(self, before_ms: int) -> int | None:
        return self._call("newest_ms", 1, partial(self.inner.newest_ms, before_ms))

    @override
    def scan(self) -> Iterator[StoredVersion | Tombstone]:
        return self._call("scan", 1, self.inner.scan)

    @override
    def check(self) -> None:
        self._call("check", 1, self.inner.check)

    @override
    def stats(self) -> Stats:
        return self._call("stats", 1, self.inner.stats)

    @override
    def close(self) -> None:
        self.inner.close()


def _is_operation(name: StoreCall) -> TypeGuard[Operation]:
    """Return whether this call is reported."""
    return name in _OPERATIONS


def ending_of(error: BaseException) -> Ending:
    """Return the ending of a call that raised this error."""
    return next((ending for kind, ending in _ENDINGS if isinstance(error, kind)), "error")
