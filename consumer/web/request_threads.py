"""Bounded threads for blocking work, such as judging and the store, so that the event loop never waits."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Final, Generic, NamedTuple, TypeVar

from consumer.web.problems import BUSY, STORE, Limit, ProblemError, retry_later

RETRY_S: Final = 1
"""After how many seconds a client should retry."""

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


class Workers:
    """A thread pool that accepts at most ``requests_max`` calls at once, running or waiting for a thread.

    A call without a result after ``answer_s`` is given up. If it is running, it keeps its thread and counts until it
    ends.
    """

    def __init__(self, threads: int, requests_max: int, answer_s: float) -> None:
        self.answer_s = answer_s
        self._pool = ThreadPoolExecutor(threads, "answer")
        self._requests_max = requests_max
        self._lock = threading.Lock()
        self._calls = 0

    async def call(self, work: Callable[[], _Answer]) -> _Answer:
        """Run ``work`` in a thread, and return its result or raise its error.

        Raises ``ProblemError`` if the pool is full, or there is no result within ``answer_s``.
        """
        self.enter()
        future = self._pool.submit(work)
        future.add_done_callback(self._leave)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.answer_s)
        except TimeoutError as error:
            if future.done() and not future.cancelled():
                # The work itself raised this error.
                raise
            raise self.late_error() from error

    def close(self) -> None:
        """Stop accepting calls, cancel waiting ones, and wait for running ones."""
        self._pool.shutdown(cancel_futures=True)

    def enter(self) -> None:
        """Count a call, which must ``leave``. Raises ``ProblemError`` if the pool is full."""
        with self._lock:
            if self._calls >= self._requests_max:
                raise retry_later(
                    BUSY,
                    f"{self._requests_max} requests are being answered. Try again after the seconds in Retry-After.",
                    RETRY_S,
                    Limit("requests_max", self._requests_max),
                )
            self._calls += 1

    def leave(self, calls: int) -> None:
        """Note that this many calls have ended."""
        with self._lock:
            self._calls -= calls

    def submit(self, work: Callable[[], None]) -> None:
        """Run ``work``, which must not raise, in the next free thread. Does not count as a call."""
        self._pool.submit(work)

    def late_error(self) -> ProblemError:
        """Return the problem of a call without a result in time."""
        return retry_later(
            STORE,
            f"There was no answer within {self.answer_s:g} s. Try again after the seconds in Retry-After, "
            "with fewer articles if you sent many.",
            RETRY_S,
            Limit("answer_s", self.answer_s),
        )

    def _leave(self, _: "Future[_Answer]") -> None:
        self.leave(1)


class _JointCall(NamedTuple, Generic[_Item, _Answer]):
    """A call with its item; the future gets the answer in the event loop."""

    item: _Item
    future: "asyncio.Future[_Answer]"


class JointCalls(Generic[_Item, _Answer]):
    """Calls that the next free thread of ``workers`` works on together. None waits longer than that for others.

    ``work`` returns an answer for each of its items, or the error to raise. A thread takes the waiting calls up to a
    total size of ``size_max``, but at least one; ``size_of`` returns the size of an item. Each call counts, and is
    given up, like any other call of ``workers``.
    """

    def __init__(
        self,
        workers: Workers,
        work: Callable[[Sequence[_Item]], Sequence[_Answer | BaseException]],
        size_of: Callable[[_Item], int],
        size_max: int,
    ) -> None:
        self._workers = workers
        self._work = work
        self._size_of = size_of
        self._size_max = size_max
        self._lock = threading.Lock()
        self._waiting: deque[_JointCall[_Item, _Answer]] = deque()
        # Whether a thread is going to take the waiting calls.
        self._is_expected = False

    async def call(self, item: _Item) -> _Answer:
        """Return the answer for an item, or raise its error.

        Raises ``ProblemError`` if the pool is full, or there is no answer in time.
        """
        self._workers.enter()
        call: _JointCall[_Item, _Answer] = _JointCall(item, asyncio.get_running_loop().create_future())
        with self._lock:
            self._waiting.append(call)
            is_first, self._is_expected = not self._is_expected, True
        if is_first:
            self._workers.submit(self._run)
        try:
            async with asyncio.timeout(self._workers.answer_s):
                return await call.future
        except TimeoutError as error:
            if not call.future.cancelled():
                # The work itself raised this error.
                raise
            raise self._workers.late_error() from error
        finally:
            if call.future.cancelled():
                self._give_up(call)

    def _run(self) -> None:
        """Work on calls that wait, in a thread."""
        calls = self._take()
        if not calls:
            return
        try:
            answers = self._work([call.item for call in calls])
        except BaseException as error:  # noqa: BLE001  # raised again by each call; a panic of Rust is not an Exception
            answers = [error] * len(calls)
        # The loop is closed if the service has ended in the meantime.
        with suppress(RuntimeError):
            calls[0].future.get_loop().call_soon_threadsafe(self._deliver, calls, answers)

    def _take(self) -> list[_JointCall[_Item, _Answer]]:
        calls: list[_JointCall[_Item, _Answer]] = []
        with self._lock:
            left = self._size_max
            while self._waiting:
                left -= self._size_of(self._waiting[0].item)
                if calls and left < 0:
                    break
                calls.append(self._waiting.popleft())
            self._is_expected = bool(self._waiting)
            if self._is_expected:
                # After the pool is closed nobody waits for an answer.
                with suppress(RuntimeError):
                    self._workers.submit(self._run)
        return calls

    def _deliver(self, calls: Sequence[_JointCall[_Item, _Answer]], answers: Sequence[_Answer | BaseException]) -> None:
        """Hand over the answers, in the event loop."""
        self._workers.leave(len(calls))
        for call, answer in zip(calls, answers, strict=True):
            if call.future.done():
                continue
            if isinstance(answer, BaseException):
                call.future.set_exception(answer)
            else:
                call.future.set_result(answer)

    def _give_up(self, call: _JointCall[_Item, _Answer]) -> None:
        """Forget a call that no thread has taken. If one has, the call counts until the thread is done."""
        with self._lock:
            is_waiting = call in self._waiting
            if is_waiting:
                self._waiting.remove(call)
        if is_waiting:
            self._workers.leave(1)
