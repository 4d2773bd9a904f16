"""How a question about many rows is cut."""

import threading
import time
from collections.abc import Callable, Sequence
from itertools import count

import pytest

from storage.errors import StoreUnavailable
from storage.hbase.calls import Gateways
from storage.hbase.connection import Columns, GatewayConnection
from storage.hbase.failures import ConnectionLost
from storage.hbase.options import GatewayAddress, HbaseOptions, StoreAddress
from storage.hbase.pool import Pool
from storage.hbase.waits import Deadline


class _Answers(GatewayConnection):
    """A connection that knows every row, and notes how many it was asked for."""

    def __init__(self, address: GatewayAddress, asked: list[int]) -> None:
        super().__init__(address, None, 1.0)
        self._asked = asked

    def rows(
        self, table: bytes, rows: Sequence[bytes], columns: Sequence[bytes], bytes_max: int | None = None
    ) -> dict[bytes, Columns]:
        self._asked.append(len(rows))
        return {row: {} for row in rows}


@pytest.fixture
def asked() -> list[int]:
    """How many rows each question was about."""
    return []


@pytest.fixture
def ask(asked: list[int]) -> Callable[[int, int], None]:
    """Ask for this many rows, with at most this many connections, 128 rows at once."""

    def ask(count: int, connections_max: int) -> None:
        place = StoreAddress((GatewayAddress("localhost", 1),), "x")
        gateways = Gateways(place, HbaseOptions(connections_max=connections_max))

        def connect(address: GatewayAddress, deadline: Deadline) -> GatewayConnection:
            return _Answers(address, asked)

        gateways.pool = Pool(place.addresses, gateways.options, connect)
        rows = [b"%d" % number for number in range(count)]
        assert gateways.calls().rows(b"t", rows, [b"p"], 128) == {row: {} for row in rows}
        gateways.close()

    return ask


@pytest.mark.parametrize(
    ("count", "connections_max", "pieces"),
    [
        (0, 4, []),
        (10, 4, [10]),
        (40, 4, [16, 16, 8]),
        (128, 4, [32] * 4),
        (128, 1, [128]),
        (1_000, 4, [128] * 7 + [104]),
    ],
)
def test_rows_are_spread_over_the_connections(
    ask: Callable[[int, int], None], asked: list[int], count: int, connections_max: int, pieces: list[int]
) -> None:
    """Each gets its share, but for few rows there is one question, and no question is about more than was said."""
    ask(count, connections_max)
    assert sorted(asked) == sorted(pieces)


def test_an_attempt_that_the_deadline_cuts_short_hides_no_cause() -> None:
    """The last of many attempts has little time: that it ran out says nothing, what failed before does."""
    place = StoreAddress((GatewayAddress("localhost", 1),), "x")
    gateways = Gateways(place, HbaseOptions(deadline_s=1.0))
    attempts = count(1)

    def connect(address: GatewayAddress, deadline: Deadline) -> GatewayConnection:
        if next(attempts) <= 2:
            raise ConnectionLost("certificate verify failed")
        time.sleep(deadline.left_s)
        raise ConnectionLost("timed out")

    gateways.pool = Pool(place.addresses, gateways.options, connect)
    with pytest.raises(StoreUnavailable, match=r"within 1 seconds: certificate verify failed\. Check"):
        gateways.calls().rows(b"t", [b"row"], [b"p"], 128)
    gateways.close()


def test_a_single_attempt_that_times_out_is_the_cause() -> None:
    """Nothing else is known then."""
    place = StoreAddress((GatewayAddress("localhost", 1),), "x")
    gateways = Gateways(place, HbaseOptions(deadline_s=0.2))

    def connect(address: GatewayAddress, deadline: Deadline) -> GatewayConnection:
        time.sleep(deadline.left_s)
        raise ConnectionLost("timed out")

    gateways.pool = Pool(place.addresses, gateways.options, connect)
    with pytest.raises(StoreUnavailable, match=r"timed out\. Check"):
        gateways.calls().rows(b"t", [b"row"], [b"p"], 128)
    gateways.close()


def test_two_pieces_of_work_run_at_the_same_time_and_neither_outlives_the_call() -> None:
    """Both results are returned; the error of either is raised, once the other has ended."""
    gateways = Gateways(StoreAddress((GatewayAddress("localhost", 1),), "x"), HbaseOptions())
    both = threading.Barrier(2, timeout=30)

    def meets(answer: int) -> int:
        both.wait()
        return answer

    assert gateways.side_by_side(lambda: meets(1), lambda: meets(2)) == (1, 2)
    ended: list[str] = []

    def slow(name: str) -> None:
        time.sleep(0.05)
        ended.append(name)

    def fails() -> None:
        raise StoreUnavailable("it is gone")

    with pytest.raises(StoreUnavailable):
        gateways.side_by_side(fails, lambda: slow("second"))
    with pytest.raises(StoreUnavailable):
        gateways.side_by_side(lambda: slow("first"), fails)
    assert ended == ["second", "first"]
    gateways.close()
