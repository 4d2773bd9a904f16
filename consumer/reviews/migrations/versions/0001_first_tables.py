"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_NAME = sa.String(length=200).with_variant(sa.String(length=200, collation="C"), "postgresql")


def upgrade() -> None:
    """Create all tables."""
    _audit()
    _people()
    _sign_in_failures()
    _sources()
    _tally()
    _sessions()
    _stories()
    _flags()
    _indexes_of_flags()
    _floods()
    _looking()
    _notes()
    _reviews()
    _fill_tally()


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("entry_id", _ROW_ID, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("person", _NAME, nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("action", sa.String(length=32), nullable=False),
        sa.Column("subject", sa.String(length=600), nullable=False),
        sa.Column("flag_id", _ROW_ID, nullable=True),
        sa.Column("why", sa.String(length=2000), nullable=False),
        sa.PrimaryKeyConstraint("entry_id", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_action_entry_id"), "audit", ["action", "entry_id"])
    op.create_index(op.f("ix_audit_at_ms"), "audit", ["at_ms"])
    op.create_index(op.f("ix_audit_flag_id"), "audit", ["flag_id"])
    op.create_index(op.f("ix_audit_person_entry_id"), "audit", ["person", "entry_id"])


def _people() -> None:
    op.create_table(
        "people",
        sa.Column("person_id", _ROW_ID, nullable=False),
        sa.Column("name", _NAME, nullable=False),
        sa.Column("password_hash", sa.String(length=200), nullable=True),
        sa.Column("role", sa.String(length=8), nullable=False),
        sa.Column("language", sa.String(length=2), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("disabled_ms", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("role IN ('reviewer', 'admin')", name=op.f("ck_people_role")),
        sa.PrimaryKeyConstraint("person_id", name=op.f("pk_people")),
        sa.UniqueConstraint("name", name=op.f("uq_people_name")),
    )


def _sign_in_failures() -> None:
    op.create_table(
        "sign_in_failures",
        sa.Column("subject", sa.String(length=300), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("last_ms", sa.BigInteger(), nullable=False),
        sa.Column("waits_until_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("subject", name=op.f("pk_sign_in_failures")),
    )
    op.create_index(op.f("ix_sign_in_failures_last_ms"), "sign_in_failures", ["last_ms"])


def _sources() -> None:
    op.create_table(
        "sources",
        sa.Column("source_id", _ROW_ID, nullable=False),
        sa.Column("name", _ID, nullable=False),
        sa.PrimaryKeyConstraint("source_id", name=op.f("pk_sources")),
        sa.UniqueConstraint("name", name=op.f("uq_sources_name")),
    )


def _tally() -> None:
    op.create_table(
        "tally",
        sa.Column("kind", sa.String(length=9), nullable=False),
        sa.Column("state", sa.String(length=8), nullable=False),
        sa.Column("flags", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "state", name=op.f("pk_tally")),
    )


def _sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("person_id", _ROW_ID, nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("seen_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], name=op.f("fk_sessions_person_id")),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_sessions")),
    )
    op.create_index(op.f("ix_sessions_expires_ms"), "sessions", ["expires_ms"])
    op.create_index(op.f("ix_sessions_person_id"), "sessions", ["person_id"])


def _stories() -> None:
    op.create_table(
        "stories",
        sa.Column("story_id", _ROW_ID, nullable=False),
        sa.Column("root_id", _ID, nullable=False),
        sa.Column("root_source_id", _ROW_ID, nullable=True),
        sa.Column("copies", sa.Integer(), nullable=False),
        sa.Column("open_copies", sa.Integer(), nullable=False),
        sa.Column("first_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["root_source_id"], ["sources.source_id"], name=op.f("fk_stories_root_source_id")),
        sa.PrimaryKeyConstraint("story_id", name=op.f("pk_stories")),
        sa.UniqueConstraint("root_id", name=op.f("uq_stories_root_id")),
    )
    op.create_index(op.f("ix_stories_copies_story_id"), "stories", ["copies", "story_id"])


def _flags() -> None:
    op.create_table(
        "flags",
        sa.Column("flag_id", _ROW_ID, nullable=False),
        sa.Column("kind", sa.String(length=9), nullable=False),
        sa.Column("article_id", _ID, nullable=False),
        sa.Column("version", _ID, nullable=False),
        sa.Column("original_id", _ID, nullable=False),
        sa.Column("original_version", _ID, nullable=False),
        sa.Column("story_id", _ROW_ID, nullable=False),
        sa.Column("source_id", _ROW_ID, nullable=True),
        sa.Column("original_source_id", _ROW_ID, nullable=True),
        sa.Column("similarity", sa.Double(), nullable=True),
        sa.Column("distance", sa.Integer(), nullable=True),
        sa.Column("certainty", sa.Double(), nullable=False),
        sa.Column("sampled_in", sa.Double(), server_default="1", nullable=False),
        sa.Column("truncated", sa.Boolean(), nullable=False),
        sa.Column("arrived_ms", sa.BigInteger(), nullable=False),
        sa.Column("decided_ms", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=8), nullable=False),
        sa.Column("released_ms", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("kind IN ('flag', 'near_miss')", name=op.f("ck_flags_kind")),
        sa.CheckConstraint("state IN ('open', 'skipped', 'right', 'wrong', 'released')", name=op.f("ck_flags_state")),
        sa.ForeignKeyConstraint(
            ["original_source_id"], ["sources.source_id"], name=op.f("fk_flags_original_source_id")
        ),
        sa.ForeignKeyConstraint(["source_id"], ["sources.source_id"], name=op.f("fk_flags_source_id")),
        sa.ForeignKeyConstraint(["story_id"], ["stories.story_id"], name=op.f("fk_flags_story_id")),
        sa.PrimaryKeyConstraint("flag_id", name=op.f("pk_flags")),
        sa.UniqueConstraint("article_id", "version", "kind", name=op.f("uq_flags_article_id_version_kind")),
    )


def _indexes_of_flags() -> None:
    op.create_index(op.f("ix_flags_original_id_original_version"), "flags", ["original_id", "original_version"])
    op.create_index(
        "ix_flags_original_source_arrived_ms",
        "flags",
        ["original_source_id", "state", "kind", "arrived_ms", "flag_id", "certainty"],
    )
    op.create_index(
        "ix_flags_original_source_certainty",
        "flags",
        ["original_source_id", "state", "kind", "certainty", "flag_id", "arrived_ms"],
    )
    op.create_index(
        "ix_flags_queue_arrived_ms",
        "flags",
        ["state", "kind", "arrived_ms", "flag_id", "certainty", "story_id", "source_id", "original_source_id"],
    )
    op.create_index(
        "ix_flags_queue_certainty",
        "flags",
        ["state", "kind", "certainty", "flag_id", "arrived_ms", "story_id", "source_id", "original_source_id"],
    )
    op.create_index(
        "ix_flags_source_arrived_ms", "flags", ["source_id", "state", "kind", "arrived_ms", "flag_id", "certainty"]
    )
    op.create_index(
        "ix_flags_source_certainty", "flags", ["source_id", "state", "kind", "certainty", "flag_id", "arrived_ms"]
    )
    op.create_index(
        "ix_flags_sources_arrived_ms",
        "flags",
        ["source_id", "original_source_id", "state", "kind", "arrived_ms", "flag_id", "certainty"],
    )
    op.create_index(
        "ix_flags_sources_certainty",
        "flags",
        ["source_id", "original_source_id", "state", "kind", "certainty", "flag_id", "arrived_ms"],
    )
    op.create_index(
        "ix_flags_story_arrived_ms",
        "flags",
        ["story_id", "state", "kind", "arrived_ms", "flag_id", "certainty", "source_id", "original_source_id"],
    )
    op.create_index(
        "ix_flags_story_certainty",
        "flags",
        ["story_id", "state", "kind", "certainty", "flag_id", "arrived_ms", "source_id", "original_source_id"],
    )


def _floods() -> None:
    op.create_table(
        "floods",
        sa.Column("flood_id", _ROW_ID, nullable=False),
        sa.Column("story_id", _ROW_ID, nullable=False),
        sa.Column("began_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_ms", sa.BigInteger(), nullable=False),
        sa.Column("noted_ms", sa.BigInteger(), nullable=False),
        sa.Column("copies", sa.Integer(), nullable=False),
        sa.Column("sent_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["story_id"], ["stories.story_id"], name=op.f("fk_floods_story_id")),
        sa.PrimaryKeyConstraint("flood_id", name=op.f("pk_floods")),
    )
    op.create_index(op.f("ix_floods_last_ms"), "floods", ["last_ms"])
    op.create_index(op.f("ix_floods_sent_ms"), "floods", ["sent_ms"])
    op.create_index(op.f("ix_floods_story_id"), "floods", ["story_id"])


def _looking() -> None:
    op.create_table(
        "looking",
        sa.Column("flag_id", _ROW_ID, nullable=False),
        sa.Column("person_id", _ROW_ID, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["flag_id"], ["flags.flag_id"], name=op.f("fk_looking_flag_id")),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], name=op.f("fk_looking_person_id")),
        sa.PrimaryKeyConstraint("flag_id", "person_id", name=op.f("pk_looking")),
    )
    op.create_index(op.f("ix_looking_at_ms"), "looking", ["at_ms"])


def _notes() -> None:
    op.create_table(
        "notes",
        sa.Column("note_id", _ROW_ID, nullable=False),
        sa.Column("flag_id", _ROW_ID, nullable=False),
        sa.Column("person_id", _ROW_ID, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.String(length=2000), nullable=False),
        sa.ForeignKeyConstraint(["flag_id"], ["flags.flag_id"], name=op.f("fk_notes_flag_id")),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], name=op.f("fk_notes_person_id")),
        sa.PrimaryKeyConstraint("note_id", name=op.f("pk_notes")),
    )
    op.create_index(op.f("ix_notes_flag_id"), "notes", ["flag_id"])


def _reviews() -> None:
    op.create_table(
        "reviews",
        sa.Column("review_id", _ROW_ID, nullable=False),
        sa.Column("flag_id", _ROW_ID, nullable=False),
        sa.Column("person_id", _ROW_ID, nullable=False),
        sa.Column("decision", sa.String(length=5), nullable=False),
        sa.Column("note", sa.String(length=2000), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("final_ms", sa.BigInteger(), nullable=False),
        sa.Column("undone_ms", sa.BigInteger(), nullable=True),
        sa.Column("sent_ms", sa.BigInteger(), nullable=True),
        sa.Column("refused", sa.String(length=500), nullable=True),
        sa.Column("claimed_by", sa.String(length=64), nullable=True),
        sa.Column("claimed_ms", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("decision IN ('right', 'wrong', 'skip')", name=op.f("ck_reviews_decision")),
        sa.ForeignKeyConstraint(["flag_id"], ["flags.flag_id"], name=op.f("fk_reviews_flag_id")),
        sa.ForeignKeyConstraint(["person_id"], ["people.person_id"], name=op.f("fk_reviews_person_id")),
        sa.PrimaryKeyConstraint("review_id", name=op.f("pk_reviews")),
    )
    op.create_index(op.f("ix_reviews_at_ms"), "reviews", ["at_ms"])
    op.create_index(op.f("ix_reviews_flag_id"), "reviews", ["flag_id"])
    op.create_index(
        "ix_reviews_unsent",
        "reviews",
        ["final_ms"],
        sqlite_where=sa.text("decision = 'wrong' AND undone_ms IS NULL AND sent_ms IS NULL AND refused IS NULL"),
        postgresql_where=sa.text("decision = 'wrong' AND undone_ms IS NULL AND sent_ms IS NULL AND refused IS NULL"),
    )


def _fill_tally() -> None:
    table = sa.table("tally", sa.column("kind"), sa.column("state"), sa.column("flags"))
    states = ("open", "skipped", "right", "wrong", "released")
    rows = [{"kind": kind, "state": state, "flags": 0} for kind in ("flag", "near_miss") for state in states]
    op.bulk_insert(table, rows)
