"""The items of banks that bank matches name, with their texts as far as the console knows the banks."""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from consumer.banks.bank import BankItem
from consumer.console.context import ArticleView, ConsoleContext
from consumer.reviews.database import Connection
from consumer.reviews.kinds.bank_mentions import Mention, mentions_of

ITEMS_MAX: Final = 20
"""Items that the page of an entry offers, the most similar."""


class MentionedItem(NamedTuple):
    """An item that an article repeats.

    ``item`` is None where the banks no longer have it, or this console does not know the banks.
    """

    mention: Mention
    item: BankItem | None

    @property
    def name(self) -> str:
        """Its bank and its id, as a query names them."""
        return f"{self.mention.bank}/{self.mention.item}"

    @property
    def view(self) -> ArticleView | None:
        """The item in the place of an earlier article: with its title and its text."""
        item = self.item
        return None if item is None else ArticleView(
            id=item.item, version="", title=item.title, source=item.bank, url="", lang=item.lang, arrived_ms=0,
            body=item.text, ended_ms=None, verdict=None, keywords=(),
        )  # fmt: skip


def mentioned_items(
    desk: ConsoleContext, connection: Connection, flag_ids: Collection[int]
) -> dict[int, Sequence[MentionedItem]]:
    """Return the items that flags name, the most similar first, from the banks as they were last read."""
    latest = None if desk.banks is None else desk.banks.latest
    items = {} if latest is None else latest.items
    return {
        flag_id: [MentionedItem(each, items.get((each.bank, each.item))) for each in mentions]
        for flag_id, mentions in mentions_of(connection, flag_ids).items()
    }


def chosen_item(items: Sequence[MentionedItem], name: str) -> MentionedItem | None:
    """Return the item of this name, else the most similar one; None where there is none at all."""
    return next((each for each in items if each.name == name), items[0] if items else None)
