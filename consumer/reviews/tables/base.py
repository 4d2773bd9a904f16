"""The naming of constraints and the column types that all tables of the console's database share."""

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

# SQLite assigns row numbers only to columns of type INTEGER.
ROW_ID: Final = BigInteger().with_variant(Integer, "sqlite")
# Compared by bytes, as in SQLite: the order of letters in a language differs between machines.
ID: Final = Text().with_variant(Text(collation="C"), "postgresql")
NAME: Final = String(200).with_variant(String(200, collation="C"), "postgresql")
