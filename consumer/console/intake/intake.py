"""Stores flags and releases from the sink in the database, and other entries from their topics, batch by batch.

A batch is one transaction. It also stores the position in the source, unless the source commits the position after the
transaction. So no event is lost if the process is killed, and an event that is read again changes nothing.

The intake waits for the source and the database. It does not read the store, because events name the sources of their
articles. If events of earlier versions do not name them, ``store_reading.fill_in_sources`` adds the sources later.
"""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, NoReturn, Protocol, TypeVar

from typing_extensions import override

from consumer.config.sections.console import ConsoleSection
from consumer.console.intake.event_reading import NEWER_EVENT, NewerEvent, PlaceOf, read_verdicts
from consumer.lifecycle.retry import RetrySubject, RetryUntilReachable
from consumer.lifecycle.thread_progress import ThreadProgress
from consumer.model.errors import Abandoned
from consumer.model.hooks import Hooks, Outage
from consumer.model.record import End, RawBatch, RawRecord
from consumer.model.verdict import Verdict
from consumer.reviews import queue, sending
from consumer.reviews.database import Connection, Database, DatabaseUnavailable
from consumer.reviews.flag_events import IntakeCounts, add_events
from consumer.reviews.floods import Flood, note_floods
from consumer.reviews.kinds.side_entries import AddedEntries, add_side_entries
from consumer.reviews.outbox.arrivals import write_bank_match_events, write_flag_events
from consumer.reviews.outbox.flood_events import write_flood_events
from consumer.reviews.outbox.story_events import write_growth_events
from consumer.reviews.ranking.preferring import refresh_preferred
from consumer.reviews.standing.application import apply
from consumer.reviews.standing.standing_decisions import StandingOutcome, counts_in_force
from consumer.reviews.word_index.waiting import waiting_count
from consumer.telemetry.metrics.console import EventsTaken, FlagsDecided, FloodsStarted, QueueCounted, TakenKind
from storage.clock import MS_PER_S

log = logging.getLogger("dupwatch")

Event = TypeVar("Event")

_LOOK_S: Final = 0.1


class EventSource(Protocol):
    """A source of events that remembers its position: a topic in its consumer group, a file in the database."""

    def batches(self) -> Iterator[RawBatch]:
        """Yield batches until the source is stopped, or has no more for now.

        Raises ``SourceError``. A file also raises ``FileNotFoundError`` and ``DatabaseUnavailable``.
        """
        ...

    def place_of(self, record: RawRecord) -> str:
        """Return the place of a record, for messages."""
        ...

    def begin(self, end: End) -> None:
        """Begin the batch that ends at ``end``. Raises ``Abandoned`` if the batch no longer belongs to this process."""
        ...

    def check(self) -> None:
        """Raise ``Abandoned`` if this process no longer has the current batch, or the batch no longer exists.

        Must not use the database.
        """
        ...

    def note(self, connection: Connection, end: End) -> None:
        """Store the end of the current batch in the transaction of its events, if the database keeps the position.

        Called again if the transaction is repeated. Raises ``Abandoned``.
        """
        ...

    def commit(self, end: End) -> None:
        """End the current batch after its events were stored. Raises ``Abandoned``."""
        ...

    def abandon(self) -> None:
        """Give up the current batch, so that it is read again."""
        ...


class ConsoleStopped(Exception):  # noqa: N818  # nothing failed
    """The console is stopping."""


def store_nothing(_: Connection) -> None:
    """Store nothing."""


