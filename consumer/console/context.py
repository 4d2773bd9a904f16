"""The parts that all pages share: the database, the settings, the texts of articles, and the clock."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from consumer.config.sections.console import ConsoleSection
from consumer.console.bank_access import BankAccess
from consumer.console.intake.cached_result import CachedResult
from consumer.console.pages.review_evaluation import ReviewSnapshot
from consumer.console.rendering import Rendering
from consumer.console.stored_matches import MatchSearch
from consumer.judge.events import version_name
from consumer.judge.settings import JudgeSettings
from consumer.model.hooks import Hooks
from consumer.model.verdict import Verdict, decode_verdict
from consumer.reviews.database import Database
from consumer.reviews.word_index.words import WordCutter
from consumer.webhooks.courier import Courier
from storage.interface import Store
from storage.records import StoredVersion


@dataclass(frozen=True, slots=True)
class ArticleView:
    """An article as the store has it now. Nothing of it is safe to show unescaped."""

    id: str
    version: str
    title: str
    source: str
    url: str
    lang: str
    arrived_ms: int
    # None where the store does not hold it, or no longer.
    body: str | None
    # When the version was replaced or retracted.
    ended_ms: int | None
    verdict: Verdict | None
    keywords: tuple[str, ...]


def article_view(stored: StoredVersion, body: str | None) -> ArticleView:
    """Return a stored version as pages show it."""
    record = stored.record
    return ArticleView(
        id=record.id,
        version=version_name(record.reference),
        title=record.title,
        source=record.source,
        url=record.url,
        lang=record.lang,
        arrived_ms=record.time_ms,
        body=body,
        ended_ms=None if stored.ends_at is None else stored.ends_at.time_ms,
        verdict=None if stored.verdict is None else decode_verdict(stored.verdict),
        keywords=tuple(word for word, _ in record.keywords),
    )


class ArticleReader(Protocol):
    """Reads articles from the store of the consumers."""

    def read(self, pairs: Sequence[tuple[str, str]], *, bodies: bool = True) -> list[ArticleView | None]:
        """Return these versions, by id and version, in this order; None for those that the store does not hold.

        Without ``bodies`` the texts are not read, and are None: lists of articles need their titles only.

        Raises ``StoreError`` and ``StoreMismatch``; a page that does not catch them becomes one that says so.
        """
        ...


class SinkFault(NamedTuple):
    """Why no flags come from the file of a run: there is none, it cannot be read, or it begins with no event."""

    kind: Literal["missing", "unreadable", "foreign"]
    path: Path


class SetupWarnings(NamedTuple):
    """The probable faults of the setup.

    ``was_read_before``: the group has read flags of which the database has none. ``missing_articles_of``: so many of
    the latest flags, all that were looked at, have no article in the store; 0 while some have. ``unwritable`` is what
    this process may not write, so that releases wait. ``sink`` tells why an empty queue may stay empty.
    ``needs_update``: an event of a newer version has come, and no further flags or near misses are taken in.
    ``unsent_why`` is why events of stories and floods wait, "" where they do not.
    """

    was_read_before: bool = False
    missing_articles_of: int = 0
    unwritable: Path | None = None
    sink: SinkFault | None = None
    needs_update: bool = False
    unsent_why: str = ""


@dataclass(frozen=True, slots=True)
class ConsoleContext:
    """The parts that all pages share. Used by several threads at once."""

    database: Database
    section: ConsoleSection
    articles: ArticleReader
    # The store of the consumers; raises ``StoreError`` while it cannot be had.
    store: Callable[[], Store]
    matches: MatchSearch
    rendering: Rendering
    now_ms: Callable[[], int]
    hooks: Hooks
    # What the consumers judge by; None where the configuration does not say it.
    judging: JudgeSettings | None = None
    # What reviews say of thresholds; None where there is no similarity to judge by.
    evaluation: CachedResult[ReviewSnapshot] | None = None
    # None where the configuration names no banks.
    banks: BankAccess | None = None
    warnings: Callable[[], SetupWarnings] = SetupWarnings
    # Cuts what people search for into words; None where texts are not indexed.
    cutter: WordCutter | None = None
    # Whether flags come from topics; otherwise from the file of a run.
    has_topics: bool = True
    # Sends the test of a webhook.
    courier: Courier = field(default_factory=Courier)
