"""Asks HBase's master which tables of a store cannot be used."""

from typing import NamedTuple

from storage.hbase.connection import GatewayConnection
from storage.hbase.options import Place
from storage.hbase.schema import FOREVER_S, disabled_table, missing_tables, schema_of


class OutOfUse(NamedTuple):
    """A sentence about missing tables, and one about each disabled table; both say what to do."""

    missing: str = ""
    disabled: tuple[str, ...] = ()


def out_of_use(connection: GatewayConnection, place: Place) -> OutOfUse:
    """Return which tables of the store are missing, and which are disabled. Raises ``Denied`` and ``Lost``.

    The master answers with an error until it knows all tables, so one that has just started reports none as missing.
    """
    schema = schema_of(place.namespace, FOREVER_S)
    existing = set(connection.table_names())
    names = [table.name for table in schema.tables]
    missing = [name for name in names if name.encode() not in existing]
    return OutOfUse(
        missing_tables(missing, place) if missing else "",
        tuple(
            disabled_table(name)
            for name in names
            if name.encode() in existing and not connection.is_enabled(name.encode())
        ),
    )