class BatchIntake(ABC, Generic[Event]):
    """The intake of events from one source. Used by one thread. ``stopping`` ends it between and within batches.

    ``name`` identifies its outages.
    """

    def __init__(self, name: str, hooks: Hooks, stopping: threading.Event) -> None:
        self._name = name
        self._hooks = hooks
        self._stopping = stopping
        self._progress = ThreadProgress(hooks)

    def take_all(self, source: EventSource) -> None:
        """Take in batches until the source ends. Raises ``ConsoleStopped``, and the errors of ``batches``."""
        for batch in source.batches():
            with self._progress.at_work():
                self._take(source, batch)

    def proceed(self) -> None:
        """Report progress. Raises ``ConsoleStopped``."""
        self._progress.report()
        if self._stopping.is_set():
            raise ConsoleStopped

    @abstractmethod
    def read(self, records: Sequence[RawRecord], place_of: PlaceOf) -> list[Event]:
        """Return the events in records, and report those that can never be read. Raises ``NewerEvent``."""

    @abstractmethod
    def take_in(
        self, events: Sequence[Event], proceed: Callable[[], None], note: Callable[[Connection], None] = store_nothing
    ) -> None:
        """Store events in one transaction once the database answers, and report them.

        ``proceed`` is called while waiting, and may raise. ``note`` is called first in the transaction. Without events,
        there may be no transaction.
        """

    def _take(self, source: EventSource, batch: RawBatch) -> None:
        end = batch.end

        def proceed() -> None:
            self.proceed()
            source.check()

        try:
            source.begin(end)
            try:
                events = self.read(batch.records, source.place_of)
            except NewerEvent as error:
                self._wait_for_newer(error, proceed)
            self.take_in(events, proceed, lambda connection: source.note(connection, end))
            source.commit(end)
        except Abandoned:
            # Another console has the batch, or the batch no longer exists.
            source.abandon()

    def _wait_for_newer(self, error: NewerEvent, proceed: Callable[[], None]) -> NoReturn:
        """Wait until the console stops, or until another console, which may be newer, gets the batch."""
        why = f"{error}; update the console"
        reporter = f"{NEWER_EVENT}, {self._name}"
        log.error("%s", why)
        self._hooks.report(Outage("source", reporter, why))
        try:
            while True:
                proceed()
                time.sleep(_LOOK_S)
        finally:
            self._hooks.report(Outage("source", reporter, None))

    def report_taken(self, counts: Mapping[TakenKind, int]) -> None:
        """Report the number of events taken in, by kind."""
        for kind, events in counts.items():
            if events:
                self._hooks.report(EventsTaken(kind, events))

    def retry(self, proceed: Callable[[], None]) -> RetryUntilReachable:
        """Return the retry policy for the database."""
        database = RetrySubject("database", self._name, DatabaseUnavailable, "The console's database")
        return RetryUntilReachable(proceed, self._hooks, database)


@dataclass(frozen=True, slots=True)
class IntakeParts:
    """The parts of an intake. ``wake_sender`` is called after flood events have been stored in the outbox.

    While ``has_room`` returns False, the intake waits.
    """

    database: Database
    section: ConsoleSection
    now_ms: Callable[[], int]
    hooks: Hooks
    wake_sender: Callable[[], None]
    has_room: Callable[[], bool] = lambda: True

    def decide_new(
        self, connection: Connection, flag_ids: Sequence[int], *, are_stored: bool = False
    ) -> Mapping[StandingOutcome, int]:
        """Decide flags by standing decisions, and return the number of flags by decision, as ``apply`` does.

        Call this in the transaction that stores the flags. ``are_stored``: the flags came earlier, and the transaction
        stores their sources.
        """
        undo_ms = round(self.section.undo_s * MS_PER_S)
        return apply(connection, flag_ids, self.now_ms(), undo_ms, are_stored=are_stored)

    def report_decided(self, decided: Mapping[StandingOutcome, int]) -> None:
        """Report how many flags standing decisions have decided. Call this after the transaction."""
        for decision, flags in decided.items():
            if flags:
                self.hooks.report(FlagsDecided(decision, flags, "standing_decision"))


class _IntakeOutcome(NamedTuple):
    """The outcome of a batch. ``floods_begun`` is the number of floods that begin with the batch.

    ``floods_with_events`` are the floods about which events were written.
    """

    added: IntakeCounts
    sides: AddedEntries
    decided: Mapping[StandingOutcome, int]
    floods_begun: int
    floods_with_events: Sequence[Flood]


