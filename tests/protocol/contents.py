"""What a store holds as a value: taken from a real store, compared, hashed, and put back into another."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from storage.interface import Store
from storage.memory import MemoryStore
from storage.postings import POSTING
from storage.records import Record, Stored, Tombstone, Version
from tests.builders import TIME_MS, make_record

DECIDED_MS = TIME_MS + 1_000


def stands_still() -> int:
    """A clock that shows the same time in every run, so that equal decisions are equal bytes."""
    return DECIDED_MS


def memory_store() -> MemoryStore:
    """The store that is explored, unless a case takes a broken one."""
    return MemoryStore(clock=stands_still)


class Content(NamedTuple):
    """All that a store holds, as a value: versions with verdicts, tombstones, and postings by key."""

    versions: frozenset[Stored]
    tombstones: frozenset[Tombstone]
    postings: frozenset[tuple[bytes, bytes]]

    @property
    def verdicts(self) -> dict[bytes, bytes | None]:
        """The verdict of each version, by reference."""
        return {one.record.reference: one.verdict for one in self.versions}


NOTHING = Content(frozenset(), frozenset(), frozenset())


def content_of(store: Store) -> Content:
    """What a store holds. Rows that no stored record has a key of are not seen: nobody could find them."""
    everything = list(store.scan())
    versions = [one for one in everything if isinstance(one, Stored)]
    keys = sorted({key for one in versions for key in one.record.keys})
    rows = zip(keys, store.look_up(keys), strict=True)
    return Content(
        frozenset(versions),
        frozenset(one for one in everything if isinstance(one, Tombstone)),
        frozenset((key, posting.tobytes()) for key, row in rows for posting in row.postings),
    )


def restore(content: Content, make_store: Callable[[], Store]) -> Store:
    """A new store that holds just this."""
    store = make_store()
    store.create([Version(one.record, None) for one in content.versions])
    store.retract(list(content.tombstones))
    store.settle([(one.record.reference, one.verdict) for one in content.versions if one.verdict is not None])
    store.add([_record_of(key, posting) for key, posting in content.postings])
    return store


def _record_of(key: bytes, posting: bytes) -> Record:
    """A record that has this posting and no other."""
    code, reference, time_ms, sequence = np.frombuffer(posting, POSTING)[0].tolist()
    bits = code.to_bytes(8, "big")
    return make_record(
        reference=reference, time_ms=time_ms, sequence=sequence, fingerprint=bits, one_bits=bits, keys=(key,)
    )
