"""The contents of a store as a value, which can be compared, hashed and restored."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from storage.interface import Store
from storage.memory import MemoryStore
from storage.postings import POSTING_DTYPE, all_keys
from storage.records import Record, StoredVersion, Tombstone, Version
from storage.seen import SeenChange, SeenTimes
from tests.builders import TIME_MS, make_record

DECIDED_MS = TIME_MS + 1_000


def stands_still() -> int:
    """Return the same time in every run, so that equal decisions give equal bytes."""
    return DECIDED_MS


def memory_store() -> MemoryStore:
    """Return the store that is explored, unless a case uses a broken one."""
    return MemoryStore(clock=stands_still)


class Content(NamedTuple):
    """Everything in a store: versions with verdicts, tombstones, postings by key, and texts remembered."""

    versions: frozenset[StoredVersion]
    tombstones: frozenset[Tombstone]
    postings: frozenset[tuple[bytes, bytes]]
    seen: frozenset[tuple[bytes, SeenTimes]] = frozenset()

    @property
    def verdicts(self) -> dict[bytes, bytes | None]:
        """The verdict of each version, by reference."""
        return {version.record.reference: version.verdict for version in self.versions}


NOTHING = Content(frozenset(), frozenset(), frozenset())


def content_of(store: Store) -> Content:
    """Return the contents of a store. Rows under keys that no stored record has are left out: no look-up reads them."""
    everything = list(store.scan())
    versions = [version for version in everything if isinstance(version, StoredVersion)]
    keys = sorted({key for version in versions for key in all_keys(version.record)})
    rows = zip(keys, store.look_up(keys), strict=True)
    return Content(
        frozenset(versions),
        frozenset(tombstone for tombstone in everything if isinstance(tombstone, Tombstone)),
        frozenset((key, posting.tobytes()) for key, row in rows for posting in row.postings),
        frozenset(store.scan_seen()),
    )


def restore(content: Content, make_store: Callable[[], Store]) -> Store:
    """Return a new store with these contents."""
    store = make_store()
    store.create([Version(version.record, None) for version in content.versions])
    store.retract(list(content.tombstones))
    store.settle(
        [(version.record.reference, version.verdict) for version in content.versions if version.verdict is not None]
    )
    store.add([_record_of(key, posting) for key, posting in content.postings])
    store.change_seen([SeenChange(digest, None, seen) for digest, seen in content.seen])
    return store


def _record_of(key: bytes, posting: bytes) -> Record:
    """Return a record that has only this posting."""
    code, reference, time_ms, sequence = np.frombuffer(posting, POSTING_DTYPE)[0].tolist()
    bits = code.to_bytes(8, "big")
    return make_record(
        reference=reference, time_ms=time_ms, sequence=sequence, fingerprint=bits, one_bits=bits, keys=(key,)
    )
