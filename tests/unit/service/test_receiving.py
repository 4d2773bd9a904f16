"""Bodies of requests in memory, where one has to give way to another."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest
from starlette.requests import Request

from consumer.service.receiving import BodyReceiver
from consumer.web.problems import ProblemError


class _Request:
    """A request whose body comes in chunks. It waits for ``rest_comes`` after the first, or sets it before."""

    def __init__(self, rest_comes: asyncio.Event, *, is_first: bool) -> None:
        self.headers = {"content-type": "application/json"}
        self._rest_comes = rest_comes
        self._is_first = is_first

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield the chunks."""
        if not self._is_first:
            self._rest_comes.set()
        yield bytes(8)
        if self._is_first:
            await self._rest_comes.wait()
            yield bytes(8)


def test_a_body_that_was_cut_off_takes_no_further_chunk() -> None:
    """Not even one that comes before the time-out, which ends it a moment later."""

    async def receive(receiver: BodyReceiver, request: _Request) -> int:
        async with receiver.receive(cast("Request", request)) as body:
            return len(body)

    async def both() -> tuple[int | BaseException, int | BaseException]:
        receiver, rest_comes = BodyReceiver(20, 10, 60.0), asyncio.Event()
        first = asyncio.create_task(receive(receiver, _Request(rest_comes, is_first=True)))
        await asyncio.sleep(0)
        second = asyncio.create_task(receive(receiver, _Request(rest_comes, is_first=False)))
        return await asyncio.gather(first, second, return_exceptions=True)

    refused, received = asyncio.run(both())
    with pytest.raises(ProblemError, match="Too many bytes of requests are in memory"):
        raise cast("Exception", refused)
    assert received == 8
