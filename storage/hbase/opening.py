"""The checks before a store is used: of its tables, and of its layout."""

from storage.errors import StoreRefused
from storage.hbase.calls import Calls
from storage.hbase.connection import GatewayConnection
from storage.hbase.meta import LAYOUT, LAYOUT_ROW, LAYOUT_WITH_PARTS, LAYOUTS, Meta
from storage.hbase.options import Place
from storage.hbase.schema import DescribedFamily, Schema, check, schema_of
from storage.hbase.tables import table_states
from storage.refusals import other_layout


def check_tables(calls: Calls) -> None:
    """Raise ``StoreRefused`` for tables that are missing or differ from the schema, as far as a gateway shows that."""
    gateways = calls.gateways
    try:
        options = gateways.options
        schema = schema_of(gateways.place.namespace, options.ttl_min_s, seen_ttl_s=options.seen_ttl_s)
    except ValueError as error:
        raise StoreRefused(f"{error}.") from error
    misfits = calls.ask(lambda connection: _misfits(connection, schema, gateways.place))
    if misfits:
        raise StoreRefused(" ".join(misfits))


def check_layout(calls: Calls, meta: Meta) -> None:
    """Raise ``StoreRefused`` for a store with another layout; a store without one gets the layout of this program."""
    options = calls.gateways.options
    layout = meta.read(calls, LAYOUT_ROW)
    if layout is None and not options.readonly:
        layout = meta.agree(calls, LAYOUT_ROW, LAYOUT_WITH_PARTS if options.parts else LAYOUT)
    if layout == LAYOUT and options.parts and not options.readonly:
        meta.replace(calls, LAYOUT_ROW, LAYOUT, LAYOUT_WITH_PARTS)
    if layout is not None and layout not in LAYOUTS:
        raise other_layout(calls.gateways.place, layout, LAYOUTS)


def _misfits(connection: GatewayConnection, schema: Schema, place: Place) -> list[str]:
    states = table_states(connection, schema)
    described = {name: _described(connection, name) for name in states.existing}
    return check(schema, place, described, states.disabled)


def _described(connection: GatewayConnection, table: str) -> list[DescribedFamily]:
    return [
        DescribedFamily(
            name=name.decode(),
            max_versions=family.maxVersions,
            compression=family.compression.decode(),
            in_memory=family.inMemory,
            bloom_filter=family.bloomFilterType.decode(),
            block_cache=family.blockCacheEnabled,
            ttl_s=family.timeToLive,
        )
        for name, family in connection.families(table.encode()).items()
    ]
