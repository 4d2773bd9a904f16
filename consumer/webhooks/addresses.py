"""The IP addresses that webhooks may be sent to: global ones, and those in configured networks.

The table is our own, so that it does not depend on the version of Python. It has the blocks that IANA's registries of
special-purpose addresses (https://www.iana.org/assignments/iana-ipv4-special-registry and
https://www.iana.org/assignments/iana-ipv6-special-registry) do not call globally reachable. It also has multicast
addresses, and blocks that lead to other addresses: relays, tunnels and translations. All IPv6 addresses outside
2000::/3, the only block allocated for global unicast, are refused too.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, Literal, NamedTuple

IpAddress = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
AddressKind = Literal[
    "private",
    "loopback",
    "link_local",
    "unspecified",
    "carrier",
    "multicast",
    "documentation",
    "benchmarking",
    "translated",
    "reserved",
]

_BLOCKS: Final[Sequence[tuple[str, AddressKind]]] = (
    ("0.0.0.0/8", "unspecified"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "carrier"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link_local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "reserved"),
    ("192.0.2.0/24", "documentation"),
    # 6to4 relays, deprecated.
    ("192.88.99.0/24", "translated"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "benchmarking"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/4", "multicast"),
    # Includes the broadcast address.
    ("240.0.0.0/4", "reserved"),
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    # IPv4 addresses in IPv6: compatible, mapped, translated, NAT64, and local NAT64.
    ("::/96", "translated"),
    ("::ffff:0:0/96", "translated"),
    ("::ffff:0:0:0/96", "translated"),
    ("64:ff9b::/96", "translated"),
    ("64:ff9b:1::/48", "translated"),
    # Discard-only.
    ("100::/64", "reserved"),
    # Teredo, then protocol assignments, which include ORCHID.
    ("2001::/32", "translated"),
    ("2001::/23", "reserved"),
    ("2001:db8::/32", "documentation"),
    # 6to4
    ("2002::/16", "translated"),
    ("3fff::/20", "documentation"),
    ("fc00::/7", "private"),
    ("fe80::/10", "link_local"),
    # Site-local, deprecated.
    ("fec0::/10", "private"),
    ("ff00::/8", "multicast"),
)
BLOCKS: Final[Sequence[tuple[Network, AddressKind]]] = tuple((ip_network(block), kind) for block, kind in _BLOCKS)
"""Refused blocks and their purposes. If several contain an address, the first applies."""
_ALLOCATED: Final = ip_network("2000::/3")


class RefusedAddress(NamedTuple):
    """A refused address, and the purpose of its block."""

    address: str
    kind: AddressKind


def address_kind(address: IpAddress) -> AddressKind | None:
    """Return the purpose of an address's block, or None for a global address."""
    for block, kind in BLOCKS:
        if address.version == block.version and address in block:
            return kind
    return "reserved" if address.version == 6 and address not in _ALLOCATED else None  # noqa: PLR2004  # of IPv6


def refused_address(addresses: Sequence[str], allowed: Sequence[Network]) -> RefusedAddress | None:
    """Return the first address that is neither global nor in an allowed network, or None."""
    for text in addresses:
        address = ip_address(text)
        if any(address.version == network.version and address in network for network in allowed):
            continue
        kind = address_kind(address)
        if kind is not None:
            return RefusedAddress(text, kind)
    return None
