"""The tables for moderators' repairs of stories, for standing decisions, and for the ranks of sources.

Repairs name articles by id, not by row. So they also apply to flags that arrive later, and after a ``--rebuild``.
"""

from typing import Final

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Index, Integer, String, Table, text

from consumer.reviews.tables.base import ID, METADATA, ROW_ID

STORY_SPLITS: Final = Table(
    "story_splits",
    METADATA,
    Column("article_id", ID, primary_key=True),
    Column("version", ID, primary_key=True),
    # The root of its former story. If its original has no flag, nothing else names that story.
    Column("from_root_id", ID, nullable=False),
    Column("person_id", ROW_ID, ForeignKey("people.person_id"), nullable=False),
    Column("at_ms", BigInteger, nullable=False),
)
"""Flagged versions that were split off their stories. Each is the root of its own copies."""

STORY_MERGES: Final = Table(
    "story_merges",
    METADATA,
    Column("root_id", ID, primary_key=True),
    Column("into_root_id", ID, nullable=False, index=True),
    Column("person_id", ROW_ID, ForeignKey("people.person_id"), nullable=False),
    Column("at_ms", BigInteger, nullable=False),
)
"""Stories, by root, that are merged into other stories, which may themselves be merged."""

NOT_UNDONE: Final = text("undone_ms IS NULL")

STANDING_DECISIONS: Final = Table(
    "standing_decisions",
    METADATA,
    Column("standing_id", ROW_ID, primary_key=True),
    Column("decision", String(5), nullable=False),
    # Either a story, or a pair of sources.
    Column("story_id", ROW_ID, ForeignKey("stories.story_id")),
    Column("source_id", ROW_ID, ForeignKey("sources.source_id")),
    Column("original_source_id", ROW_ID, ForeignKey("sources.source_id")),
    Column("person_id", ROW_ID, ForeignKey("people.person_id"), nullable=False),
    Column("reason_id", ROW_ID, ForeignKey("reasons.reason_id")),
    Column("note", String(2_000), nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("ends_ms", BigInteger, nullable=False),
    Column("undone_ms", BigInteger),
    # The number of flags that it has decided.
    Column("flags", Integer, nullable=False, server_default="0"),
    CheckConstraint("decision IN ('right', 'wrong')", name="decision"),
    Index("ix_standing_decisions_story_id", "story_id", sqlite_where=NOT_UNDONE, postgresql_where=NOT_UNDONE),
    Index(
        "ix_standing_decisions_sources",
        "source_id",
        "original_source_id",
        sqlite_where=NOT_UNDONE,
        postgresql_where=NOT_UNDONE,
    ),
)
"""Decisions about future flags: of a story, or of a source that repeats another one."""

SOURCE_RANKS: Final = Table(
    "source_ranks",
    METADATA,
    Column("source_id", ROW_ID, ForeignKey("sources.source_id"), primary_key=True),
    Column("rank", Integer, nullable=False),
    # Null for a configured rank.
    Column("person_id", ROW_ID, ForeignKey("people.person_id")),
    Column("at_ms", BigInteger, nullable=False),
    # The number of the last story to which the rank has been applied; null once it has been applied to all.
    Column("applied_to", ROW_ID),
)
"""The ranks in effect: the rank set on the sources page, or else the configured rank.

A row with rank 0 that nobody has set marks a removed rank. It is deleted once all stories have been updated.
"""
