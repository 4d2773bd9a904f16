"""Which tables of a store cannot be used, as HBase's master has it."""

from typing import NamedTuple

from storage.hbase.connection import GatewayConnection
from storage.hbase.options import Place
from storage.hbase.schema import FOREVER_S, disabled_table, missing_tables, schema_of


class OutOfUse(NamedTuple):
    """A sentence on the tables that are not there, and one on each that is switched off; both say what to do."""

    missing: str = ""
    disabled: tuple[str, ...] = ()


def out_of_use(connection: GatewayConnection, place: Place) -> OutOfUse:
    """Ask which tables of the store are missing, and which are disabled. Raises ``Denied`` and ``Lost``.

    The master answers when it knows all tables, and with an error before that: one that has just started names none
    as missing.
    """
    schema = schema_of(place.namespace, FOREVER_S)
    there = set(connection.table_names())
    names = [table.name for table in schema.tables]
    missing = [name for name in names if name.encode() not in there]
    return OutOfUse(
        missing_tables(missing, place) if missing else "",
        tuple(
            disabled_table(name)
            for name in names
            if name.encode() in there and not connection.is_enabled(name.encode())
        ),
    )
