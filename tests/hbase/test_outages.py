"""Gateways and connections that come and go: calls go on by themselves, or end at their deadline with a sentence."""

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count

import pytest

from deploy.local.hbase import ThriftGateway
from deploy.local.ports import free_ports
from storage.errors import StoreRefused, StoreUnavailable
from storage.hbase import HbaseOptions, parse_place
from storage.hbase.articles import Articles
from storage.hbase.calls import Calls, Gateways
from storage.hbase.connection import CellChange
from storage.hbase.store import HbaseStore
from storage.hbase.waits import Deadline
from storage.records import StoredVersion, Version
from storage.watched import StoreCalled, StoreConnected, StoreRepeated, StoreReport
from tests.builders import make_version
from tests.hbase.proxy import Answer, Proxy, pass_on, proxied
from tests.kafka.reading import until

pytestmark = pytest.mark.servers

BATCH = 50
CALL_S = 30.0
"""More than a busy machine may add to a deadline."""


@pytest.fixture
def proxy(hbase_address: str) -> Iterator[Proxy]:
    """A proxy before the gateway."""
    with proxied(hbase_address) as started:
        yield started


def opened(
    addresses: Sequence[str],
    namespace: str,
    options: HbaseOptions | None = None,
    report: StoreReport | None = None,
) -> HbaseStore:
    """A store behind these gateways."""
    return HbaseStore.open(parse_place(f"hbase://{','.join(addresses)}/{namespace}"), options, report)


def batch_of(number: int, size: int = BATCH) -> list[Version]:
    """Versions that no other batch has."""
    return [make_version(f"{number} {n}", b"%d %d" % (number, n)) for n in range(size)]


def judged(store: HbaseStore, versions: Sequence[Version]) -> list[bytes]:
    """Create, post and settle versions, each of which has to take its own verdict; return their references."""
    references = [version.record.reference for version in versions]
    store.create(versions)
    store.add([version.record for version in versions])
    assert store.settle([(reference, reference) for reference in references]) == [True] * len(references)
    return references


def test_a_gateway_that_is_killed_and_restarted_loses_nothing(
    hbase_address: str, hbase_namespace: str, new_gateway: Callable[..., ThriftGateway]
) -> None:
    """Calls in the middle of a batch wait and go on; all that was acknowledged before, meanwhile and after is there."""
    gateway = new_gateway()
    store = opened([gateway.address], hbase_namespace)
    acknowledged: list[bytes] = []
    stop = threading.Event()
    failures: list[BaseException] = []

    def write() -> None:
        try:
            for number in count():
                acknowledged.extend(judged(store, batch_of(number)))
                if stop.is_set():
                    return
        except BaseException as error:  # noqa: BLE001  # whatever it is, the test has to hear of it
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(2):
        before = len(acknowledged)
        while len(acknowledged) < before + 3 * BATCH and not failures:
            time.sleep(0.01)
        gateway.kill9()
        time.sleep(0.5)
        gateway.start()
    stop.set()
    writer.join()
    assert failures == []
    store.close()
    with_shared = opened([hbase_address], hbase_namespace)
    found = with_shared.read(acknowledged)
    assert [stored and stored.verdict for stored in found] == acknowledged
    records = [stored.record for stored in found if stored]
    rows = with_shared.look_up(sorted({key for record in records for key in record.keys}))
    posted = {posting["reference"].tobytes() for row in rows for posting in row.postings}
    assert posted == set(acknowledged)
    with_shared.close()


def test_of_two_gateways_one_may_be_dead(hbase_address: str, hbase_namespace: str) -> None:
    """The other one serves, and the dead one is asked again only after a while."""
    dead = f"127.0.0.1:{free_ports(1)[0]}"
    for number, addresses in enumerate(([dead, hbase_address], [hbase_address, dead])):
        reports: list[StoreCalled | StoreConnected | StoreRepeated] = []
        began_s = time.monotonic()
        store = opened(addresses, hbase_namespace, HbaseOptions(deadline_s=10), reports.append)
        references = [reference for batch in range(5) for reference in judged(store, batch_of(5 * number + batch))]
        assert [stored and stored.verdict for stored in store.read(references)] == references
        # Avoided for at least half a second after the first refusal, and for longer after each further one.
        refused = reports.count(StoreConnected("refused"))
        assert refused <= HbaseOptions().connections_max + 2 * (time.monotonic() - began_s)
        store.close()


def test_connections_are_spread_over_the_gateways(hbase_address: str, hbase_namespace: str) -> None:
    """With several questions at once both have some."""
    with proxied(hbase_address) as proxy, proxied(hbase_address) as other:
        store = opened([proxy.address, other.address], hbase_namespace)
        judged(store, batch_of(1, 500))
        assert min(len(proxy.links), len(other.links)) > 0
        assert len(proxy.links) + len(other.links) <= 2 * HbaseOptions().connections_max
        store.close()


