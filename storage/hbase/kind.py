"""The kind of HBase stores: their URLs, how they are opened, and advice about their options."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from storage.hbase.options import ROW_POSTINGS_MAX, URL_PATTERN, HbaseOptions, parse_place
from storage.kind import StoreArguments, StoreCheck, StoreFinding, StoreKind, StoreNeeds, StoreTls, no_files

if TYPE_CHECKING:
    from storage.hbase.store import HbaseStore

_GATEWAY_IDLE_S: Final = 60
"""The default time after which a gateway drops an idle connection."""


def _identity(url: str) -> str:
    place = parse_place(url)
    return str(place._replace(addresses=tuple(sorted(place.addresses))))


def _names_same_store(url: str, other_url: str) -> bool:
    """Return whether two URLs share a gateway and the namespace. Each URL may name only some gateways of one HBase."""
    place, other = parse_place(url), parse_place(other_url)
    return place.namespace == other.namespace and bool(set(place.addresses) & set(other.addresses))


def _open(url: str, arguments: StoreArguments) -> "HbaseStore":
    from storage.hbase.store import HbaseStore  # noqa: PLC0415  # takes 0.1 s, which only HBase needs

    defaults = arguments.own_options(HbaseOptions)
    options = replace(
        defaults,
        keep_bodies=arguments.keep_bodies,
        row_postings_max=arguments.row_postings_max or ROW_POSTINGS_MAX.get(arguments.plan, defaults.row_postings_max),
        deadline_s=arguments.answer_s or defaults.deadline_s,
        call_s=arguments.answer_s or defaults.call_s,
        # A reader writes nothing that could expire too early.
        ttl_min_s=defaults.ttl_min_s if arguments.readonly else arguments.lifetime_s,
        seen_ttl_s=min(1, arguments.seen_s) if arguments.readonly else arguments.seen_s,
        readonly=arguments.readonly,
        parts=arguments.parts,
        banks=arguments.banks,
    )
    return HbaseStore.open(parse_place(url), options, arguments.report, arguments.tell_wait)


def _checks(url: str, arguments: StoreArguments) -> tuple[StoreCheck, ...]:
    from storage.hbase.checks import gateway_findings, gateways_s_max  # noqa: PLC0415  # imports the client

    place = parse_place(url)
    options = replace(arguments.own_options(HbaseOptions), ttl_min_s=arguments.lifetime_s, seen_ttl_s=arguments.seen_s)
    return (StoreCheck("gateways and tables", lambda: gateway_findings(place, options), gateways_s_max(place)),)


def _needs(arguments: StoreArguments) -> StoreNeeds:
    options = arguments.own_options(HbaseOptions)
    tls = options.tls
    files = None if tls is None else StoreTls("store.hbase", tls.ca, tls.certificate, tls.key)
    return StoreNeeds(options.connections_max, files, tuple(_advice(options)))


def _advice(options: HbaseOptions) -> Iterator[StoreFinding]:
    if options.retire_s >= _GATEWAY_IDLE_S:
        yield StoreFinding(
            "warning",
            f"store.hbase.retire_s is {options.retire_s:g}, but by default a gateway drops idle connections "
            f"after {_GATEWAY_IDLE_S} s.",
            f"Set it below the gateway's limit, for example to {_GATEWAY_IDLE_S - 15}.",
        )


HBASE: Final = StoreKind(
    name="HBase",
    form="hbase://HOST:PORT[,HOST:PORT]/NAMESPACE",
    example="hbase://HOST:PORT/NAMESPACE",
    note="Thrift gateways",
    pattern=URL_PATTERN,
    open=_open,
    on_disk=no_files,
    identity=_identity,
    same=_names_same_store,
    remote=True,
    checks=_checks,
    needs=_needs,
    judges_max=lambda arguments: arguments.own_options(HbaseOptions).judges_max,
    warm_up_s=lambda arguments: arguments.own_options(HbaseOptions).warm_up_s,
)
