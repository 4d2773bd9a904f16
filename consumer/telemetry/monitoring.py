"""One object to be told how a run goes, for all who want to know."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Literal

from consumer.model.dead_letter import DeadLetter
from consumer.model.record import Partition, RawBatch, partition_name
from consumer.model.verdict import Verdict
from consumer.pipeline.observer import Entered, Measured, Summed
from consumer.telemetry.health import MAIN, Health
from consumer.telemetry.metrics import Metrics
from storage.watched import Connecting, Ending, Operation


class Joined:
    """What several tellers say of one part, each of which knows what it has met itself; from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._troubles: dict[str, str] = {}

    def say(self, teller: str, why: str | None) -> str | None:
        """Why the part is in trouble, all tellers heard; None where none of them says so."""
        with self._lock:
            if why is None:
                self._troubles.pop(teller, None)
            else:
                self._troubles[teller] = why
            return "; ".join(dict.fromkeys(self._troubles.values())) or None


@dataclass(frozen=True, slots=True)
class Monitoring:
    """Passes on to metrics and health what the parts of a run tell.

    It is a ``SourceWatcher``, a ``SinkWatcher``, a ``StoreWatcher`` and an ``Observer``. Told beside that by the run
    itself: who is ``at_work``, ``working`` between any two pieces of that and whenever something is waited for,
    ``resting`` when the run is ready, and what troubles store and schema registry. A part is in trouble while anybody
    says so.
    """

    metrics: Metrics
    health: Health
    _source: Joined = field(default_factory=Joined, init=False)
    _store: Joined = field(default_factory=Joined, init=False)

    def begun(self, batch: RawBatch) -> None:
        """As the port says."""

    def stage(self, stage: Entered) -> AbstractContextManager[None]:
        """As the port says."""
        return self.metrics.stage(stage)

    def spent(self, stage: Summed, seconds: float) -> None:
        """As the port says."""
        self.metrics.spent(stage, seconds)

    def measured(self, batch: Measured) -> None:
        """As the port says."""
        self.metrics.measured(batch)

    def judged(self, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """As the port says."""
        self.metrics.judged(verdicts, letters)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """This thread has records, and has to turn until it leaves."""
        self.working()
        try:
            yield
        finally:
            self.resting()

    def resting(self) -> None:
        """This thread waits for records."""
        thread = _thread()
        if thread == MAIN:
            self.metrics.busy(busy=False)
        self.health.resting(thread)

    def working(self) -> None:
        """This thread begins to work on records, or turns while it does."""
        thread = _thread()
        if thread == MAIN:
            self.metrics.turned()
            self.metrics.busy(busy=True)
        self.health.working(thread)

    def helped(self) -> None:
        """A worker process has done a piece of its work."""
        self.health.helped()

    def abandoned(self) -> None:
        """The batch was given up."""
        self.metrics.error("batch_abandoned")

    def store_trouble(self, why: str | None) -> None:
        """The store is out of reach, or is back (None)."""
        self._store_told(self._store.say("run", why))

    def store_silent(self, why: str | None) -> None:
        """The store does not answer when it is only asked whether it does, or answers (None)."""
        self._store_told(self._store.say("probe", why))

    def store_called(self, operation: Operation, ending: Ending, seconds: float) -> None:
        """As the port says."""
        self.metrics.store_called(operation, ending, seconds)

    def store_connected(self, what: Connecting) -> None:
        """As the port says."""
        self.metrics.store_connected(what)

    def store_repeated(self, operation: Operation) -> None:
        """As the port says."""
        self.metrics.store_repeated(operation)

    def beat(self) -> None:
        """As the port says."""
        self.metrics.beat()
        self.health.beat()

    def assigned(self, partitions: int) -> None:
        """As the port says."""
        self.metrics.assigned(partitions)
        self.health.assigned(partitions)

    def rebalanced(self, what: Literal["assigned", "revoked", "lost"]) -> None:
        """As the port says."""
        self.metrics.rebalanced(what)

    def lag(self, topic: str, partition: int, records: int) -> None:
        """As the port says."""
        self.metrics.lag(topic, partition, records)

    def paused(self, *, paused: bool) -> None:
        """As the port says."""
        self.metrics.paused(paused=paused)

    def held_back(self, seconds: float) -> None:
        """As the port says."""
        self.metrics.held_back(seconds)

    def source_trouble(self, why: str | None) -> None:
        """As the port says."""
        self._source_told(self._source.say("brokers", why))

    def registry_trouble(self, why: str | None) -> None:
        """The schema registry is out of reach, or is back (None)."""
        self._source_told(self._source.say("registry", why))

    def gap(self, records: int) -> None:
        """As the port says."""
        self.metrics.gap(records)

    def holding(self, held: Mapping[Partition, str | None]) -> None:
        """As the port says."""
        self.metrics.holding(held)
        self.health.holding({partition_name(one): why for one, why in held.items() if why is not None})

    def note_unreadable(self) -> None:
        """As the port says."""
        self.metrics.note_unreadable()

    def sink_trouble(self, why: str | None) -> None:
        """As the port says."""
        self.metrics.sink_trouble(why)
        self.health.sink_trouble(why)

    def reconnected(self) -> None:
        """As the port says."""
        self.metrics.reconnected()

    def time_moved(self) -> None:
        """As the port says."""
        self.metrics.time_moved()

    def _source_told(self, why: str | None) -> None:
        self.metrics.source_trouble(why)
        self.health.source_trouble(why)

    def _store_told(self, why: str | None) -> None:
        self.metrics.store_trouble(why)
        self.health.store_trouble(why)


def _thread() -> str:
    """Which thread this is, as it is called where it hangs."""
    this = threading.current_thread()
    return MAIN if this is threading.main_thread() else this.name
