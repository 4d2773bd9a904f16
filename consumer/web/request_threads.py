"""Bounded threads for blocking work, such as judging and the store, so that the event loop never waits."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

from consumer.web.problems import BUSY, STORE, Limit, retry_later

RETRY_S: Final = 1
"""After how many seconds a client should retry."""

_Answer = TypeVar("_Answer")


class Workers:
    """A thread pool that accepts at most ``requests_max`` calls at once, running or waiting for a thread.

    A call without a result after ``answer_s`` is given up. If it is running, it keeps its thread and counts until it
    ends.
    """

    def __init__(self, threads: int, requests_max: int, answer_s: float) -> None:
        self._pool = ThreadPoolExecutor(threads, "answer")
        self._requests_max = requests_max
        self._answer_s = answer_s
        self._lock = threading.Lock()
        self._calls = 0

    async def call(self, work: Callable[[], _Answer]) -> _Answer:
        """Run ``work`` in a thread, and return its result or raise its error.

        Raises ``ProblemError`` if the pool is full, or there is no result within ``answer_s``.
        """
        with self._lock:
            if self._calls >= self._requests_max:
                raise retry_later(
                    BUSY,
                    f"{self._requests_max} requests are being answered. Try again after the seconds in Retry-After.",
                    RETRY_S,
                    Limit("requests_max", self._requests_max),
                )
            self._calls += 1
        future = self._pool.submit(work)
        future.add_done_callback(self._leave)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._answer_s)
        except TimeoutError as error:
            if future.done() and not future.cancelled():
                # The work itself raised this error.
                raise
            raise retry_later(
                STORE,
                f"There was no answer within {self._answer_s:g} s. Try again after the seconds in Retry-After, "
                "with fewer articles if you sent many.",
                RETRY_S,
                Limit("answer_s", self._answer_s),
            ) from error

    def close(self) -> None:
        """Stop accepting calls, cancel waiting ones, and wait for running ones."""
        self._pool.shutdown(cancel_futures=True)

    def _leave(self, _: "Future[_Answer]") -> None:
        with self._lock:
            self._calls -= 1