@pytest.mark.parametrize("retire_s", [0.5, 600.0])
def test_a_connection_that_the_gateway_dropped_is_no_error(
    hbase_namespace: str,
    new_gateway: Callable[..., ThriftGateway],
    monkeypatch: pytest.MonkeyPatch,
    retire_s: float,
) -> None:
    """It is not used again when it was retired before; else the call is made again, and the caller sees neither."""
    pauses: list[Exception] = []
    pause = Calls.pause

    def noted(self: Calls, why: Exception) -> None:
        pauses.append(why)
        pause(self, why)

    monkeypatch.setattr(Calls, "pause", noted)
    gateway = new_gateway(idle_ms=1_000)
    with proxied(gateway.address) as proxy:
        store = opened([proxy.address], hbase_namespace, HbaseOptions(retire_s=retire_s))
        references = judged(store, batch_of(1, 3))
        pauses.clear()
        until(lambda: all(link.is_cut for link in proxy.links))
        assert [stored and stored.verdict for stored in store.read(references)] == references
        assert bool(pauses) == (retire_s == 600.0)
        store.close()


@pytest.mark.parametrize("call", ["checkAndPut", "mutateRows"])
def test_a_write_whose_answer_was_lost_is_recognised_as_our_own(proxy: Proxy, hbase_namespace: str, call: str) -> None:
    """The proxy ends the connection when HBase has done it: the verdicts are ours, and another's still lose."""
    store = opened([proxy.address], hbase_namespace)
    lost: list[str] = []
    numbers = count(1)

    def cut_some(answer: Answer) -> None:
        if answer.call == call and next(numbers) % 7 == 0:
            lost.append(answer.call)
            answer.link.cut()
        else:
            pass_on(answer)

    proxy.rule = cut_some
    references = []
    for number in range(10):
        references += judged(store, batch_of(number, 5))
    assert store.settle([(reference, b"another") for reference in references]) == [False] * len(references)
    assert len(lost) > (1 if call == "mutateRows" else 10)
    proxy.rule = pass_on
    assert [stored and stored.verdict for stored in store.read(references)] == references
    store.close()


def test_a_table_that_is_gone_is_named(hbase_address: str) -> None:
    """HBase says no more of a multi-get than "Failed 1 action": its master is asked when the call came to nothing."""
    gateways = Gateways(parse_place(f"hbase://{hbase_address}/nowhere"), HbaseOptions())
    calls = Calls(gateways, Deadline.after(1))
    with pytest.raises(
        StoreRefused,
        match="no table nowhere:postings, nowhere:articles or nowhere:meta; run: dupwatch store init",
    ):
        calls.rows(b"nowhere:postings", [b"row"], [b"p"], 1)
    gateways.close()


def test_a_version_that_expired_and_came_anew_is_settled_as_it_is_now(hbase_address: str, hbase_namespace: str) -> None:
    """What this process remembers of a pending cell may be out of date: the cell is read, and settled as it stands."""
    ours, others = (opened([hbase_address], hbase_namespace) for _ in range(2))
    old, new = make_version("a", sequence=1), make_version("a", sequence=2)
    reference = old.record.reference
    ours.create([old])
    column = b"a:v" + reference[16:]
    gateways = Gateways(parse_place(f"hbase://{hbase_address}/{hbase_namespace}"), HbaseOptions())
    gateways.calls().change(f"{hbase_namespace}:articles".encode(), [CellChange(reference[:16], column, None)])
    gateways.close()
    others.create([new])
    assert ours.settle([(reference, b"kept")]) == [True]
    assert others.read([reference]) == [StoredVersion(new.record, b"kept", None)]
    ours.close()
    others.close()


def test_a_gateway_that_never_answers_is_given_up_at_the_deadline() -> None:
    """The sentence names the store and how long was waited; nothing of the client library is in the way."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        began_s = time.monotonic()
        with pytest.raises(
            StoreUnavailable, match=rf"hbase://{address}/feed did not answer within 1 seconds: .*timed out"
        ):
            opened([address], "feed", HbaseOptions(deadline_s=1, call_s=0.3, connect_s=CALL_S))
        assert 0.5 < time.monotonic() - began_s < CALL_S


def test_a_gateway_that_is_not_there_is_given_up_at_the_deadline() -> None:
    """So is one that refuses connections, with what the system says."""
    address = f"127.0.0.1:{free_ports(1)[0]}"
    began_s = time.monotonic()
    with pytest.raises(StoreUnavailable, match="Connection refused"):
        opened([address], "feed", HbaseOptions(deadline_s=0.5))
    assert time.monotonic() - began_s < HbaseOptions().deadline_s / 2


def test_a_body_that_a_crash_left_out_is_written_when_its_version_is_created_again(
    hbase_address: str, hbase_namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body is written beside its record; one that is stored already stays as it is."""
    store = opened([hbase_address], hbase_namespace)
    first, second = batch_of(0, 2)
    references = [first.record.reference, second.record.reference]
    with monkeypatch.context() as patch:

        def dies(*_: object) -> None:
            raise StoreUnavailable("the gateway is down")

        patch.setattr(Articles, "_write_bodies", dies)
        with pytest.raises(StoreUnavailable):
            store.create([first._replace(body="the first text")])
    store.create([second._replace(body="the second text")])
    (stored,) = store.read(references[:1])
    assert stored is not None
    assert store.bodies(references) == [None, "the second text"]
    store.create([first._replace(body="the first text"), second._replace(body="another text")])
    assert store.bodies(references) == ["the first text", "the second text"]
    store.close()
