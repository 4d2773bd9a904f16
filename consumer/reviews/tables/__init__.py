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
    Double,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from consumer.reviews.tables.base import ID, METADATA, NAME, ROW_ID
from consumer.reviews.tables.outbox_tables import DELIVERIES, LEASES, OUTBOX, WEBHOOKS
from consumer.reviews.tables.search_tables import SEARCH_PAGES, SEARCH_PARTS, SEARCH_WAITING
from consumer.reviews.tables.story_tables import SOURCE_RANKS, STANDING_DECISIONS, STORY_MERGES, STORY_SPLITS

# Those of other modules, which readers of these tables need, too.
__all__ = [
    "DELIVERIES",
    "LEASES",
    "METADATA",
    "OUTBOX",
    "SEARCH_PAGES",
    "SEARCH_PARTS",
    "SEARCH_WAITING",
    "SOURCE_RANKS",
    "STANDING_DECISIONS",
    "STORY_MERGES",
    "STORY_SPLITS",
    "WEBHOOKS",
]

IDENTITY: Final = Table(
    "identity",
    METADATA,
    Column("name", String(16), primary_key=True),
)
"""One row with a random name: what is for this database, and for no other of the same host."""

SOURCES: Final = Table(
    "sources",
    METADATA,
    Column("source_id", ROW_ID, primary_key=True),
    Column("name", ID, nullable=False, unique=True),
)
"""Names of the sources of articles; "" is the source of an article that names none."""

STORIES: Final = Table(
    "stories",
    METADATA,
    Column("story_id", ROW_ID, primary_key=True),
    # The kept article that the chain of duplicates goes back to, as far as known.
    Column("root_id", ID, nullable=False, unique=True),
    Column("root_source_id", ROW_ID, ForeignKey("sources.source_id")),
    Column("copies", Integer, nullable=False),
    Column("open_copies", Integer, nullable=False),
    # When the first and the last article of its entries of any kind came, released ones as well; 0 without any.
    Column("first_ms", BigInteger, nullable=False),
    Column("last_ms", BigInteger, nullable=False),
    # The flag that stands for the story instead of its root; null where that is the root.
    Column("preferred_id", ROW_ID),
    # The largest number of copies that an event has told of: 1, 10, 100, and so on; 0 before its first event.
    Column("told_copies", Integer, nullable=False, server_default="0"),
    Index(None, "copies", "story_id"),
)
"""One row for each original that has copies, and for those that once had some.

``copies`` counts its flags that are in force, ``open_copies`` those of them that nobody has confirmed yet.
"""

QUEUE_INDEXES: Final = (
    ("queue", (), ("story_id", "source_id", "original_source_id")),
    ("source", ("source_id",), ()),
    ("original_source", ("original_source_id",), ()),
    ("sources", ("source_id", "original_source_id"), ()),
    ("story", ("story_id",), ("source_id", "original_source_id")),
)
"""Filters that may match many rows, and what else can be asked for then. Each has an index for each order.

An index begins with what must be equal, then come state and kind, what is sorted by, and at last what else a row is
chosen by, so that only the rows of a page are read themselves.
"""

