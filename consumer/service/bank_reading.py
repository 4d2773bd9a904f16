"""Banks and their items as JSON, for clients."""

from heapq import nsmallest
from typing import Final

import msgspec

from consumer.banks.bank import Bank, BankItem, Banks
from consumer.service.bank_messages import BankList, BankPage, BankSummary, ItemSummary
from consumer.service.problems import UNKNOWN_BANK, UNKNOWN_ITEM
from consumer.web.problems import ProblemError

PAGE_CHARS_MAX: Final = 4_000_000
"""A page with texts stops before exceeding this many characters, but has at least one item if any is left."""


def bank_list(banks: Banks) -> bytes:
    """Return all banks, as JSON."""
    counts = banks.item_counts()
    by_name = sorted(banks.banks.values(), key=lambda bank: bank.bank)
    return msgspec.json.encode(BankList(tuple(bank_summary(bank, counts[bank.bank]) for bank in by_name)))


def bank_page(banks: Banks, name: str, limit: int, after: str, *, texts: bool) -> bytes:
    """Return a bank and up to ``limit`` of its items with ids after ``after``, as JSON.

    Raises ``ProblemError`` if there is no such bank.
    """
    bank = known_bank(banks, name)
    ids = [item for bank_name, item in banks.items if bank_name == name]
    # One more than the limit, to know whether there is another page.
    page_ids = nsmallest(limit + 1, (item for item in ids if item > after))
    shown: list[BankItem] = []
    chars = 0
    for item in (banks.items[name, each] for each in page_ids[:limit]):
        chars += len(item.text) if texts else 0
        if shown and chars > PAGE_CHARS_MAX:
            break
        shown.append(item)
    is_last = len(shown) == len(page_ids)
    return msgspec.json.encode(
        BankPage(
            bank_summary(bank, len(ids)),
            tuple(item_summary(item, with_text=texts) for item in shown),
            None if is_last else shown[-1].item,
        )
    )


def bank_item(banks: Banks, name: str, item: str) -> bytes:
    """Return an item with its text, as JSON. Raises ``ProblemError`` if there is no such bank or item."""
    return msgspec.json.encode(item_summary(known_item(banks, name, item), with_text=True))


def known_bank(banks: Banks, name: str) -> Bank:
    """Return a bank. Raises ``ProblemError`` if there is no such bank."""
    bank = banks.banks.get(name)
    if bank is None:
        raise ProblemError(UNKNOWN_BANK, f"There is no bank {name!r}. GET /v1/banks lists all banks.")
    return bank


def known_item(banks: Banks, name: str, item: str) -> BankItem:
    """Return an item of a bank. Raises ``ProblemError`` if there is no such bank or item."""
    known_bank(banks, name)
    bank_item = banks.items.get((name, item))
    if bank_item is None:
        raise ProblemError(
            UNKNOWN_ITEM, f"There is no item {item!r} in the bank {name!r}. GET /v1/banks/{name} lists all items."
        )
    return bank_item


def bank_summary(bank: Bank, items: int) -> BankSummary:
    """Return the summary of a bank with this number of items."""
    assert bank.action is not None  # noqa: S101  # only a removal has none
    return BankSummary(
        bank=bank.bank,
        action=bank.action,
        items=items,
        enabled=bank.enabled,
        similarity=bank.item_similarity,
        labels=bank.labels,
        note=bank.note,
        by=bank.by,
        at=bank.at,
    )


def item_summary(item: BankItem, *, with_text: bool = False) -> ItemSummary:
    """Return the summary of an item."""
    return ItemSummary(
        bank=item.bank,
        item=item.item,
        title=item.title,
        lang=item.lang,
        labels=item.labels,
        note=item.note,
        article=item.article,
        until=item.until,
        similarity=item.similarity,
        enabled=item.enabled,
        confirmed=item.confirmed,
        by=item.by,
        at=item.at,
        text=item.text if with_text else msgspec.UNSET,
    )
