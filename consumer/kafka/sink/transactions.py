"""Verdicts, the clean feed, dead letters and the source's offsets in one Kafka transaction: each exactly once.

::

    no producer ──▶ ready ──▶ in a transaction ──▶ ready            committed
         ▲                          │
         │                          ├──▶ ready                       aborted: Abandoned
         └──────────────────────────┴── its outcome is unknown: the producer is replaced

A new producer with the same transactional id settles what the previous one left: the brokers finish a commit that had
begun, and abort everything else (``init_transactions``, KIP-98).
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
    error_of,
    is_permanent,
    most_relevant,
    refused,
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
"""How long to wait for the cause, which a producer that has failed reports from a thread of its own."""
OFFSETS_WAIT_S: Final = 5.0
"""The call that adds the offsets may hang after an outage; nothing is committed yet, so it is abandoned early."""
RENEWALS_MAX: Final = 10
"""More producers than this in a row without a commit are a defect; in an outage the first one waits."""
_RETRY_PAUSE_S: Final = 0.02
_NO_METADATA: Final[Mapping[Partition, str]] = MappingProxyType({})
_FENCED: Final = frozenset(
    {
        KafkaError._FENCED,  # noqa: SLF001  # librdkafka's own codes are named so
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.PRODUCER_FENCED,
    }
)


class SinkReconnected(NamedTuple):
    """The sink's client was replaced by a new one, because it could not be used any more."""


