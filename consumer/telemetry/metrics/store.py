"""Metrics of store calls, their retries, and connections to the store."""

from itertools import product
from typing import Final, get_args

from consumer.model.hooks import Hooks
from consumer.telemetry.metrics.instruments import SHORT_SECONDS, Instruments, Label, Measure, MetricGroup, reaction
from storage.watched import (
    ConnectionChange,
    Ending,
    Operation,
    StoreCalled,
    StoreConnected,
    StoreRepeated,
    TimedOperation,
)

_TIMED: Final[tuple[TimedOperation, ...]] = get_args(TimedOperation)
_ENDINGS: Final[tuple[Ending, ...]] = get_args(Ending)
_TIMED_OPERATION: Final = Label("operation", _TIMED)

STORE_OPERATIONS: Final = Measure(
    "dupwatch_store_operations_total",
    "counter",
    "Store calls, by their outcome after all retries.",
    "calls",
    (_TIMED_OPERATION, Label("outcome", _ENDINGS)),
)
STORE_SECONDS: Final = Measure(
    "dupwatch_store_operation_seconds",
    "histogram",
    "Duration of a store call. In an LMDB store, commit is a batch's wait for its turn to write, and its flush.",
    "seconds",
    (_TIMED_OPERATION,),
    SHORT_SECONDS,
)
STORE_REPEATS: Final = Measure(
    "dupwatch_store_repeats_total",
    "counter",
    "Retries within store calls, after an error or a missing answer; HBase only.",
    "times",
    (Label("operation", get_args(Operation)),),
)
STORE_CONNECTIONS: Final = Measure(
    "dupwatch_store_connections_total",
    "counter",
    "Connections to HBase gateways that were opened, refused or lost; HBase only.",
    "connections",
    (Label("what", get_args(ConnectionChange)),),
)
GROUP: Final = MetricGroup("The store", (STORE_OPERATIONS, STORE_SECONDS, STORE_REPEATS, STORE_CONNECTIONS))
REACTIONS: Final = (
    reaction(STORE_CONNECTIONS, StoreConnected, labels=lambda connected: (connected.change,)),
    reaction(STORE_REPEATS, StoreRepeated, labels=lambda repeated: (repeated.operation,)),
)


class StoreMetrics:
    """The counts and durations of store calls. Any thread may report a call."""

    def __init__(self, instruments: Instruments) -> None:
        calls = instruments.counter(STORE_OPERATIONS)
        self._calls = {pair: calls.labels(*pair) for pair in product(_TIMED, _ENDINGS)}
        self._seconds = instruments.distributions(STORE_SECONDS, _TIMED)

    def listen(self, hooks: Hooks) -> None:
        """Count calls from now on."""
        hooks.on(StoreCalled, self._count_call)

    def _count_call(self, call: StoreCalled) -> None:
        self._calls[call.operation, call.ending].inc()
        self._seconds[call.operation].add((call.seconds,))
