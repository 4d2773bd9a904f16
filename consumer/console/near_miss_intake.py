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
from consumer.reviews.flag_events import NearMiss as NewPair
from consumer.reviews.flag_events import add_near_misses
from consumer.telemetry.metrics.console import EventsTaken, TakenKind
from consumer.text.timestamps import parse_moment, since_1970_ms

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
        pairs = list(map(_pair, events))
        new = self.patience(proceed).call(lambda: self._database.written(lambda c: add_near_misses(c, pairs)))
        counts: dict[TakenKind, int] = {"near_miss": new, "known": len(events) - new}
        for kind, number in counts.items():
            if number:
                self._hooks.report(EventsTaken(kind, number))


def _pair(event: NearMiss) -> NewPair:
    return NewPair(
        article_id=event.id,
        version=event.version,
        original_id=event.original,
        original_version=event.original_version,
        similarity=event.similarity,
        distance=event.distance,
        sampled_in=event.sampled_in,
        truncated=event.truncated,
        arrived_ms=_ms(event.arrived_at),
        decided_ms=_ms(event.decided_at),
        source=event.source,
        original_source=event.original_source,
    )


def _ms(timestamp: str) -> int:
    return since_1970_ms(parse_moment(timestamp))
