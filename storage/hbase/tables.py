"""Which tables of a store cannot be used, as HBase's master has it."""

from typing import NamedTuple

from storage.hbase.connection import GatewayConnection
from storage.hbase.schema import FOREVER_S, disabled_table, missing_table, schema_of


class OutOfUse(NamedTuple):
    """Tables that are not there, and tables that are switched off: for each a sentence that says what to do."""

    missing: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


def out_of_use(connection: GatewayConnection, namespace: str) -> OutOfUse:
    """Ask which tables of the store are missing, and which are disabled. Raises ``Denied`` and ``Lost``.

    The master answers when it knows all tables, and with an error before that: one that has just started names none
    as missing.
    """
    schema = schema_of(namespace, FOREVER_S)
    there = set(connection.table_names())
    names = [table.name for table in schema.tables]
    return OutOfUse(
        tuple(missing_table(schema, name) for name in names if name.encode() not in there),
        tuple(
            disabled_table(name)
            for name in names
            if name.encode() in there and not connection.is_enabled(name.encode())
        ),
    )
