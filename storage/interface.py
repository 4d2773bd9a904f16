"""The ``Store`` port: the operations that the judge needs from any store of articles.

The contract of every implementation (``tests/contract`` runs against each of them):

- **Visible.** A call sees everything written by calls that returned before it started, in every process. Writes within
  ``together`` may become visible to others only when it returns.
- **Item by item.** A call takes a batch to save round trips. Its items are independent: each is atomic, the batch need
  not be, and the order within a call is unspecified. After an error some items may have taken effect. Every call may
  be repeated after an error or a crash, with the same result.
- **Durable.** Acknowledged writes survive a kill at any moment, and a power loss as far as the store's settings say.
- **Errors.** Any method except ``close`` may raise ``StoreUnavailable`` (repeat the call later) and ``StoreDamaged``;
  methods that write may also raise ``StoreFull``, and ``StoreRefused`` if the store was opened for reading only. A
  remote store may raise ``StoreRefused`` in any call, for example if a table is missing. All errors are ``StoreError``.
- **Results** are in the order of the arguments, one for each, or None where nothing is stored, unless a method says
  otherwise.
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
    """Counts of what a store holds; ``size_bytes`` is its size on disk or in memory, or None if unknown.

    ``crowded_rows`` is the number of rows with more postings than the store's cap, ``widest_row`` the number of
    postings in the widest row, and ``seen_texts`` the number of texts that are remembered beyond the window.
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

        Called before any look-up of the same batch (*records*), so that a version's arrival is fixed before it decides
        anything. An existing version stays as it is, above all its arrival. Only a missing body is added while the
        version has no verdict, since a crash may have left it out. The references in a call are distinct.
        """
        ...

    def retract(self, tombstones: Sequence[Tombstone]) -> list[Tombstone]:
        """Store each tombstone by compare-and-set from absent, and return what is stored now.

        Called before the versions of the same batch are created. A replay gets the stored tombstone, and with it the
        event that was sent the first time.
        """
        ...

    def read(self, references: Sequence[bytes]) -> list[StoredVersion | None]:
        """Read versions, each with its verdict and the arrival that ended it, or None for one that is not stored.

        Called for the candidates of a batch (*read*), and where another process may have settled first (*settle*).
        """
        ...

    def sketches(self, references: Sequence[bytes]) -> list[bytes]:
        """Return the sketches of versions if that is much cheaper than reading the versions, else empty ones.

        Called for the candidates of a batch, before *read*: candidates that their sketches rule out are not read. A
        returned sketch is either the version's, which never changes, or empty, for example if no version is stored.
        """
        ...

    def latest(self, id_hashes: Sequence[bytes]) -> list[StoredVersion | Tombstone | None]:
        """Read the latest version or tombstone of each id. The ids are distinct.

        Called when content that has ended arrives again (*records*).
        """
        ...

    def history(self, id_hash: bytes) -> list[StoredVersion | Tombstone]:
        """Read all versions and tombstones of an id, in order of arrival. Called by inspection, never by the judge."""
        ...

    def bodies(self, references: Sequence[bytes]) -> list[str | None]:
        """Read the texts of versions, or None where no body is stored. Called to show evidence and to export."""
        ...


class PostingStore(Protocol):
    """Postings, each of which records that a version has a key."""

    def add(self, records: Sequence[Record]) -> None:
        """Write all postings of each record; adding them again changes nothing.

        Called before any look-up of the same batch (*postings*), so that of two near-duplicates that arrive at the same
        time at least one sees the other. Raises ``StoreRefused`` if the stored fingerprints have another width.
        """
        ...

    def look_up(self, keys: Sequence[bytes], bytes_max: int | None = None) -> list[PostingRow]:
        """Read the rows of these distinct keys, whole unless they exceed the store's cap on postings (*look up*).

        Of a wider row only the postings with the lowest codes are read (``storage.postings.truncated_to``), and the row
        is marked ``truncated``.

        With ``bytes_max`` the store stops reading once it has more bytes of postings than that, and returns the rows of
        the first keys, at least one. A caller that gets fewer rows than keys looks up fewer keys at a time.
        """
        ...

    def seek(self, codes: Sequence[KeyedCode], postings_max: int) -> list[PostingRow]:
        """For each code, read at most ``postings_max`` postings with exactly that code, even from a wide row.

        Called for truncated rows, so that an equal fingerprint is found there too. The codes are distinct. A row is
        ``truncated`` if it may have more such postings.
        """
        ...

    def remove(self, records: Sequence[Record]) -> None:
        """Delete all postings of each record. They may be added again later.

        Called for versions that became duplicates (*remove*), since nothing is matched against them. A store may keep
        some of their postings: without a kept version they are harmless.
        """
        ...


class VerdictStore(Protocol):
    """The verdict of each version, written once, and the release that may reverse it."""

    def settle(self, verdicts: Sequence[tuple[bytes, bytes]], removing: Sequence[Record] = ()) -> list[bool]:
        """Store each (reference, verdict) by compare-and-set from absent. The references in a call are distinct.

        The postings of the records in ``removing`` are deleted as by ``remove``, at any time during the call, which
        saves a round trip.

        Called with the decisions of a batch (*settle*). Returns True where ``read`` returns this verdict from now on,
        even if the same bytes were stored before: after an unknown outcome the caller repeats the call. Returns False
        where another verdict, a release or no record is stored; it stays unchanged.
        """
        ...

    def release(self, releases: Sequence[Release]) -> list[bytes | None]:
        """Store each release next to the verdict, by compare-and-set from absent.

        The references in a call are distinct. Called when a person reverses a flag. Returns the event that is the
        version's verdict from now on: this one, or that of an earlier release. Returns None, and writes nothing, where
        the version is pending or missing, so that there is no verdict to reverse. A release lives as long as its
        version.
        """
        ...


class SeenStore(Protocol):
    """The memory of texts beyond the window: one entry for each digest, with its own lifetime.

    A run uses it only if ``judge.seen_days`` is set.
    """

    def seen(self, digests: Sequence[bytes]) -> list[SeenTimes | None]:
        """Read the entries of these texts. The digests are distinct. Called before a batch is decided (*decide*)."""
        ...

    def change_seen(self, changes: Sequence[SeenChange]) -> list[bool]:
        """Carry out each compare-and-set. The digests in a call are distinct.

        Called once the verdicts of a batch are written (*note*). Returns True where ``after`` is stored from now on,
        even if it was stored before: after an unknown outcome the caller repeats the call.
        """
        ...

    def forget_seen(self, before_ms: int, texts_max: int) -> int:
        """Look at up to ``texts_max`` entries, and delete those last seen and last written before ``before_ms``.

        Called between batches. Each call continues where the previous one stopped, and starts over after the last
        entry. Returns the number of deleted entries; a store whose cells expire returns 0.
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
        """Read the stored settings, or None if there are none yet. Called by commands that must not write."""
        ...

    def planned(self) -> CapacityPlan | None:
        """Read the capacity plan that the store was created for, None if there is none.

        Called before the first ``agree`` of a store: settings with another plan must be refused then.
        """
        ...


