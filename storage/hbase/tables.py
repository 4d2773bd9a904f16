"""Asks HBase's master which tables of a store cannot be used."""

from typing import NamedTuple

from storage.hbase.connection import GatewayConnection
from storage.hbase.options import StoreAddress
from storage.hbase.schema import FOREVER_S, Schema, disabled_table, missing_tables, schema_of


class UnusableTables(NamedTuple):
    """A sentence about missing tables, and one about each disabled table; both say what to do."""

    missing: str = ""
    disabled: tuple[str, ...] = ()


class TableStates(NamedTuple):
    """The names of a schema's existing tables, and of the disabled ones among them."""

    existing: tuple[str, ...]
    disabled: tuple[str, ...]


def table_states(connection: GatewayConnection, schema: Schema) -> TableStates:
    """Return the existing and the disabled tables of a schema. Raises ``RequestDenied`` and ``ConnectionLost``."""
    names = set(connection.table_names())
    existing = tuple(table.name for table in schema.tables if table.name.encode() in names)
    return TableStates(existing, tuple(name for name in existing if not connection.is_enabled(name.encode())))


def unusable_tables(connection: GatewayConnection, place: StoreAddress, seen_ttl_s: int) -> UnusableTables:
    """Return the missing and the disabled tables of the store. Raises ``RequestDenied`` and ``ConnectionLost``.

    The master answers with an error until it knows all tables, so after a start of the master no table is reported
    missing by mistake.
    """
    schema = schema_of(place.namespace, FOREVER_S, seen_ttl_s=seen_ttl_s)
    states = table_states(connection, schema)
    missing = [table.name for table in schema.tables if table.name not in states.existing]
    return UnusableTables(
        missing_tables(missing, place) if missing else "", tuple(disabled_table(name) for name in states.disabled)
    )
