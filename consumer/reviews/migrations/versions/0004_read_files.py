"""How far event files have been read."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the table. A console that reads topics leaves it empty."""
    op.create_table(
        "read_files",
        sa.Column("path_sha256", sa.String(length=64), nullable=False),
        sa.Column("marks", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("path_sha256", name=op.f("pk_read_files")),
    )
