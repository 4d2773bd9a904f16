"""A random name that distinguishes this database from others."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_BYTES = 8


def upgrade() -> None:
    """Create a random name, which remains the same when the database is moved."""
    table = op.create_table(
        "identity",
        sa.Column("name", sa.String(length=16), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_identity")),
    )
    op.bulk_insert(table, [{"name": secrets.token_hex(_BYTES)}])
