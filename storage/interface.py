"""The ``Store`` port: what the judge needs from any place that keeps articles.

The contract of every implementation (``tests/contract`` runs against each of them):

- **Visible.** Every call that starts after another one returned sees what that one wrote, in every process. What is
  written within ``together`` may be visible to others only once that has returned.
- **Item by item.** A call takes a batch to save round trips. Its items are independent: each is atomic, the batch need
  not be, and the order within a call is unspecified. After an error some items may be done. Every call may be repeated
  after an error or a crash, with the same result.
- **Durable.** Acknowledged writes survive a kill at any moment, and a power loss as far as the store's settings say.
- **Errors.** Any method but ``close`` may raise ``StoreUnavailable`` (repeat the call later) and ``StoreDamaged``;
  methods that write may also raise ``StoreFull``, and ``StoreRefused`` if the store was opened for reading only. No
  other errors than those of ``storage.errors`` leave a store.
- **Results** are in the order of the arguments, one for each, None where nothing is stored.
- **Threads.** Any thread may call any method.

The steps named below are those of ``Detector.judge`` (docs/contributing/protocol.md).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

from storage.postings import KeyedCode, PostingRow
from storage.records import CapacityPlan, Record, Release, StoredVersion, Tombstone, Version
from storage.seen import SeenChange, SeenTimes

Answer = TypeVar("Answer")


class Stats(NamedTuple):
    """How much a store holds; ``size_bytes`` is its size on disk or in memory, None if unknown.

    ``crowded_rows`` is the number of rows with more postings than the store's cap, ``widest_row`` the number of
    postings in the widest row, ``seen_texts`` the number of texts that are remembered beyond the window.
    """

    versions: int
    verdicts: int
    tombstones: int
    postings: int
    rows: int
    size_bytes: int | None
    crowded_rows: int = 0
    widest_row: int = 0
    seen_texts: int = 0


class VersionStore(Protocol):
    """Versions and tombstones, each written once."""

    def create(self, versions: Sequence[Version]) -> list[StoredVersion]:
        """Store each version by compare-and-set from absent, and return what is stored now.

        Called first for every batch (*records*), so that a version's arrival is fixed before it decides anything. A
        version that exists already keeps everything that is stored, its arrival above all; while it has no verdict, a
        missing body is added, since a crash may have left it out. The references of a call differ.
        """
        ...

    def retract(self, tombstones: Sequence[Tombstone]) -> list[Tombstone]:
        """Store each tombstone by compare-and-set from absent, and return what is stored now.

        Called before the versions of the same batch are created. A replay gets the stored tombstone, and with it the
        event that was sent the first time.
        """
        ...

    def read(self, references: Sequence[bytes]) -> list[StoredVersion | None]:
        """Read versions with their verdicts, and with the arrival that ended each, as far as stored by now.

        Called for the candidates of a batch (*read*), and where another process may have settled first (*settle*).
        """
        ...

    def sketches(self, references: Sequence[bytes]) -> list[bytes]:
        """Return the sketches of versions, as far as that costs much less than reading the versions; else empty ones.

        Called for the candidates of a batch, before *read*: those that their sketches rule out are not read. So a
        sketch is that of the version, which never changes, or empty: without a version, too.
        """
        ...

    def latest(self, id_hashes: Sequence[bytes]) -> list[StoredVersion | Tombstone | None]:
        """Read what arrived last of each id, a version or a tombstone. The ids differ.

        Called where content arrives again that has ended (*records*).
        """
        ...

    def history(self, id_hash: bytes) -> list[StoredVersion | Tombstone]:
        """Read all versions and tombstones of an id, in order of arrival. Called by inspection, never by the judge."""
        ...

    def bodies(self, references: Sequence[bytes]) -> list[str | None]:
        """Read the texts of versions, None where no body is kept. Called to show evidence and to export."""
        ...


class PostingStore(Protocol):
    """Finds versions by key."""

    def add(self, records: Sequence[Record]) -> None:
        """Write all postings of each record; adding them again changes nothing.

        Called before any look-up of the same batch (*postings*): of two near-duplicates that arrive at the same time at
        least one must see the other. Raises ``StoreRefused`` for fingerprints of another width than those stored.
        """
        ...

    def look_up(self, keys: Sequence[bytes], bytes_max: int | None = None) -> list[PostingRow]:
        """Read the rows of these keys, which differ, whole up to the store's cap of postings per row (*look up*).

        Of a wider row only the postings with the lowest codes are read (``storage.postings.truncated_to``), and the row
        is marked ``truncated``.

        With ``bytes_max`` the store stops reading as soon as it holds more bytes of postings than that, and returns the
        rows of the first keys, at least one: a caller that gets fewer rows than keys asks for fewer at once.
        """
        ...

    def seek(self, codes: Sequence[KeyedCode], postings_max: int) -> list[PostingRow]:
        """Read at most ``postings_max`` postings with just this code under its key, however wide the row is.

        Called for truncated rows, so that an equal fingerprint is found there too. The codes differ. A row is
        ``truncated`` if it may have more such postings.
        """
        ...

    def remove(self, records: Sequence[Record]) -> None:
        """Delete all postings of each record, as far as they exist; adding them again makes them count again.

        Called for versions that became duplicates (*remove*), which nothing is matched against. A store may keep some:
        a posting without a kept version is harmless.
        """
        ...


class VerdictStore(Protocol):
    """The one cell of each version that decides, and the one that reverses it."""

    def settle(self, verdicts: Sequence[tuple[bytes, bytes]], removing: Sequence[Record] = ()) -> list[bool]:
        """Store each (reference, verdict) by compare-and-set from absent. The references of a call differ.

        The postings of the records in ``removing`` are deleted as by ``remove``, before, meanwhile or afterwards: it
        saves a round trip.

        Called with the decisions of a batch (*settle*). Returns True where ``read`` returns this verdict from now on,
        also if the same bytes were stored before: after an unknown outcome the caller repeats the call. Returns False
        where another verdict is stored, or a release, or no record: what is stored is the truth and stays unchanged.
        """
        ...

    def release(self, releases: Sequence[Release]) -> list[bytes | None]:
        """Store each release beside the verdict, by compare-and-set from absent. The references of a call differ.

        Called when a person reverses a flag. Returns the event that is the version's verdict from now on: this one, or
        that of a release that came first. Returns None, and writes nothing, where there is no verdict to reverse
        because the version is pending or missing. A release lives as long as its version.
        """
        ...


class SeenStore(Protocol):
    """What is remembered of texts beyond the window: an entry for each digest, with a life of its own.

    A store may be without; then it remembers nothing, and refuses to be changed.
    """

    def seen(self, digests: Sequence[bytes]) -> list[SeenTimes | None]:
        """Read what is remembered of these texts. The digests differ. Called before a batch is decided (*decide*)."""
        ...

    def change_seen(self, changes: Sequence[SeenChange]) -> list[bool]:
        """Carry out each compare-and-set. The digests of a call differ.

        Called once the verdicts of a batch are written (*note*). Returns True where ``after`` is what is stored from
        now on, also if it was stored before: after an unknown outcome the caller repeats the call.
        """
        ...

    def forget_seen(self, before_ms: int, texts_max: int) -> int:
        """Look at up to ``texts_max`` entries, and delete those last seen and last written before ``before_ms``.

        Called between batches. Each call goes on where the one before stopped, and in the end begins again, so that all
        entries get their turn. Returns how many were deleted; a store that expires cells by itself returns 0.
        """
        ...

    def scan_seen(self) -> Iterator[tuple[bytes, SeenTimes]]:
        """Iterate over all entries with their digests, as ``scan`` does. Called by inspection and migration."""
        ...


class SettingsStore(Protocol):
    """The settings that a store is bound to: consumers with other settings must be refused."""

    def agree(self, settings: bytes) -> bytes:
        """Store the settings by compare-and-set from absent, and return those stored now.

        Called before the first article of every run; the caller compares and refuses.
        """
        ...

    def settings(self) -> bytes | None:
        """Read the stored settings, None if there are none yet. Called by commands that must not write."""
        ...

    def planned(self) -> CapacityPlan | None:
        """Read what the store is made for, None if nobody has said so.

        Called before the first ``agree`` of a store: settings with another plan must be refused then.
        """
        ...


class BatchStore(Protocol):
    """Many calls as one."""

    def together(self, work: Callable[[], Answer]) -> Answer:
        """Run ``work``, and write all that its calls write at once, if the store can do that; return its result.

        Called with all that is done to judge a batch. A store that can

        - shows others what was written, and flushes it, once ``work`` has returned; calls within ``work`` see what
          those before them wrote, and nothing that others write meanwhile;
        - writes nothing if ``work`` or a call within it raises, and raises the same;
        - runs ``work`` more than once if it has to start again, after the exception ``StartAgain`` in one of the calls.
          Each attempt begins with the store as it was; nothing else may remain of the one before.

        Other stores run ``work`` once, and each of its calls counts by itself. ``work`` makes its calls in the thread
        that runs it. Within another ``together``, this one is part of it. Raises the errors of methods that write.
        """
        return work()


class StoreUpkeep(Protocol):
    """Space and inspection."""

    def sweep(self, before_ms: int, versions_max: int) -> int:
        """Delete versions and tombstones that both arrived and were written before ``before_ms``; return how many.

        Called between batches, so that a store does not grow for ever. Deletes the oldest first, at most
        ``versions_max``, each with its verdict, body and postings. A store that expires cells by itself returns 0. The
        time of writing counts too, so that a consumer of today's articles does not sweep away a backfill of old ones.
        """
        ...

    def newest_ms(self, before_ms: int) -> int | None:
        """Return when the latest version or tombstone came, by the later of arrival and writing; None without any.

        Only what came before ``before_ms`` counts. Called when a run begins, so that it sweeps nothing by a clock that
        is wrong. A store that expires cells by itself returns None.
        """
        ...

    def scan(self) -> Iterator[StoredVersion | Tombstone]:
        """Iterate over everything stored, in unspecified order, each item as of when it is read.

        Called by inspection, export and comparison; may take minutes, during which the store is in use.
        """
        ...

    def check(self) -> None:
        """Read all that the store's files hold, also what no other call leads to; raise ``StoreDamaged`` if it cannot.

        Called by inspection; may take minutes. A store whose servers check their own files has nothing to do.
        """
        return

    def stats(self) -> Stats:
        """Count what is stored; may read all of it."""
        ...

    def close(self) -> None:
        """Release files, connections and threads. The store is not used afterwards."""
        ...


class Store(VersionStore, PostingStore, VerdictStore, SeenStore, SettingsStore, BatchStore, StoreUpkeep, Protocol):
    """Everything that ``consumer.judge.detector`` judges with."""
