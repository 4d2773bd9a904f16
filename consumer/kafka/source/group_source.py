"""Reads the topics of a Kafka cluster as one member of a consumer group.

The judging thread calls the source. The client belongs to another thread (``client_thread``). Only ``batches`` and
``close`` wait for that thread. Both threads share a ``Handover``.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from typing_extensions import override

from consumer.kafka.client_settings import SourceOptions
from consumer.kafka.membership import GroupMetadata
from consumer.kafka.message import Offsets
from consumer.kafka.offset_metadata import HoldRequest, Note
from consumer.kafka.source.client_thread import CLOSE_S, ClientThread
from consumer.kafka.source.handover import ClientProgressed, Handover
from consumer.kafka.source.partitions import Partitions
from consumer.model.errors import SourceError
from consumer.model.hooks import Hooks
from consumer.model.limits import ReadLimits
from consumer.model.ports import Source
from consumer.model.record import Partition, RawBatch

log = logging.getLogger("dupwatch")

Answer = TypeVar("Answer")

LOOK_S: Final = 0.1
"""How often, in seconds, a wait for records checks whether to stop."""


class KafkaSource(Source):
    """A source that reads topics as a member of a consumer group; ``settings`` come from ``consumer_settings``.

    The client is created when the first batch is requested. Once ``stopped`` returns true, there are no more batches.
    Each call except ``close`` raises the error that ended the client's thread, usually a ``SourceError``.
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
        self._hooks = hooks
        self._client = ClientThread(settings, topics, limits, options, self._handover, hooks)
        self._thread = threading.Thread(target=self._client.run, name="kafka-client", daemon=True)

    @override
    def batches(self) -> Iterator[RawBatch]:
        """Yield batches until the source is closed or ``stopped`` returns true; wait while there is nothing to read.

        With transactions, offsets of partitions without new records are committed by a batch without records.
        """
        # Reported here, so that a thread that hangs before its first turn is noticed, too.
        self._hooks.report(ClientProgressed())
        self._thread.start()
        while (batch := self._next()) is not None:
            yield batch

    def begin(self, end: Offsets) -> Mapping[Partition, Note]:
        """Begin judging a batch, and return the notes that its partitions had before it.

        Batches are begun in order, one at a time. Raises ``Abandoned`` if the batch has become void since it was
        yielded, for example because partitions were reassigned.
        """
        return self._change(lambda partitions: partitions.begin(end))

    def check(self) -> None:
        """Raise ``Abandoned`` if the current batch was given up. Call it during waits."""
        self._change(Partitions.check)

    def hold(self, end: Offsets, holdings: Mapping[Partition, HoldRequest]) -> None:
        """Hold partitions of the current batch after their last answered record.

        The caller must then abandon the batch. The hold is committed in the background or, with transactions, by a
        later batch. Raises ``Abandoned`` if the batch was given up.
        """
        self._change(lambda partitions: partitions.hold_poisoned(end, holdings))

    def commit(self, end: Offsets, notes: Mapping[Partition, Note]) -> None:
        """Commit the current batch in the background, with the notes of its partitions.

        It is committed before any of its partitions is revoked, and before the source closes. Raises ``Abandoned`` if
        the batch was given up.
        """
        self._change(lambda partitions: partitions.acknowledge(end, notes))

    def note_committed(self, end: Offsets, notes: Mapping[Partition, Note]) -> None:
        """Note that a transaction has committed the current batch with these notes.

        This counts even if the batch was given up in the meantime: in partitions still owned, it is not read again.
        """
        self._change(lambda partitions: partitions.acknowledge_committed(end, notes))

    def abandon(self) -> None:
        """Give up the current batch: it and all later records are read again. Does nothing without a current batch."""
        self._change(Partitions.abandon)

    def reset_positions(self) -> None:
        """Ask the brokers where each partition continues, and read the current batch again unless it was committed.

        Called after a transaction with an unknown outcome.
        """
        self._change(Partitions.lose_places)

    def group_metadata(self) -> GroupMetadata:
        """Return the current group metadata for ``send_offsets_to_transaction``.

        Raises ``SourceError`` before the first batch, and ``Abandoned`` if the current batch was given up. In that case
        an expelled consumer may have joined again, and under its new membership the brokers would accept offsets of
        partitions that now belong to others.
        """
        with self._handover.changed:
            self._handover.raise_error()
            self._handover.partitions.check()
            if self._handover.group_metadata is None:
                raise SourceError(f"{self._name} is not being read")
            return self._handover.group_metadata

    @override
    def close(self) -> None:
        """Commit acknowledged offsets, leave the group, and close the client. Waits at most ``CLOSE_S`` for this."""
        self._handover.close()
        if self._thread.ident is None:
            return
        self._thread.join(CLOSE_S)
        if self._thread.is_alive():
            log.warning(
                "The Kafka client did not close within %.0f s, because no broker answers; records whose commit was not"
                " acknowledged will be read again",
                CLOSE_S,
            )

    @property
    def name(self) -> str:
        """Return the name of the input in messages."""
        return self._name

    def _change(self, change: Callable[[Partitions], Answer]) -> Answer:
        with self._handover.changed:
            self._handover.raise_error()
            answer = change(self._handover.partitions)
            self._handover.changed.notify_all()
        return answer

    def _next(self) -> RawBatch | None:
        handover = self._handover
        with handover.changed:
            while True:
                if not handover.partitions.buffered():
                    handover.changed.wait_for(lambda: handover.is_over() or handover.partitions.buffered() > 0, LOOK_S)
                    self._linger()
                handover.raise_error()
                if handover.closing or self._stopped():
                    return None
                # Since the wait, a rebalance may have voided all records again.
                if (batch := handover.partitions.take()) is not None:
                    handover.changed.notify_all()
                    return batch

    def _linger(self) -> None:
        handover = self._handover
        until_s = time.monotonic() + self._linger_s
        while not handover.is_over() and not handover.partitions.has_full_batch():
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return
            handover.changed.wait(left_s)
