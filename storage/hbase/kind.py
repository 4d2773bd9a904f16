"""How an HBase store is named and opened."""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from storage.hbase.options import ROW_POSTINGS_MAX, URL_PATTERN, HbaseOptions, parse_place
from storage.kind import Opening, StoreKind, no_files

if TYPE_CHECKING:
    from storage.hbase.store import HbaseStore


def _identity(url: str) -> str:
    place = parse_place(url)
    return str(place._replace(addresses=tuple(sorted(place.addresses))))


def _same(url: str, other_url: str) -> bool:
    """Tell whether two URLs share a gateway and the namespace: one HBase may have gateways that neither URL names."""
    place, other = parse_place(url), parse_place(other_url)
    return place.namespace == other.namespace and bool(set(place.addresses) & set(other.addresses))


def _open(url: str, opening: Opening) -> "HbaseStore":
    from storage.hbase.store import HbaseStore  # noqa: PLC0415  # 0.1 s that other stores must not cost

    own = opening.own_options(HbaseOptions)
    options = replace(
        own,
        keep_bodies=opening.keep_bodies,
        row_postings_max=opening.row_postings_max or ROW_POSTINGS_MAX.get(opening.plan, own.row_postings_max),
        deadline_s=opening.answer_s or own.deadline_s,
        call_s=opening.answer_s or own.call_s,
        # A reader writes nothing that could expire too early.
        ttl_min_s=own.ttl_min_s if opening.readonly else opening.lifetime_s,
        readonly=opening.readonly,
    )
    return HbaseStore.open(parse_place(url), options, opening.report, opening.tell_wait)


HBASE: Final = StoreKind(
    name="HBase",
    form="hbase://HOST:PORT[,HOST:PORT]/NAMESPACE",
    example="hbase://HOST:PORT/NAMESPACE",
    note="Thrift gateways",
    pattern=URL_PATTERN,
    open=_open,
    on_disk=no_files,
    identity=_identity,
    same=_same,
    remote=True,
)
