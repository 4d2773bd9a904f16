"""Repairs of stories, standing decisions, ranks of sources, and the preferred members of stories."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the tables and columns. Rows of flags and reviews do not change."""
    _create_tables()
    _add_reference("flags", "home_id", "stories", "story_id")
    _add_reference("reviews", "standing_id", "standing_decisions", "standing_id")
    op.add_column("stories", sa.Column("preferred_id", _ROW_ID))
    op.add_column("stories", sa.Column("told_copies", sa.Integer(), server_default="0", nullable=False))
    # Existing stories get no events for their current size.
    stories = sa.table("stories", sa.column("copies"), sa.column("told_copies"))
    told = sa.case(*((stories.c.copies >= 10**power, 10**power) for power in range(9, -1, -1)), else_=0)
    op.execute(stories.update().where(stories.c.copies > 0).values(told_copies=told))


def _add_reference(table: str, column: str, other: str, key: str) -> None:
    """Add a column with a foreign key, which SQLite accepts only as part of the column."""
    kind = "INTEGER" if op.get_bind().dialect.name == "sqlite" else "BIGINT"
    constraint = f"CONSTRAINT fk_{table}_{column} REFERENCES {other} ({key})"
    op.execute(f"ALTER TABLE {table} ADD COLUMN {column} {kind} {constraint}")


def _create_tables() -> None:
    op.create_table(
        "source_ranks",
        sa.Column("source_id", _ROW_ID, nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("person_id", _ROW_ID),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("applied_to", _ROW_ID),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], name=op.f("fk_source_ranks_person_id")),
        sa.ForeignKeyConstraint(["source_id"], ["sources.source_id"], name=op.f("fk_source_ranks_source_id")),
        sa.PrimaryKeyConstraint("source_id", name=op.f("pk_source_ranks")),
    )
    op.create_table(
        "story_merges",
        sa.Column("root_id", _ID, nullable=False),
        sa.Column("into_root_id", _ID, nullable=False),
        sa.Column("person_id", _ROW_ID, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], name=op.f("fk_story_merges_person_id")),
        sa.PrimaryKeyConstraint("root_id", name=op.f("pk_story_merges")),
    )
    op.create_index(op.f("ix_story_merges_into_root_id"), "story_merges", ["into_root_id"])
    op.create_table(
        "story_splits",
        sa.Column("article_id", _ID, nullable=False),
        sa.Column("version", _ID, nullable=False),
        sa.Column("from_root_id", _ID, nullable=False),
        sa.Column("person_id", _ROW_ID, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], name=op.f("fk_story_splits_person_id")),
        sa.PrimaryKeyConstraint("article_id", "version", name=op.f("pk_story_splits")),
    )
    op.create_table(
        "standing_decisions",
        sa.Column("standing_id", _ROW_ID, nullable=False),
        sa.Column("decision", sa.String(length=5), nullable=False),
        sa.Column("story_id", _ROW_ID),
        sa.Column("source_id", _ROW_ID),
        sa.Column("original_source_id", _ROW_ID),
        sa.Column("person_id", _ROW_ID, nullable=False),
        sa.Column("reason_id", _ROW_ID),
        sa.Column("note", sa.String(length=2000), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("ends_ms", sa.BigInteger(), nullable=False),
        sa.Column("undone_ms", sa.BigInteger()),
        sa.Column("flags", sa.Integer(), server_default="0", nullable=False),
        sa.CheckConstraint("decision IN ('right', 'wrong')", name=op.f("ck_standing_decisions_decision")),
        sa.ForeignKeyConstraint(
            ["original_source_id"], ["sources.source_id"], name=op.f("fk_standing_decisions_original_source_id")
        ),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], name=op.f("fk_standing_decisions_person_id")),
        sa.ForeignKeyConstraint(["reason_id"], ["reasons.reason_id"], name=op.f("fk_standing_decisions_reason_id")),
        sa.ForeignKeyConstraint(["source_id"], ["sources.source_id"], name=op.f("fk_standing_decisions_source_id")),
        sa.ForeignKeyConstraint(["story_id"], ["stories.story_id"], name=op.f("fk_standing_decisions_story_id")),
        sa.PrimaryKeyConstraint("standing_id", name=op.f("pk_standing_decisions")),
    )
    op.create_index(
        "ix_standing_decisions_sources",
        "standing_decisions",
        ["source_id", "original_source_id"],
        sqlite_where=sa.text("undone_ms IS NULL"),
        postgresql_where=sa.text("undone_ms IS NULL"),
    )
    op.create_index(
        "ix_standing_decisions_story_id",
        "standing_decisions",
        ["story_id"],
        sqlite_where=sa.text("undone_ms IS NULL"),
        postgresql_where=sa.text("undone_ms IS NULL"),
    )
