"""The store calls of a judge, divided into steps that touch one cell, row or record, and are atomic in every store.

The contract promises atomicity for items of a call and no order among them. A record's postings lie in rows of
their own, which no store writes at once, so adding and removing are cut further, key by key.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec

from consumer.model.verdict import decode_verdict
from storage.interface import Store
from storage.postings import PostingRow, all_keys
from storage.records import Record, StoredVersion, Tombstone, Version
from storage.seen import SeenChange, SeenTimes

Item = TypeVar("Item")


class Step(Protocol):
    """An atomic action on a store. Equal steps do the same; replies are equal where a judge cannot tell them apart."""

    def apply(self, store: Store) -> Hashable:
        """Perform the step; return the reply."""
        ...


@dataclass(frozen=True, slots=True)
class Create:
    """Create one version."""

    version: Version

    def __str__(self) -> str:
        return f"creates {self.version.record.id} {_short(self.version.record.reference)}"

    def apply(self, store: Store) -> StoredVersion:
        """Return the version as stored."""
        return store.create([self.version])[0]


@dataclass(frozen=True, slots=True)
class Retract:
    """Store one tombstone."""

    tombstone: Tombstone

    def __str__(self) -> str:
        return f"retracts {self.tombstone.id}"

    def apply(self, store: Store) -> Tombstone:
        """Return the tombstone as stored."""
        return store.retract([self.tombstone])[0]


@dataclass(frozen=True, slots=True)
class Read:
    """Read one record with its verdict."""

    reference: bytes

    def __str__(self) -> str:
        return f"reads {_short(self.reference)}"

    def apply(self, store: Store) -> StoredVersion | None:
        """Return the version as stored; None where it is not."""
        return store.read([self.reference])[0]


@dataclass(frozen=True, slots=True)
class AddPosting:
    """Write one posting: the record has one key."""

    record: Record

    def __str__(self) -> str:
        return f"adds the posting of {self.record.id} under {self.record.keys[0].hex()}"

    def apply(self, store: Store) -> None:
        """Return nothing."""
        store.add([self.record])


@dataclass(frozen=True, slots=True)
class RemovePosting:
    """Delete one posting: the record has one key."""

    record: Record

    def __str__(self) -> str:
        return f"removes the posting of {self.record.id} under {self.record.keys[0].hex()}"

    def apply(self, store: Store) -> None:
        """Return nothing."""
        store.remove([self.record])


@dataclass(frozen=True, slots=True)
class LookUp:
    """Read one row."""

    key: bytes

    def __str__(self) -> str:
        return f"looks up {self.key.hex()}"

    def apply(self, store: Store) -> tuple[bytes, bool]:
        """Return the row's postings as bytes, and whether it was cut."""
        row = store.look_up([self.key])[0]
        return row.postings.tobytes(), row.truncated


@dataclass(frozen=True, slots=True)
class Settle:
    """Compare-and-set one verdict cell."""

    reference: bytes
    verdict: bytes

    def __str__(self) -> str:
        return f"settles {_short(self.reference)}: {_outcome(self.verdict)}"

    def apply(self, store: Store) -> bool:
        """Return whether the cell now holds this verdict."""
        return store.settle([(self.reference, self.verdict)])[0]


@dataclass(frozen=True, slots=True)
class ReadSeen:
    """Read what is remembered of one text."""

    digest: bytes

    def __str__(self) -> str:
        return f"reads what is remembered of {self.digest.hex()[:6]}"

    def apply(self, store: Store) -> SeenTimes | None:
        """Return it; None where that is nothing."""
        return store.seen([self.digest])[0]


@dataclass(frozen=True, slots=True)
class ChangeSeen:
    """Compare-and-set what is remembered of one text."""

    change: SeenChange

    def __str__(self) -> str:
        return f"remembers {self.change.digest.hex()[:6]}: {self.change.after}"

    def apply(self, store: Store) -> bool:
        """Return whether that is remembered now."""
        return store.change_seen([self.change])[0]


@dataclass(frozen=True, slots=True)
class Latest:
    """Read what arrived last of one id."""

    id_hash: bytes

    def __str__(self) -> str:
        return f"reads the latest of {_short(self.id_hash)}"

    def apply(self, store: Store) -> StoredVersion | Tombstone | None:
        """Return it; None where there is nothing."""
        return store.latest([self.id_hash])[0]


@dataclass(frozen=True, slots=True)
class History:
    """Read everything of one id; only a mutant does this."""

    id_hash: bytes

    def __str__(self) -> str:
        return f"reads the history of {_short(self.id_hash)}"

    def apply(self, store: Store) -> tuple[StoredVersion | Tombstone, ...]:
        """Return all of it, in order of arrival."""
        return tuple(store.history(self.id_hash))


