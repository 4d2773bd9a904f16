"""Reasons that people choose from when they decide *wrong*."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create an empty list, and a column for the reason of a decision."""
    op.create_table(
        "reasons",
        sa.Column("reason_id", _ROW_ID, nullable=False),
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("retired_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("reason_id", name=op.f("pk_reasons")),
        sa.UniqueConstraint("name", name=op.f("uq_reasons_name")),
    )
    # On SQLite, Alembic would copy the table, although SQLite can add a column together with its foreign key.
    type_of_id = "INTEGER" if op.get_bind().dialect.name == "sqlite" else "BIGINT"
    foreign_key = f"CONSTRAINT {op.f('fk_reviews_reason_id')} REFERENCES reasons (reason_id)"
    op.execute(f"ALTER TABLE reviews ADD COLUMN reason_id {type_of_id} {foreign_key}")
