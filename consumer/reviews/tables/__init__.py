"""The tables of the console's database.

Times are milliseconds since 1970. Texts of articles are not stored here: pages read them from the store. A change here
needs a migration in ``migrations/versions``; a test compares both.
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

# Re-exported, so that all tables can be imported from here.
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
"""One row with a random name, which tells this database from others on the same host."""

SOURCES: Final = Table(
    "sources",
    METADATA,
    Column("source_id", ROW_ID, primary_key=True),
    Column("name", ID, nullable=False, unique=True),
)
"""Names of the sources of articles; "" for articles that name none."""

STORIES: Final = Table(
    "stories",
    METADATA,
    Column("story_id", ROW_ID, primary_key=True),
    # The kept article at which the chain of duplicates begins, as far as known.
    Column("root_id", ID, nullable=False, unique=True),
    Column("root_source_id", ROW_ID, ForeignKey("sources.source_id")),
    Column("copies", Integer, nullable=False),
    Column("open_copies", Integer, nullable=False),
    # When the first and the last article of its entries arrived; 0 without entries. Entries of every kind count,
    # including released ones.
    Column("first_ms", BigInteger, nullable=False),
    Column("last_ms", BigInteger, nullable=False),
    # The flag whose article represents the story; null if the root does.
    Column("preferred_id", ROW_ID),
    # The largest number of copies that an event has announced: 1, 10, 100 and so on; 0 before the first event.
    Column("told_copies", Integer, nullable=False, server_default="0"),
    Index(None, "copies", "story_id"),
)
"""One row for each article that is or was the root of queue entries.

``copies`` counts the flags in force. ``open_copies`` counts the undecided flags among them.
"""

QUEUE_INDEXES: Final = (
    ("queue", (), ("story_id", "source_id", "original_source_id")),
    ("source", ("source_id",), ()),
    ("original_source", ("original_source_id",), ()),
    ("sources", ("source_id", "original_source_id"), ()),
    ("story", ("story_id",), ("source_id", "original_source_id")),
)
"""Filters that may match many rows: a name, the columns that must be equal, and further columns to filter by.

Each filter has one index per order. An index begins with the columns that must be equal. The state, the kind, the sort
key, the id, the other sort key and the further columns follow, so that only the rows of a page itself are read.
"""

FLAGS: Final = Table(
    "flags",
    METADATA,
    Column("flag_id", ROW_ID, primary_key=True),
    # The kinds are explained in ``kinds/rules.py``.
    Column("kind", String(16), nullable=False),
    Column("article_id", ID, nullable=False),
    Column("version", ID, nullable=False),
    # The article itself if an entry names items of banks; the entry then moves with the article's story.
    Column("original_id", ID, nullable=False),
    Column("original_version", ID, nullable=False),
    Column("story_id", ROW_ID, ForeignKey("stories.story_id"), nullable=False),
    # The flag's story by lineage if that story is merged into another one; otherwise null.
    Column("home_id", ROW_ID, ForeignKey("stories.story_id")),
    # Null until read from the store.
    Column("source_id", ROW_ID, ForeignKey("sources.source_id")),
    Column("original_source_id", ROW_ID, ForeignKey("sources.source_id")),
    # Null if the pair was not verified.
    Column("similarity", Double),
    # Null if only the release of the flag was received, and for kinds whose events have no distance.
    Column("distance", Integer),
    # A sort key of the queue: the similarity or, for unverified entries, a number below 0 that falls with distance.
    Column("certainty", Double, nullable=False),
    # One in this many pairs of the kind was sent; 1 for flags.
    Column("sampled_in", Double, nullable=False, server_default="1"),
    Column("truncated", Boolean, nullable=False),
    Column("arrived_ms", BigInteger, nullable=False),
    Column("decided_ms", BigInteger, nullable=False),
    Column("state", String(8), nullable=False),
    # When it was released, according to the event; the version is kept from then on.
    Column("released_ms", BigInteger),
    UniqueConstraint("article_id", "version", "kind"),
    CheckConstraint("kind IN ('flag', 'near_miss', 'ended_before', 'bank_match')", name="kind"),
    CheckConstraint("state IN ('open', 'skipped', 'right', 'wrong', 'released')", name="state"),
    # For finding the copies of a version.
    Index(None, "original_id", "original_version"),
    *(
        Index(f"ix_flags_{name}_{key}", *equal, "state", "kind", key, "flag_id", other, *more)
        for name, equal, more in QUEUE_INDEXES
        for key, other in (("certainty", "arrived_ms"), ("arrived_ms", "certainty"))
    ),
)
"""Queue entries: flags and other kinds.

