"""Articles, and flags of them in the console's database: what pages are made from."""

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Final

from consumer.console.context import ArticleView
from consumer.model.bank_match import BankMatchEvent
from consumer.model.near_miss import NearMiss
from consumer.model.verdict import BankMention, EndedBefore, Match, Verdict
from consumer.reviews import queue
from consumer.reviews.database import Connection, Database
from consumer.reviews.flag_events import add_events
from consumer.reviews.flag_row import FlagRow
from consumer.reviews.kinds.side_entries import add_bank_matches, add_ended_before, add_near_misses
from consumer.reviews.queue import Filters
from consumer.reviews.ranking.preferring import refresh_preferred
from consumer.text.timestamps import rfc3339
from tests.unit.console.serving import KnownArticles

MINUTE_MS: Final = 60_000
BEGAN_MS: Final = 1_764_000_000_000 - 300 * MINUTE_MS
"""Five hours before the clock of a served console."""


def version_of(article_id: str) -> str:
    """A version as events name it."""
    return hashlib.sha256(article_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def article(article_id: str, title: str = "", body: str | None = "", **fields: Any) -> ArticleView:  # noqa: ANN401
    """An article as the store has it."""
    values: dict[str, Any] = {
        "source": "wire", "url": "", "lang": "", "arrived_ms": BEGAN_MS, "ended_ms": None, "verdict": None,
        "keywords": (),
    } | fields  # fmt: skip
    return ArticleView(id=article_id, version=version_of(article_id), title=title, body=body, **values)


@dataclass(frozen=True, slots=True)
class Newsroom:
    """A database with flags, and a store with their articles."""

    database: Database
    articles: KnownArticles

    def hold(self, *views: ArticleView) -> None:
        """Put articles into the store."""
        self.articles.views |= {(view.id, view.version): view for view in views}

    def flag(
        self,
        copy: ArticleView,
        original: ArticleView,
        similarity: float | None = 0.9,
        *,
        distance: int = 3,
        minute: int = 0,
        stored: bool = True,
        **fields: Any,  # noqa: ANN401  # of the verdict
    ) -> FlagRow:
        """Store both articles, and the event that flags one as a copy of the other."""
        verdict = self.event(copy, original, similarity, distance=distance, minute=minute, **fields)
        if stored:
            self.hold(original, replace(copy, verdict=verdict, arrived_ms=BEGAN_MS + minute * MINUTE_MS))

        def taken_in(connection: Connection) -> None:
            refresh_preferred(connection, add_events(connection, [verdict]).members, BEGAN_MS + minute * MINUTE_MS)

        self.database.write(taken_in)
        return self.row(copy.id)

    @staticmethod
    def event(
        copy: ArticleView,
        original: ArticleView,
        similarity: float | None = 0.9,
        *,
        distance: int = 3,
        minute: int = 0,
        **fields: Any,  # noqa: ANN401  # of the verdict
    ) -> Verdict:
        """The event that flags an article as a copy of another one."""
        at = rfc3339(BEGAN_MS + minute * MINUTE_MS)
        values: dict[str, Any] = {
            "id": copy.id, "version": copy.version, "outcome": "duplicate", "duplicate_of": original.id,
            "duplicate_of_version": original.version, "distance": distance, "similarity": similarity,
            "cluster": original.id, "arrived_at": at, "decided_at": at,
            "matches": (
                Match(id=original.id, version=original.version, distance=distance, similarity=similarity),
            ),
            "shared_keywords": tuple(word for word in copy.keywords if word in original.keywords),
            "source": copy.source, "original_source": original.source,
        } | fields  # fmt: skip
        return Verdict(**values)

    def near_miss(self, copy: ArticleView, original: ArticleView, similarity: float, *, minute: int = 0) -> FlagRow:
        """Store both articles, and the event of a pair just under the threshold."""
        self.hold(copy, original)
        at = rfc3339(BEGAN_MS + minute * MINUTE_MS)
        event = NearMiss(
            id=copy.id, version=copy.version, original=original.id, original_version=original.version,
            source=copy.source, original_source=original.source, similarity=similarity, threshold=0.75, distance=9,
            sampled_in=20.0, truncated=False, arrived_at=at, decided_at=at,
        )  # fmt: skip
        self.database.write(lambda c: add_near_misses(c, [event]))
        return self.row(copy.id)

    def repeat_of_ended(self, copy: ArticleView, ended: ArticleView, similarity: float | None = 0.9) -> FlagRow:
        """Store both articles, and the verdict that one repeats the other, which had ended."""
        at = rfc3339(BEGAN_MS)
        before = EndedBefore(id=ended.id, version=ended.version, ended_at=at, similarity=similarity)
        verdict = Verdict(
            id=copy.id, version=copy.version, outcome="unique", arrived_at=at, decided_at=at, ended_before=before
        )
        self.hold(replace(copy, verdict=verdict), replace(ended, ended_ms=BEGAN_MS))
        self.database.write(lambda c: add_ended_before(c, [verdict]))
        return self.row(copy.id)

    def bank_match(self, view: ArticleView, *items: BankMention) -> FlagRow:
        """Store an article, and the event that it repeats items of banks."""
        at = rfc3339(BEGAN_MS)
        self.hold(view)
        event = BankMatchEvent(
            id=view.id, version=view.version, outcome="unique", banks=items, arrived_at=at, decided_at=at
        )
        self.database.write(lambda c: add_bank_matches(c, [event]))
        return self.row(view.id)

    def row(self, article_id: str) -> FlagRow:
        """Return the flag of an article as it is now."""
        with self.database.read_connection() as connection:
            page = queue.page(connection, Filters(state=None), "newest", 10_000)
        return next(row for row in page.rows if row.article_id == article_id)

    def state(self, article_id: str) -> str:
        """Return what is known of the flag of an article."""
        return self.row(article_id).state
