"""The pool of connections, with fake gateways: which one is lent, and which are discarded."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from storage.hbase.failures import ConnectionLost, RequestDenied
from storage.hbase.options import GatewayAddress, HbaseOptions
from storage.hbase.pool import Pool, _Gateway
from storage.hbase.waits import Deadline

ONE, OTHER = GatewayAddress("one", 1), GatewayAddress("other", 2)


class FakeConnection:
    """What the pool looks at in a connection."""

    def __init__(self, address: GatewayAddress) -> None:
        self.address = address
        self.is_lost = False
        self.is_closed = False
        self.opened_s = self.used_s = time.monotonic()
        self.deadline = Deadline(0.0)

    def close(self) -> None:
        """Close it."""
        self.is_closed = True


class Gateways:
    """Gateways that can be down, and every connection that was made to them."""

    def __init__(self) -> None:
        self.down: set[GatewayAddress] = set()
        self.opened: list[FakeConnection] = []
        self.refused: list[GatewayAddress] = []

    def connect(self, address: GatewayAddress, deadline: Deadline) -> FakeConnection:
        """A connection, unless the gateway is down."""
        if address in self.down:
            self.refused.append(address)
            raise ConnectionLost(f"{address}: refused")
        self.opened.append(FakeConnection(address))
        return self.opened[-1]


@pytest.fixture
def gateways() -> Gateways:
    """Two that are up."""
    return Gateways()


@pytest.fixture
def make(gateways: Gateways) -> Callable[..., Pool]:
    """Makes a pool over them."""
    return lambda *addresses, **options: Pool(addresses, HbaseOptions(**options), gateways.connect)  # type: ignore[arg-type]


def soon() -> Deadline:
    """Enough for anything here."""
    return Deadline.after(60)


def test_a_sound_connection_is_used_again(make: Callable[..., Pool], gateways: Gateways) -> None:
    """Also after HBase declared an error on it."""
    pool = make(ONE)
    for _ in range(3):
        with pytest.raises(RequestDenied), pool.connection(soon()):
            raise RequestDenied("no")
        with pool.connection(soon()):
            pass
    assert len(gateways.opened) == 1


@pytest.mark.parametrize("error", [ConnectionLost("gone"), KeyboardInterrupt(), ValueError("a defect")])
def test_any_other_exception_throws_it_away(
    make: Callable[..., Pool], gateways: Gateways, error: BaseException
) -> None:
    """Whatever interrupted it may have left an answer on its way."""
    pool = make(ONE)
    with pytest.raises(type(error)), pool.connection(soon()):
        raise error
    with pool.connection(soon()):
        pass
    assert [connection.is_closed for connection in gateways.opened] == [True, False]


def test_a_connection_that_says_it_is_lost_is_not_used_again(make: Callable[..., Pool], gateways: Gateways) -> None:
    """Even where nothing was raised; the idle ones to the same gateway go with it."""
    pool = make(ONE)
    with pool.connection(soon()), pool.connection(soon()) as lost:
        lost.is_lost = True
    with pool.connection(soon()) as lost:
        lost.is_lost = True
    assert [connection.is_closed for connection in gateways.opened] == [True, True]


def test_connections_go_to_the_least_busy_gateway(make: Callable[..., Pool], gateways: Gateways) -> None:
    """Four at once are two and two, whichever came first."""
    pool = make(ONE, OTHER, connections_max=4)
    with ExitStack() as stack:
        addresses = [stack.enter_context(pool.connection(soon())).address for _ in range(4)]
    assert sorted(addresses) == [ONE, ONE, OTHER, OTHER]
    # All are kept: four may be open.
    assert not any(connection.is_closed for connection in gateways.opened)


@pytest.mark.parametrize("connections_max", [1, 2, 3])
def test_no_more_are_open_than_may_be(make: Callable[..., Pool], gateways: Gateways, connections_max: int) -> None:
    """Lent and idle ones together; further callers wait for one, or fail at their deadline."""
    pool = make(ONE, OTHER, connections_max=connections_max)

    def open_now() -> int:
        return sum(not connection.is_closed for connection in gateways.opened)

    for turn in range(60):
        with ExitStack() as stack:
            for _ in range(turn % connections_max + 1):
                stack.enter_context(pool.connection(soon()))
            assert open_now() <= connections_max
    with ExitStack() as stack:
        for _ in range(connections_max):
            stack.enter_context(pool.connection(soon()))
        with (
            pytest.raises(ConnectionLost, match=f"all {connections_max} connections are in use"),
            pool.connection(Deadline.after(0.001)),
        ):
            pass
    with ThreadPoolExecutor(8) as threads:

        def use(_: int) -> int:
            with pool.connection(soon()):
                return open_now()

        assert max(threads.map(use, range(200))) <= connections_max


def test_a_gateway_that_is_down_is_passed_over(
    make: Callable[..., Pool], gateways: Gateways, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried once in a while, not each time; when it is back it is used again."""
    now_s = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    pool = make(ONE, OTHER)
    gateways.down = {ONE}
    for _ in range(20):
        with pool.connection(Deadline(now_s + 5)) as connection, pool.connection(Deadline(now_s + 5)):
            assert connection.address == OTHER
    assert len(gateways.refused) == 1
    gateways.down = set()
    now_s += 60
    with pool.connection(Deadline(now_s + 5)) as first, pool.connection(Deadline(now_s + 5)) as other:
        assert {first.address, other.address} == {ONE, OTHER}


