"""Takes what consumers say from a topic into the database, batch by batch.

A batch is one transaction, and its offsets are committed after it. So a kill loses nothing, and an event that is read
again changes nothing. Brokers and database are waited for.
"""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Generic, NoReturn, Protocol, TypeVar

from consumer.console.intake.event_reading import NewerEvent
from consumer.kafka.message import Offsets
from consumer.kafka.offset_metadata import Note
from consumer.lifecycle.retry import Awaited, UntilReachable
from consumer.lifecycle.turns import Turns
from consumer.model.errors import Abandoned
from consumer.model.hooks import Hooks, Outage
from consumer.model.record import Partition, RawBatch, RawRecord
from consumer.reviews.database import DatabaseUnavailable

log = logging.getLogger("dupwatch")

Event = TypeVar("Event")

_LOOK_S: Final = 0.1


class EventSource(Protocol):
    """A topic, as one member of a consumer group."""

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


class Stopped(Exception):  # noqa: N818  # nothing failed
    """The console ends."""


class BatchIntake(ABC, Generic[Event]):
    """Takes in what one source delivers; used by one thread. ``stopping`` ends it between and within batches.

    ``name`` tells its outages from those of others.
    """

    def __init__(self, name: str, hooks: Hooks, stopping: threading.Event) -> None:
        self._name = name
        self._hooks = hooks
        self._stopping = stopping
        self._turns = Turns(hooks)

    def take_all(self, source: EventSource) -> None:
        """Take in batches until the source ends. Raises ``SourceError``, and ``Stopped``."""
        for batch in source.batches():
            with self._turns.at_work():
                self._take(source, batch)

    def proceed(self) -> None:
        """Report progress. Raises ``Stopped``."""
        self._turns.turn()
        if self._stopping.is_set():
            raise Stopped

    @abstractmethod
    def read(self, records: Sequence[RawRecord]) -> list[Event]:
        """Return the events of records; what can never be read is reported. Raises ``NewerEvent``."""

    @abstractmethod
    def take_in(self, events: Sequence[Event], proceed: Callable[[], None]) -> None:
        """Store events in one transaction once the database answers, and report them.

        ``proceed`` is called meanwhile, and may raise.
        """

    def _take(self, source: EventSource, batch: RawBatch) -> None:
        end = batch.end
        assert isinstance(end, Offsets)  # noqa: S101  # a topic's

        def proceed() -> None:
            self.proceed()
            source.check()

        try:
            source.begin(end)
            try:
                events = self.read(batch.records)
            except NewerEvent as error:
                self._wait_for_newer(error, proceed)
            self.take_in(events, proceed)
            source.commit(end, {})
        except Abandoned:
            # Whoever owns its partitions now reads it again.
            source.abandon()

    def _wait_for_newer(self, error: NewerEvent, proceed: Callable[[], None]) -> NoReturn:
        """Wait until the console ends, or the batch belongs to another one, which may be newer."""
        why = f"{error}; update the console"
        reporter = f"newer event, {self._name}"
        log.error("%s", why)
        self._hooks.report(Outage("source", reporter, why))
        try:
            while True:
                proceed()
                time.sleep(_LOOK_S)
        finally:
            self._hooks.report(Outage("source", reporter, None))

    def patience(self, proceed: Callable[[], None]) -> UntilReachable:
        """Return what waits for the database."""
        database = Awaited("database", self._name, DatabaseUnavailable, "The console's database")
        return UntilReachable(proceed, self._hooks, database)
