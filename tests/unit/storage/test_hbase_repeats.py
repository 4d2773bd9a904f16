"""When a call of the store repeats a request, how that is reported, and how it fails at last."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from typing import NamedTuple, get_args

import pytest

from storage.errors import StoreError, StoreRefused, StoreUnavailable
from storage.hbase.calls import Gateways
from storage.hbase.connection import CellChange, Columns, GatewayConnection, Swap
from storage.hbase.failures import ConnectionLost, RequestDenied
from storage.hbase.options import GatewayAddress, HbaseOptions, StoreAddress
from storage.hbase.pool import Pool
from storage.hbase.store import HbaseStore
from storage.hbase.waits import Deadline
from storage.postings import KeyedCode
from storage.seen import SeenChange, SeenTimes
from storage.watched import ConnectionChange, Operation, StoreCalled, StoreConnected, StoreRepeated
from tests.builders import make_tombstone, make_version

PLACE = StoreAddress((GatewayAddress("gateway", 9090),), "feed")
TABLES = (b"feed:articles", b"feed:meta", b"feed:postings", b"other:articles")
VERSION = make_version()
REFERENCE = VERSION.record.reference
# As HBase 2.6 says it: of a batch it names the table, and no reason.
GONE = RequestDenied(
    "RetriesExhaustedWithDetailsException: Failed 2 actions: feed:postings: 2 times, servers with issues: null"
)
MOVING = RequestDenied("RetriesExhaustedWithDetailsException: Failed 2 actions: NotServingRegionException: 2 times")
FORBIDDEN = RequestDenied("AccessDeniedException: Insufficient permissions")
CALLS: dict[Operation, Callable[[HbaseStore], object]] = {
    "agree": lambda store: store.agree(b"settings"),
    "retract": lambda store: store.retract([make_tombstone("other")]),
    "create": lambda store: store.create([VERSION]),
    "read": lambda store: store.read([REFERENCE]),
    "latest": lambda store: store.latest([VERSION.record.id_hash]),
    "bodies": lambda store: store.bodies([REFERENCE]),
    "add": lambda store: store.add([VERSION.record]),
    "look_up": lambda store: store.look_up(VERSION.record.keys),
    "seek": lambda store: store.seek([KeyedCode(VERSION.record.keys[0], VERSION.record.fingerprint)], 9),
    "remove": lambda store: store.remove([VERSION.record]),
    "settle": lambda store: store.settle([(REFERENCE, b"{}")]),
    "seen": lambda store: store.seen([b"d" * 16]),
    "change_seen": lambda store: store.change_seen([SeenChange(b"d" * 16, None, SeenTimes(1, 2, 3, 4))]),
}


class Answers(NamedTuple):
    """What HBase answers: to one question after the other about rows, and about its tables at any time."""

    troubles: Iterator[Exception | None]
    tables: Sequence[bytes] | RequestDenied = TABLES
    disabled: Sequence[bytes] = ()


class Answering(GatewayConnection):
    """A connection to such an HBase."""

    def __init__(self, address: GatewayAddress, answers: Answers) -> None:
        super().__init__(address, None, 1.0)
        self._answers = answers

    def rows(
        self, table: bytes, rows: Sequence[bytes], columns: Sequence[bytes], bytes_max: int | None = None
    ) -> dict[bytes, Columns]:
        """None holds anything."""
        self._answer()
        return {}

    def change(self, table: bytes, changes: Sequence[CellChange], until_ms: int | None = None) -> None:
        """Changed."""
        self._answer()

    def swap(self, table: bytes, swaps: Sequence[Swap]) -> list[bool | RequestDenied | None]:
        """No answer comes: what is there has to be read."""
        return [None] * len(swaps)

    def table_names(self) -> list[bytes]:
        """As the master has them."""
        if isinstance(self._answers.tables, RequestDenied):
            raise self._answers.tables
        return list(self._answers.tables)

    def is_enabled(self, table: bytes) -> bool:
        """As the master has it."""
        return table not in self._answers.disabled

    def _answer(self) -> None:
        trouble = next(self._answers.troubles)
        if trouble is not None:
            raise trouble


class StoreReports:
    """Keeps what a store reports beside its calls."""

    def __init__(self) -> None:
        self.repeated: list[Operation] = []
        self.connected: list[ConnectionChange] = []

    def __call__(self, what: StoreCalled | StoreConnected | StoreRepeated) -> None:
        """Note it; calls end elsewhere."""
        assert not isinstance(what, StoreCalled)
        if isinstance(what, StoreConnected):
            self.connected.append(what.change)
        else:
            self.repeated.append(what.operation)


@pytest.fixture
def reports() -> StoreReports:
    """Nothing yet."""
    return StoreReports()


Reached = Callable[[Answers, float], Gateways]


@pytest.fixture
def reached(reports: StoreReports) -> Iterator[Reached]:
    """A function that returns gateways of an HBase with these answers and this deadline."""
    opened: list[Gateways] = []

    def reach(answers: Answers, deadline_s: float) -> Gateways:
        def connect(address: GatewayAddress, deadline: Deadline) -> GatewayConnection:
            return Answering(address, answers)

        gateways = Gateways(PLACE, HbaseOptions(deadline_s=deadline_s), reports)
        gateways.pool = Pool(PLACE.addresses, gateways.options, connect, lambda change: reports(StoreConnected(change)))
        opened.append(gateways)
        return gateways

    yield reach
    for gateways in opened:
        gateways.close()


def ask(gateways: Gateways, operation: Operation | None = "look_up") -> dict[bytes, Columns]:
    """A question about a row of postings."""
    return gateways.calls(operation).rows(b"feed:postings", [b"row"], [b"p"], 128)


@pytest.mark.parametrize("operation", ["look_up", None])
def test_each_repeat_of_a_runs_call_is_reported(
    reached: Reached, reports: StoreReports, operation: Operation | None
) -> None:
    """After an error as after a lost connection; requests that belong to no call of a run are not reported."""
    assert ask(reached(Answers(iter([MOVING, ConnectionLost("cut"), MOVING, None])), 60), operation) == {}
    assert reports.repeated == ([operation] * 3 if operation else [])
    assert reports.connected == ["opened", "lost", "opened"]


def test_a_call_that_is_answered_repeats_nothing(reached: Reached, reports: StoreReports) -> None:
    """Else every call would count."""
    ask(reached(Answers(repeat(None)), 60))
    assert reports.repeated == []


@pytest.mark.parametrize("operation", CALLS)
def test_repeats_are_reported_under_the_name_of_the_call(
    reached: Reached, reports: StoreReports, operation: Operation
) -> None:
    """As ``WatchedStore`` names it when it has ended."""
    store = HbaseStore(reached(Answers(chain(repeat(MOVING, 2), repeat(FORBIDDEN))), 60))
    with pytest.raises(StoreRefused):
        CALLS[operation](store)
    assert reports.repeated == [operation] * 2


def test_sweeps_and_sketches_ask_nothing(reached: Reached, reports: StoreReports) -> None:
    """So all calls of a run are tried here."""
    assert HbaseStore(reached(Answers(repeat(MOVING)), 0.1)).sketches([b"a"]) == [b""]
    assert HbaseStore(reached(Answers(repeat(MOVING)), 0.1)).sweep(0, 10) == 0
    assert HbaseStore(reached(Answers(repeat(MOVING)), 0.1)).forget_seen(0, 10) == 0
    assert {*CALLS, "sweep", "forget_seen", "sketches"} == set(get_args(Operation))
    assert reports.repeated == []


@pytest.mark.parametrize(
    ("tables", "disabled", "ending", "sentence"),
    [
        (
            TABLES[:2],
            (),
            StoreRefused,
            "There is no table feed:postings; run: dupwatch store init --apply --store hbase://gateway:9090/feed",
        ),
        (
            [],
            (),
            StoreRefused,
            r"^There is no table feed:postings, feed:articles or feed:meta; run: [^;]*/feed\.$",
        ),
        (
            TABLES,
            TABLES[1:],
            StoreUnavailable,
            "feed did not answer within 0.1 seconds: The table feed:postings is disabled; .*: enable 'feed:postings'.",
        ),
        (TABLES, TABLES[3:], StoreUnavailable, "within 0.1 seconds: .*Failed 2 actions: feed:postings: 2 times"),
        (RequestDenied("PleaseHoldException: Master is initializing"), (), StoreUnavailable, "Failed 2 actions"),
    ],
)
def test_a_table_that_is_out_of_use_is_named_when_a_call_came_to_nothing(
    reached: Reached,
    tables: Sequence[bytes] | RequestDenied,
    disabled: Sequence[bytes],
    ending: type[StoreError],
    sentence: str,
) -> None:
    """One that is gone ends the run, which would not begin either; one that is switched off is an outage."""
    with pytest.raises(ending, match=sentence) as raised:
        ask(reached(Answers(repeat(GONE), tables, disabled), 0.1))
    assert type(raised.value) is ending


def test_a_table_that_is_not_there_for_a_moment_ends_nothing(reached: Reached) -> None:
    """Whatever HBase reports meanwhile: emptying a table recreates it."""
    troubles = chain(
        repeat(RequestDenied("org.apache.hadoop.hbase.TableNotFoundException: feed:postings"), 3), repeat(None)
    )
    assert ask(reached(Answers(troubles, TABLES[:2]), 60)) == {}
