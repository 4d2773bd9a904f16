"""The tables of the console's database.

Times are milliseconds since 1970. Texts of articles are not here: pages read them from the store when somebody looks.
A change here needs a migration in ``migrations/versions``; a test compares both.
"""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

METADATA: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows by itself only where the type is INTEGER.
_ROW_ID: Final = BigInteger().with_variant(Integer, "sqlite")

STORIES: Final = Table(
    "stories",
    METADATA,
    Column("story_id", _ROW_ID, primary_key=True),
    # The kept article that the chain of duplicates goes back to, as far as known.
    Column("root_id", Text, nullable=False, unique=True),
    Column("root_source", Text, nullable=False, server_default=""),
    Column("copies", Integer, nullable=False),
    Column("open_copies", Integer, nullable=False),
    Column("first_ms", BigInteger, nullable=False),
    Column("last_ms", BigInteger, nullable=False),
    Index(None, "copies", "story_id"),
    Index(None, "last_ms", "story_id"),
)
"""One row for each original that has copies; ``copies`` counts its flags, ``open_copies`` those not decided yet."""

FLAGS: Final = Table(
    "flags",
    METADATA,
    Column("flag_id", _ROW_ID, primary_key=True),
    # A near miss is a sampled pair just under the threshold, which was not flagged.
    Column("kind", String(9), nullable=False),
    Column("article_id", Text, nullable=False),
    Column("version", String(32), nullable=False),
    Column("original_id", Text, nullable=False),
    Column("original_version", String(32), nullable=False),
    Column("story_id", _ROW_ID, ForeignKey("stories.story_id"), nullable=False),
    # Null until they were read from the store, empty where the article names none.
    Column("source", Text),
    Column("original_source", Text),
    # Null where nothing was verified.
    Column("similarity", Float),
    Column("distance", Integer),
    # What the queue is sorted by: how sure the judge can be, 0 to 1.
    Column("certainty", Float, nullable=False),
    # One in so many pairs of this kind was sent; 1 for flags.
    Column("sampled_in", Float, nullable=False, server_default="1"),
    Column("truncated", Boolean, nullable=False),
    Column("arrived_ms", BigInteger, nullable=False),
    Column("decided_ms", BigInteger, nullable=False),
    Column("state", String(8), nullable=False),
    UniqueConstraint("article_id", "version", "kind"),
    CheckConstraint("kind IN ('flag', 'near_miss')", name="kind"),
    CheckConstraint("state IN ('open', 'skipped', 'right', 'wrong', 'released')", name="state"),
    Index(None, "state", "certainty", "flag_id"),
    Index(None, "state", "arrived_ms", "flag_id"),
    Index(None, "state", "source", "certainty", "flag_id"),
    Index(None, "story_id", "arrived_ms", "flag_id"),
)
"""Flags and near misses.

A flag is ``wrong`` where a person of the console says so, its release being due or sent, and ``released`` where it was
released elsewhere.
"""

PEOPLE: Final = Table(
    "people",
    METADATA,
    Column("person_id", _ROW_ID, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    # Argon2; null for people whom a proxy signs in.
    Column("password_hash", String(200)),
    Column("role", String(8), nullable=False),
    Column("language", String(2)),
    Column("created_ms", BigInteger, nullable=False),
    Column("disabled_ms", BigInteger),
    CheckConstraint("role IN ('reviewer', 'admin')", name="role"),
)

SESSIONS: Final = Table(
    "sessions",
    METADATA,
    # SHA-256 of what the cookie holds, in hex.
    Column("token_hash", String(64), primary_key=True),
    Column("person_id", _ROW_ID, ForeignKey("people.person_id"), nullable=False, index=True),
    Column("created_ms", BigInteger, nullable=False),
    Column("seen_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False, index=True),
)

SIGN_IN_FAILURES: Final = Table(
    "sign_in_failures",
    METADATA,
    # A name or an address, with a prefix that says which.
    Column("subject", String(300), primary_key=True),
    Column("failures", Integer, nullable=False),
    Column("last_ms", BigInteger, nullable=False),
)

REVIEWS: Final = Table(
    "reviews",
    METADATA,
    Column("review_id", _ROW_ID, primary_key=True),
    Column("flag_id", _ROW_ID, ForeignKey("flags.flag_id"), nullable=False, index=True),
    Column("person_id", _ROW_ID, ForeignKey("people.person_id"), nullable=False),
    Column("decision", String(5), nullable=False),
    Column("note", String(2_000), nullable=False, server_default=""),
    Column("at_ms", BigInteger, nullable=False, index=True),
    # Until then it can be undone; after that a release is sent if the decision is wrong.
    Column("final_ms", BigInteger, nullable=False),
    Column("undone_ms", BigInteger),
    # When the release was in the store and in the sink; null where there is none to send, or it is not sent yet.
    Column("sent_ms", BigInteger),
    # Why it could not be sent, and never will be: the window has ended, or the version is no flag.
    Column("refused", String(500)),
    # The process that sends it, until that time.
    Column("claimed_by", String(64)),
    Column("claimed_ms", BigInteger),
    CheckConstraint("decision IN ('right', 'wrong', 'skip')", name="decision"),
    Index(None, "decision", "sent_ms", "final_ms"),
)
"""What people decided; rows are added, and only the columns after ``final_ms`` change."""

NOTES: Final = Table(
    "notes",
    METADATA,
    Column("note_id", _ROW_ID, primary_key=True),
    Column("flag_id", _ROW_ID, ForeignKey("flags.flag_id"), nullable=False, index=True),
    Column("person_id", _ROW_ID, ForeignKey("people.person_id"), nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("text", String(2_000), nullable=False),
)

LOOKING: Final = Table(
    "looking",
    METADATA,
    Column("flag_id", _ROW_ID, ForeignKey("flags.flag_id"), primary_key=True),
    Column("person_id", _ROW_ID, ForeignKey("people.person_id"), primary_key=True),
    Column("at_ms", BigInteger, nullable=False, index=True),
)
"""Who has a flag open at this moment."""

AUDIT: Final = Table(
    "audit",
    METADATA,
    Column("entry_id", _ROW_ID, primary_key=True),
    Column("at_ms", BigInteger, nullable=False, index=True),
    # The name as it was then; empty before somebody is signed in.
    Column("person", String(200), nullable=False, index=True),
    Column("address", String(64), nullable=False),
    Column("action", String(32), nullable=False, index=True),
    # What it was done to: a flag, a person, a setting.
    Column("subject", String(600), nullable=False, server_default=""),
    Column("flag_id", _ROW_ID, index=True),
    Column("why", String(2_000), nullable=False, server_default=""),
)
"""Who did what, when, from where and why. Rows are added, and never changed or deleted."""

FLOODS: Final = Table(
    "floods",
    METADATA,
    Column("flood_id", _ROW_ID, primary_key=True),
    Column("story_id", _ROW_ID, ForeignKey("stories.story_id"), nullable=False, index=True),
    Column("began_ms", BigInteger, nullable=False),
    Column("last_ms", BigInteger, nullable=False, index=True),
    Column("copies", Integer, nullable=False),
)
"""A story that got many copies within a short time, over all consumers."""
