"""Searches the items of a bank, newest first, a page at a time."""

from typing import Final, NamedTuple

from consumer.banks.bank import BankItem, Banks

SEARCHED_CHARS_MAX: Final = 20_000_000
"""The number of characters after which the search of a page ends. The next page continues it."""
_BETWEEN: Final = "~"
"""The separator of time and id in a cursor; neither contains it."""


class ItemPage(NamedTuple):
    """Some items, and the cursor of the next page; None on the last page.

    ``is_partial``: the search for this page reached its limit, and continues on the next page.
    """

    items: tuple[BankItem, ...]
    after: str | None
    is_partial: bool = False


def item_page(banks: Banks, bank: str, piece: str, after: str, rows_max: int) -> ItemPage:
    """Return up to ``rows_max`` items whose id, title, labels or text contain ``piece``, ignoring case.

    The page begins after the cursor ``after``, or with the newest item if the cursor is "". Any text is a valid cursor.
    """
    keys = sorted(((item.at or "", item.item) for item in banks.items.values() if item.bank == bank), reverse=True)
    if after:
        at, _, name = after.partition(_BETWEEN)
        keys = [key for key in keys if key < (at, name)]
    needle = piece.casefold()
    found: list[BankItem] = []
    chars, last = 0, ""
    for _, name in keys:
        if chars >= SEARCHED_CHARS_MAX:
            return ItemPage(tuple(found), last, is_partial=True)
        item = banks.items[bank, name]
        if needle:
            chars += len(item.text)
        if _contains(item, needle):
            if len(found) == rows_max:
                return ItemPage(tuple(found), _cursor(found[-1]))
            found.append(item)
        last = _cursor(item)
    return ItemPage(tuple(found), None)


def _cursor(item: BankItem) -> str:
    return f"{item.at or ''}{_BETWEEN}{item.item}"


def _contains(item: BankItem, needle: str) -> bool:
    return not needle or any(needle in text.casefold() for text in (item.item, item.title, *item.labels, item.text))