class BatchStore(Protocol):
    """Many calls committed as one, where a store can do that."""

    def together(self, work: Callable[[], Answer]) -> Answer:
        """Run ``work`` and return its result; commit everything that its calls write as one, if the store can.

        Called with all the work of judging a batch. A store that can do this

        - shows the writes to others, and flushes them, once ``work`` has returned; calls within ``work`` see the writes
          of earlier ones, and nothing that others write in the meantime;
        - writes nothing if ``work`` or a call within it raises, and raises the same error;
        - runs ``work`` again if it has to start over, after the exception ``StartAgain`` in one of the calls. Each
          attempt begins with the store as it was; nothing else may remain of the previous one.

        Other stores run ``work`` once and commit each of its calls separately. ``work`` makes its calls in the thread
        that runs it. A ``together`` within another one is part of it. Raises the errors of methods that write.
        """
        return work()


class StoreUpkeep(Protocol):
    """Expiry and inspection."""

    def sweep(self, before_ms: int, versions_max: int) -> int:
        """Delete versions and tombstones that both arrived and were written before ``before_ms``; return how many.

        Called between batches, so that a store does not grow for ever. Deletes the oldest first, at most
        ``versions_max``, each with its verdict, body and postings. A store whose cells expire returns 0. The time of
        writing counts too, so that a consumer of today's articles does not sweep away a backfill of old ones.
        """
        ...

    def newest_ms(self, before_ms: int) -> int | None:
        """Return the time of the latest version or tombstone: the later of its arrival and its writing.

        Only times before ``before_ms`` count. Called when a run begins, so that it sweeps nothing if its clock is
        wrong. Returns None if there is none, or if the cells of the store expire.
        """
        ...

    def scan(self) -> Iterator[StoredVersion | Tombstone]:
        """Iterate over all versions and tombstones, in unspecified order, each as of when it is read.

        Called by inspection, export and comparison. It may take minutes, while others use the store.
        """
        ...

    def check(self) -> None:
        """Read everything in the store's files, even what no other call reads. Raise ``StoreDamaged`` if that fails.

        Called by inspection; may take minutes. A store whose servers check their own files has nothing to do.
        """
        return

    def stats(self) -> Stats:
        """Count what is stored. May read the whole store."""
        ...

    def close(self) -> None:
        """Release files, connections and threads. The store is not used afterwards."""
        ...


class Store(VersionStore, PostingStore, VerdictStore, SeenStore, SettingsStore, BatchStore, StoreUpkeep, Protocol):
    """Everything that ``consumer.judge.detector`` judges with.

    The calls for one version, without its candidates::

        def judge() -> bool:
            (stored,) = store.create([Version(record, body)])
            store.add([record])
            rows = store.look_up(record.keys)
            return store.settle([(record.reference, verdict)])[0]

        store.together(judge)
    """
