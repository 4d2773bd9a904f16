"""No verdict is ever built on the answer to another question."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from storage.errors import StoreError
from storage.hbase import HbaseOptions, connection, parse_place, thrift_client
from storage.hbase.calls import Calls
from storage.hbase.store import HbaseStore
from storage.postings import postings_of
from storage.records import StoredVersion
from tests.builders import make_version
from tests.hbase.proxy import Answer, Proxy, Swapping, pass_on, proxied
from tests.kafka.reading import until

pytestmark = pytest.mark.servers

THREADS = 4
ROUNDS = 25
OPTIONS = HbaseOptions(call_s=1.0, connections_max=THREADS, deadline_s=120)


@pytest.fixture
def proxy(hbase_address: str) -> Iterator[Proxy]:
    """A proxy before the gateway."""
    with proxied(hbase_address) as proxy:
        yield proxy


def wrong_answers(store: HbaseStore, thread: int) -> list[str]:
    """The calls whose answers do not follow from what this thread did to rows of its own."""
    wrong = []

    def check(what: str, *, holds: bool) -> None:
        if not holds:
            wrong.append(what)

    for number in range(ROUNDS):
        versions = [make_version(f"{thread} {number} {n}", b"%d %d %d" % (thread, number, n)) for n in range(3)]
        records = [version.record for version in versions]
        references = [record.reference for record in records]
        pending = [StoredVersion(record, None, None) for record in records]
        check("create", holds=store.create(versions) == pending)
        store.add(records)
        first = [(reference, b"first") for reference in references]
        check("settle", holds=store.settle(first) == [True] * 3)
        check("settle late", holds=store.settle([(reference, b"second") for reference in references]) == [False] * 3)
        check("read", holds=store.read(references) == [entry._replace(verdict=b"first") for entry in pending])
        keys = sorted({key for record in records for key in record.keys})
        expected = {posting for record in records for _, posting in postings_of(record)}
        found = {posting.tobytes() for row in store.look_up(keys) for posting in row.postings}
        check("look up", holds=expected <= found)
        check("bodies", holds=store.bodies(references) == [version.body for version in versions])
    return wrong


def run(proxy: Proxy, namespace: str) -> tuple[list[str], Swapping]:
    """What went wrong for all threads together, and what the proxy did."""
    swapping = Swapping(random.Random("mixed"), wait_s=0.02, late_s=1.5)
    store = HbaseStore.open(parse_place(f"hbase://{proxy.address}/{namespace}"), OPTIONS)
    proxy.rule = swapping
    try:
        with ThreadPoolExecutor(THREADS) as threads:
            works = [threads.submit(wrong_answers, store, thread) for thread in range(THREADS)]
            wrong = []
            for work in works:
                try:
                    wrong += work.result()
                except StoreError as error:
                    wrong.append(str(error))
    finally:
        store.close()
    return wrong, swapping


def test_no_answer_is_taken_for_anothers(proxy: Proxy, hbase_namespace: str) -> None:
    """Answers that come late or change places cost time and nothing else."""
    wrong, swapping = run(proxy, hbase_namespace)
    assert wrong == []
    assert swapping.swapped > 10
    assert swapping.late > 0


def test_without_the_checks_answers_are_taken_for_others(
    proxy: Proxy, hbase_namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the numbers and the rows that protect: with neither looked at, the same feed gives wrong answers."""
    monkeypatch.setattr(thrift_client, "check_number", lambda asked, answered: None)
    monkeypatch.setattr(connection, "check_rows", lambda asked, found: None)
    wrong, _ = run(proxy, hbase_namespace)
    assert wrong != []


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("call", ["read", "settle"])
def test_a_connection_is_not_used_again_after_a_time_out(
    proxy: Proxy, hbase_namespace: str, monkeypatch: pytest.MonkeyPatch, call: str, *, late: bool
) -> None:
    """The next request has a new connection, and late answers on the old one are ignored."""
    place = parse_place(f"hbase://{proxy.address}/{hbase_namespace}")
    store = HbaseStore.open(place, HbaseOptions(call_s=2.0, connections_max=1))
    version = make_version()
    reference = version.record.reference
    store.create([version])
    lates = iter([late])
    tries: list[Exception] = []
    monkeypatch.setattr(Calls, "pause", lambda self, why: tries.append(why))

    def first_late(answer: Answer) -> None:
        if next(lates, False):
            until(lambda: len(proxy.links) > before)
        pass_on(answer)

    before = len(proxy.links)
    proxy.rule = first_late
    if call == "settle":
        assert store.settle([(reference, b"kept")]) == [True]
    assert store.read([reference]) == [StoredVersion(version.record, b"kept" if call == "settle" else None, None)]
    assert len(proxy.links) - before == int(late)
    # A compare-and-set that was lost is looked for at once, on a connection that works.
    assert len(tries) == int(late and call == "read")
    store.close()