FLAGS: Final = Table(
    "flags",
    METADATA,
    Column("flag_id", ROW_ID, primary_key=True),
    # What the kinds are: ``kinds/rules.py``.
    Column("kind", String(16), nullable=False),
    Column("article_id", ID, nullable=False),
    Column("version", ID, nullable=False),
    # The article itself, where an entry names items of banks: then it goes with the article's story.
    Column("original_id", ID, nullable=False),
    Column("original_version", ID, nullable=False),
    Column("story_id", ROW_ID, ForeignKey("stories.story_id"), nullable=False),
    # Its story by lineage, where that is merged into another one; otherwise null.
    Column("home_id", ROW_ID, ForeignKey("stories.story_id")),
    # Null until they were read from the store.
    Column("source_id", ROW_ID, ForeignKey("sources.source_id")),
    Column("original_source_id", ROW_ID, ForeignKey("sources.source_id")),
    # Null where nothing was verified.
    Column("similarity", Double),
    # Null where only the release of a flag came, and for kinds whose events have none.
    Column("distance", Integer),
    # What the queue is sorted by: the similarity; of what was not verified a number below 0, the farther the lower.
    Column("certainty", Double, nullable=False),
    # One in so many pairs of this kind was sent; 1 for flags.
    Column("sampled_in", Double, nullable=False, server_default="1"),
    Column("truncated", Boolean, nullable=False),
    Column("arrived_ms", BigInteger, nullable=False),
    Column("decided_ms", BigInteger, nullable=False),
    Column("state", String(8), nullable=False),
    # When its release was reached, as the event says; the version is kept from then on.
    Column("released_ms", BigInteger),
    UniqueConstraint("article_id", "version", "kind"),
    CheckConstraint("kind IN ('flag', 'near_miss', 'ended_before', 'bank_match')", name="kind"),
    CheckConstraint("state IN ('open', 'skipped', 'right', 'wrong', 'released')", name="state"),
    # The copies of a version.
    Index(None, "original_id", "original_version"),
    *(
        Index(f"ix_flags_{name}_{key}", *equal, "state", "kind", key, "flag_id", other, *more)
        for name, equal, more in QUEUE_INDEXES
        for key, other in (("certainty", "arrived_ms"), ("arrived_ms", "certainty"))
    ),
)
"""Entries of the queue: flags, and other kinds.

A flag is ``wrong`` where a person of the console says so, its release being due or sent, and ``released`` where it was
released elsewhere. It is in force, and a copy of its story, in every other state.
"""

TALLY: Final = Table(
    "tally",
    METADATA,
    Column("kind", String(16), primary_key=True),
    Column("state", String(8), primary_key=True),
    Column("flags", BigInteger, nullable=False),
)
"""How many flags are in each state: counted as they change, since counting a million takes too long for a page."""

BANK_MENTIONS: Final = Table(
    "bank_mentions",
    METADATA,
    Column("flag_id", ROW_ID, ForeignKey("flags.flag_id"), primary_key=True),
    Column("bank", NAME, primary_key=True),
    Column("item", NAME, primary_key=True),
    Column("form", String(7), nullable=False),
    Column("similarity", Double, nullable=False),
)
"""The items of banks that a bank match names. Rows are only added: an item may be added after the article came."""

PEOPLE: Final = Table(
    "people",
    METADATA,
    Column("person_id", ROW_ID, primary_key=True),
    Column("name", NAME, nullable=False, unique=True),
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
    Column("person_id", ROW_ID, ForeignKey("people.person_id"), nullable=False, index=True),
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
    Column("last_ms", BigInteger, nullable=False, index=True),
    Column("waits_until_ms", BigInteger, nullable=False),
)

UNSENT: Final = text("decision = 'wrong' AND undone_ms IS NULL AND sent_ms IS NULL AND refused IS NULL")
"""Reviews whose release is due, now or when they are final."""

REASONS: Final = Table(
    "reasons",
    METADATA,
    Column("reason_id", ROW_ID, primary_key=True),
    Column("name", String(80), nullable=False, unique=True),
    # Reasons are offered in this order.
    Column("place", Integer, nullable=False),
    # Since when it can no longer be chosen.
    Column("retired_ms", BigInteger),
)
"""Reasons for *wrong* to choose from. None is ever deleted, since decisions name them."""

REVIEWS: Final = Table(
    "reviews",
    METADATA,
    Column("review_id", ROW_ID, primary_key=True),
    Column("flag_id", ROW_ID, ForeignKey("flags.flag_id"), nullable=False, index=True),
    Column("person_id", ROW_ID, ForeignKey("people.person_id"), nullable=False),
    Column("decision", String(5), nullable=False),
    Column("reason_id", ROW_ID, ForeignKey("reasons.reason_id")),
    Column("note", String(2_000), nullable=False),
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
    # The standing decision that made it.
    Column("standing_id", ROW_ID, ForeignKey("standing_decisions.standing_id")),
    CheckConstraint("decision IN ('right', 'wrong', 'skip')", name="decision"),
    Index("ix_reviews_unsent", "final_ms", sqlite_where=UNSENT, postgresql_where=UNSENT),
)
"""Decisions of people; rows are added, and only the columns after ``final_ms`` change."""

