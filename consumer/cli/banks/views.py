"""Tables and fields of banks and their items."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from consumer.banks.bank import Bank, BankItem, Banks
from consumer.banks.changes import state_of
from consumer.cli.render import number_columns, plain, table
from consumer.judge.events import mentions_of, version_name
from consumer.model.verdict import outcome_of
from consumer.store_tools.bank_matches import StoredMatch
from consumer.text.timestamps import rfc3339
from consumer.text.visible import cut

_TEXT_CHARS_MAX: Final = 60
_ITEM_CHARS_MIN: Final = 16
"""The minimum width of the column of items. On a narrow terminal, other columns wrap first."""


def bank_fields(bank: Bank, items: int) -> dict[str, object]:
    """Return the fields of a bank, with its number of items."""
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
    """Return a table of all banks."""
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
                state_of(bank),
                plain(" ".join(bank.labels)),
                plain(bank.note),
            )
            for bank in banks.banks.values()
        ),
    )


def item_table(items: Sequence[BankItem]) -> Table:
    """Return a table of items, with the beginning of each text."""
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
                plain(cut(item.text, _TEXT_CHARS_MAX)),
                state_of(item),
                item.until or "",
                plain(item.by),
            )
            for item in items
        ),
    )


def item_view(item: BankItem) -> RenderableType:
    """Return an item with its whole text."""
    head = {
        "bank": item.bank,
        "title": item.title,
        "state": state_of(item),
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


def match_fields(match: StoredMatch) -> dict[str, object]:
    """Return the fields of a stored article, with the items that it repeats."""
    stored = match.stored
    return {
        "id": stored.record.id,
        "version": version_name(stored.record.reference),
        "title": stored.record.title,
        "arrived_at": rfc3339(stored.record.time_ms),
        "outcome": None if stored.verdict is None else outcome_of(stored.verdict),
        "in_force": stored.ends_at is None,
        "banks": msgspec.to_builtins(mentions_of(match.matches)),
    }


def match_table(found: Sequence[StoredMatch], members: Mapping[bytes, int] | None) -> Table:
    """Return a table of articles. ``members`` has the number of flagged articles that repeat each, or is None."""
    columns = [
        Column("article", overflow="fold"),
        Column("title", overflow="fold"),
        Column("arrived", no_wrap=True),
        Column("item", overflow="fold", min_width=_ITEM_CHARS_MIN),
        Column("form", no_wrap=True),
        Column("similarity", justify="right", no_wrap=True),
        *([] if members is None else number_columns("flagged copies")),
    ]
    return table(columns, (_match_row(match, members) for match in found))


def _match_row(match: StoredMatch, members: Mapping[bytes, int] | None) -> Sequence[str]:
    record = match.stored.record
    copies = () if members is None else (f"{members[record.reference]:,}",)
    return (
        plain(record.id),
        plain(cut(record.title, _TEXT_CHARS_MAX)),
        rfc3339(record.time_ms),
        "\n".join(f"{each.bank}/{each.item}" for each in match.matches),
        "\n".join(each.form for each in match.matches),
        "\n".join(f"{each.similarity:.2f}" for each in match.matches),
        *copies,
    )
