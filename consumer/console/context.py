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
    """An article as the store has it now. Its texts must be escaped before they are shown."""

    id: str
    version: str
    title: str
    source: str
    url: str
    lang: str
    arrived_ms: int
    # None if the store does not have the text, or no longer has it.
    body: str | None
    # When the version was replaced or retracted.
    ended_ms: int | None
    verdict: Verdict | None
    keywords: tuple[str, ...]


def article_view(stored: StoredVersion, body: str | None) -> ArticleView:
    """Return a stored version as pages show it; ``body`` is its text."""
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
    """A reader of articles in the consumers' store."""

    def read(self, pairs: Sequence[tuple[str, str]], *, bodies: bool = True) -> list[ArticleView | None]:
        """Return these versions, given by id and version, in the same order; None for a version not in the store.

        Without ``bodies``, texts are None, because they are not read: lists only need titles.

        Raises ``StoreError`` and ``StoreMismatch``. If a page does not catch them, an error page is shown.
        """
        ...


class SinkFault(NamedTuple):
    """Why a run's file yields no flags: it is missing, unreadable, or does not begin with an event."""

    kind: Literal["missing", "unreadable", "foreign"]
    path: Path


class SetupWarnings(NamedTuple):
    """Probable faults of the setup.

    ``was_read_before``: the group has read flags, but the database has none. ``missing_articles_of``: how many of the
    latest flags were checked, if the store has no article of any of them; otherwise 0. ``unwritable``: a path that
    releases need but this process cannot write to, or None. ``sink``: why an empty queue may remain empty.
    ``needs_update``: an intake waits at an event of a newer version. ``unsent_reason``: why story and flood events
    wait, or "" if they do not.
    """

    was_read_before: bool = False
    missing_articles_of: int = 0
    unwritable: Path | None = None
    sink: SinkFault | None = None
    needs_update: bool = False
    unsent_reason: str = ""


@dataclass(frozen=True, slots=True)
class ConsoleContext:
    """The parts that all pages share. Used by several threads at once."""

    database: Database
    section: ConsoleSection
    articles: ArticleReader
    # Returns the consumers' store; raises ``StoreError`` while it cannot be opened.
    store: Callable[[], Store]
    matches: MatchSearch
    rendering: Rendering
    now_ms: Callable[[], int]
    hooks: Hooks
    # The consumers' judge settings, or None if they are unknown.
    judging: JudgeSettings | None = None
    # The threshold report; None if the judge settings are unknown or measure no similarity.
    evaluation: CachedResult[ReviewSnapshot] | None = None
    # None if the configuration names no banks.
    banks: BankAccess | None = None
    warnings: Callable[[], SetupWarnings] = SetupWarnings
    # Splits searches into words; None if texts are not indexed.
    cutter: WordCutter | None = None
    # Whether flags come from topics; otherwise they come from a file.
    has_topics: bool = True
    # Sends the test of a webhook.
    courier: Courier = field(default_factory=Courier)