A flag is ``wrong`` if a person decided so in the console; its release is then pending, sent or refused. It is
``released`` if it was released elsewhere. In every other state, it is in force and a copy of its story.
"""

TALLY: Final = Table(
    "tally",
    METADATA,
    Column("kind", String(16), primary_key=True),
    Column("state", String(8), primary_key=True),
    Column("flags", BigInteger, nullable=False),
)
"""The number of entries of each kind and state, updated with each change: counting a million takes too long."""

BANK_MENTIONS: Final = Table(
    "bank_mentions",
    METADATA,
    Column("flag_id", ROW_ID, ForeignKey("flags.flag_id"), primary_key=True),
    Column("bank", NAME, primary_key=True),
    Column("item", NAME, primary_key=True),
    Column("form", String(7), nullable=False),
    Column("similarity", Double, nullable=False),
)
"""The items that a bank match names.

Rows are added and never changed. Later events may add rows, since an item may join its bank after the article arrived.
"""

PEOPLE: Final = Table(
    "people",
    METADATA,
    Column("person_id", ROW_ID, primary_key=True),
    Column("name", NAME, nullable=False, unique=True),
    # Argon2; null for people who sign in through a proxy.
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
    # SHA-256 of the cookie's secret, in hex.
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
"""Reviews in force with *wrong* that are neither sent nor refused. Only some kinds of entries have releases to send."""

REASONS: Final = Table(
    "reasons",
    METADATA,
    Column("reason_id", ROW_ID, primary_key=True),
    Column("name", String(80), nullable=False, unique=True),
    # Position in the list.
    Column("place", Integer, nullable=False),
    # When it was retired; null if it can be chosen.
    Column("retired_ms", BigInteger),
)
"""The list of reasons for *wrong*. Reasons are never deleted, since decisions name them."""

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
    # Until then, the decision can be undone. If it says *wrong*, the release is sent after that.
    Column("final_ms", BigInteger, nullable=False),
    Column("undone_ms", BigInteger),
    # When the release had reached the store and the sink; null if there is none, or it has not been sent yet.
    Column("sent_ms", BigInteger),
    # Why the release can never be sent, for example because the window has ended.
    Column("refused", String(500)),
    # The process that has claimed the release, and when its claim ends.
    Column("claimed_by", String(64)),
    Column("claimed_ms", BigInteger),
    # The standing decision that made this review.
    Column("standing_id", ROW_ID, ForeignKey("standing_decisions.standing_id")),
    CheckConstraint("decision IN ('right', 'wrong', 'skip')", name="decision"),
    Index("ix_reviews_unsent", "final_ms", sqlite_where=UNSENT, postgresql_where=UNSENT),
)
"""Decisions of people, some by standing decisions. Rows are added, and only columns after ``final_ms`` change."""

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
"""Flags that people have opened and not left. ``claims.OPEN_MS`` says how long they count as open."""

AUDIT: Final = Table(
    "audit",
    METADATA,
    Column("entry_id", ROW_ID, primary_key=True),
    Column("at_ms", BigInteger, nullable=False, index=True),
    # The person's name at that time; empty if nobody was signed in.
    Column("person", NAME, nullable=False),
    Column("address", String(64), nullable=False),
    Column("action", String(32), nullable=False),
    # The object of the action: a flag, a person, a setting.
    Column("subject", String(600), nullable=False),
    Column("flag_id", ROW_ID, index=True),
    Column("why", String(2_000), nullable=False),
    Index(None, "person", "entry_id"),
    Index(None, "action", "entry_id"),
)
"""The audit log: person, action, time, address and reason. Rows are never changed or deleted."""

FLOODS: Final = Table(
    "floods",
    METADATA,
    Column("flood_id", ROW_ID, primary_key=True),
    Column("story_id", ROW_ID, ForeignKey("stories.story_id"), nullable=False, index=True),
    Column("began_ms", BigInteger, nullable=False),
    Column("last_ms", BigInteger, nullable=False, index=True),
    # When the console noticed it.
    Column("noted_ms", BigInteger, nullable=False),
    Column("copies", Integer, nullable=False),
    # When its event was put into the outbox, or the flood was found too old for an event; null until then.
    Column("sent_ms", BigInteger, index=True),
)
"""Stories that got many copies within a short time, counted over all consumers."""

REPORT_IN_FORCE: Final = text("undone_ms IS NULL")

REPORTS: Final = Table(
    "reports",
    METADATA,
    Column("report_id", ROW_ID, primary_key=True),
    # The later article; "" for a text that is not in the store.
    Column("article_id", ID, nullable=False),
    Column("version", ID, nullable=False),
    Column("original_id", ID, nullable=False),
    Column("original_version", ID, nullable=False),
    Column("source_id", ROW_ID, ForeignKey("sources.source_id"), nullable=False),
    Column("original_source_id", ROW_ID, ForeignKey("sources.source_id"), nullable=False),
    # Null if the pair was not verified.
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
"""Pairs that people report as missed copies. A pair can be reported again only after an undo."""

READ_FILES: Final = Table(
    "read_files",
    METADATA,
    # SHA-256 of the resolved path, in hex: a path may be longer than a key, and may not be valid text.
    Column("path_sha256", String(64), primary_key=True),
    Column("marks", Text, nullable=False),
)
"""How far event files have been read, as JSON of ``read_files.FileMarks``. Kafka keeps the positions in topics."""
