"""The contents of the store as JSON, for clients: articles, explanations, and counts. Counting may take seconds."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, Literal, cast
from urllib.parse import unquote_to_bytes

import msgspec

from consumer.fingerprint import TextKind
from consumer.judge.events import version_name
from consumer.model.errors import ConfigError
from consumer.model.verdict import decode_verdict
from consumer.service.context import LoadedService
from consumer.service.messages import ArticleAnswer, ChainLink, HistoryEntry, StatsAnswer, StoreCounts, WindowEstimate
from consumer.service.problems import INVALID_REQUEST, UNKNOWN_ARTICLE
from consumer.store_tools.explanation import compared_article, explain_pair, plain_values
from consumer.store_tools.inspection import DuplicateLink, arrival_of, chain, latest_version
from consumer.store_tools.store_plan import counted_window, window_size
from consumer.text.timestamps import rfc3339
from consumer.web.problems import ProblemError
from storage.interface import Store
from storage.records import StoredVersion, Tombstone, id_hash

FRESH_S_MIN: Final = 10.0
"""The minimum time for which counts are reused, in seconds."""
_REUSE_FACTOR: Final = 20
"""Counts are reused for this many times the time that counting took, so slow stores are counted less often."""
_SEED: Final = 5
"""The seed of the sample, so that an unchanged store gives the same estimate."""
_COUNTED_MAX: Final = 1_000_000
"""A store of up to this many versions and retractions is counted, in about ten seconds. A larger one is sampled."""
_STORE: Final = "the store"
"""The name of the store in messages to clients, which must not reveal its URL."""


class FreshStats:
    """A cache of counts. Requests that arrive while counting is in progress wait for the same result."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counting: asyncio.Future[bytes] | None = None
        self._until_s = float("-inf")

    async def answer(self, count: Callable[[], Awaitable[StatsAnswer]]) -> bytes:
        """Return the counts as JSON. Call ``count``, and raise its errors, if the cached counts are too old."""
        if self._counting is None or (self._counting.done() and self._clock() >= self._until_s):
            self._counting = asyncio.ensure_future(self._count(count))
        # A client that disconnects must not cancel the count for the others.
        return await asyncio.shield(self._counting)

    async def _count(self, count: Callable[[], Awaitable[StatsAnswer]]) -> bytes:
        began_s = self._clock()
        self._until_s = began_s
        answer = msgspec.json.encode(await count())
        self._until_s = began_s + max(FRESH_S_MIN, _REUSE_FACTOR * (self._clock() - began_s))
        return answer


def article_id_in(segment: str) -> str:
    """Decode the percent-encoded id in a path segment. Raises ``ProblemError`` if it is not UTF-8."""
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError as error:
        raise ProblemError(
            INVALID_REQUEST, "The id in the path is not UTF-8. Percent-encode its UTF-8 bytes."
        ) from error


def article_answer(store: Store, article_id: str) -> bytes:
    """Return the history of an article as JSON. Raises ``ProblemError`` if it is not stored."""
    history = store.history(id_hash(article_id))
    if not history:
        raise unknown_article(article_id)
    version = latest_version(history)
    links = [] if version is None else chain(store, version)
    return msgspec.json.encode(
        ArticleAnswer(
            id=article_id,
            retracted=isinstance(history[-1], Tombstone),
            history=tuple(map(_entry, history)),
            chain=tuple(map(_link, links)),
        )
    )


def unknown_article(article_id: str) -> ProblemError:
    """Return the problem of an id that is not in the store."""
    return ProblemError(
        UNKNOWN_ARTICLE, f"There is no article {article_id!r}: it never arrived, or its window has ended."
    )


def explanation_answer(service: LoadedService, a: tuple[str, str | None], b: tuple[str, str | None]) -> bytes:
    """Return as JSON why two articles are near-duplicates, or why not.

    Each article is named by its id and a version; None is the latest version. Raises ``ProblemError`` if
    one of them is not stored.
    """
    try:
        article_a, article_b = (compared_article(service.store, _STORE, *named) for named in (a, b))
    except ConfigError as error:
        raise ProblemError(UNKNOWN_ARTICLE, f"{error}.") from error
    return msgspec.json.encode(plain_values(explain_pair(article_a, article_b, service.settings, service.lexicon)))


def count_store(service: LoadedService) -> StatsAnswer:
    """Count what the store holds. Raises the store's errors."""
    settings = service.settings
    return StatsAnswer(
        counted_at=rfc3339(service.clock()),
        plan=settings.plan.name,
        scheme=settings.scheme.name,
        window=_window(service),
        counts=None if service.is_remote else _counts(service),
    )


def _entry(entry: StoredVersion | Tombstone) -> HistoryEntry:
    arrival = arrival_of(entry)
    version, arrived_at = version_name(arrival.reference), rfc3339(arrival.time_ms)
    if isinstance(entry, Tombstone):
        return HistoryEntry(kind="retraction", version=version, arrived_at=arrived_at)
    record = entry.record
    return HistoryEntry(
        kind="version",
        version=version,
        arrived_at=arrived_at,
        ends_at=None if entry.ends_at is None else rfc3339(entry.ends_at.time_ms),
        title=record.title,
        source=record.source,
        url=record.url,
        lang=record.lang,
        text_kind=TextKind(record.kind).label,
        verdict=None if entry.verdict is None else decode_verdict(entry.verdict),
    )


def _link(link: DuplicateLink) -> ChainLink:
    record = link.stored.record
    outcome = None if link.verdict is None else cast("Literal['unique', 'duplicate']", link.verdict.outcome)
    return ChainLink(
        record.id, version_name(record.reference), record.title, record.url, rfc3339(record.time_ms), outcome
    )


def _window(service: LoadedService) -> WindowEstimate:
    store, settings = service.store, service.settings
    exact = None if service.is_remote else counted_window(store, settings.window_ms, _COUNTED_MAX)
    size = exact or window_size(store, settings.plan, settings.window_ms, _SEED)
    if size.error is None:
        # A sample this small gives only a bound, which means nothing for an empty store.
        return WindowEstimate(None, None)
    return WindowEstimate(size.articles, size.error)


def _counts(service: LoadedService) -> StoreCounts:
    stats = service.store.stats()
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
