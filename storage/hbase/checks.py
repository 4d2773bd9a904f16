"""Whether the gateways of an HBase store answer, and its tables are as the schema defines them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from storage.checks import StoreFinding
from storage.errors import StoreRefused, StoreUnavailable
from storage.hbase.options import Address, HbaseOptions, Place
from storage.hbase.region_checks import region_findings, regions_s_max
from storage.hbase.schema import APPLY
from storage.hbase.store import HbaseStore

GATEWAY_S: Final = 5.0
"""Deadline of a gateway for listing the tables."""


def gateways_s_max(place: Place) -> float:
    """Return how long ``gateway_findings`` takes at most, in seconds."""
    return 2 * GATEWAY_S * len(place.addresses) + GATEWAY_S + regions_s_max()


def gateway_findings(place: Place, options: HbaseOptions) -> Iterator[StoreFinding]:
    """Ask each gateway for the tables, and check those and their regions.

    Cells have to live ``options.ttl_min_s`` in them.
    """
    brief = replace(
        options,
        deadline_s=min(options.deadline_s, GATEWAY_S),
        call_s=min(options.call_s, GATEWAY_S),
        readonly=True,
    )
    unavailable: dict[Address, str] = {}
    refused: str | None = None
    for address in place.addresses:
        try:
            HbaseStore.open(Place((address,), place.namespace), brief).close()
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
    yield from region_findings(place, brief)
