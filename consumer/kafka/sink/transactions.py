"""Writes verdicts, the clean feed, dead letters and the source's offsets in one Kafka transaction, each exactly once.

::

    no producer ──▶ ready ──▶ in a transaction ──▶ ready            committed
         ▲                          │
         │                          ├──▶ ready                       aborted: Abandoned
         └──────────────────────────┴── its outcome is unknown: the producer is replaced

A new producer with the same transactional id settles the transaction of the previous one: the brokers finish a commit
that had begun, and abort everything else (``init_transactions``, KIP-98).
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from typing_extensions import override

from consumer.kafka.client_settings import TRANSACTION_TIMEOUT_MS
from consumer.kafka.membership import GroupMetadata, member_of
from consumer.kafka.sink.outbox import Outbox
from consumer.kafka.sink.outgoing import OutgoingMessage
from consumer.kafka.sink.producing import (
    SLICE_S,
    BrokerWait,
    FailedMessage,
    MessageProducer,
    is_permanent,
    kafka_error,
    most_relevant,
    refusal_error,
)
from consumer.kafka.sink.record_times import RecordTimes
from consumer.lifecycle.background import Call
from consumer.model.errors import Abandoned, OutcomeUnknown, SinkError
from consumer.model.hooks import Hooks
from consumer.model.record import Partition
from storage.clock import MS_PER_S

ABORT_WAIT_S: Final = 2.0
"""An abort that takes longer is left to the next producer."""
CAUSE_WAIT_S: Final = 1.0
"""How long to wait for the cause of a failure, which the producer reports from another thread."""
OFFSETS_WAIT_S: Final = 5.0
"""The call that adds the offsets may hang after an outage. Nothing is committed yet, so the call is abandoned early."""
RENEWALS_MAX: Final = 10
"""Replacing more producers than this without a commit is a defect; during an outage, the first new one just waits."""
_RETRY_PAUSE_S: Final = 0.02
_NO_METADATA: Final[Mapping[Partition, str]] = MappingProxyType({})
_FENCED: Final = frozenset(
    {
        KafkaError._FENCED,  # noqa: SLF001  # librdkafka's own codes begin with _
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.PRODUCER_FENCED,
    }
)


class SinkReconnected(NamedTuple):
    """The sink's client was replaced, because it could no longer be used."""


