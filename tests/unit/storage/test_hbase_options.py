"""How an HBase store is named."""

import pytest

from storage.hbase.options import Address, Place, parse_place


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("hbase://gateway:9091/feed", Place((Address("gateway", 9091),), "feed")),
        ("hbase://gateway/feed", Place((Address("gateway", 9090),), "feed")),
        ("hbase://a.example:1,b.example:2/n_1", Place((Address("a.example", 1), Address("b.example", 2)), "n_1")),
        ("hbase://[::1]:9091,[fe80::2]/feed", Place((Address("::1", 9091), Address("fe80::2", 9090)), "feed")),
    ],
)
def test_a_store_is_named_by_gateways_and_namespace(url: str, place: Place) -> None:
    """Also several, without ports, and by addresses of six."""
    assert parse_place(url) == place
    assert parse_place(str(place)) == place


@pytest.mark.parametrize(
    "url",
    [
        "hbase://",
        "hbase:///feed",
        "hbase://gateway",
        "hbase://gateway/",
        "hbase://gateway:/feed",
        "hbase://gateway:port/feed",
        "hbase://gateway:123456/feed",
        "hbase://a,,b/feed",
        "hbase://a b/feed",
        "hbase://gateway/feed/more",
        "hbase://gateway/fe-ed",
        "hbase://::1:9090/feed",
        "lmdb:gateway/feed",
    ],
)
def test_what_names_no_store_is_refused(url: str) -> None:
    """With how to write one."""
    with pytest.raises(
        ValueError, match=r"is not the URL of an HBase store; write hbase://HOST:PORT\[,HOST:PORT\]/NAMESPACE"
    ):
        parse_place(url)
