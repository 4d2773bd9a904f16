"""Repeats of ended articles and bank matches as kinds of entries, and the items that bank matches name."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_NAME = sa.String(length=200).with_variant(sa.String(length=200, collation="C"), "postgresql")
_KINDS = ("ended_before", "bank_match")
_CHECK = "kind IN ('flag', 'near_miss', 'ended_before', 'bank_match')"


def upgrade() -> None:
    """Allow the new kinds, and create a table for the items.

    On SQLite no rows of ``flags`` are read. PostgreSQL reads them once, to check the new constraint.
    """
    if op.get_bind().dialect.name == "sqlite":
        _allow_on_sqlite()
    else:
        op.drop_constraint(op.f("ck_flags_kind"), "flags")
        for table in ("flags", "tally"):
            op.alter_column(table, "kind", type_=sa.String(length=16), existing_type=sa.String(length=9))
        op.create_check_constraint(op.f("ck_flags_kind"), "flags", _CHECK)
    op.create_table(
        "bank_mentions",
        sa.Column("flag_id", _ROW_ID, nullable=False),
        sa.Column("bank", _NAME, nullable=False),
        sa.Column("item", _NAME, nullable=False),
        sa.Column("form", sa.String(length=7), nullable=False),
        sa.Column("similarity", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["flag_id"], ["flags.flag_id"], name=op.f("fk_bank_mentions_flag_id")),
        sa.PrimaryKeyConstraint("flag_id", "bank", "item", name=op.f("pk_bank_mentions")),
    )
    tally = sa.table("tally", sa.column("kind"), sa.column("state"), sa.column("flags"))
    states = ("open", "skipped", "right", "wrong", "released")
    op.bulk_insert(tally, [{"kind": kind, "state": state, "flags": 0} for kind in _KINDS for state in states])


def _allow_on_sqlite() -> None:
    """Change the stored definitions of the tables ``flags`` and ``tally``.

    SQLite cannot alter a constraint, and copying a referenced table would take minutes with a million flags. Its
    documentation describes this procedure for changes that do not affect the rows ("Making Other Kinds Of Table
    Schema Changes").
    """
    connection = op.get_bind()
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    connection.exec_driver_sql(
        "UPDATE sqlite_master SET sql = replace(replace(sql, 'kind VARCHAR(9)', 'kind VARCHAR(16)'), ?, ?) "
        "WHERE type = 'table' AND name IN ('flags', 'tally')",
        ("kind IN ('flag', 'near_miss')", _CHECK),
    )
    # Every connection reads the schema again.
    connection.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    connection.exec_driver_sql("PRAGMA writable_schema = OFF")
