"""Finds flags whose articles repeat a bank item."""

from typing import Final, NamedTuple

from consumer.banks.bank import BankItem
from consumer.console.context import ArticleView
from consumer.console.pages.stored_articles import articles_of
from consumer.console.visit import SignedInVisit
from consumer.reviews import queue
from consumer.reviews.flag_row import FlagRow
from consumer.reviews.queue import Filters

FLAGS_MAX: Final = 200
"""The maximum number of flags that are examined, latest first."""


class ItemFlag(NamedTuple):
    """A flag, and its article if the store has it."""

    flag: FlagRow
    article: ArticleView | None


class ItemFlags(NamedTuple):
    """Flags that name an item, among the ``examined`` latest flags. ``store_is_away``: articles cannot be read."""

    flags: tuple[ItemFlag, ...]
    examined: int
    store_is_away: bool


def flags_naming(visit: SignedInVisit, item: BankItem) -> ItemFlags:
    """Return the flags, among the latest, for which a verdict says that one of the two articles repeats an item.

    A verdict only names items that the banks had when the article arrived.
    """
    with visit.context.database.read_connection() as connection:
        latest = queue.page(connection, Filters(state=None), "newest", FLAGS_MAX).rows
    found = articles_of(visit.context, latest)
    naming = [
        ItemFlag(flag, found.article(flag))
        for flag in latest
        if _names(found.article(flag), item) or _names(found.original(flag), item)
    ]
    return ItemFlags(tuple(naming), len(latest), found.is_away)


def _names(article: ArticleView | None, item: BankItem) -> bool:
    if article is None or article.verdict is None or not isinstance(article.verdict.banks, tuple):
        return False
    return any((mention.bank, mention.item) == item.key for mention in article.verdict.banks)
