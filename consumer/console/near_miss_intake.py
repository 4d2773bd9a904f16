"""Takes near misses from their topic into the database: a sample of the pairs just under the threshold."""

import threading
from collections.abc import Callable, Sequence
from typing import Final

from typing_extensions import override

from consumer.console.batch_intake import BatchIntake
from consumer.console.event_reading import read_near_misses
from consumer.model.hooks import Hooks
from consumer.model.near_miss import NearMiss
from consumer.model.record import RawRecord
from consumer.reviews.database import Database
from consumer.reviews.flag_events import add_near_misses
from consumer.telemetry.metrics.console import EventsTaken, TakenKind

NAME: Final = "near misses"


class NearMissIntake(BatchIntake[NearMiss]):
    """Takes in near misses, which name the sources of both articles: no store is asked."""

    def __init__(self, database: Database, hooks: Hooks, stopping: threading.Event) -> None:
        super().__init__(NAME, hooks, stopping)
        self._database = database

    @override
    def read(self, records: Sequence[RawRecord]) -> list[NearMiss]:
        return read_near_misses(records, self._hooks.report)

    @override
    def take_in(self, events: Sequence[NearMiss], proceed: Callable[[], None]) -> None:
        if not events:
            return
        new = self.patience(proceed).call(lambda: self._database.written(lambda c: add_near_misses(c, events)))
        counts: dict[TakenKind, int] = {"near_miss": new, "known": len(events) - new}
        for kind, number in counts.items():
            if number:
                self._hooks.report(EventsTaken(kind, number))
