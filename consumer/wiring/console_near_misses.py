"""The intake of near misses: reads their topic while there is one, beside that of flags."""

import logging
import threading
from typing import Final, NamedTuple

from consumer.config.config import Config
from consumer.console.intake.intake import NEAR_MISSES, NearMissIntake
from consumer.kafka.source.client_thread import LagRead, ReplicasRead
from consumer.kafka.source.gaps import RecordsDeleted
from consumer.kafka.source.handover import ClientTurned
from consumer.kafka.source.holds import PartitionsHeld
from consumer.kafka.source.rebalances import Rebalanced
from consumer.lifecycle.turns import ThreadRested, ThreadTurned
from consumer.model.hooks import Hooks, Outage
from consumer.model.record import Partition, partition_name
from consumer.wiring.console_feed import begin_again, is_there, near_misses_read, source_of

log = logging.getLogger("dupwatch")

LOOK_S: Final = 15.0
"""How often the brokers are asked whether there is such a topic by now."""
_CLIENT: Final = "near-misses client"


class NearMissesAssigned(NamedTuple):
    """The topic of near misses is being read: this process has partitions of it, or others of its group have all."""


class TakingNearMisses:
    """The work of a thread. ``again``: the topic is read from its beginning, once."""

    def __init__(
        self, config: Config, intake: NearMissIntake, hooks: Hooks, stopping: threading.Event, *, again: bool
    ) -> None:
        self._config = config
        self._read = near_misses_read(config)
        self._intake = intake
        self._hooks = hooks
        self._stopping = stopping
        self._again = again
        self._is_missing_told = False

    def work(self) -> bool:
        """Take in near misses until the console ends, or the topic cannot be read; at once where there is none."""
        if not is_there(self._config, self._read):
            self._tell_missing()
            return False
        if self._again:
            count = begin_again(self._config, self._read)
            log.info("%d offsets of the topic of near misses are read again.", count)
            self._again = False
        source = source_of(self._config, self._read, beside(self._hooks), self._stopping.is_set)
        try:
            self._intake.take_all(source)
        finally:
            source.close()
            self._hooks.report(ThreadRested(_CLIENT))
        return False

    def _tell_missing(self) -> None:
        """Say once that there is no topic: it is off by default, and no error."""
        if not self._is_missing_told:
            log.info(
                "There is no topic %s, so no near misses come in. Consumers write it with kafka.near_miss_share; once "
                "it is there, it is read within %.0f s.",
                self._read.topic,
                LOOK_S,
            )
        self._is_missing_told = True


def beside(hooks: Hooks) -> Hooks:
    """Return hooks for a second source in one process; what it reports to ``hooks`` is not taken for the first one's.

    Which partitions the console has is said of flags alone. The lag of partitions that leave is 0 from then on.
    """
    own, lagging = Hooks(), set[Partition]()

    def lag(read: LagRead) -> None:
        lagging.add((read.topic, read.partition))
        hooks.report(read)

    def rebalanced(rebalance: Rebalanced) -> None:
        if rebalance.what == "assigned":
            hooks.report(NearMissesAssigned())
        else:
            for topic, partition in lagging:
                hooks.report(LagRead(topic, partition, 0))
            lagging.clear()

    def held(report: PartitionsHeld) -> None:
        whys = [f"{partition_name(partition)} is held: {why}" for partition, why in report.reasons.items() if why]
        hooks.report(Outage("source", f"held, {NEAR_MISSES}", "; ".join(whys) or None))

    own.on(LagRead, lag)
    own.on(Rebalanced, rebalanced)
    own.on(PartitionsHeld, held)
    own.on(ClientTurned, lambda _: hooks.report(ThreadTurned(_CLIENT)))
    own.on(Outage, lambda outage: hooks.report(outage._replace(reporter=f"{outage.reporter}, {NEAR_MISSES}")))
    for kind in (RecordsDeleted, ReplicasRead):
        own.on(kind, hooks.report)
    return own
