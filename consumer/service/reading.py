"""What the store has, as clients are told: an article, why two are near, and counts, which take seconds."""

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
from consumer.store_tools.explanation import compared_article, explained, plain
from consumer.store_tools.inspection import DuplicateLink, arrival_of, chain, latest
from consumer.store_tools.store_plan import counted_window, window_size
from consumer.text.timestamps import rfc3339
from consumer.web.problems import ProblemError
from storage.interface import Store
from storage.records import StoredVersion, Tombstone, id_hash

FRESH_S: Final = 10.0
"""For how long what was counted is answered."""
_SHARE: Final = 20
"""Counting may take one part in so many of the time, so a store that takes long is counted less often."""
_SEED: Final = 5
_COUNTED_MAX: Final = 1_000_000
"""Up to this many versions and retractions the window is counted, which takes some ten seconds; beyond, sampled."""
_STORE: Final = "the store"
"""Clients need not know where it is."""


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


def article_id_in(segment: str) -> str:
    """Return the id in a segment of a path, where it is percent-encoded. Raises ``ProblemError`` for other bytes."""
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError as error:
        raise ProblemError(
            INVALID_REQUEST, "The id in the path is not UTF-8. Percent-encode its UTF-8 bytes."
        ) from error


def article_answer(store: Store, article_id: str) -> bytes:
    """Return all that is stored of an article, as JSON. Raises ``ProblemError`` where nothing is."""
    history = store.history(id_hash(article_id))
    if not history:
        raise unknown(article_id)
    version = latest(history)
    links = [] if version is None else chain(store, version)
    return msgspec.json.encode(
        ArticleAnswer(
            id=article_id,
            retracted=isinstance(history[-1], Tombstone),
            history=tuple(map(_entry, history)),
            chain=tuple(map(_link, links)),
        )
    )


def unknown(article_id: str) -> ProblemError:
    """Return the problem of an id that the store does not have."""
    return ProblemError(
        UNKNOWN_ARTICLE, f"There is no article {article_id!r}: it never arrived, or its window has ended."
    )


def explanation_answer(judging: LoadedService, a: tuple[str, str | None], b: tuple[str, str | None]) -> bytes:
    """Return why two articles are near-duplicates or not, as JSON; each is an id and a version, None for the latest.

    Raises ``ProblemError`` where one is not stored.
    """
    try:
        article_a, article_b = (compared_article(judging.store, _STORE, *named) for named in (a, b))
    except ConfigError as error:
        raise ProblemError(UNKNOWN_ARTICLE, f"{error}.") from error
    return msgspec.json.encode(plain(explained(article_a, article_b, judging.settings, judging.lexicon)))


def counted(judging: LoadedService) -> StatsAnswer:
    """Count what the store holds. Raises the store's errors."""
    settings = judging.settings
    return StatsAnswer(
        counted_at=rfc3339(judging.clock()),
        plan=settings.plan.name,
        scheme=settings.scheme.name,
        window=_window(judging),
        counts=None if judging.is_remote else _counts(judging),
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


def _window(judging: LoadedService) -> WindowEstimate:
    store, settings = judging.store, judging.settings
    exact = None if judging.is_remote else counted_window(store, settings.window_ms, _COUNTED_MAX)
    size = exact or window_size(store, settings.plan, settings.window_ms, _SEED)
    if size.error is None:
        # The bound that a small sample gives says nothing of an empty store.
        return WindowEstimate(None, None)
    return WindowEstimate(size.articles, size.error)


def _counts(judging: LoadedService) -> StoreCounts:
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
