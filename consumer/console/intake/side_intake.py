"""Reads queue entries other than flags, each kind from one topic, and stores them in the database."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic

from typing_extensions import override

from consumer.console.intake.event_reading import PlaceOf, read_bank_matches, read_near_misses, read_repeats_of_ended
from consumer.console.intake.intake import BatchIntake, Event, store_nothing
from consumer.model.hooks import Hooks
from consumer.model.record import RawRecord
from consumer.reviews.database import Connection, Database
from consumer.reviews.kinds.side_entries import add_ended_before, add_near_misses
from consumer.reviews.outbox.arrivals import take_in_bank_matches
from consumer.telemetry.metrics.console import TakenKind
from storage.clock import Clock, now_ms


@dataclass(frozen=True, slots=True)
class SideEntryKind(Generic[Event]):
    """A kind of queue entry that is read from a topic.

    ``name`` names the entries in messages. ``read`` returns the events in records. ``add`` stores events, given the
    current time in milliseconds, and returns the number of new ones.
    """

    kind: TakenKind
    name: str
    read: Callable[[Sequence[RawRecord], Callable[[object], None], PlaceOf], list[Event]]
    add: Callable[[Connection, Sequence[Event], int], int]


NEAR_MISSES: Final = SideEntryKind(
    "near_miss", "near misses", read_near_misses, lambda connection, events, _: add_near_misses(connection, events)
)
BANK_MATCHES: Final = SideEntryKind("bank_match", "bank matches", read_bank_matches, take_in_bank_matches)
REPEATS_OF_RETRACTED: Final = SideEntryKind(
    "ended_before",
    "repeats of retracted articles",
    read_repeats_of_ended,
    lambda connection, events, _: add_ended_before(connection, events),
)


class SideIntake(BatchIntake[Event]):
    """The intake of one kind of entry from its topic. The brokers keep its position."""

    def __init__(
        self,
        side: SideEntryKind[Event],
        database: Database,
        hooks: Hooks,
        stopping: threading.Event,
        clock: Clock = now_ms,
    ) -> None:
        super().__init__(side.name, hooks, stopping)
        self._side = side
        self._database = database
        self._clock = clock

    @override
    def read(self, records: Sequence[RawRecord], place_of: PlaceOf) -> list[Event]:
        return self._side.read(records, self._hooks.report, place_of)

    @override
    def take_in(
        self, events: Sequence[Event], proceed: Callable[[], None], note: Callable[[Connection], None] = store_nothing
    ) -> None:
        def store(connection: Connection) -> int:
            note(connection)
            return self._side.add(connection, events, self._clock())

        # Most batches of verdicts have no entries of this kind. They need no transaction: for topics, ``note`` stores
        # nothing.
        new = self.retry(proceed).call(lambda: self._database.write(store)) if events else 0
        self.report_taken({self._side.kind: new, "known": len(events) - new})
