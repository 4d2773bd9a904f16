"""Takes flags and releases from their topic into the database, and near misses from theirs.

Brokers and database are waited for. A store is not: sources can be filled in later.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from consumer.config.sections.console import ConsoleSection
from consumer.console.context import Articles
from consumer.console.intake.batch_intake import BatchIntake
from consumer.console.intake.event_reading import read_near_misses, read_verdicts
from consumer.console.intake.store_reading import sources_of
from consumer.model.errors import StoreMismatch
from consumer.model.hooks import Hooks
from consumer.model.near_miss import NearMiss
from consumer.model.record import RawRecord
from consumer.model.verdict import Verdict
from consumer.reviews import queue, sending
from consumer.reviews.database import Connection, Database
from consumer.reviews.flag_events import Added, FlagEvent, add_events, add_near_misses
from consumer.reviews.floods import note_floods
from consumer.telemetry.metrics.console import EventsTaken, FloodsBegan, QueueCounted, TakenKind
from storage.errors import StoreError

log = logging.getLogger("dupwatch")

NEAR_MISSES: Final = "near misses"
STORE_PAUSE_S: Final = 15.0
"""How long the store is not asked after it did not answer: an intake that asked for each batch would fall behind."""


@dataclass(frozen=True, slots=True)
class IntakeParts:
    """What an intake works with. ``noted`` is called when something is to be sent: floods have begun."""

    database: Database
    section: ConsoleSection
    articles: Articles
    now_ms: Callable[[], int]
    hooks: Hooks
    noted: Callable[[], None]


class Intake(BatchIntake[Verdict]):
    """Takes in flags and releases, with the sources of their articles."""

    def __init__(self, parts: IntakeParts, stopping: threading.Event) -> None:
        super().__init__("intake", parts.hooks, stopping)
        self._parts = parts
        self._store_again_s = 0.0

    @override
    def read(self, records: Sequence[RawRecord]) -> list[Verdict]:
        return read_verdicts(records, self._parts.hooks.report)

    @override
    def take_in(self, events: Sequence[Verdict], proceed: Callable[[], None]) -> None:
        self.add(self._with_sources(events), proceed)

    def add(self, events: Sequence[FlagEvent], proceed: Callable[[], None]) -> Added:
        """Store events once the database answers. ``proceed`` is called meanwhile, and may raise."""
        section, now_ms = self._parts.section, self._parts.now_ms()

        def stored(connection: Connection) -> tuple[Added, int]:
            added = add_events(connection, events)
            floods = note_floods(connection, added.stories, now_ms, section.flood_s, section.flood_copies)
            return added, len(floods)

        added, floods = self.patience(proceed).call(lambda: self._parts.database.written(stored))
        self._report(added)
        if floods:
            self._parts.hooks.report(FloodsBegan(floods))
            self._parts.noted()
        return added

    def _with_sources(self, verdicts: Sequence[Verdict]) -> list[FlagEvent]:
        if not verdicts or time.monotonic() < self._store_again_s:
            return [FlagEvent(verdict) for verdict in verdicts]
        try:
            return sources_of(self._parts.articles, verdicts)
        except (StoreError, StoreMismatch) as error:
            log.warning("Flags come in without their sources, which are filled in later: %s", error)
            self._store_again_s = time.monotonic() + STORE_PAUSE_S
            return [FlagEvent(verdict) for verdict in verdicts]

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


class NearMissIntake(BatchIntake[NearMiss]):
    """Takes in near misses: a sample of the pairs just under the threshold.

    They name the sources of both articles, so no store is asked.
    """

    def __init__(self, database: Database, hooks: Hooks, stopping: threading.Event) -> None:
        super().__init__(NEAR_MISSES, hooks, stopping)
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


_MS_PER_S: Final = 1_000


def count_queue(database: Database, now_ms: int, report: Callable[[object], None]) -> bool:
    """Report how many flags are in each state, and what is due. Raises ``DatabaseUnavailable``; returns False."""
    with database.reading() as connection:
        counts, backlog = queue.counts(connection), sending.backlog(connection, now_ms)
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
            near_misses_open=counts.near_misses_open,
            oldest_open_s=max(0, now_ms - oldest_ms) / _MS_PER_S,
            releases_due=backlog.due,
        )
    )
    return False
