"""Takes flags and releases from their topic into the database, batch by batch.

A batch is one transaction, and its offsets are committed after it. So a kill loses nothing, and an event that is read
again changes nothing. Brokers and database are waited for. A store is not: sources can be filled in later.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from consumer.config.sections.console import ConsoleSection
from consumer.console.context import Articles
from consumer.console.event_reading import NewerEvent, read_events
from consumer.console.sources_of import sources_of
from consumer.kafka.offset_metadata import Note
from consumer.lifecycle.retry import UntilReachable
from consumer.lifecycle.turns import Turns
from consumer.model.errors import Abandoned, StoreMismatch
from consumer.model.hooks import Hooks, Outage
from consumer.model.record import Offsets, Partition, RawBatch
from consumer.model.verdict import Verdict
from consumer.reviews.database import Connection, Database, DatabaseUnavailable
from consumer.reviews.flag_events import Added, FlagEvent, add_events
from consumer.reviews.floods import note_floods
from consumer.telemetry.metrics.console import EventsTaken, FloodsBegan, TakenKind
from storage.errors import StoreError

log = logging.getLogger("dupwatch")

STORE_PAUSE_S: Final = 15.0
"""How long the store is not asked after it did not answer: an intake that asked for each batch would fall behind."""
_LOOK_S: Final = 0.1


class FlagSource(Protocol):
    """The topic of flags, as one member of a consumer group."""

    def batches(self) -> Iterator[RawBatch]:
        """Deliver records until the source is closed or stopped. Raises ``SourceError``."""
        ...

    def begin(self, end: Offsets) -> Mapping[Partition, Note]:
        """Begin a batch. Raises ``Abandoned`` where its partitions were reassigned."""
        ...

    def check(self) -> None:
        """Raise ``Abandoned`` where the begun batch was given up."""
        ...

    def commit(self, end: Offsets, notes: Mapping[Partition, Note]) -> None:
        """Have the begun batch committed soon. Raises ``Abandoned``."""
        ...

    def abandon(self) -> None:
        """Read the begun batch again."""
        ...


@dataclass(frozen=True, slots=True)
class IntakeParts:
    """What an intake works with. ``noted`` is called when something is to be sent: floods have begun."""

    database: Database
    section: ConsoleSection
    articles: Articles
    now_ms: Callable[[], int]
    hooks: Hooks
    noted: Callable[[], None]


class Stopped(Exception):  # noqa: N818  # nothing failed
    """The console ends."""


class Intake:
    """Takes in what one source delivers; used by one thread. ``stopping`` ends it between and within batches."""

    def __init__(self, parts: IntakeParts, stopping: threading.Event) -> None:
        self._parts = parts
        self._stopping = stopping
        self._turns = Turns(parts.hooks)
        self._store_again_s = 0.0

    def take_all(self, source: FlagSource) -> None:
        """Take in batches until the source ends. Raises ``SourceError``, and ``Stopped``."""
        for batch in source.batches():
            with self._turns.at_work():
                self._take(source, batch)

    def add(self, events: Sequence[FlagEvent], proceed: Callable[[], None]) -> Added:
        """Store events once the database answers. ``proceed`` is called meanwhile, and may raise."""
        section, now_ms = self._parts.section, self._parts.now_ms()

        def stored(connection: Connection) -> tuple[Added, int]:
            added = add_events(connection, events)
            floods = note_floods(connection, added.stories, now_ms, section.flood_s, section.flood_copies)
            return added, len(floods)

        added, floods = self._patience(proceed).call(lambda: self._parts.database.written(stored))
        self._report(added)
        if floods:
            self._parts.hooks.report(FloodsBegan(floods))
            self._parts.noted()
        return added

    def proceed(self) -> None:
        """Report progress. Raises ``Stopped``."""
        self._turns.turn()
        if self._stopping.is_set():
            raise Stopped

    def _take(self, source: FlagSource, batch: RawBatch) -> None:
        end = batch.end
        assert isinstance(end, Offsets)  # noqa: S101  # a topic's

        def proceed() -> None:
            self.proceed()
            source.check()

        try:
            source.begin(end)
            try:
                verdicts = read_events(batch.records, self._parts.hooks.report)
            except NewerEvent as error:
                self._wait_for_newer(error, proceed)
            self.add(self._with_sources(verdicts), proceed)
            source.commit(end, {})
        except Abandoned:
            # Whoever owns its partitions now reads it again.
            source.abandon()

    def _wait_for_newer(self, error: NewerEvent, proceed: Callable[[], None]) -> None:
        """Wait until the console ends, or the batch belongs to another one, which may be newer."""
        why = f"{error}; update the console"
        log.error("%s", why)
        self._parts.hooks.report(Outage("source", "newer event", why))
        try:
            while True:
                proceed()
                time.sleep(_LOOK_S)
        finally:
            self._parts.hooks.report(Outage("source", "newer event", None))

    def _with_sources(self, verdicts: Sequence[Verdict]) -> list[FlagEvent]:
        if not verdicts or time.monotonic() < self._store_again_s:
            return [FlagEvent(verdict) for verdict in verdicts]
        try:
            return sources_of(self._parts.articles, verdicts)
        except (StoreError, StoreMismatch) as error:
            log.warning("Flags come in without their sources, which are filled in later: %s", error)
            self._store_again_s = time.monotonic() + STORE_PAUSE_S
            return [FlagEvent(verdict) for verdict in verdicts]

    def _patience(self, proceed: Callable[[], None]) -> UntilReachable:
        def report(why: str | None) -> None:
            self._parts.hooks.report(Outage("database", "intake", why))

        return UntilReachable(proceed, report, DatabaseUnavailable, "The console's database")

    def _report(self, added: Added) -> None:
        counts: dict[TakenKind, int] = {
            "flag": added.flags,
            "release": added.releases,
            "known": added.known,
            "other": added.others,
        }
        for kind, events in counts.items():
            if events:
                self._parts.hooks.report(EventsTaken(kind, events))