def _short(reference: bytes) -> str:
    return f"{reference[:3].hex()}..{reference[-3:].hex()}"


def _outcome(event: bytes) -> str:
    verdict = decode_verdict(event)
    return f"{verdict.outcome} {verdict.duplicate_of or ''}".strip()


def with_each_key(record: Record) -> Iterator[Record]:
    """Yield the record once for each of its keys, with only that key."""
    return (msgspec.structs.replace(record, keys=(key,), anchors=None) for key in all_keys(record))


class NextStep(Exception):  # noqa: N818  # not an error: tells the next step of a run
    """Stops a judge at the first step that has no reply yet."""

    def __init__(self, step: Step) -> None:
        super().__init__(step)
        self.step = step


class ScriptedStore:
    """Answers a judge with the replies so far; the first step beyond them raises ``NextStep``.

    It has only those methods of the ``Store`` port that are steps; a judge that calls another one fails its case.
    ``backwards`` takes the items of each call in reverse.
    """

    def __init__(self, replies: Sequence[Any], *, backwards: bool) -> None:
        self._replies = iter(replies)
        self._backwards = backwards

    def create(self, versions: Sequence[Version]) -> list[StoredVersion]:
        """Take a ``Create`` step for each version."""
        return self._each(Create(version) for version in versions)

    def retract(self, tombstones: Sequence[Tombstone]) -> list[Tombstone]:
        """Take a ``Retract`` step for each tombstone."""
        return self._each(Retract(tombstone) for tombstone in tombstones)

    def read(self, references: Sequence[bytes]) -> list[StoredVersion | None]:
        """Take a ``Read`` step for each reference."""
        return self._each(Read(reference) for reference in references)

    def sketches(self, references: Sequence[bytes]) -> list[bytes]:
        """Know none, so that every candidate is read. A sketch never changes: reading it is no step of its own."""
        return [b""] * len(references)

    def add(self, records: Sequence[Record]) -> None:
        """Take an ``AddPosting`` step for each posting."""
        self._each(AddPosting(part) for record in records for part in with_each_key(record))

    def look_up(self, keys: Sequence[bytes], bytes_max: int | None = None) -> list[PostingRow]:
        """Take a ``LookUp`` step for each key; rows are small."""
        del bytes_max
        return [PostingRow(row, cut) for row, cut in self._each(LookUp(key) for key in keys)]

    def remove(self, records: Sequence[Record]) -> None:
        """Take a ``RemovePosting`` step for each posting."""
        self._each(RemovePosting(part) for record in records for part in with_each_key(record))

    def settle(self, verdicts: Sequence[tuple[bytes, bytes]], removing: Sequence[Record] = ()) -> list[bool]:
        """Take a ``Settle`` step for each verdict, and a ``RemovePosting`` step for each posting."""
        settles = [Settle(reference, verdict) for reference, verdict in verdicts]
        assert len({settle.reference for settle in settles}) == len(settles), "the references of a call differ"
        removals = [RemovePosting(part) for record in removing for part in with_each_key(record)]
        return self._each([*settles, *removals])[: len(settles)]

    def seen(self, digests: Sequence[bytes]) -> list[SeenTimes | None]:
        """Take a ``ReadSeen`` step for each text."""
        return self._each(ReadSeen(digest) for digest in digests)

    def change_seen(self, changes: Sequence[SeenChange]) -> list[bool]:
        """Take a ``ChangeSeen`` step for each text."""
        return self._each(ChangeSeen(change) for change in changes)

    def latest(self, id_hashes: Sequence[bytes]) -> list[StoredVersion | Tombstone | None]:
        """Take a ``Latest`` step for each id."""
        return self._each(Latest(id_hash) for id_hash in id_hashes)

    def history(self, id_hash: bytes) -> list[StoredVersion | Tombstone]:
        """Take a ``History`` step."""
        return list(self._take(History(id_hash)))

    def together(self, work: Callable[[], Item]) -> Item:
        """Make each call by itself, as a store does that cannot write them at once."""
        return work()

    def _each(self, steps: Iterable[Step]) -> list[Any]:
        asked = list(steps)
        if self._backwards:
            return [self._take(step) for step in reversed(asked)][::-1]
        return [self._take(step) for step in asked]

    def _take(self, step: Step) -> Any:  # noqa: ANN401  # every step has a reply of its own type
        try:
            return next(self._replies)
        except StopIteration:
            raise NextStep(step) from None