class Intake(BatchIntake[Verdict]):
    """The intake of flags and releases.

    ``takes_all``: also make entries of other kinds from the verdicts, since no topics have these entries.
    """

    def __init__(self, parts: IntakeParts, stopping: threading.Event, *, takes_all: bool = False) -> None:
        super().__init__("intake", parts.hooks, stopping)
        self._parts = parts
        self._takes_all = takes_all

    @override
    def read(self, records: Sequence[RawRecord], place_of: PlaceOf) -> list[Verdict]:
        return read_verdicts(records, self._parts.hooks.report, place_of)

    @override
    def take_in(
        self, events: Sequence[Verdict], proceed: Callable[[], None], note: Callable[[Connection], None] = store_nothing
    ) -> None:
        self._take_in(events, proceed, note, takes_all=self._takes_all)

    def take_in_all(self, events: Sequence[Verdict], proceed: Callable[[], None]) -> None:
        """Store events as ``take_in`` does, and also the other entries that verdicts contain."""
        self._take_in(events, proceed, store_nothing, takes_all=True)

    def _take_in(
        self,
        events: Sequence[Verdict],
        proceed: Callable[[], None],
        note: Callable[[Connection], None],
        *,
        takes_all: bool,
    ) -> None:
        while not self._parts.has_room():
            proceed()
            time.sleep(_LOOK_S)
        section, now_ms = self._parts.section, self._parts.now_ms()

        def store(connection: Connection) -> _IntakeOutcome:
            note(connection)
            added = add_events(connection, events)
            sides = add_side_entries(connection, events) if takes_all else AddedEntries()
            write_flag_events(connection, added.new, now_ms)
            # Decide before counting stories: a wrong flag is not a copy, begins no story, and adds to no flood.
            decided = self._parts.decide_new(connection, added.flag_ids)
            write_growth_events(connection, added.grown, now_ms)
            refresh_preferred(connection, added.members, now_ms)
            begun = note_floods(connection, added.stories, now_ms, section.flood_s, section.flood_copies)
            announced = write_flood_events(connection, now_ms) if added.stories else []
            write_bank_match_events(connection, sides.matches, now_ms)
            return _IntakeOutcome(added, sides, decided, len(begun), announced)

        added, sides, decided, floods, announced = self.retry(proceed).call(lambda: self._parts.database.write(store))
        self.report_taken(
            {
                "flag": added.flags,
                "release": added.releases,
                "ended_before": sides.ended_before,
                "bank_match": sides.bank_matches,
                "known": added.known + sides.known,
                "other": added.others - sides.verdicts,
            }
        )
        self._parts.report_decided(decided)
        if floods:
            self._parts.hooks.report(FloodsStarted(floods))
        for flood in announced:
            log.warning("A flood has begun: %d copies of %r", flood.copies, flood.root_id)
        if announced:
            self._parts.wake_sender()


def count_queue(database: Database, now_ms: int, report: Callable[[object], None]) -> bool:
    """Report figures of the queue, such as the flags in each state and the due releases.

    Return False, because no work is left for ``BackgroundWork``. Raises ``DatabaseUnavailable``.
    """
    with database.read_connection() as connection:
        counts, backlog = queue.counts(connection), sending.backlog(connection, now_ms)
        search_waiting, standing = waiting_count(connection), counts_in_force(connection, now_ms)
    oldest_ms = now_ms if counts.oldest_open_ms is None else counts.oldest_open_ms
    report(
        QueueCounted(
            flags={
                "open": counts.open,
                "skipped": counts.skipped,
                "right": counts.right,
                "wrong": counts.wrong,
                "released": counts.released,
            },
            open={"flag": counts.open, **counts.others_open},
            oldest_open_s=max(0, now_ms - oldest_ms) / MS_PER_S,
            releases_due=backlog.due,
            search_waiting=search_waiting,
            standing={"story": standing["right"], "sources": standing["wrong"]},
        )
    )
    return False
