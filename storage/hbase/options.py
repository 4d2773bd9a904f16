"""The address and the options of an HBase store."""

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

SCHEME: Final = "hbase://"
PORT: Final = 9090
"""The default port of a Thrift gateway."""
_PORT_MAX: Final = 65_535
URL_PATTERN: Final = (
    r"hbase://"
    r"(\[[0-9A-Fa-f:.]+\]|[^\s/,:\[\]]+)(:[0-9]{1,5})?"
    r"(,(\[[0-9A-Fa-f:.]+\]|[^\s/,:\[\]]+)(:[0-9]{1,5})?)*"
    r"/[A-Za-z0-9_]+"
)
"""``hbase://HOST[:PORT][,HOST[:PORT]]/NAMESPACE`` as a regular expression."""


class GatewayAddress(NamedTuple):
    """Host and port of a Thrift gateway."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class StoreAddress(NamedTuple):
    """The address of a store: its gateways, all of one HBase, and the namespace of its tables."""

    addresses: tuple[GatewayAddress, ...]
    namespace: str

    def __str__(self) -> str:
        return f"{SCHEME}{','.join(map(str, self.addresses))}/{self.namespace}"


ROW_POSTINGS_MAX: Final = {"16x28": 1_000}
"""The number of postings up to which a row is read whole, by plan, for plans with more than four rows per article."""


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """TLS to the gateways: PEM files. Without ``ca`` the system's certificate authorities are trusted."""

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class HbaseOptions:
    """Options for using a store.

    ``deadline_s`` bounds one call of the store with all its retries; a failed call takes at most 2 s more, to find out
    why. ``call_s`` bounds one request to a gateway, ``connect_s`` connecting to one. ``connections_max`` bounds the
    connections of this process; a connection that was idle for ``retire_s`` is not used again, since a gateway drops it
    after 60 s by default. Up to ``swaps_under_way_max`` compare-and-sets are sent on a connection before the first
    answer is read: few enough for their answers to fit into its buffers. ``pending_cells_max`` bounds the cells that
    are kept in memory to be settled without being read, ``sketches_max`` the sketches of versions that were read (some
    450 bytes each). The store is opened only if cells live at least ``ttl_min_s`` in its tables and at least
    ``seen_ttl_s`` in the table of texts, which may be missing if ``seen_ttl_s`` is 0. ``parts`` and ``banks`` raise the
    store's layout. A run judges in up to ``judges_max`` threads at a time, and warms the store up for at most
    ``warm_up_s``.
    """

    keep_bodies: bool = True
    row_postings_max: int = 4_000
    deadline_s: float = 45.0
    call_s: float = 20.0
    connect_s: float = 3.0
    connections_max: int = 4
    retire_s: float = 45.0
    pending_cells_max: int = 10_000
    sketches_max: int = 65_536
    swaps_under_way_max: int = 128
    tls: TlsOptions | None = None
    ttl_min_s: int = 1
    seen_ttl_s: int = 0
    parts: bool = False
    banks: bool = False
    readonly: bool = False
    judges_max: int = 1
    warm_up_s: float = 20.0


def parse_place(url: str) -> StoreAddress:
    """Parse the URL of a store. Raises ``ValueError``."""
    if not re.fullmatch(URL_PATTERN, url):
        raise ValueError(f"{url!r} is not the URL of an HBase store; write {SCHEME}HOST:PORT[,HOST:PORT]/NAMESPACE")
    gateways, _, namespace = url.removeprefix(SCHEME).rpartition("/")
    return StoreAddress(tuple(_parse_address(gateway) for gateway in gateways.split(",")), namespace)


def _parse_address(text: str) -> GatewayAddress:
    host, bracket, rest = text.removeprefix("[").partition("]") if text.startswith("[") else (text, "", "")
    port = rest.removeprefix(":")
    if not bracket:
        host, _, port = text.partition(":")
    number = int(port or PORT)
    if number > _PORT_MAX:
        raise ValueError(f"port {number} of the gateway {host} does not exist; ports end at {_PORT_MAX}")
    return GatewayAddress(host, number)
