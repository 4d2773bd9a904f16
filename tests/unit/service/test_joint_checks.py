"""Checks that wait for a thread are looked up together, and none costs another its answer."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import pytest

import dupwatch
from consumer.judge.judge import QueryResult
from consumer.service.context import LoadedService
from consumer.web.problems import Limit, ProblemError
from consumer.web.request_threads import JointCalls, Workers
from storage.errors import StoreDamaged, StoreUnavailable
from storage.records import Version
from tests.cli.command import text, wait_for
from tests.unit.service.serving import WAIT_S, Answer, Client, judging_of, served, wait_until_ready

BAD = "of all things"
SOON_S = 0.3
QueryOf = Callable[[Sequence[Version]], list[QueryResult]]


class Panic(BaseException):
    """An error that is not an ``Exception``, like a panic of the compiled engine."""


class HeldQuery:
    """A query that waits for its first call to be let through, notes its texts, and may fail for ``BAD``."""

    def __init__(self, query: QueryOf, error: BaseException | None = None) -> None:
        self.is_held = threading.Event()
        self.go = threading.Event()
        self.asked: list[list[str]] = []
        self._query = query
        self._error = error

    def __call__(self, versions: Sequence[Version]) -> list[QueryResult]:
        """Answer a query."""
        self.asked.append(sorted(version.body or "" for version in versions))
        if not self.is_held.is_set():
            self.is_held.set()
            assert self.go.wait(WAIT_S)
        if self._error is not None and any(BAD in (version.body or "") for version in versions):
            raise self._error
        return self._query(versions)


@contextmanager
def waiting_behind_one(
    window: dupwatch.Window, bodies: Sequence[bytes], error: BaseException | None = None
) -> Iterator[tuple[Client, HeldQuery, list["Future[Answer]"]]]:
    """A service with one thread, which is held by a check while these requests wait."""
    judging: LoadedService = judging_of(window)
    query = HeldQuery(judging.query, error)
    with (
        served(replace(judging, query=query), threads=1) as client,
        ThreadPoolExecutor(len(bodies) + 1) as pool,
    ):
        wait_until_ready(client)
        try:
            first = pool.submit(client.check, {"body": "first"})
            assert query.is_held.wait(WAIT_S)
            answers = [pool.submit(client.send, body) for body in bodies]
            wait_for(lambda: client.metric("dupwatch_requests_in_flight") == len(bodies) + 2, WAIT_S)
            yield client, query, answers
            assert first.result(WAIT_S).status == 200
        finally:
            query.go.set()


def request_for(*bodies: object) -> bytes:
    """A request that checks these bodies."""
    return json.dumps({"articles": [{"body": body} for body in bodies]}).encode()


def test_checks_that_wait_are_looked_up_together(window: dupwatch.Window) -> None:
    """By the next thread that is free, and each client gets the answers to its own articles."""
    window.judge(dupwatch.Article("a", text(1)))
    asked = [request_for(f"{text(1)} too"), request_for(text(2), 7, text(3)), b"{", request_for({})]
    with waiting_behind_one(window, asked) as (_, query, answers):
        query.go.set()
        copy, mixed, malformed, invalid = [each.result(WAIT_S) for each in answers]
    assert query.asked == [["first"], sorted([f"{text(1)} too", text(2), text(3)])]
    assert [result["outcome"] for result in copy.json["results"]] == ["duplicate"]
    assert [result["outcome"] for result in mixed.json["results"]] == ["unique", "error", "unique"]
    assert (malformed.status, malformed.json["reason"]) == (422, "invalid_json")
    assert (invalid.status, invalid.json["reason"]) == (422, "body_wrong_type")


@pytest.mark.parametrize(
    ("error", "status"),
    [(RuntimeError("a defect"), 500), (Panic("in Rust"), 500), (StoreDamaged("a record is cut short"), 503)],
)
def test_a_check_that_fails_fails_alone(window: dupwatch.Window, error: BaseException, status: int) -> None:
    """Whether because of a defect or of a damaged record: the others are looked up without it."""
    asked = [request_for(text(1)), request_for(BAD), request_for(text(2))]
    with waiting_behind_one(window, asked, error) as (client, query, answers):
        query.go.set()
        assert [each.result(WAIT_S).status for each in answers] == [200, status, 200]
        assert client.metric('dupwatch_texts_checked_total{outcome="unique"}') >= 2


def test_a_store_out_of_reach_is_asked_once_for_all(window: dupwatch.Window) -> None:
    """Each further attempt would wait for it as long."""
    asked = [request_for(text(1)), request_for(BAD), request_for(text(2))]
    with waiting_behind_one(window, asked, StoreUnavailable("refused")) as (_, query, answers):
        query.go.set()
        found = [each.result(WAIT_S) for each in answers]
    assert [(each.status, each.headers["retry-after"], each.json["type"]) for each in found] == [
        (503, "5", "urn:dupwatch:problem:store")
    ] * 3
    assert len(query.asked) == 2


def test_a_call_that_waited_too_long_gives_up_its_place() -> None:
    """Though the thread is still busy, which later takes only the calls that still wait."""
    workers = Workers(1, 2, SOON_S)
    busy = threading.Event()
    taken: list[list[int]] = []

    def work(items: Sequence[int]) -> list[int | BaseException]:
        taken.append(list(items))
        return list(items)

    async def ask() -> int:
        calls = JointCalls(workers, work, lambda _: 1, 10)
        workers.submit(lambda: assert_set(busy))
        late = await asyncio.gather(calls.call(1), calls.call(2), return_exceptions=True)
        assert [each.limit for each in late if isinstance(each, ProblemError)] == [Limit("answer_s", SOON_S)] * 2
        waiting = asyncio.ensure_future(calls.call(3))
        await asyncio.sleep(0)
        workers.enter()
        with pytest.raises(ProblemError, match="2 requests are being answered"):
            workers.enter()
        busy.set()
        return await waiting

    try:
        assert asyncio.run(ask()) == 3
    finally:
        busy.set()
        workers.close()
    assert taken == [[3]]


def assert_set(event: threading.Event) -> None:
    """Wait for an event."""
    assert event.wait(WAIT_S)


def joint_answers(
    work: Callable[[Sequence[int]], Sequence[int | BaseException]], items: Sequence[int], size_max: int
) -> list[int | BaseException]:
    """Answer calls that wait at the same time for one thread; an item is its own size."""
    workers = Workers(1, len(items) + 1, WAIT_S)
    busy = threading.Event()

    async def ask() -> list[int | BaseException]:
        calls = JointCalls(workers, work, lambda item: item, size_max)
        blocked = asyncio.ensure_future(workers.call(lambda: busy.wait(WAIT_S)))
        await asyncio.sleep(0)
        waiting = [asyncio.ensure_future(calls.call(item)) for item in items]
        await asyncio.sleep(0)
        busy.set()
        await blocked
        return await asyncio.gather(*waiting, return_exceptions=True)

    try:
        return asyncio.run(ask())
    finally:
        workers.close()


def test_a_thread_takes_no_more_than_fits_but_at_least_one() -> None:
    """In the order of the calls."""
    taken: list[list[int]] = []

    def work(items: Sequence[int]) -> list[int | BaseException]:
        taken.append(list(items))
        return [-item for item in items]

    assert joint_answers(work, [3, 4, 4, 20, 1, 9], 10) == [-3, -4, -4, -20, -1, -9]
    assert taken == [[3, 4], [4], [20], [1, 9]]


def test_an_error_of_the_work_itself_is_that_of_each_call() -> None:
    """Nobody waits for ever, also where a time limit of the work is met."""

    def work(items: Sequence[int]) -> list[int | BaseException]:
        raise TimeoutError(len(items))

    answers = joint_answers(work, [1, 2], 10)
    assert [type(answer) for answer in answers] == [TimeoutError] * 2
    assert not any(isinstance(answer, ProblemError) for answer in answers)


def test_one_text_of_an_id_is_checked_by_the_rules_of_each_source() -> None:
    """Also in one batch, where both are the same version to the store."""
    rules = {"wire": {"flag": "never"}}
    with dupwatch.open("memory:", settings={"rules": rules}) as window:
        window.judge(dupwatch.Article("a", text(1)))
        asked = [{"id": "b", "body": text(1), "source": source} for source in ("wire", "blog", "wire", "blog")]
        with served(judging_of(window)) as client:
            wait_until_ready(client)
            results = client.check(*asked).json["results"]
        checks = window.check([dupwatch.Article(each["id"], each["body"], source=each["source"]) for each in asked])
    assert [result["outcome"] for result in results] == ["unique", "duplicate"] * 2
    assert [check.outcome for check in checks] == ["unique", "duplicate"] * 2
