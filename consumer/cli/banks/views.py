"""How banks and their items are shown."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from consumer.banks.bank import Bank, BankItem, Banks
from consumer.cli.render import plain, table
from consumer.text.visible import cut

_TEXT_CHARS: int = 60


def bank_fields(bank: Bank, items: int) -> dict[str, object]:
    """Return a bank, and how many items it has."""
    return {
        "bank": bank.bank,
        "action": bank.action,
        "items": items,
        "enabled": bank.enabled,
        "similarity": bank.item_similarity,
        "labels": bank.labels,
        "note": bank.note,
        "by": bank.by,
        "at": bank.at,
    }


def bank_table(banks: Banks) -> Table:
    """Return all banks, a row for each."""
    counts = banks.item_counts()
    columns = [
        Column("bank", overflow="fold"),
        Column("action", no_wrap=True),
        Column("items", justify="right", no_wrap=True),
        Column("similarity", justify="right", no_wrap=True),
        Column("state", no_wrap=True),
        Column("labels", overflow="fold"),
        Column("note", overflow="fold"),
    ]
    return table(
        columns,
        (
            (
                bank.bank,
                bank.action or "",
                f"{counts[bank.bank]:,}",
                f"{bank.item_similarity:g}",
                _state(bank),
                plain(" ".join(bank.labels)),
                plain(bank.note),
            )
            for bank in banks.banks.values()
        ),
    )


def item_table(items: Sequence[BankItem]) -> Table:
    """Return items, a row for each, with the beginning of the text."""
    columns = [
        Column("item", overflow="fold"),
        Column("title", overflow="fold"),
        Column("text", overflow="fold"),
        Column("state", no_wrap=True),
        Column("until", no_wrap=True),
        Column("by", overflow="fold"),
    ]
    return table(
        columns,
        (
            (
                item.item,
                plain(item.title),
                plain(cut(item.text, _TEXT_CHARS)),
                _state(item),
                item.until or "",
                plain(item.by),
            )
            for item in items
        ),
    )


def item_view(item: BankItem) -> RenderableType:
    """Return all of an item."""
    head = {
        "bank": item.bank,
        "title": item.title,
        "state": _state(item),
        "until": item.until or "",
        "similarity": "" if item.similarity is None else f"{item.similarity:g}",
        "language": item.lang,
        "labels": " ".join(item.labels),
        "note": item.note,
        "article": item.article or "",
        "by": item.by,
        "at": item.at or "",
    }
    lines = (Text.assemble((f"{name}: ", "dim"), plain(value)) for name, value in head.items() if value)
    return Group(Text(item.item, "bold"), *lines, Text(), plain(item.text))


def _state(entry: Bank | BankItem) -> str:
    state = "enabled" if entry.enabled else "disabled"
    return f"{state}, confirmed" if isinstance(entry, BankItem) and entry.confirmed else state
