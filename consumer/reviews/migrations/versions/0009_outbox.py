"""The outbox of events for other systems, webhooks, their deliveries, and leases for sending."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_NAME = sa.String(length=200).with_variant(sa.String(length=200, collation="C"), "postgresql")


def upgrade() -> None:
    """Create the tables."""
    _create_outbox()
    _create_webhooks()
    _create_deliveries()


def _create_outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("event_id", _ROW_ID, autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("story_id", _ROW_ID),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("is_for_sink", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("event_id", name=op.f("pk_outbox")),
    )
    op.create_index(
        "ix_outbox_for_sink",
        "outbox",
        ["event_id"],
        sqlite_where=sa.text("is_for_sink"),
        postgresql_where=sa.text("is_for_sink"),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.String(length=16), nullable=False),
        sa.Column("holder", sa.String(length=64), nullable=False),
        sa.Column("until_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )


def _create_webhooks() -> None:
    op.create_table(
        "webhooks",
        sa.Column("webhook_id", _ROW_ID, nullable=False),
        sa.Column("name", _NAME, nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("kinds", sa.Text(), nullable=False),
        sa.Column("sources", sa.Text(), nullable=False),
        sa.Column("secret", sa.String(length=200), nullable=False),
        sa.Column("former_secret", sa.String(length=200)),
        sa.Column("former_until_ms", sa.BigInteger()),
        sa.Column("person_id", _ROW_ID, nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("off_ms", sa.BigInteger()),
        sa.Column("off_why", sa.String(length=500)),
        sa.Column("missed", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_ms", sa.BigInteger()),
        sa.Column("last_status", sa.Integer()),
        sa.Column("last_why", sa.String(length=500)),
        sa.Column("paused_until_ms", sa.BigInteger()),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], name=op.f("fk_webhooks_person_id")),
        sa.PrimaryKeyConstraint("webhook_id", name=op.f("pk_webhooks")),
        sa.UniqueConstraint("name", name=op.f("uq_webhooks_name")),
        sqlite_autoincrement=True,
    )


def _create_deliveries() -> None:
    op.create_table(
        "deliveries",
        sa.Column("delivery_id", _ROW_ID, nullable=False),
        sa.Column("webhook_id", _ROW_ID, nullable=False),
        sa.Column("event_id", _ROW_ID, nullable=False),
        sa.Column("story_id", _ROW_ID),
        sa.Column("due_ms", sa.BigInteger()),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("failing_since_ms", sa.BigInteger()),
        sa.Column("status", sa.Integer()),
        sa.Column("why", sa.String(length=500)),
        sa.ForeignKeyConstraint(["event_id"], ["outbox.event_id"], name=op.f("fk_deliveries_event_id")),
        sa.ForeignKeyConstraint(["webhook_id"], ["webhooks.webhook_id"], name=op.f("fk_deliveries_webhook_id")),
        sa.PrimaryKeyConstraint("delivery_id", name=op.f("pk_deliveries")),
        sa.UniqueConstraint("webhook_id", "event_id", name=op.f("uq_deliveries_webhook_id_event_id")),
    )
    op.create_index(op.f("ix_deliveries_event_id"), "deliveries", ["event_id"])
    op.create_index(
        op.f("ix_deliveries_webhook_id_due_ms_event_id"), "deliveries", ["webhook_id", "due_ms", "event_id"]
    )
    op.create_index(
        op.f("ix_deliveries_webhook_id_story_id_event_id"), "deliveries", ["webhook_id", "story_id", "event_id"]
    )
    op.create_index(
        "ix_deliveries_failing",
        "deliveries",
        ["webhook_id", "failing_since_ms"],
        sqlite_where=sa.text("failing_since_ms IS NOT NULL"),
        postgresql_where=sa.text("failing_since_ms IS NOT NULL"),
    )
