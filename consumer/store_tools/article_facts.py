"""The stored facts of an article: its history, its verdict, its original, and its text. Reads only."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from consumer.judge.events import shared_keywords, version_name
from consumer.model.verdict import Outcome, Released, Verdict, decode_verdict
from consumer.store_tools.explanation import SharedPart, passages_of
from consumer.store_tools.inspection import (
    CHAIN_MAX,
    DuplicateLink,
    History,
    arrival_of,
    chain,
    how_it_ended,
    id_hash_of,
    origin_of,
    version_in,
)
from storage.interface import Store
from storage.records import Arrival, StoredVersion, Tombstone


class ArticleHistoryEntry(NamedTuple):
    """A version or a retraction in the history of an id. Fields of versions are empty in a retraction.

    ``stretch`` counts how often the content had ended before it came into force this time. ``verdict`` is None while
    the version is pending.
    """

    kind: Literal["version", "retraction"]
    version: str
    arrival: Arrival
    origin: str | None
    stretch: int
    ends_at: Arrival | None
    title: str
    verdict: Verdict | None

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of the verdict, or None while there is no verdict."""
        return None if self.verdict is None else self.verdict.outcome

    @property
    def is_released(self) -> bool:
        """Whether a person has undone the version's flag."""
        return self.verdict is not None and isinstance(self.verdict.released, Released)


class ArticleFacts(NamedTuple):
    """Everything stored about one version of an article.

    ``links`` lead from the version to the kept one at the end of its chain; ``histories`` has the history of each id in
    the chain. ``passages`` has the parts that the verdict names, with the shared passages. All three are empty if the
    version is not stored. ``body`` is None if the version or its text is not stored.
    """

    history: History
    links: Sequence[DuplicateLink]
    histories: Sequence[History]
    passages: Sequence[SharedPart]
    body: str | None

    @property
    def entries(self) -> list[ArticleHistoryEntry]:
        """The history, in order of arrival."""
        return [history_entry(entry) for entry in self.history]

    @property
    def ending(self) -> str | None:
        """How and when the version ceased to be in force; None if it is still in force, or is not stored."""
        return how_it_ended(self.links[0].stored, self.history) if self.links else None

    @property
    def shared_keywords(self) -> tuple[str, ...]:
        """The keywords that the version shares with the next one in its chain; see ``keywords_of``."""
        return keywords_of(self.links)


def article_facts(
    store: Store, article_id: str, version: str | None = None, links_max: int = CHAIN_MAX
) -> ArticleFacts:
    """Return the facts of the named version, or of the latest, with at most ``links_max`` links of its chain.

    Raises the store's errors, and ``ConfigError`` for an id that is not UTF-8.
    """
    history = store.history(id_hash_of(article_id))
    stored = version_in(history, version)
    if stored is None:
        return ArticleFacts(history, (), (), (), None)
    links = chain(store, stored, links_max)
    return ArticleFacts(
        history,
        links,
        [history, *(store.history(link.stored.record.id_hash) for link in links[1:])],
        passages_of(store, stored, links[0].verdict),
        store.bodies([stored.record.reference])[0],
    )


def keywords_of(links: Sequence[DuplicateLink]) -> tuple[str, ...]:
    """Return the keywords that a version shares with the next one in its chain.

    If there is no next version, or it is no longer stored, return the version's own keywords. Return () for no links.
    """
    if not links:
        return ()
    return shared_keywords(links[0].stored.record, links[min(1, len(links) - 1)].stored.record)


def history_entry(entry: StoredVersion | Tombstone) -> ArticleHistoryEntry:
    """Return a version or a retraction as an entry of a history."""
    arrival, origin = arrival_of(entry), origin_of(entry)
    version = version_name(arrival.reference)
    if isinstance(entry, Tombstone):
        return ArticleHistoryEntry("retraction", version, arrival, origin, 0, None, "", None)
    verdict = None if entry.verdict is None else decode_verdict(entry.verdict)
    record = entry.record
    return ArticleHistoryEntry(
        "version", version, arrival, origin, record.stretch or 0, entry.ends_at, record.title, verdict
    )
