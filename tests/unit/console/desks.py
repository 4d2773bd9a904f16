"""A served console with a newsroom, in which Ann reviews."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from consumer.console.context import ArticleView
from consumer.judge.settings import JudgeSettings
from consumer.reviews import audit
from consumer.reviews.audit import AuditFilters
from consumer.reviews.database import Database
from tests.unit.console.newsroom import Newsroom
from tests.unit.console.serving import Answer, Browser, KnownArticles, Served, served
from tests.unit.reviews.made import database_in

_FLAG: Final = re.compile(r"^/flags/(\d+)")


class CountedArticles(KnownArticles):
    """A store that remembers what it was asked for."""

    def __init__(self, *views: ArticleView) -> None:
        super().__init__(*views)
        self.asked: list[tuple[int, bool]] = []

    def read(self, pairs: Sequence[tuple[str, str]], *, bodies: bool = True) -> list[ArticleView | None]:
        """Note how many articles are wanted, and whether with their texts."""
        self.asked.append((len(pairs), bodies))
        return super().read(pairs, bodies=bodies)


@dataclass(frozen=True)
class Office:
    """A console, its flags, and Ann's browser."""

    served: Served
    room: Newsroom
    ann: Browser
    articles: CountedArticles

    def colleague(self, name: str = "Bob") -> Browser:
        """The browser of somebody else."""
        return self.served.signed_in(name)

    def audited(self) -> list[tuple[str, str, str]]:
        """Who did what to which article, the first entry first, without signing in."""
        with self.served.database.read_connection() as connection:
            entries = list(audit.search(connection, AuditFilters(), None, 1_000).rows)
        told = [(entry.person, entry.action, entry.subject) for entry in sorted(entries, key=lambda e: e.entry_id)]
        return [entry for entry in told if entry[1].startswith("flag.")]


@contextmanager
def office(
    kept: Path | Database,
    *,
    judging: JudgeSettings | None = None,
    **settings: Any,  # noqa: ANN401  # as the section has them
) -> Iterator[Office]:
    """Serve it until the context is left, over this database, or a new one in this folder."""
    database = kept if isinstance(kept, Database) else database_in(kept)
    articles = CountedArticles()
    with served(database, articles, judging=judging, **settings) as console:
        yield Office(console, Newsroom(database, articles), console.signed_in("Ann"), articles)


class Page:
    """A page, as its reader finds things on it."""

    def __init__(self, answer: Answer) -> None:
        assert answer.status == 200, answer.shown
        self.answer = answer
        self.tree = LexborHTMLParser(answer.text)

    def all(self, selector: str) -> list[LexborNode]:
        """All elements that a selector finds."""
        return self.tree.css(selector)

    def texts(self, selector: str) -> list[str]:
        """Their texts, with single spaces."""
        return [" ".join(node.text().split()) for node in self.all(selector)]

    def hrefs(self, selector: str) -> list[str]:
        """Where links lead."""
        return [node.attributes.get("href") or "" for node in self.all(selector)]

    def link(self, text: str) -> str:
        """Where the link with this text leads."""
        return next(node.attributes["href"] or "" for node in self.all("a") if " ".join(node.text().split()) == text)

    def flags(self) -> list[int]:
        """The numbers of the flags in the list of the page, in order."""
        found = [_FLAG.match(href) for href in self.hrefs("ol.queue [data-item]")]
        return [int(match[1]) for match in found if match]

    def form(self, action: str) -> dict[str, str]:
        """The hidden fields of a form, which a browser sends with what is chosen."""
        fields = self.all(f'form[action="{action}"] input[type=hidden]')
        return {str(each.attributes["name"]): unescape(each.attributes.get("value") or "") for each in fields}


def page(browser: Browser, path: str) -> Page:
    """Open a page."""
    return Page(browser.get(path))


def decide(browser: Browser, flag_id: int, decision: str, query: str = "", note: str = "") -> Answer:
    """Open a flag, and decide as a click does."""
    opened = page(browser, f"/flags/{flag_id}{query}")
    action = f"/flags/{flag_id}/decide"
    return browser.post(action, {**opened.form(action), "decision": decision, "note": note})
