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

FOR_SINK: Final = text("is_for_sink")
IS_FAILING: Final = text("failing_since_ms IS NOT NULL")

OUTBOX: Final = Table(
    "outbox",
    METADATA,
    # Given out in order under ``Lock.FLAGS``; the latest row stays, so none comes twice.
    Column("event_id", ROW_ID, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    # Events of a story are sent in the order of their ids; null for an event of none.
    Column("story_id", ROW_ID),
    Column("at_ms", BigInteger, nullable=False),
    # The event as JSON.
    Column("payload", Text, nullable=False),
    # Whether the sink is still to get it.
    Column("is_for_sink", Boolean, nullable=False),
    Index("ix_outbox_for_sink", "event_id", sqlite_where=FOR_SINK, postgresql_where=FOR_SINK),
)
"""Events that somebody is still to get. Rows are written in the transaction of the change, under ``Lock.FLAGS``."""

WEBHOOKS: Final = Table(
    "webhooks",
    METADATA,
    Column("webhook_id", ROW_ID, primary_key=True),
    Column("name", NAME, nullable=False, unique=True),
    Column("url", Text, nullable=False),
    # Kinds of events, and names of sources, as JSON lists; all sources where the list is empty.
    Column("kinds", Text, nullable=False),
    Column("sources", Text, nullable=False),
    # In the clear: they sign. Two while receivers change to a new one.
    Column("secret", String(200), nullable=False),
    Column("former_secret", String(200)),
    # When the former one is no longer used.
    Column("former_until_ms", BigInteger),
    Column("person_id", ROW_ID, ForeignKey("people.person_id"), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    # Since when, and why, nothing is sent.
    Column("off_ms", BigInteger),
    Column("off_why", String(500)),
    # Events that were not kept for it, because the outbox was full.
    Column("missed", BigInteger, nullable=False, server_default="0"),
    # The last attempt: when, the status of HTTP, and why it failed.
    Column("last_ms", BigInteger),
    Column("last_status", Integer),
    Column("last_why", String(500)),
    # After a failure: nothing is sent before, whatever is due.
    Column("paused_until_ms", BigInteger),
    # The number of a webhook that was removed is not that of another one, for pages and attempts that still have it.
    sqlite_autoincrement=True,
)
"""Addresses that get events."""

DELIVERIES: Final = Table(
    "deliveries",
    METADATA,
    Column("delivery_id", ROW_ID, primary_key=True),
    Column("webhook_id", ROW_ID, ForeignKey("webhooks.webhook_id"), nullable=False),
    Column("event_id", ROW_ID, ForeignKey("outbox.event_id"), nullable=False, index=True),
    Column("story_id", ROW_ID),
    # Null while an earlier event of its story waits for the webhook: then it is not looked at.
    Column("due_ms", BigInteger),
    # How often it was claimed; a process whose claim has run out finds another number here.
    Column("tries", Integer, nullable=False, server_default="0"),
    # Of the first attempt that failed, and what the last one got: a status of HTTP, or none and why.
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
"""Events that a webhook is still to get. A row is deleted once it was accepted."""

LEASES: Final = Table(
    "leases",
    METADATA,
    Column("name", String(16), primary_key=True),
    Column("holder", String(64), nullable=False),
    Column("until_ms", BigInteger, nullable=False),
)
"""Work that one of several consoles does, which one that is, and until when, unless it says so again."""
