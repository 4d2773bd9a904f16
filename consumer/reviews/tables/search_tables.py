"""The tables of the index of words."""

from typing import Final

from sqlalchemy import BigInteger, Column, ForeignKey, Integer, LargeBinary, Table

from consumer.reviews.tables.base import METADATA, ROW_ID

SEARCH_WAITING: Final = Table(
    "search_waiting",
    METADATA,
    Column("flag_id", ROW_ID, ForeignKey("flags.flag_id"), primary_key=True),
    Column("due_ms", BigInteger, nullable=False),
    Column("tries", Integer, nullable=False),
)
"""Flags whose words are still to be indexed.

``due_ms`` is 0 for at once, and in the future while a console indexes it, or where the store did not have its text.
``tries`` counts how often the store did not have it.
"""

SEARCH_PARTS: Final = Table(
    "search_parts",
    METADATA,
    Column("part_id", ROW_ID, primary_key=True),
    # Flags that can be found by it, and those that it was made of.
    Column("flags", Integer, nullable=False),
    Column("places", Integer, nullable=False),
    # Their numbers, packed, 0 for a flag that can no longer be found.
    Column("flag_ids", LargeBinary, nullable=False),
    # Until then a console works on it; 0 for none.
    Column("claimed_ms", BigInteger, nullable=False),
    # When it was last compared with flags and store.
    Column("checked_ms", BigInteger, nullable=False),
    # When another part took its place; searches that had begun read it a little longer.
    Column("replaced_ms", BigInteger),
)
"""Parts of the index of words: ``word_index/pages.py`` says how they are packed."""

SEARCH_PAGES: Final = Table(
    "search_pages",
    METADATA,
    Column("part_id", ROW_ID, ForeignKey("search_parts.part_id"), primary_key=True, autoincrement=False),
    Column("first_word", BigInteger, primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False),
)
"""The words of a part, and which of its flags have them. Rows are added and deleted with their part."""
