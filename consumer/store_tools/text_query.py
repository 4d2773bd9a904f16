"""Finds what texts would repeat if they arrived now. Stores nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from consumer.fingerprint import Engine
from consumer.judge.judge import QueryResult
from consumer.judge.versions import ArrivalTime, VersionBuilder
from consumer.model.article import Article
from consumer.store_tools.bank_matches import ComparableStore
from consumer.store_tools.explanation import SharedPart, shared_passages
from storage.interface import Store
from storage.records import Record, Version

Query = Callable[[Sequence[Version]], list[QueryResult]]
"""Returns what each version would repeat. Raises the store's errors."""


Matcher = Callable[[Sequence[Version]], Sequence[Version]]
"""Returns the versions, with the known texts that they repeat added to their records."""


class QueriedStore(NamedTuple):
    """A store that texts are compared with. ``queries`` returns a query, given a matcher of known texts."""

    compared: ComparableStore
    queries: Callable[[Matcher], Query]


class QueriedText(NamedTuple):
    """A text as it would be stored, the result of its query, and the passages that it shares with other articles."""

    record: Record
    found: QueryResult
    passages: list[SharedPart]


@dataclass(frozen=True, slots=True)
class TextQuery:
    """A query of texts on a store. ``clock`` returns milliseconds since 1970."""

    store: Store
    engine: Engine
    builder: VersionBuilder
    query: Query
    clock: Callable[[], int]

    def answer(self, articles: Sequence[Article]) -> list[QueriedText]:
        """Return what each article would repeat, in one look-up. Raises the store's errors."""
        versions = unstored_versions(self.engine, self.builder, articles, self.clock())
        return [
            QueriedText(version.record, found, shared_passages(self.store, version.body, found.parts))
            for version, found in zip(versions, self.query(versions), strict=True)
        ]


def unstored_versions(
    engine: Engine, builder: VersionBuilder, articles: Sequence[Article], arrived_ms: int
) -> list[Version]:
    """Return the versions that articles would become if they arrived now, in their order."""
    fingerprints = engine.fingerprint(
        [article.body or "" for article in articles], [article.lang for article in articles]
    )
    return builder.versions(articles, [ArrivalTime(arrived_ms, place) for place in range(len(articles))], fingerprints)
