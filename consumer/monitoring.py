"""One object to be told how a run goes, for all who want to know."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal

from consumer.dead_letter import DeadLetter
from consumer.health import Health
from consumer.metrics import Metrics
from consumer.pipeline import Stage
from consumer.ports import RawBatch
from consumer.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Monitoring:
    """Passes on to metrics and health what the parts of a run tell: a ``SourceWatcher``, ``SinkWatcher``, ``Observer``.

    Told beside that by the run itself: ``working`` at each batch that is begun and whenever it waits for its store,
    ``abandoned`` where a batch was given up, and ``store_trouble``.
    """

    metrics: Metrics
    health: Health

    def begun(self, batch: RawBatch) -> None:
        """As the port says."""
        del batch
        self.working()

    def stage(self, stage: Stage) -> AbstractContextManager[None]:
        """As the port says."""
        return self.metrics.stage(stage)

    def judged(self, verdicts: Sequence[Verdict], letters: Sequence[DeadLetter]) -> None:
        """A batch was committed, and the next one is waited for."""
        self.metrics.judged(verdicts, letters)
        self.health.resting()

    def working(self) -> None:
        """The main thread begins a batch, or turns while it works on one."""
        self.metrics.turned()
        self.health.working()

    def abandoned(self) -> None:
        """The batch was given up, and the next one is waited for."""
        self.metrics.error("batch_abandoned")
        self.health.resting()

    def store_trouble(self, why: str | None) -> None:
        """The store is out of reach, or is back (None)."""
        self.metrics.store_trouble(why)
        self.health.store_trouble(why)

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

    def source_trouble(self, why: str | None) -> None:
        """As the port says."""
        self.metrics.source_trouble(why)
        self.health.source_trouble(why)

    def gap(self, records: int) -> None:
        """As the port says."""
        self.metrics.gap(records)

    def sink_trouble(self, why: str | None) -> None:
        """As the port says."""
        self.metrics.sink_trouble(why)
        self.health.sink_trouble(why)

    def reconnected(self) -> None:
        """As the port says."""
        self.metrics.reconnected()
