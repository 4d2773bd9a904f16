"""The tables of the word index."""

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
"""Flags whose words must still be indexed.

``due_ms`` is 0 for immediately. It is in the future while a console indexes the flag, and after the store did not have
its text. ``tries`` counts how often the store did not have it.
"""

SEARCH_PARTS: Final = Table(
    "search_parts",
    METADATA,
    Column("part_id", ROW_ID, primary_key=True),
    # The number of flags that it finds, and the number it was built from.
    Column("flags", Integer, nullable=False),
    Column("places", Integer, nullable=False),
    # The ids of its flags, packed; 0 for a removed flag.
    Column("flag_ids", LargeBinary, nullable=False),
    # When the claim of a console ends; 0 if none has claimed it.
    Column("claimed_ms", BigInteger, nullable=False),
    # When it was last compared with the flags and the store.
    Column("checked_ms", BigInteger, nullable=False),
    # When another part replaced it. Searches that had already begun read it a little longer.
    Column("replaced_ms", BigInteger),
)
"""Parts of the word index. ``word_index/pages.py`` explains the format."""

SEARCH_PAGES: Final = Table(
    "search_pages",
    METADATA,
    Column("part_id", ROW_ID, ForeignKey("search_parts.part_id"), primary_key=True, autoincrement=False),
    Column("first_word", BigInteger, primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False),
)
"""The words of a part, and the flags that have them. Rows are added and deleted with their part."""
