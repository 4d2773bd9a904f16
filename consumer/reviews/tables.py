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
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
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
# By bytes, as SQLite does: what a language says of the order of letters differs between machines.
_ID: Final = Text().with_variant(Text(collation="C"), "postgresql")
_NAME: Final = String(200).with_variant(String(200, collation="C"), "postgresql")

IDENTITY: Final = Table(
    "identity",
    METADATA,
    Column("name", String(16), primary_key=True),
)
"""One row with a random name: what is for this database, and for no other of the same host."""

SOURCES: Final = Table(
    "sources",
    METADATA,
    Column("source_id", _ROW_ID, primary_key=True),
    Column("name", _ID, nullable=False, unique=True),
)
"""Names of the sources of articles; "" is the source of an article that names none."""

STORIES: Final = Table(
    "stories",
    METADATA,
    Column("story_id", _ROW_ID, primary_key=True),
    # The kept article that the chain of duplicates goes back to, as far as known.
    Column("root_id", _ID, nullable=False, unique=True),
    Column("root_source_id", _ROW_ID, ForeignKey("sources.source_id")),
    Column("copies", Integer, nullable=False),
    Column("open_copies", Integer, nullable=False),
    # When the first and the last article of its flags and near misses came, released ones as well; 0 without any.
    Column("first_ms", BigInteger, nullable=False),
    Column("last_ms", BigInteger, nullable=False),
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
    Column("flag_id", _ROW_ID, primary_key=True),
    # A near miss is a sampled pair just under the threshold, which was not flagged.
    Column("kind", String(9), nullable=False),
    Column("article_id", _ID, nullable=False),
    Column("version", _ID, nullable=False),
    Column("original_id", _ID, nullable=False),
    Column("original_version", _ID, nullable=False),
    Column("story_id", _ROW_ID, ForeignKey("stories.story_id"), nullable=False),
    # Null until they were read from the store.
    Column("source_id", _ROW_ID, ForeignKey("sources.source_id")),
    Column("original_source_id", _ROW_ID, ForeignKey("sources.source_id")),
    # Null where nothing was verified.
    Column("similarity", Double),
    # Null where only the release of a flag came, and not the flag.
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
    CheckConstraint("kind IN ('flag', 'near_miss')", name="kind"),
    CheckConstraint("state IN ('open', 'skipped', 'right', 'wrong', 'released')", name="state"),
    # The copies of a version.
    Index(None, "original_id", "original_version"),
    *(
        Index(f"ix_flags_{name}_{key}", *equal, "state", "kind", key, "flag_id", other, *more)
        for name, equal, more in QUEUE_INDEXES
        for key, other in (("certainty", "arrived_ms"), ("arrived_ms", "certainty"))
    ),
)
"""Flags and near misses.

A flag is ``wrong`` where a person of the console says so, its release being due or sent, and ``released`` where it was
released elsewhere. It is in force, and a copy of its story, in every other state.
"""

TALLY: Final = Table(
    "tally",
    METADATA,
    Column("kind", String(9), primary_key=True),
    Column("state", String(8), primary_key=True),
    Column("flags", BigInteger, nullable=False),
)
"""How many flags are in each state: counted as they change, since counting a million takes too long for a page."""

PEOPLE: Final = Table(
    "people",
    METADATA,
    Column("person_id", _ROW_ID, primary_key=True),
    Column("name", _NAME, nullable=False, unique=True),
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
    Column("last_ms", BigInteger, nullable=False, index=True),
    Column("waits_until_ms", BigInteger, nullable=False),
)

UNSENT: Final = text("decision = 'wrong' AND undone_ms IS NULL AND sent_ms IS NULL AND refused IS NULL")
"""Reviews whose release is due, now or when they are final."""

