"""The bank items that bank matches name, with their texts if the console reads the banks."""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from consumer.banks.bank import BankItem
from consumer.console.context import ArticleView, ConsoleContext
from consumer.reviews.database import Connection
from consumer.reviews.kinds.bank_mentions import Mention, mentions_of

ITEMS_MAX: Final = 20
"""The maximum number of items that the page of an entry offers. It offers the most similar ones."""


class MentionedItem(NamedTuple):
    """An item that an article repeats.

    ``item`` is None if the banks no longer have it, or if this console does not read the banks or has not yet read
    them.
    """

    mention: Mention
    item: BankItem | None

    @property
    def name(self) -> str:
        """The bank and the id of the item, as the query of a URL names them."""
        return f"{self.mention.bank}/{self.mention.item}"

    @property
    def view(self) -> ArticleView | None:
        """The item as an article view, to be shown in place of an earlier article, or None without an item."""
        item = self.item
        return None if item is None else ArticleView(
            id=item.item, version="", title=item.title, source=item.bank, url="", lang=item.lang, arrived_ms=0,
            body=item.text, ended_ms=None, verdict=None, keywords=(),
        )  # fmt: skip


def mentioned_items(
    context: ConsoleContext, connection: Connection, flag_ids: Collection[int]
) -> dict[int, Sequence[MentionedItem]]:
    """Return the items that each flag names, most similar first, by flag id. Texts come from the banks as last read."""
    latest = None if context.banks is None else context.banks.latest
    items = {} if latest is None else latest.items
    return {
        flag_id: [MentionedItem(each, items.get((each.bank, each.item))) for each in mentions]
        for flag_id, mentions in mentions_of(connection, flag_ids).items()
    }


def chosen_item(items: Sequence[MentionedItem], name: str) -> MentionedItem | None:
    """Return the item of this name, else the most similar one, or None without items."""
    return next((each for each in items if each.name == name), items[0] if items else None)
