"""What is stored of an article, for its page in the service."""

from typing import Literal, cast
from urllib.parse import unquote_to_bytes

import msgspec

from consumer.judge.events import version_name
from consumer.model.verdict import decode_verdict
from consumer.service.messages import ArticleAnswer, ChainLink, HistoryEntry
from consumer.service.problems import INVALID_REQUEST, UNKNOWN_ARTICLE
from consumer.store_tools.history import arrival_of
from consumer.store_tools.inspection import Link, chain, latest
from consumer.text.timestamps import rfc3339
from consumer.web.problems import ProblemError
from storage.interface import Store
from storage.records import Stored, Tombstone, id_hash


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


def _entry(entry: Stored | Tombstone) -> HistoryEntry:
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
        verdict=None if entry.verdict is None else decode_verdict(entry.verdict),
    )


def _link(link: Link) -> ChainLink:
    record = link.stored.record
    outcome = None if link.verdict is None else cast("Literal['unique', 'duplicate']", link.verdict.outcome)
    return ChainLink(
        record.id, version_name(record.reference), record.title, record.url, rfc3339(record.time_ms), outcome
    )
