"""Records from the topics of a Kafka cluster, as one member of a consumer group.

What the judge's side calls is here and returns at once. The client belongs to a thread of its own (``kafka_client``);
the two meet in ``Handover``.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from consumer.kafka.offset_metadata import Holding, Note
from consumer.model.errors import SourceError
from consumer.model.hooks import Hooks
from consumer.model.limits import ReadLimits
from consumer.model.record import Offsets, Partition, RawBatch
from consumer.sources.handover import ClientTurned, Handover
from consumer.sources.kafka_client import ClientOptions, ClientThread
from consumer.sources.partitions import Partitions

log = logging.getLogger("dupwatch")

Answer = TypeVar("Answer")

CLOSE_S: Final = 10.0
"""How long closing may take, which is as long as the brokers take to answer a commit and a farewell."""

LOOK_S: Final = 0.1
"""How often a wait for records looks whether the run is to stop."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """How a topic is read.

    ``start`` is where a partition begins of which the group has no offset. ``on_gap`` is what happens where records
    were deleted before they were read. ``linger_s`` is how long the first record waits for more when nothing is being
    judged, ``revoke_s`` how long a partition that is taken away is held for the batch that was begun. Up to
    ``batches_ahead_max`` batches are read ahead; when they have not been asked for after ``pause_after_s``, fetching
    is paused. ``transactional``: offsets are committed by the sink, and ``done`` is called where ``commit`` would be.
    """

    start: Literal["earliest", "latest"] = "earliest"
    on_gap: Literal["stop", "continue"] = "stop"
    linger_s: float = 0.002
    revoke_s: float = 30.0
    batches_ahead_max: int = 2
    pause_after_s: float = 5.0
    transactional: bool = False


class KafkaSource:
    """Reads topics as a member of a consumer group; ``settings`` are the client's (``consumer_settings``).

    Its client is made when the first batch is asked for. When ``stopped`` says so, no more batches are given. Each call
    raises the error that ended the client's thread, most often a ``SourceError``.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        topics: Sequence[str],
        limits: ReadLimits,
        options: SourceOptions,
        hooks: Hooks,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._stopped = stopped
        self._name = f"kafka://{settings['bootstrap.servers']}/{','.join(topics)}"
        self._linger_s = options.linger_s
        self._handover = Handover(Partitions(limits, options.batches_ahead_max, transactional=options.transactional))
        client = ClientOptions(
            settings=settings,
            topics=tuple(topics),
            record_bytes_max=limits.record_bytes_max,
            consume_max=limits.batch_records_max,
            start=options.start,
            on_gap=options.on_gap,
            revoke_s=options.revoke_s,
            close_s=CLOSE_S,
            pause_after_s=options.pause_after_s,
            transactional=options.transactional,
        )
        self._hooks = hooks
        self._client = ClientThread(client, self._handover, hooks)
        self._thread = threading.Thread(target=self._client.run, name="kafka-client", daemon=True)

    def batches(self) -> Iterator[RawBatch]:
        """Give batches until the source is closed: what has piled up since the last one, or what comes next."""
        # From here on the client's thread has to turn, also if it never comes to its first turn.
        self._hooks.report(ClientTurned())
        self._thread.start()
        while (batch := self._next()) is not None:
            yield batch

    def begin(self, end: Offsets) -> Mapping[Partition, Note]:
        """Say that a batch is about to be judged, and have the notes of its partitions as they are before it.

        Batches are begun in order, one at a time. Raises ``Abandoned`` where its partitions were assigned anew since it
        was given.
        """
        return self._tell(lambda partitions: partitions.begin(end))

    def check(self) -> None:
        """Raise ``Abandoned`` where the batch that was begun has been given up: ask this while waiting."""
        self._tell(Partitions.check)

    def hold(self, end: Offsets, holdings: Mapping[Partition, Holding]) -> None:
        """Have partitions of the batch that was begun wait, from where they were answered; then ``abandon`` it.

        The group is told so, soon. Raises ``Abandoned`` where the batch was given up.
        """
        self._tell(lambda partitions: partitions.hold_poisoned(end, holdings))

    def commit(self, end: Offsets, notes: Mapping[Partition, Note]) -> None:
        """Have the group told, soon, that the batch that was begun is answered, and what its partitions' notes are.

        It is told before any partition is given up, and before the source closes. Raises ``Abandoned`` where the
        batch was given up.
        """
        self._tell(lambda partitions: partitions.acknowledge(end, notes))

    def done(self, end: Offsets, notes: Mapping[Partition, Note]) -> None:
        """Say that the batch that was begun was answered and committed with these notes, in a transaction.

        Also of a batch that was given up meanwhile: what of it is still ours is not given again.
        """
        self._tell(lambda partitions: partitions.acknowledge_committed(end, notes))

    def abandon(self) -> None:
        """Have the batch that was begun given again, and all that was read after it. Without one, do nothing."""
        self._tell(Partitions.abandon)

    def reread(self) -> None:
        """The same, where nobody knows how a transaction ended: each partition goes on where it was committed."""
        self._tell(Partitions.lose_places)

    def group_metadata(self) -> object:
        """What a transaction names the group and this member by, fresh; for ``send_offsets_to_transaction``.

        Raises ``Abandoned`` where the batch that was begun has been given up: who was taken for dead may be a member
        again by now, and with that membership the brokers would take offsets that are another's since.
        """
        with self._handover.changed:
            self._handover.raise_error()
            self._handover.partitions.check()
            if self._handover.group_metadata is None:
                raise SourceError(f"{self._name} is not being read")
            return self._handover.group_metadata

    def close(self) -> None:
        """Commit what was acknowledged, leave the group, and end the client, all within ``CLOSE_S``."""
        self._handover.close()
        if self._thread.ident is None:
            return
        self._thread.join(CLOSE_S)
        if self._thread.is_alive():
            log.warning(
                "The Kafka client did not end within %.0f s, since no broker answers; records whose commit was not"
                " answered will be read again",
                CLOSE_S,
            )

    @property
    def name(self) -> str:
        """What messages call the input."""
        return self._name

    def _tell(self, what: Callable[[Partitions], Answer]) -> Answer:
        with self._handover.changed:
            self._handover.raise_error()
            answer = what(self._handover.partitions)
            self._handover.changed.notify_all()
        return answer

    def _next(self) -> RawBatch | None:
        handover = self._handover
        with handover.changed:
            while True:
                if not handover.partitions.waiting():
                    handover.changed.wait_for(lambda: handover.over() or handover.partitions.waiting() > 0, LOOK_S)
                    self._linger()
                handover.raise_error()
                if handover.closing or self._stopped():
                    return None
                # Between the wait and here a rebalance may have taken everything away again.
                if (batch := handover.partitions.take()) is not None:
                    handover.changed.notify_all()
                    return batch

    def _linger(self) -> None:
        handover = self._handover
        until = time.monotonic() + self._linger_s
        while not handover.over() and not handover.partitions.full_batch():
            left_s = until - time.monotonic()
            if left_s <= 0:
                return
            handover.changed.wait(left_s)
