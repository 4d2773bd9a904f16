"""Checks of an HBase store: gateways and regions answer, and tables match the schema."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from storage.errors import StoreRefused, StoreUnavailable
from storage.hbase.calls import Gateways
from storage.hbase.connection import RegionPlace
from storage.hbase.failures import ConnectionLost, RequestDenied
from storage.hbase.options import GatewayAddress, HbaseOptions, StoreAddress
from storage.hbase.schema import APPLY, FOREVER_S, Schema, schema_of
from storage.hbase.store import HbaseStore
from storage.hbase.waits import Deadline
from storage.kind import StoreFinding

GATEWAY_S: Final = 5.0
"""How long a gateway may take to list the tables."""
REGIONS_S: Final = 5.0
"""How long the regions of one server may take to answer; HBase moves a region within a second or two."""
_PROBE_SUFFIX: Final = b"\0"
"""Appended to the first key of a region, it makes the key of a row that is in the region but never stored."""


class _ServerRegions(NamedTuple):
    """The regions of one server, the silent regions among them, and the first error."""

    places: Sequence[RegionPlace]
    silent: Sequence[RegionPlace] = ()
    error: str = ""


def gateways_s_max(place: StoreAddress) -> float:
    """Return the maximum duration of ``gateway_findings`` in seconds, unless many servers are silent."""
    return 2 * GATEWAY_S * len(place.addresses) + GATEWAY_S + 2 * REGIONS_S


def gateway_findings(place: StoreAddress, options: HbaseOptions) -> Iterator[StoreFinding]:
    """List the tables through each gateway, check the tables and their regions, and yield the findings.

    Cells must live at least ``options.ttl_min_s`` in the tables. Regions are not checked if the tables are wrong.
    """
    check_options = replace(
        options,
        deadline_s=min(options.deadline_s, GATEWAY_S),
        call_s=min(options.call_s, GATEWAY_S),
        readonly=True,
    )
    unavailable: dict[GatewayAddress, str] = {}
    refused: str | None = None
    for address in place.addresses:
        try:
            HbaseStore.open(StoreAddress((address,), place.namespace), check_options).close()
        except StoreUnavailable as error:
            unavailable[address] = str(error)
            continue
        except StoreRefused as error:
            refused = str(error)
        yield StoreFinding("ok", f"The gateway {address} answers.")
    none_answers = len(unavailable) == len(place.addresses)
    for name, why in unavailable.items():
        if none_answers:
            yield StoreFinding(
                "broken", f"The gateway {name} does not answer: {why}", "Start it, or correct store.url."
            )
        else:
            yield StoreFinding(
                "warning",
                f"The gateway {name} does not answer, so only the others are used: {why}",
                "Start it, or remove it from store.url.",
            )
    if refused is not None:
        yield StoreFinding("refused", refused, f"Show what would be altered: {APPLY.replace('--apply', '--print')}.")
        return
    if not none_answers:
        yield StoreFinding("ok", f"The tables of {place.namespace} are correct, as far as a gateway shows.")
    # Regions are checked even if no gateway could open the store: a running gateway waits for a region server that
    # hangs.
    with closing(Gateways(place, check_options)) as gateways:
        yield from region_findings(gateways)


def region_findings(gateways: Gateways) -> Iterator[StoreFinding]:
    """Read a missing row from every region, and yield a finding on each server with regions that do not answer.

    Yields an ``ok`` finding if all answer, and a ``broken`` one if a gateway cannot list the regions. Yields nothing if
    no gateway can be reached, because unreachable gateways have their own findings.
    """
    schema = schema_of(gateways.place.namespace, FOREVER_S, seen_ttl_s=gateways.options.seen_ttl_s)
    places: list[RegionPlace] = []
    reached = False
    try:
        with gateways.pool.connection(Deadline.after(REGIONS_S)) as connection:
            reached = True
            for table in schema.tables:
                places += connection.regions(table.name.encode())
    except (ConnectionLost, RequestDenied) as error:
        if reached:
            yield StoreFinding(
                "broken",
                f"A gateway does not say where the regions of the store are: {error}.",
                "Look at the region server that holds hbase:meta: until HBase has moved it, no table can be used.",
            )
        return
    server_of = attrgetter("server")
    by_server = groupby(sorted(places, key=server_of), key=server_of)
    servers = gateways.spread([partial(_probe, gateways, schema, tuple(regions)) for _, regions in by_server])
    for server in servers:
        if server.silent:
            yield _silent_finding(server)
    if not any(server.silent for server in servers):
        yield StoreFinding("ok", f"All {len(places)} regions answer, on {len(servers)} region servers.")


def _probe(gateways: Gateways, schema: Schema, places: Sequence[RegionPlace]) -> _ServerRegions:
    """Read a missing row from every region of one server, one table at a time."""
    families = {table.name.encode(): [family.name.encode() for family in table.families] for table in schema.tables}
    deadline = Deadline.after(REGIONS_S)
    silent: list[RegionPlace] = []
    first_error = ""
    for table, regions in groupby(places, key=lambda place: place.table):
        table_places = list(regions)
        try:
            with gateways.pool.connection(deadline) as connection:
                connection.rows(table, [place.start + _PROBE_SUFFIX for place in table_places], families[table])
        except (ConnectionLost, RequestDenied) as error:
            silent += table_places
            first_error = first_error or str(error)
    return _ServerRegions(places, silent, first_error)


def _silent_finding(regions: _ServerRegions) -> StoreFinding:
    tables = ", ".join(sorted({place.table.decode() for place in regions.silent}))
    server = regions.places[0].server
    where = f"on {server}" if server else "that are on no server"
    return StoreFinding(
        "broken",
        f"{len(regions.silent)} regions {where} do not answer ({tables}): {regions.error}",
        "Wait a minute: HBase moves the regions of a server that it considers dead. If they stay silent, check that "
        "server and the master's list of regions in transition.",
    )
