"""The stored articles that repeat an item, as clients get them."""

from typing import Final, Literal, cast

import msgspec

from consumer.banks.bank import Banks, ItemKey
from consumer.judge.events import version_name
from consumer.service.bank_messages import ItemArticle, ItemArticles
from consumer.service.bank_reading import known_item
from consumer.service.context import LoadedService
from consumer.store_tools.bank_matches import BankLookUp, ComparableStore, StoredMatch
from consumer.text.timestamps import rfc3339

ARTICLES_MAX: Final = 100
"""The maximum number of articles in an answer."""


def one_item(banks: Banks, name: str, item: str) -> Banks:
    """Return banks with only this item. Raises ``ProblemError`` if there is no such bank or item."""
    known_item(banks, name, item)
    return banks.only(name, item)


def item_articles(service: LoadedService, banks: Banks, key: ItemKey) -> bytes:
    """Return the articles that repeat the only item of these banks, as JSON. Raises the store's errors."""
    store = ComparableStore(service.store, service.settings, service.builder, service.engine)
    found = BankLookUp(store, service.clock).find(banks, ARTICLES_MAX)
    return msgspec.json.encode(
        ItemArticles(
            bank=key[0],
            item=key[1],
            articles=tuple(map(_article, found.found)),
            truncated=found.truncated,
            parts=found.parts,
            without_text=found.without_text,
        )
    )


def _article(found: StoredMatch) -> ItemArticle:
    record, match = found.stored.record, found.matches[0]
    return ItemArticle(
        id=record.id,
        version=version_name(record.reference),
        title=record.title,
        source=record.source,
        url=record.url,
        arrived_at=rfc3339(record.time_ms),
        form=cast("Literal['equal', 'similar', 'part']", match.form),
        similarity=match.similarity,
    )
