"""The table of addresses: each block, what is beside it, and every form in which an address can be written."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest

from consumer.webhooks.addresses import BLOCKS, address_kind, refused_address

GLOBAL = ("1.1.1.1", "8.8.8.8", "93.184.216.34", "223.255.255.255", "2606:4700::1111", "2a00:1450::1", "2400::1")
NEIGHBOURS = {
    "1.0.0.0": "0.0.0.0/8",
    "9.255.255.255": "10.0.0.0/8",
    "11.0.0.0": "10.0.0.0/8",
    "100.63.255.255": "100.64.0.0/10",
    "100.128.0.0": "100.64.0.0/10",
    "126.255.255.255": "127.0.0.0/8",
    "128.0.0.0": "127.0.0.0/8",
    "169.253.255.255": "169.254.0.0/16",
    "169.255.0.0": "169.254.0.0/16",
    "172.15.255.255": "172.16.0.0/12",
    "172.32.0.0": "172.16.0.0/12",
    "191.255.255.255": "192.0.0.0/24",
    "192.0.1.0": "192.0.0.0/24",
    "192.0.3.0": "192.0.2.0/24",
    "192.88.98.255": "192.88.99.0/24",
    "192.88.100.0": "192.88.99.0/24",
    "192.167.255.255": "192.168.0.0/16",
    "192.169.0.0": "192.168.0.0/16",
    "198.17.255.255": "198.18.0.0/15",
    "198.20.0.0": "198.18.0.0/15",
    "198.51.99.255": "198.51.100.0/24",
    "198.51.101.0": "198.51.100.0/24",
    "203.0.112.255": "203.0.113.0/24",
    "203.0.114.0": "203.0.113.0/24",
    "223.255.255.255": "224.0.0.0/4",
    "2000::": "::/96",
    "2001:200::": "2001::/23",
    "2001:db7:ffff::": "2001:db8::/32",
    "2001:db9::": "2001:db8::/32",
    "2001:ffff::": "2002::/16",
    "2003::": "2002::/16",
    "3ffe:ffff::": "3fff::/20",
    "3fff:1000::": "3fff::/20",
}
"""Global addresses right before and right behind blocks."""
MUST_BE_REFUSED = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
    "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32", "::/128", "::1/128", "::ffff:0:0/96", "64:ff9b::/96",
    "64:ff9b:1::/48", "100::/64", "2001::/32", "2001::/23", "2001:db8::/32", "2002::/16", "fc00::/7", "fe80::/10",
    "fec0::/10", "ff00::/8", "5f00::/16", "4000::/3", "e000::/4",
)  # fmt: skip
"""Blocks of IANA's registries that are not for receivers, written down apart from the table."""


@pytest.mark.parametrize("block", MUST_BE_REFUSED)
def test_every_block_is_refused_from_its_first_address_to_its_last(block: str) -> None:
    """And in its middle."""
    network = ip_network(block)
    for address in (network[0], network[network.num_addresses // 2], network[-1]):
        assert address_kind(address) is not None, address


@pytest.mark.parametrize("address", [*GLOBAL, *NEIGHBOURS])
def test_what_is_beside_a_block_is_global(address: str) -> None:
    """No block is larger than it should be."""
    assert address_kind(ip_address(address)) is None
    assert refused_address([address], ()) is None


def test_no_block_of_the_table_is_without_a_test() -> None:
    """A new one is written down here too."""
    covered = [ip_network(block) for block in MUST_BE_REFUSED]
    left = [
        str(block)
        for block, _ in BLOCKS
        if not any(block.version == each.version and block.subnet_of(each) for each in covered)  # type: ignore[arg-type]
    ]
    assert left == ["::/96", "::ffff:0:0:0/96", "3fff::/20"]


@pytest.mark.parametrize("inner", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "8.8.8.8"])
def test_an_address_within_another_is_refused(inner: str) -> None:
    """Compatible, mapped, translated, NAT64, 6to4 and Teredo: whatever they lead to."""
    number = int(IPv4Address(inner))
    prefixes = {96: ("::", "::ffff:0:0", "::ffff:0:0:0", "64:ff9b::", "64:ff9b:1::"), 16: ("2002::",), 32: ("2001::",)}
    for length, found in prefixes.items():
        shift = 128 - 32 - length if length < 96 else 0
        for prefix in found:
            address = IPv6Address(int(IPv6Address(prefix)) | number << shift)
            assert address_kind(address) is not None, address


@pytest.mark.parametrize("text", ["fe80::1%eth0", "::ffff:7f00:1", "::FFFF:127.0.0.1", "0:0:0:0:0:0:0:1", "::1%lo"])
def test_other_ways_to_write_an_address(text: str) -> None:
    """With a zone, in hexadecimal, in capitals, at full length."""
    assert refused_address([text], ()) is not None


def test_one_address_of_a_name_is_enough() -> None:
    """Whatever its place; the first one that is not allowed is named."""
    refused = refused_address(["8.8.8.8", "10.1.2.3", "::1"], ())
    assert refused is not None
    assert (refused.address, refused.kind) == ("10.1.2.3", "private")
    assert refused_address(["8.8.8.8", "2a00::1"], ()) is None


def test_networks_are_allowed_in_addition() -> None:
    """Exactly these, and of their own version of IP only."""
    allowed = [ip_network("10.1.0.0/16"), ip_network("fd00:1::/32")]
    assert refused_address(["10.1.2.3", "fd00:1::7", "8.8.8.8"], allowed) is None
    for beside in ("10.2.0.0", "fd00:2::", "::ffff:10.1.2.3", "::10.1.2.3", "64:ff9b::a01:203"):
        assert refused_address([beside], allowed) is not None, beside
