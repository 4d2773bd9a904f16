"""How an HBase store is named, and how it is reached."""

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

SCHEME: Final = "hbase://"
PORT: Final = 9090
"""Where a Thrift gateway listens unless it is told otherwise."""
URL_PATTERN: Final = (
    r"hbase://"
    r"(\[[0-9A-Fa-f:.]+\]|[^\s/,:\[\]]+)(:[0-9]{1,5})?"
    r"(,(\[[0-9A-Fa-f:.]+\]|[^\s/,:\[\]]+)(:[0-9]{1,5})?)*"
    r"/[A-Za-z0-9_]+"
)
"""``hbase://HOST[:PORT][,HOST[:PORT]]/NAMESPACE`` as a regular expression."""


class Address(NamedTuple):
    """Where one Thrift gateway listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Place(NamedTuple):
    """Where a store is: its gateways, all of one HBase, and the namespace of its tables."""

    addresses: tuple[Address, ...]
    namespace: str

    def __str__(self) -> str:
        return f"{SCHEME}{','.join(map(str, self.addresses))}/{self.namespace}"


ROW_POSTINGS_MAX: Final = {"16x28": 1_000}
"""How wide a row may be to be read whole, of plans under whose keys an article has more rows than four."""


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """TLS to the gateways: PEM files; None for ``ca`` means the authorities that the system trusts."""

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class HbaseOptions:
    """How a store is used.

    ``deadline_s`` is what one call of the store may take with all its retries; one that comes to nothing takes a little
    more, 2 s at most, to ask why. ``call_s`` is what one question to a gateway may take, ``connect_s`` what connecting
    to one may. ``connections_max`` bounds the connections of this process; one that was idle for ``retire_s`` is not
    used again: a gateway drops it after 60 s unless it is told otherwise. ``swaps_under_way_max`` is how many
    compare-and-sets are sent on a connection before the first answer is read: few enough that their answers fit into
    its buffers. ``pending_cells_max`` bounds the cells kept in memory so that they can be settled without being read.
    ``ttl_min_s`` is how long cells have to live in the tables for the store to be opened.
    """

    keep_bodies: bool = True
    row_postings_max: int = 4_000
    deadline_s: float = 45.0
    call_s: float = 20.0
    connect_s: float = 3.0
    connections_max: int = 4
    retire_s: float = 45.0
    pending_cells_max: int = 10_000
    swaps_under_way_max: int = 128
    tls: TlsOptions | None = None
    ttl_min_s: int = 1
    readonly: bool = False


def parse_place(url: str) -> Place:
    """Read a store's name; ValueError where it is none."""
    if not re.fullmatch(URL_PATTERN, url):
        raise ValueError(f"{url!r} is no store: write it as {SCHEME}HOST:PORT[,HOST:PORT]/NAMESPACE")
    gateways, _, namespace = url.removeprefix(SCHEME).rpartition("/")
    return Place(tuple(_parse_address(gateway) for gateway in gateways.split(",")), namespace)


def _parse_address(text: str) -> Address:
    host, bracket, rest = text.removeprefix("[").partition("]") if text.startswith("[") else (text, "", "")
    port = rest.removeprefix(":")
    if not bracket:
        host, _, port = text.partition(":")
    return Address(host, int(port or PORT))