class TransactionalOutbox(Outbox):
    """An outbox with transactions: readers of committed messages see a batch only after ``commit``, and then all of it.

    ``settings`` come from ``producer_settings`` with ``transactional``. The other parameters are those of
    ``AtLeastOnceOutbox``. A transaction begins with the first message of a batch, so that none is open during judging.
    After ``Abandoned`` the caller must call ``abort``. Raises ``SinkError`` if a message can never be accepted, or
    another producer with this transactional id has taken over; the batch is then not committed.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        times: RecordTimes,
        hooks: Hooks,
        proceed: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._timeout_s = int(settings.get("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS)) / MS_PER_S
        self._times = times
        self._hooks = hooks
        self._waiting = BrokerWait(hooks, proceed)
        self._renewals = 0
        self._begun_s: float | None = None
        self._producer: MessageProducer | None = MessageProducer(settings, self._waiting)
        self._settled = False

    @override
    def send(self, message: OutgoingMessage) -> None:
        self._begin()
        failed = self._require_producer().send(self._times.with_accepted_time(message))
        if failed is not None:
            raise self._refusal([failed])

    @override
    def flush(self) -> None:
        """Wait until all messages are in their topics, still hidden from readers of committed messages."""
        if self._begun_s is None:
            return
        producer = self._require_producer()
        failures = producer.flush()
        if failures:
            raise self._refusal(failures)
        if producer.has_failed:
            raise self._error_before_commit(None)

    def commit(
        self,
        offsets: Mapping[Partition, int],
        group_metadata: GroupMetadata,
        metadata: Mapping[Partition, str] = _NO_METADATA,
    ) -> None:
        """Commit the batch with the offsets at which the source continues; ``group_metadata`` must be current.

        ``metadata`` is stored with the offsets of partitions. Raises ``Abandoned`` if nothing was committed, and
        ``OutcomeUnknown`` if only the brokers know the outcome.
        """
        if offsets and member_of(group_metadata) is None:
            raise Abandoned("this consumer left its group; its partitions may be reassigned")
        self._begin()
        self.flush()
        client = self._require_producer().client
        places = [TopicPartition(*key, offset, metadata.get(key, "")) for key, offset in offsets.items()]
        try:
            if places:
                send = partial(client.send_offsets_to_transaction, places, group_metadata)
                self._repeat(send, until_s=time.monotonic() + OFFSETS_WAIT_S)
        except KafkaException as error:
            raise self._error_before_commit(kafka_error(error)) from error
        try:
            self._repeat(client.commit_transaction, until_s=self._deadline_s())
        except KafkaException as error:
            raise self._error_of_commit(kafka_error(error)) from error
        except Abandoned as error:
            self._drop()
            raise OutcomeUnknown(f"{error}, while it was being committed") from error
        self._begun_s = None
        self._renewals = 0

    def abort(self) -> None:
        """Void all messages since the last commit. Waits at most three seconds; the brokers do the rest.

        Raises ``SinkError`` if another producer has taken over.
        """
        if self._begun_s is None:
            return
        producer = self._require_producer()
        try:
            self._abort(producer)
        except KafkaException as error:
            cause = self._cause(kafka_error(error))
            if cause.code() in _FENCED and not self._is_overdue():
                raise _fatal_error(cause) from error
            # The next producer ends this transaction, whatever its state. librdkafka may report a fatal error wrongly:
            # while the brokers end the previous transaction, there is nothing to abort yet (librdkafka's issue 4849).
            self._drop()
        else:
            self._begun_s = None
            producer.forget_failed()

    @override
    def close(self) -> None:
        """Release the client. An open transaction is aborted if the brokers answer, since readers wait for its end."""
        if self._producer is None:
            return
        if self._begun_s is not None:
            with suppress(KafkaException, SystemError):
                self._abort(self._producer)
            self._begun_s = None
        self._producer.close()
        self._producer = None

    def _abort(self, producer: MessageProducer) -> None:
        call = Call(producer.client.abort_transaction)
        if not call.wait(ABORT_WAIT_S):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001  # as above
        call.result()

    def _begin(self) -> None:
        """Open a transaction, unless one is open, with a producer that has settled the previous transaction."""
        if self._begun_s is not None:
            return
        if self._producer is None:
            self._renew()
        producer = self._require_producer()
        try:
            if not self._settled:
                self._repeat(producer.client.init_transactions)
                self._settled = True
            producer.client.begin_transaction()
        except KafkaException as error:
            failure = self._error_before_commit(kafka_error(error))
            self._drop()
            raise failure from error
        self._begun_s = time.monotonic()

    def _renew(self) -> None:
        self._renewals += 1
        if self._renewals > RENEWALS_MAX:
            raise SinkError(f"{RENEWALS_MAX} transactions in a row did not end; see the logs of the brokers")
        self._producer = MessageProducer(self._settings, self._waiting)
        self._settled = False
        self._hooks.report(SinkReconnected())

    def _drop(self) -> None:
        """Discard this producer, whose state is unknown."""
        if self._producer is not None:
            self._producer.close()
        self._producer = None
        self._begun_s = None

    def _repeat(self, call: Callable[[], None], *, until_s: float = math.inf) -> None:
        """Repeat a call until it ends; the client continues an interrupted call when it is made again.

        The calls get no time limit: librdkafka advises against one, and ``send_offsets_to_transaction`` ignores it
        (librdkafka's issue 5456). When a call is abandoned, so is its producer. Raises ``KafkaException`` if the call
        fails or has not ended at ``until_s``. Exceptions from ``proceed`` propagate.
        """
        while True:
            attempt = Call(call)
            while not attempt.wait(SLICE_S):
                self._wait_on(until_s, self._require_producer().last_error)
            try:
                attempt.result()
            except KafkaException as error:
                if not kafka_error(error).retriable():
                    raise
                self._wait_on(until_s, kafka_error(error).str())
                # The client returns some of these errors immediately.
                time.sleep(_RETRY_PAUSE_S)
            except SystemError as error:
                # As in ``MessageProducer``: the producer has failed, and the client lost its own exception.
                self._require_producer().has_failed = True
                raise KafkaException(KafkaError(KafkaError._FATAL, fatal=True)) from error  # noqa: SLF001  # as above
            else:
                self._waiting.note_progress()
                return

    def _wait_on(self, until_s: float, last_error: str) -> None:
        try:
            self._waiting.note_no_progress("Kafka does not end a transaction", last_error)
        except BaseException:
            self._drop()
            raise
        if time.monotonic() >= until_s:
            self._drop()
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, last_error or None))  # noqa: SLF001  # as above

    def _refusal(self, failures: Sequence[FailedMessage]) -> SinkError | Abandoned:
        failed = most_relevant(failures)
        if self._times.learn(failures):
            return Abandoned(f"the topic {failed.topic} refused the time of a record, which is moved into a header")
        if is_permanent(failed.error):
            return refusal_error(failed)
        return self._error_before_commit(failed.error)

    def _error_before_commit(self, reported: KafkaError | None) -> SinkError | Abandoned:
        """Return the consequence of an error before the commit: the batch is void, or the run cannot continue."""
        error = self._cause(reported)
        if not error.fatal() and error.code() not in _FENCED:
            return Abandoned(f"its transaction was lost: {error.str()}")
        if self._is_overdue():
            self._drop()
            return Abandoned(f"its transaction took too long, and the brokers ended it: {error.str()}")
        return _fatal_error(error)

    def _error_of_commit(self, reported: KafkaError) -> SinkError | Abandoned:
        """Return the consequence of an error of the commit itself, which the brokers may have begun."""
        error = self._cause(reported)
        if error.fatal() and not self._is_overdue():
            return _fatal_error(error)
        if not error.txn_requires_abort():
            self._drop()
        return OutcomeUnknown(f"the brokers did not say whether its transaction was committed: {error.str()}")

    def _cause(self, reported: KafkaError | None) -> KafkaError:
        """Return the cause of the producer's failure.

        After a failure every call raises an error, but only some errors name the cause.
        """
        producer = self._producer
        if producer is not None:
            producer.serve(0)
        if reported is not None and (producer is None or not producer.has_failed or reported.code() in _FENCED):
            return reported
        producer = self._require_producer()
        try:
            producer.client.abort_transaction(CAUSE_WAIT_S)
        except KafkaException as error:
            return kafka_error(error)
        return KafkaError(KafkaError._FATAL, fatal=True)  # noqa: SLF001  # as above

    def _is_overdue(self) -> bool:
        """Return whether the transaction timed out; the brokers then abort it and fence its producer."""
        return self._begun_s is not None and time.monotonic() >= self._begun_s + self._timeout_s

    def _deadline_s(self) -> float:
        return (time.monotonic() if self._begun_s is None else self._begun_s) + self._timeout_s

    def _require_producer(self) -> MessageProducer:
        if self._producer is None:
            raise ValueError("the sink was closed")
        return self._producer


def _fatal_error(error: KafkaError) -> SinkError:
    if error.code() in _FENCED:
        return SinkError(
            f"another process has taken over the transactional id of this one: {error.str()}; give each process its "
            "own kafka.instance_id, or none"
        )
    return SinkError(f"the transactional producer failed: {error.str()}")
