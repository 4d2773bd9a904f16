"""Whether every region of an HBase store answers, and if not, on which server it is."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Final, NamedTuple

from storage.checks import StoreFinding
from storage.hbase.calls import Gateways
from storage.hbase.connection import RegionPlace
from storage.hbase.deadline import Deadline
from storage.hbase.failures import Denied, Lost
from storage.hbase.options import HbaseOptions, Place
from storage.hbase.schema import FOREVER_S, Schema, schema_of

REGIONS_S: Final = 5.0
"""How long the regions of one server may take for their answer; HBase moves a region within a second or two."""
_BEHIND: Final = b"\0"
"""After the first key of a region comes no stored row, but one that is asked for there."""


class _Asked(NamedTuple):
    """The regions of one server, those of them that did not answer, and why."""

    places: Sequence[RegionPlace]
    silent: Sequence[RegionPlace] = ()
    why: str = ""


def regions_s_max() -> float:
    """Return how long ``region_findings`` takes at most, in seconds, unless many servers are silent."""
    return 2 * REGIONS_S


def region_findings(place: Place, options: HbaseOptions) -> Iterator[StoreFinding]:
    """Yield the findings of ``findings_through`` for this store; ``options`` has brief deadlines."""
    gateways = Gateways(place, options)
    try:
        yield from findings_through(gateways)
    finally:
        gateways.close()


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
    except (Lost, Denied) as error:
        if reached:
            yield StoreFinding(
                "broken",
                f"A gateway does not say where the regions of the store are: {error}.",
                "Look at the region server that holds hbase:meta: until HBase has moved it, no table can be used.",
            )
        return
    by_server = groupby(sorted(places, key=_server_of), key=_server_of)
    asked = gateways.spread([partial(_ask, gateways, schema, tuple(some)) for _, some in by_server])
    for answer in asked:
        if answer.silent:
            yield _broken(answer)
    if not any(answer.silent for answer in asked):
        yield StoreFinding("ok", f"All {len(places)} regions answer, on {len(asked)} region servers.")


def _ask(gateways: Gateways, schema: Schema, places: Sequence[RegionPlace]) -> _Asked:
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
        except (Lost, Denied) as error:
            silent += of_table
            why = why or str(error)
    return _Asked(places, silent, why)


def _broken(answer: _Asked) -> StoreFinding:
    tables = ", ".join(sorted({place.table.decode() for place in answer.silent}))
    server = answer.places[0].server
    where = f"on {server}" if server else "that are on no server"
    return StoreFinding(
        "broken",
        f"{len(answer.silent)} regions {where} do not answer ({tables}): {answer.why}",
        "Wait a minute: HBase moves the regions of a server that it takes for dead. If they stay, look at that server "
        "and at the master's list of regions in transition.",
    )


def _server_of(place: RegionPlace) -> str:
    return place.server
