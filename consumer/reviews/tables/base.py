"""What all tables of the console's database have in common: how constraints are named, and types of columns."""

from typing import Final

from sqlalchemy import BigInteger, Integer, MetaData, String, Text

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
ROW_ID: Final = BigInteger().with_variant(Integer, "sqlite")
# By bytes, as SQLite does: what a language says of the order of letters differs between machines.
ID: Final = Text().with_variant(Text(collation="C"), "postgresql")
NAME: Final = String(200).with_variant(String(200, collation="C"), "postgresql")
