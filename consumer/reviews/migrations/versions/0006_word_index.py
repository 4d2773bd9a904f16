"""The word index. It starts empty; a console fills it in the background."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the tables. No flags are read, so this takes no longer with many flags."""
    op.create_table(
        "search_waiting",
        sa.Column("flag_id", _ROW_ID, nullable=False),
        sa.Column("due_ms", sa.BigInteger(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["flag_id"], ["flags.flag_id"], name=op.f("fk_search_waiting_flag_id")),
        sa.PrimaryKeyConstraint("flag_id", name=op.f("pk_search_waiting")),
    )
    op.create_table(
        "search_parts",
        sa.Column("part_id", _ROW_ID, nullable=False),
        sa.Column("flags", sa.Integer(), nullable=False),
        sa.Column("places", sa.Integer(), nullable=False),
        sa.Column("flag_ids", sa.LargeBinary(), nullable=False),
        sa.Column("claimed_ms", sa.BigInteger(), nullable=False),
        sa.Column("checked_ms", sa.BigInteger(), nullable=False),
        sa.Column("replaced_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("part_id", name=op.f("pk_search_parts")),
    )
    op.create_table(
        "search_pages",
        sa.Column("part_id", _ROW_ID, autoincrement=False, nullable=False),
        sa.Column("first_word", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["part_id"], ["search_parts.part_id"], name=op.f("fk_search_pages_part_id")),
        sa.PrimaryKeyConstraint("part_id", "first_word", name=op.f("pk_search_pages")),
    )
    if op.get_bind().dialect.name == "postgresql":
        # The pages are already compressed, so PostgreSQL need not try.
        op.execute("ALTER TABLE search_pages ALTER COLUMN content SET STORAGE EXTERNAL")
