"""Finds the items of a bank: the newest first, those with a piece of text, a page at a time."""

from typing import Final, NamedTuple

from consumer.banks.bank import BankItem, Banks

SEARCHED_CHARS_MAX: Final = 20_000_000
"""Characters that one page searches; the next page goes on from there."""
_BETWEEN: Final = "~"
"""Neither a time nor an id has it."""


class ItemPage(NamedTuple):
    """Some items, and where the next page begins; None where there is none.

    ``is_partial``: so much was searched for this page that the rest has to wait for the next one.
    """

    items: tuple[BankItem, ...]
    after: str | None
    is_partial: bool = False


def item_page(banks: Banks, bank: str, piece: str, after: str, rows_max: int) -> ItemPage:
    """Return up to ``rows_max`` items that have a piece of text in their id, title, labels or text, in capitals or not.

    The page begins behind the place ``after``, or with the newest item; any other text is a place too.
    """
    keys = sorted(((item.at or "", item.item) for item in banks.items.values() if item.bank == bank), reverse=True)
    if after:
        at, _, name = after.partition(_BETWEEN)
        keys = [key for key in keys if key < (at, name)]
    wanted = piece.casefold()
    found: list[BankItem] = []
    chars, last = 0, ""
    for _, name in keys:
        if chars >= SEARCHED_CHARS_MAX:
            return ItemPage(tuple(found), last, is_partial=True)
        item = banks.items[bank, name]
        if wanted:
            chars += len(item.text)
        if _has(item, wanted):
            if len(found) == rows_max:
                return ItemPage(tuple(found), _place(found[-1]))
            found.append(item)
        last = _place(item)
    return ItemPage(tuple(found), None)


def _place(item: BankItem) -> str:
    return f"{item.at or ''}{_BETWEEN}{item.item}"


def _has(item: BankItem, wanted: str) -> bool:
    return not wanted or any(wanted in text.casefold() for text in (item.item, item.title, *item.labels, item.text))
