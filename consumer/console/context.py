"""What all pages share: the database, the settings, the texts of articles, and the clock."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from consumer.config.sections.console import ConsoleSection
from consumer.console.bank_access import BankAccess
from consumer.console.intake.kept import Kept
from consumer.console.pages.review_evaluation import Evaluated
from consumer.console.rendering import Rendering
from consumer.console.stored_matches import MatchSearch
from consumer.judge.settings import JudgeSettings
from consumer.model.hooks import Hooks
from consumer.model.verdict import Verdict
from consumer.reviews.database import Database


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


class Articles(Protocol):
    """Reads articles from the store of the consumers."""

    def read(self, pairs: Sequence[tuple[str, str]], *, bodies: bool = True) -> list[ArticleView | None]:
        """Return these versions, by id and version, in this order; None for those that the store does not hold.

        Without ``bodies`` the texts are not read, and are None: lists of articles need their titles only.

        Raises ``StoreError`` and ``StoreMismatch``; a page that does not catch them becomes one that says so.
        """
        ...


class SetupWarnings(NamedTuple):
    """What is probably set up wrong.

    ``was_read_before``: the group has read flags of which the database has none. ``missing_articles_of``: so many of
    the latest flags, all that were looked at, have no article in the store; 0 while some have.
    """

    was_read_before: bool = False
    missing_articles_of: int = 0


@dataclass(frozen=True, slots=True)
class Desk:
    """What all pages share. Used by several threads at once."""

    database: Database
    section: ConsoleSection
    articles: Articles
    rendering: Rendering
    now_ms: Callable[[], int]
    hooks: Hooks
    # What the consumers judge by; None where the configuration does not say it.
    judging: JudgeSettings | None = None
    # What reviews say of thresholds; None where there is no similarity to judge by.
    evaluation: Kept[Evaluated] | None = None
    # None where the configuration names no banks.
    banks: BankAccess | None = None
    # Finds stored articles that repeat items; None where there are no banks.
    matches: MatchSearch | None = None
    warnings: Callable[[], SetupWarnings] = SetupWarnings