def test_where_all_are_down_the_caller_gets_an_error(make: Callable[..., Pool], gateways: Gateways) -> None:
    """All are tried, and as soon as one is back it serves."""
    pool = make(ONE, OTHER)
    gateways.down = {ONE, OTHER}
    for _ in range(3):
        with pytest.raises(ConnectionLost, match="refused"), pool.connection(soon()):
            pass
    assert set(gateways.refused) == {ONE, OTHER}
    gateways.down = {ONE}
    with pool.connection(soon()) as connection:
        assert connection.address == OTHER


@pytest.mark.parametrize("field", ["used_s", "opened_s"])
def test_idle_and_old_connections_are_retired(make: Callable[..., Pool], gateways: Gateways, field: str) -> None:
    """One idle for longer than the gateway waits is not used, nor one that is minutes old."""
    pool = make(ONE, retire_s=45.0)
    with pool.connection(soon()):
        pass
    setattr(gateways.opened[0], field, time.monotonic() - (46 if field == "used_s" else 301))
    with pool.connection(soon()):
        pass
    assert [connection.is_closed for connection in gateways.opened] == [True, False]


def test_a_closed_pool_keeps_nothing(make: Callable[..., Pool], gateways: Gateways) -> None:
    """What is idle is closed at once, what is lent when it comes back."""
    pool = make(ONE)
    with pool.connection(soon()):
        pool.close()
    assert [connection.is_closed for connection in gateways.opened] == [True]


def test_connections_are_told_of(gateways: Gateways) -> None:
    """What was made, could not be made, and broke; one that is used again, or retired, is not."""
    changes: list[str] = []
    pool = Pool([ONE, OTHER], HbaseOptions(), gateways.connect, changes.append)  # type: ignore[arg-type]  # as above
    gateways.down = {ONE, OTHER}
    with pytest.raises(ConnectionLost), pool.connection(soon()):
        pass
    assert changes == ["refused", "refused"]
    gateways.down = {ONE}
    changes.clear()
    with pool.connection(soon()):
        pass
    with pool.connection(soon()):
        pass
    with pytest.raises(RequestDenied), pool.connection(soon()):
        raise RequestDenied("no")
    assert [change for change in changes if change != "refused"] == ["opened"]
    changes.clear()
    with pytest.raises(ConnectionLost), pool.connection(soon()):
        raise ConnectionLost("gone")
    assert [change for change in changes if change != "refused"] == ["lost"]


def test_a_gateway_is_passed_over_longer_each_time() -> None:
    """Twice as long, up to half a minute, and up to half of it less at random: processes spread."""
    gateway = _Gateway()
    for expected_s in (1, 2, 4, 8, 16, 30, 30):
        gateway.fail(100.0)
        assert expected_s / 2 <= gateway.shunned_until_s - 100.0 <= expected_s
    gateway.answer()
    assert gateway.shunned_until_s == 0.0
    gateway.fail(100.0)
    assert gateway.shunned_until_s - 100.0 <= 1
