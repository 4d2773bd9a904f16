"""Whether the gateways and all regions of an HBase store answer, and its tables are as the schema defines them."""

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
"""Deadline of a gateway for listing the tables."""
REGIONS_S: Final = 5.0
"""How long the regions of one server may take for their answer; HBase moves a region within a second or two."""
_BEHIND: Final = b"\0"
"""After the first key of a region comes no stored row, but one that is asked for there."""


class _ServerRegions(NamedTuple):
    """The regions of one server, those of them that did not answer, and why."""

    places: Sequence[RegionPlace]
    silent: Sequence[RegionPlace] = ()
    why: str = ""


def gateways_s_max(place: StoreAddress) -> float:
    """Return how long ``gateway_findings`` takes at most, in seconds, unless many servers are silent."""
    return 2 * GATEWAY_S * len(place.addresses) + GATEWAY_S + 2 * REGIONS_S


def gateway_findings(place: StoreAddress, options: HbaseOptions) -> Iterator[StoreFinding]:
    """Ask each gateway for the tables, and check those and their regions.

    Cells have to live ``options.ttl_min_s`` in them.
    """
    brief = replace(
        options,
        deadline_s=min(options.deadline_s, GATEWAY_S),
        call_s=min(options.call_s, GATEWAY_S),
        readonly=True,
    )
    unavailable: dict[GatewayAddress, str] = {}
    refused: str | None = None
    for address in place.addresses:
        try:
            HbaseStore.open(StoreAddress((address,), place.namespace), brief).close()
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
    # Also where no gateway could open the store: a gateway that runs waits for a region server that hangs.
    with closing(Gateways(place, brief)) as gateways:
        yield from findings_through(gateways)


def findings_through(gateways: Gateways) -> Iterator[StoreFinding]:
    """Read a row that does not exist from every region, and yield which regions do not answer.

    Nothing is yielded if no gateway can be reached: those have findings of their own.
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
    asked = gateways.spread([partial(_ask, gateways, schema, tuple(some)) for _, some in by_server])
    for answer in asked:
        if answer.silent:
            yield _broken(answer)
    if not any(answer.silent for answer in asked):
        yield StoreFinding("ok", f"All {len(places)} regions answer, on {len(asked)} region servers.")


def _ask(gateways: Gateways, schema: Schema, places: Sequence[RegionPlace]) -> _ServerRegions:
    """Read from all regions of one server, a table at a time."""
    families = {table.name.encode(): [family.name.encode() for family in table.families] for table in schema.tables}
    deadline = Deadline.after(REGIONS_S)
    silent: list[RegionPlace] = []
    why = ""
    for table, some in groupby(places, key=lambda place: place.table):
        of_table = list(some)
        try:
            with gateways.pool.connection(deadline) as connection:
                connection.rows(table, [place.start + _BEHIND for place in of_table], families[table])
        except (ConnectionLost, RequestDenied) as error:
            silent += of_table
            why = why or str(error)
    return _ServerRegions(places, silent, why)


def _broken(answer: _ServerRegions) -> StoreFinding:
    tables = ", ".join(sorted({place.table.decode() for place in answer.silent}))
    server = answer.places[0].server
    where = f"on {server}" if server else "that are on no server"
    return StoreFinding(
        "broken",
        f"{len(answer.silent)} regions {where} do not answer ({tables}): {answer.why}",
        "Wait a minute: HBase moves the regions of a server that it takes for dead. If they stay, look at that server "
        "and at the master's list of regions in transition.",
    )
