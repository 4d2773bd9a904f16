"""Copies that people report as missed."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_IN_FORCE = sa.text("undone_ms IS NULL")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "reports",
        sa.Column("report_id", _ROW_ID, nullable=False),
        sa.Column("article_id", _ID, nullable=False),
        sa.Column("version", _ID, nullable=False),
        sa.Column("original_id", _ID, nullable=False),
        sa.Column("original_version", _ID, nullable=False),
        sa.Column("source_id", _ROW_ID, nullable=False),
        sa.Column("original_source_id", _ROW_ID, nullable=False),
        sa.Column("similarity", sa.Double(), nullable=True),
        sa.Column("distance", sa.Integer(), nullable=False),
        sa.Column("arrived_ms", sa.BigInteger(), nullable=False),
        sa.Column("person_id", _ROW_ID, nullable=False),
        sa.Column("note", sa.String(length=2000), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("final_ms", sa.BigInteger(), nullable=False),
        sa.Column("undone_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["source_id"], ["sources.source_id"], name=op.f("fk_reports_source_id")),
        sa.ForeignKeyConstraint(
            ["original_source_id"], ["sources.source_id"], name=op.f("fk_reports_original_source_id")
        ),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], name=op.f("fk_reports_person_id")),
        sa.PrimaryKeyConstraint("report_id", name=op.f("pk_reports")),
    )
    op.create_index(
        "uq_reports_pair",
        "reports",
        ["article_id", "version", "original_id", "original_version"],
        unique=True,
        sqlite_where=_IN_FORCE,
        postgresql_where=_IN_FORCE,
    )