class TransactionalOutbox(Outbox):
    """Readers of committed messages see nothing of a batch before ``commit``, and then all of it.

    ``settings`` are of ``producer_settings``, transactional. The other parameters are those of ``AtLeastOnceOutbox``. A
    transaction begins with the first message of a batch, not before, so that none is open during judging. After
    ``Abandoned`` the caller calls ``abort``. Raises ``SinkError`` where a message can never be accepted, or another
    producer with this transactional id has taken over; then nothing was committed that was not sent.
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
        self._producing: MessageProducer | None = MessageProducer(settings, self._waiting)
        self._settled = False

    @override
    def send(self, message: OutgoingMessage) -> None:
        self._begin()
        failed = self._client().send(self._times.dated(message))
        if failed is not None:
            raise self._failed([failed])

    @override
    def flush(self) -> None:
        """Return when all messages are in their topics, where readers of committed messages do not see them yet."""
        if self._begun_s is None:
            return
        producing = self._client()
        failures = producing.flush()
        if failures:
            raise self._failed(failures)
        if producing.ended:
            raise self._lost(None)

    def commit(
        self,
        offsets: Mapping[Partition, int],
        group_metadata: GroupMetadata,
        metadata: Mapping[Partition, str] = _NO_METADATA,
    ) -> None:
        """Commit the batch with the offsets at which the source continues; ``group_metadata`` has to be current.

        ``metadata`` is stored beside the offsets of partitions. Raises ``Abandoned`` where nothing was committed, and
        ``OutcomeUnknown`` where only the brokers know.
        """
        if offsets and member_of(group_metadata) is None:
            raise Abandoned("this consumer left its group; its partitions may be reassigned")
        self._begin()
        self.flush()
        client = self._client().client
        places = [TopicPartition(*key, offset, metadata.get(key, "")) for key, offset in offsets.items()]
        try:
            if places:
                send = partial(client.send_offsets_to_transaction, places, group_metadata)
                self._repeat(send, until_s=time.monotonic() + OFFSETS_WAIT_S)
        except KafkaException as error:
            raise self._lost(error_of(error)) from error
        try:
            self._repeat(client.commit_transaction, until_s=self._deadline_s())
        except KafkaException as error:
            raise self._uncertain(error_of(error)) from error
        except Abandoned as error:
            self._drop()
            raise OutcomeUnknown(f"{error}, while it was being committed") from error
        self._begun_s = None
        self._renewals = 0

    def abort(self) -> None:
        """Void what was sent since the last commit. Waits at most two seconds; the brokers do the rest."""
        if self._begun_s is None:
            return
        producing = self._client()
        try:
            self._abort(producing)
        except KafkaException as error:
            cause = self._cause(error_of(error))
            if cause.code() in _FENCED and not self._overdue():
                raise _ended(cause) from error
            # Whatever the state of this transaction, the next producer ends it. What librdkafka calls fatal here need
            # not be: while the brokers are still ending the previous one, there is none to abort (its issue 4849).
            self._drop()
        else:
            self._begun_s = None
            producing.forget_failed()

    @override
    def close(self) -> None:
        """Release the client. An open transaction is aborted if the brokers answer, since readers wait for its end."""
        if self._producing is None:
            return
        if self._begun_s is not None:
            with suppress(KafkaException, SystemError):
                self._abort(self._producing)
            self._begun_s = None
        self._producing.close()
        self._producing = None

    def _abort(self, producing: MessageProducer) -> None:
        running = Call(producing.client.abort_transaction)
        if not running.ended(ABORT_WAIT_S):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001  # as above
        running.result()

    def _begin(self) -> None:
        """Open a transaction, unless one is open, with a producer that has settled what came before it."""
        if self._begun_s is not None:
            return
        if self._producing is None:
            self._renew()
        producing = self._client()
        try:
            if not self._settled:
                self._repeat(producing.client.init_transactions)
                self._settled = True
            producing.client.begin_transaction()
        except KafkaException as error:
            lost = self._lost(error_of(error))
            self._drop()
            raise lost from error
        self._begun_s = time.monotonic()

    def _renew(self) -> None:
        self._renewals += 1
        if self._renewals > RENEWALS_MAX:
            raise SinkError(f"{RENEWALS_MAX} transactions in a row did not end; see the logs of the brokers")
        self._producing = MessageProducer(self._settings, self._waiting)
        self._settled = False
        self._hooks.report(SinkReconnected())

    def _drop(self) -> None:
        """Discard this producer: its state is unknown."""
        if self._producing is not None:
            self._producing.close()
        self._producing = None
        self._begun_s = None

    def _repeat(self, call: Callable[[], None], *, until_s: float = math.inf) -> None:
        """Repeat a call until it ends; the client continues an interrupted call when it is made again.

        The calls have no time limit of their own: librdkafka advises against it, and ``send_offsets_to_transaction``
        ignores one (its issue 5456). When a call is abandoned, so is its producer. Raises ``KafkaException`` where the
        call fails or has not ended at ``until_s``; and what ``proceed`` raises.
        """
        while True:
            running = Call(call)
            while not running.ended(SLICE_S):
                self._wait_on(until_s, self._client().last_error)
            try:
                running.result()
            except KafkaException as error:
                if not error_of(error).retriable():
                    raise
                self._wait_on(until_s, error_of(error).str())
                # Some of these errors are returned at once.
                time.sleep(_RETRY_PAUSE_S)
            except SystemError as error:
                # As in ``MessageProducer``: the producer has failed, and the client lost its own exception.
                self._client().ended = True
                raise KafkaException(KafkaError(KafkaError._FATAL, fatal=True)) from error  # noqa: SLF001  # as above
            else:
                self._waiting.progress()
                return

    def _wait_on(self, until_s: float, last_error: str) -> None:
        try:
            self._waiting.no_progress("Kafka does not end a transaction", last_error)
        except BaseException:
            self._drop()
            raise
        if time.monotonic() >= until_s:
            self._drop()
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, last_error or None))  # noqa: SLF001  # as above

    def _failed(self, failures: Sequence[FailedMessage]) -> SinkError | Abandoned:
        failed = most_relevant(failures)
        if self._times.learn(failures):
            return Abandoned(f"the topic {failed.topic} refused the time of a record, which is moved into a header")
        if is_permanent(failed.error):
            return refused(failed)
        return self._lost(failed.error)

    def _lost(self, reported: KafkaError | None) -> SinkError | Abandoned:
        """Return what an error before the commit means: the batch is void, or the run cannot continue."""
        error = self._cause(reported)
        if not error.fatal() and error.code() not in _FENCED:
            return Abandoned(f"its transaction was lost: {error.str()}")
        if self._overdue():
            self._drop()
            return Abandoned(f"its transaction took too long, and the brokers ended it: {error.str()}")
        return _ended(error)

    def _uncertain(self, reported: KafkaError) -> SinkError | Abandoned:
        """Return what an error of the commit itself means, which the brokers may have begun."""
        error = self._cause(reported)
        if error.fatal() and not self._overdue():
            return _ended(error)
        if not error.txn_requires_abort():
            self._drop()
        return OutcomeUnknown(f"the brokers did not say whether its transaction was committed: {error.str()}")

    def _cause(self, reported: KafkaError | None) -> KafkaError:
        """Return why the producer failed: every call then raises an error, but only some name the cause."""
        producing = self._producing
        if producing is not None:
            producing.serve(0)
        if reported is not None and (producing is None or not producing.ended or reported.code() in _FENCED):
            return reported
        producing = self._client()
        try:
            producing.client.abort_transaction(CAUSE_WAIT_S)
        except KafkaException as error:
            return error_of(error)
        return KafkaError(KafkaError._FATAL, fatal=True)  # noqa: SLF001  # as above

    def _overdue(self) -> bool:
        """Return whether the transaction timed out: the brokers abort it and fence its producer, without a rival."""
        return self._begun_s is not None and time.monotonic() >= self._begun_s + self._timeout_s

    def _deadline_s(self) -> float:
        return (time.monotonic() if self._begun_s is None else self._begun_s) + self._timeout_s

    def _client(self) -> MessageProducer:
        if self._producing is None:
            raise ValueError("the sink was closed")
        return self._producing


def _ended(error: KafkaError) -> SinkError:
    if error.code() in _FENCED:
        return SinkError(
            f"another process has taken over the transactional id of this one: {error.str()}; give each process its "
            "own kafka.instance_id, or none"
        )
    return SinkError(f"the transactional producer failed: {error.str()}")
