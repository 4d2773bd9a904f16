"""The ``Store`` port: what the judge asks of any place where articles are kept.

The contract, for every implementation (``tests/contract`` holds each of them to it):

- **Visible.** What a call wrote is seen by every call that starts after it returned, in every process.
- **Item by item.** A call takes a batch to save round trips. Its items are independent: each is atomic, the batch need
  not be, and the order within one call is not promised. An error may leave some items done. Every call may be made
  again after an error or a crash, with the same result.
- **Durable.** What was acknowledged survives a kill at any moment. Power loss: as the store's settings say.
- **Errors.** Only those of ``storage.errors``.
- **Results** come in the order of the arguments, one for each, None where nothing is stored.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from storage.postings import KeyedCode, Row
from storage.records import Record, Release, Stored, Tombstone, Version


class Stats(NamedTuple):
    """How much a store holds; ``size_bytes`` is what it takes on disk or in memory, None where that is not known.

    ``crowded_rows`` have more postings than the store reads whole; ``widest_row`` is how many the widest row has.
    """

    versions: int
    verdicts: int
    tombstones: int
    postings: int
    rows: int
    size_bytes: int | None
    crowded_rows: int = 0
    widest_row: int = 0


class Records(Protocol):
    """Versions and tombstones, each written once."""

    def create(self, versions: Sequence[Version]) -> list[Stored]:
        """Store each version unless it is there, by compare-and-set from absent; return what is stored now.

        A version that exists keeps what is stored, its arrival above all. The references of one call differ.
        """
        ...

    def retract(self, tombstones: Sequence[Tombstone]) -> list[Tombstone]:
        """Store each tombstone unless one with its reference is there; return what is stored now."""
        ...

    def read(self, references: Sequence[bytes]) -> list[Stored | None]:
        """Versions with their verdicts, and when each ceased to be in force as far as is stored by now."""
        ...

    def history(self, id_hash: bytes) -> list[Stored | Tombstone]:
        """All versions and tombstones of one id, in order of arrival."""
        ...

    def bodies(self, references: Sequence[bytes]) -> list[str | None]:
        """The versions' texts, None where no body was kept."""
        ...


class Postings(Protocol):
    """Where versions are found by key."""

    def add(self, records: Sequence[Record]) -> None:
        """Write all postings of each record. Adding again changes nothing."""
        ...

    def look_up(self, keys: Sequence[bytes]) -> list[Row]:
        """Read the rows of these keys (they differ), whole up to the store's cap of postings a row.

        Of a row that is wider, the postings of the lowest codes are read, ``storage.postings.cut_of`` the cap.
        """
        ...

    def seek(self, places: Sequence[KeyedCode], postings_max: int) -> list[Row]:
        """Read at each place the postings that have just its code, up to so many, however wide the row is.

        The places differ. A row is ``truncated`` where there may be more of them.
        """
        ...

    def remove(self, records: Sequence[Record]) -> None:
        """Delete all postings of each record; what is not there is no error. Adding again makes them count again."""
        ...


class Verdicts(Protocol):
    """The one cell of each version that decides, and the one that undoes it."""

    def settle(self, verdicts: Sequence[tuple[bytes, bytes]]) -> list[bool]:
        """Give each reference its verdict, by compare-and-set from absent. The references of one call differ.

        True where this is what ``read`` gives as the verdict now (also when it held just these bytes before: after an
        unknown outcome a caller repeats the call). False where another verdict stands there, a release among them,
        or where no record does: what is stored is the truth, and is left as it was.
        """
        ...

    def release(self, releases: Sequence[Release]) -> list[bytes | None]:
        """Put each release beside the verdict, by compare-and-set from absent. The references of one call differ.

        Returns the event that is the version's verdict now: this one, or the one of a release that was faster. None
        where there is no verdict to be undone, as the version is pending or not there: nothing is written then. A
        release lives as long as its version.
        """
        ...


class Binding(Protocol):
    """What a store was made with: whoever judges by other settings is to be refused."""

    def agree(self, settings: bytes) -> bytes:
        """Store the settings unless some are stored, by compare-and-set from absent; return those stored now."""
        ...

    def settings(self) -> bytes | None:
        """The settings stored, None where nobody has agreed on any; writes nothing."""
        ...


class Upkeep(Protocol):
    """Space and inspection."""

    def sweep(self, before_ms: int, versions_max: int) -> int:
        """Forget versions and tombstones that both came and were written before ``before_ms``; return how many went.

        Oldest first, at most ``versions_max``, each with its verdict, body and postings. A store that expires by itself
        returns 0. The time of writing counts beside the arrival, so that a backfill of old articles is not swept
        away by a consumer of today's.
        """
        ...

    def scan(self) -> Iterator[Stored | Tombstone]:
        """Everything that is stored, in no promised order, as of when it is read."""
        ...

    def stats(self) -> Stats:
        """How much there is."""
        ...

    def close(self) -> None:
        """Let go of everything. A closed store is not used again."""
        ...


class Store(Records, Postings, Verdicts, Binding, Upkeep, Protocol):
    """All of it: what ``consumer.judge.detector`` judges with."""
