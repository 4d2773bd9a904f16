"""What a store holds, counted now and then: to count a large one takes seconds."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from consumer.service.desk import Judging
from consumer.store_tools.window_size import window_size
from consumer.text.timestamps import rfc3339

FRESH_S: Final = 10.0
"""For how long what was counted is answered."""
_SHARE: Final = 20
"""Counting may take one part in so many of the time, so a store that takes long is counted less often."""
_SEED: Final = 5


class StoreCounts(msgspec.Struct, frozen=True):
    """What ``dupwatch store stats`` counts; ``size_bytes`` is null where it is unknown."""

    versions: int
    pending: int
    tombstones: int
    postings: int
    rows: int
    crowded_rows: int
    widest_row: int
    seen_texts: int
    size_bytes: int | None


class WindowEstimate(msgspec.Struct, frozen=True):
    """The kept articles of the window, estimated from a sample; with ``error`` null ``articles`` is an upper bound.

    ``error`` is relative, and in both directions.
    """

    articles: int
    error: float | None


class StatsAnswer(msgspec.Struct, frozen=True):
    """What the store holds, as counted at ``counted_at``. ``counts`` is null on HBase, where all would be read."""

    counted_at: str
    plan: str
    scheme: str
    window: WindowEstimate
    counts: StoreCounts | None


def counted(judging: Judging) -> StatsAnswer:
    """Count what the store holds. Raises the store's errors."""
    settings = judging.settings
    size = window_size(judging.store, settings.plan, settings.window_ms, _SEED)
    return StatsAnswer(
        counted_at=rfc3339(judging.clock()),
        plan=settings.plan.name,
        scheme=settings.scheme.name,
        window=WindowEstimate(size.articles, size.error),
        counts=None if judging.is_remote else _counts(judging),
    )


def _counts(judging: Judging) -> StoreCounts:
    stats = judging.store.stats()
    return StoreCounts(
        versions=stats.versions,
        pending=stats.versions - stats.verdicts,
        tombstones=stats.tombstones,
        postings=stats.postings,
        rows=stats.rows,
        crowded_rows=stats.crowded_rows,
        widest_row=stats.widest_row,
        seen_texts=stats.seen_texts,
        size_bytes=stats.size_bytes,
    )


class FreshStats:
    """Remembers what was counted for a while; all who ask meanwhile wait for the same count."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counting: asyncio.Future[bytes] | None = None
        self._until_s = float("-inf")

    async def answer(self, count: Callable[[], Awaitable[StatsAnswer]]) -> bytes:
        """Return the stats as JSON, from ``count`` where those remembered are too old. Raises what ``count`` raises."""
        if self._counting is None or (self._counting.done() and self._clock() >= self._until_s):
            self._counting = asyncio.ensure_future(self._count(count))
        # Who leaves does not end the count for the others.
        return await asyncio.shield(self._counting)

    async def _count(self, count: Callable[[], Awaitable[StatsAnswer]]) -> bytes:
        began_s = self._clock()
        self._until_s = began_s
        answer = msgspec.json.encode(await count())
        self._until_s = began_s + max(FRESH_S, _SHARE * (self._clock() - began_s))
        return answer
