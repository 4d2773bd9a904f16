"""The tables of events for other systems: the outbox, webhooks, and deliveries to them."""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from consumer.reviews.tables.base import METADATA, NAME, ROW_ID

IS_FOR_SINK: Final = text("is_for_sink")
IS_FAILING: Final = text("failing_since_ms IS NOT NULL")

OUTBOX: Final = Table(
    "outbox",
    METADATA,
    # Assigned in order under ``Lock.FLAGS``. The latest row is kept, so that no number is used twice.
    Column("event_id", ROW_ID, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    # Events of a story are sent in the order of their ids; null for events of no story.
    Column("story_id", ROW_ID),
    Column("at_ms", BigInteger, nullable=False),
    # The event as JSON.
    Column("payload", Text, nullable=False),
    # Whether it must still be sent to the sink.
    Column("is_for_sink", Boolean, nullable=False),
    Index("ix_outbox_for_sink", "event_id", sqlite_where=IS_FOR_SINK, postgresql_where=IS_FOR_SINK),
)
"""Events to be delivered. Rows are written in the transaction of the change, under ``Lock.FLAGS``."""

WEBHOOKS: Final = Table(
    "webhooks",
    METADATA,
    Column("webhook_id", ROW_ID, primary_key=True),
    Column("name", NAME, nullable=False, unique=True),
    Column("url", Text, nullable=False),
    # Kinds of events and names of sources, as JSON lists. An empty list of sources means all.
    Column("kinds", Text, nullable=False),
    Column("sources", Text, nullable=False),
    # Secrets are in plain text, since they sign messages. There are two while receivers change to a new one.
    Column("secret", String(200), nullable=False),
    Column("former_secret", String(200)),
    # When the former secret stops signing messages.
    Column("former_until_ms", BigInteger),
    Column("person_id", ROW_ID, ForeignKey("people.person_id"), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    # When and why it was turned off.
    Column("off_ms", BigInteger),
    Column("off_why", String(500)),
    # The number of events dropped because too many were waiting for the webhook.
    Column("missed", BigInteger, nullable=False, server_default="0"),
    # The last attempt: its time, HTTP status, and error.
    Column("last_ms", BigInteger),
    Column("last_status", Integer),
    Column("last_why", String(500)),
    # After a failure, nothing is sent until then.
    Column("paused_until_ms", BigInteger),
    # Numbers of removed webhooks are not reused, since open pages and running attempts may still have them.
    sqlite_autoincrement=True,
)
"""The receivers of events."""

DELIVERIES: Final = Table(
    "deliveries",
    METADATA,
    Column("delivery_id", ROW_ID, primary_key=True),
    Column("webhook_id", ROW_ID, ForeignKey("webhooks.webhook_id"), nullable=False),
    Column("event_id", ROW_ID, ForeignKey("outbox.event_id"), nullable=False, index=True),
    Column("story_id", ROW_ID),
    # Null while an earlier event of the same story waits for the webhook.
    Column("due_ms", BigInteger),
    # How often it was claimed. A process that finds another number here has lost its claim.
    Column("tries", Integer, nullable=False, server_default="0"),
    # The first failed attempt since the webhook was last turned on; the HTTP status and error of the last one.
    Column("failing_since_ms", BigInteger),
    Column("status", Integer),
    Column("why", String(500)),
    UniqueConstraint("webhook_id", "event_id"),
    Index(None, "webhook_id", "due_ms", "event_id"),
    Index(None, "webhook_id", "story_id", "event_id"),
    Index(
        "ix_deliveries_failing",
        "webhook_id",
        "failing_since_ms",
        sqlite_where=IS_FAILING,
        postgresql_where=IS_FAILING,
    ),
)
"""Events to be delivered to webhooks. A row is deleted once the webhook has accepted the event.

It is also deleted if the event is dropped, or the webhook is removed.
"""

LEASES: Final = Table(
    "leases",
    METADATA,
    Column("name", String(16), primary_key=True),
    Column("holder", String(64), nullable=False),
    Column("until_ms", BigInteger, nullable=False),
)
"""Leases for work that only one of several consoles does: who holds each lease, and when it ends unless renewed."""
