"""Stores and reads the bank items that queue entries name."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from sqlalchemy import Connection, func, select, update

from consumer.model.verdict import BankMention
from consumer.reviews.portable import dialect_insert, is_storable, portions
from consumer.reviews.tables import BANK_MENTIONS, FLAGS

NAME_CHARS_MAX: Final = 64
"""The maximum length of the name of a bank or an item."""


class Mention(NamedTuple):
    """An item that an article repeats, and in what form.

    ``similarity`` is from 0 to 1. For a part, it is the share of the item that the article contains.
    """

    bank: str
    item: str
    form: Literal["equal", "similar", "part"]
    similarity: float


def denying_items(mentions: Sequence[BankMention]) -> dict[tuple[str, str], Mention]:
    """Return the mentioned items of deny banks, by bank and item. Items with invalid names are left out."""
    found: dict[tuple[str, str], Mention] = {}
    for mention in mentions:
        if mention.action == "deny" and _is_name(mention.bank) and _is_name(mention.item):
            found.setdefault(
                (mention.bank, mention.item), Mention(mention.bank, mention.item, mention.form, mention.similarity)
            )
    return found


def add_mentions(connection: Connection, mentions: Mapping[int, Collection[Mention]]) -> set[tuple[int, str, str]]:
    """Store the items that each flag names, and return the new ones as (flag id, bank, item)."""
    key = (BANK_MENTIONS.c.flag_id, BANK_MENTIONS.c.bank, BANK_MENTIONS.c.item)
    statement = dialect_insert(connection, BANK_MENTIONS).on_conflict_do_nothing().returning(*key)
    rows = [{"flag_id": flag_id, **mention._asdict()} for flag_id, named in mentions.items() for mention in named]
    new: set[tuple[int, str, str]] = set()
    for portion in portions(rows):
        new.update((flag_id, bank, item) for flag_id, bank, item in connection.execute(statement, portion))
    return new


def update_similarities(connection: Connection, flag_ids: Collection[int]) -> None:
    """Set the similarity and certainty of each flag to the similarity of the most similar item that it names."""
    of_flag = BANK_MENTIONS.c.flag_id == FLAGS.c.flag_id
    most = select(func.max(BANK_MENTIONS.c.similarity)).where(of_flag).scalar_subquery()
    for portion in portions(flag_ids):
        connection.execute(update(FLAGS).where(FLAGS.c.flag_id.in_(portion)).values(similarity=most, certainty=most))


def mentions_of(connection: Connection, flag_ids: Collection[int]) -> dict[int, list[Mention]]:
    """Return the items that each flag names, the most similar first. Flags that name no items are left out."""
    found: dict[int, list[Mention]] = {}
    order = (BANK_MENTIONS.c.similarity.desc(), BANK_MENTIONS.c.bank, BANK_MENTIONS.c.item)
    for portion in portions(flag_ids):
        query = select(BANK_MENTIONS).where(BANK_MENTIONS.c.flag_id.in_(portion)).order_by(*order)
        for flag_id, *mention in connection.execute(query):
            found.setdefault(flag_id, []).append(Mention(*mention))
    return found


def _is_name(text: str) -> bool:
    return 0 < len(text) <= NAME_CHARS_MAX and is_storable(text)