NOTES: Final = Table(
    "notes",
    METADATA,
    Column("note_id", ROW_ID, primary_key=True),
    Column("flag_id", ROW_ID, ForeignKey("flags.flag_id"), nullable=False, index=True),
    Column("person_id", ROW_ID, ForeignKey("people.person_id"), nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("text", String(2_000), nullable=False),
)

LOOKING: Final = Table(
    "looking",
    METADATA,
    Column("flag_id", ROW_ID, ForeignKey("flags.flag_id"), primary_key=True),
    Column("person_id", ROW_ID, ForeignKey("people.person_id"), primary_key=True),
    Column("at_ms", BigInteger, nullable=False, index=True),
)
"""Flags that people have open at this moment."""

AUDIT: Final = Table(
    "audit",
    METADATA,
    Column("entry_id", ROW_ID, primary_key=True),
    Column("at_ms", BigInteger, nullable=False, index=True),
    # The name as it was then; empty before somebody is signed in.
    Column("person", NAME, nullable=False),
    Column("address", String(64), nullable=False),
    Column("action", String(32), nullable=False),
    # What it was done to: a flag, a person, a setting.
    Column("subject", String(600), nullable=False),
    Column("flag_id", ROW_ID, index=True),
    Column("why", String(2_000), nullable=False),
    Index(None, "person", "entry_id"),
    Index(None, "action", "entry_id"),
)
"""The audit log: person, action, time, address and reason. Rows are added, and never changed or deleted."""

FLOODS: Final = Table(
    "floods",
    METADATA,
    Column("flood_id", ROW_ID, primary_key=True),
    Column("story_id", ROW_ID, ForeignKey("stories.story_id"), nullable=False, index=True),
    Column("began_ms", BigInteger, nullable=False),
    Column("last_ms", BigInteger, nullable=False, index=True),
    # When the console saw that it had begun.
    Column("noted_ms", BigInteger, nullable=False),
    Column("copies", Integer, nullable=False),
    # When its event was put into the outbox, or came too late for that; null until then.
    Column("sent_ms", BigInteger, index=True),
)
"""A story that got many copies within a short time, over all consumers."""

REPORT_IN_FORCE: Final = text("undone_ms IS NULL")

REPORTS: Final = Table(
    "reports",
    METADATA,
    Column("report_id", ROW_ID, primary_key=True),
    # Of the later article; "" for a text that is in no store.
    Column("article_id", ID, nullable=False),
    Column("version", ID, nullable=False),
    Column("original_id", ID, nullable=False),
    Column("original_version", ID, nullable=False),
    Column("source_id", ROW_ID, ForeignKey("sources.source_id"), nullable=False),
    Column("original_source_id", ROW_ID, ForeignKey("sources.source_id"), nullable=False),
    # Null where nothing was verified.
    Column("similarity", Double),
    Column("distance", Integer, nullable=False),
    Column("arrived_ms", BigInteger, nullable=False),
    Column("person_id", ROW_ID, ForeignKey("people.person_id"), nullable=False),
    Column("note", String(2_000), nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("final_ms", BigInteger, nullable=False),
    Column("undone_ms", BigInteger),
    Index(
        "uq_reports_pair",
        *("article_id", "version", "original_id", "original_version"),
        unique=True,
        sqlite_where=REPORT_IN_FORCE,
        postgresql_where=REPORT_IN_FORCE,
    ),
)
"""Pairs that people report as copies that were missed, each once unless it is undone."""

READ_FILES: Final = Table(
    "read_files",
    METADATA,
    # SHA-256 of the resolved path, in hex: a path may be longer than a key, and need not be text.
    Column("path_sha256", String(64), primary_key=True),
    Column("marks", Text, nullable=False),
)
"""How far files of events were read, as JSON of ``read_files.Marks``. Positions in topics are with their brokers."""