REASONS: Final = Table(
    "reasons",
    METADATA,
    Column("reason_id", _ROW_ID, primary_key=True),
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
    Column("review_id", _ROW_ID, primary_key=True),
    Column("flag_id", _ROW_ID, ForeignKey("flags.flag_id"), nullable=False, index=True),
    Column("person_id", _ROW_ID, ForeignKey("people.person_id"), nullable=False),
    Column("decision", String(5), nullable=False),
    Column("reason_id", _ROW_ID, ForeignKey("reasons.reason_id")),
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
    CheckConstraint("decision IN ('right', 'wrong', 'skip')", name="decision"),
    Index("ix_reviews_unsent", "final_ms", sqlite_where=UNSENT, postgresql_where=UNSENT),
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
    Column("person", _NAME, nullable=False),
    Column("address", String(64), nullable=False),
    Column("action", String(32), nullable=False),
    # What it was done to: a flag, a person, a setting.
    Column("subject", String(600), nullable=False),
    Column("flag_id", _ROW_ID, index=True),
    Column("why", String(2_000), nullable=False),
    Index(None, "person", "entry_id"),
    Index(None, "action", "entry_id"),
)
"""Who did what, when, from where and why. Rows are added, and never changed or deleted."""

FLOODS: Final = Table(
    "floods",
    METADATA,
    Column("flood_id", _ROW_ID, primary_key=True),
    Column("story_id", _ROW_ID, ForeignKey("stories.story_id"), nullable=False, index=True),
    Column("began_ms", BigInteger, nullable=False),
    Column("last_ms", BigInteger, nullable=False, index=True),
    # When the console saw that it had begun.
    Column("noted_ms", BigInteger, nullable=False),
    Column("copies", Integer, nullable=False),
    # When its event was sent, null until then.
    Column("sent_ms", BigInteger, index=True),
)
"""A story that got many copies within a short time, over all consumers."""

REPORT_IN_FORCE: Final = text("undone_ms IS NULL")

REPORTS: Final = Table(
    "reports",
    METADATA,
    Column("report_id", _ROW_ID, primary_key=True),
    # Of the later article; "" for a text that is in no store.
    Column("article_id", _ID, nullable=False),
    Column("version", _ID, nullable=False),
    Column("original_id", _ID, nullable=False),
    Column("original_version", _ID, nullable=False),
    Column("source_id", _ROW_ID, ForeignKey("sources.source_id"), nullable=False),
    Column("original_source_id", _ROW_ID, ForeignKey("sources.source_id"), nullable=False),
    # Null where nothing was verified.
    Column("similarity", Double),
    Column("distance", Integer, nullable=False),
    Column("arrived_ms", BigInteger, nullable=False),
    Column("person_id", _ROW_ID, ForeignKey("people.person_id"), nullable=False),
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

SEARCH_WAITING: Final = Table(
    "search_waiting",
    METADATA,
    Column("flag_id", _ROW_ID, ForeignKey("flags.flag_id"), primary_key=True),
    Column("due_ms", BigInteger, nullable=False),
    Column("tries", Integer, nullable=False),
)
"""Flags whose words are still to be indexed.

``due_ms`` is 0 for at once, and in the future while a console indexes it, or where the store did not have its text.
``tries`` counts how often the store did not have it.
"""

SEARCH_PARTS: Final = Table(
    "search_parts",
    METADATA,
    Column("part_id", _ROW_ID, primary_key=True),
    # Flags that can be found by it, and those that it was made of.
    Column("flags", Integer, nullable=False),
    Column("places", Integer, nullable=False),
    # Their numbers, packed, 0 for a flag that can no longer be found.
    Column("flag_ids", LargeBinary, nullable=False),
    # Until then a console works on it; 0 for none.
    Column("claimed_ms", BigInteger, nullable=False),
    # When it was last compared with flags and store.
    Column("checked_ms", BigInteger, nullable=False),
    # When another part took its place; searches that had begun read it a little longer.
    Column("replaced_ms", BigInteger),
)
"""Parts of the index of words: ``word_index/pages.py`` says how they are packed."""

SEARCH_PAGES: Final = Table(
    "search_pages",
    METADATA,
    Column("part_id", _ROW_ID, ForeignKey("search_parts.part_id"), primary_key=True, autoincrement=False),
    Column("first_word", BigInteger, primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False),
)
"""The words of a part, and which of its flags have them. Rows are added and deleted with their part."""
