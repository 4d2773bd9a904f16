"""How an HBase store is named."""

import pytest

from storage.hbase.options import GatewayAddress, StoreAddress, parse_place


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("hbase://gateway:9091/feed", StoreAddress((GatewayAddress("gateway", 9091),), "feed")),
        ("hbase://gateway/feed", StoreAddress((GatewayAddress("gateway", 9090),), "feed")),
        (
            "hbase://a.example:1,b.example:2/n_1",
            StoreAddress((GatewayAddress("a.example", 1), GatewayAddress("b.example", 2)), "n_1"),
        ),
        (
            "hbase://[::1]:9091,[fe80::2]/feed",
            StoreAddress((GatewayAddress("::1", 9091), GatewayAddress("fe80::2", 9090)), "feed"),
        ),
    ],
)
def test_a_store_is_named_by_gateways_and_namespace(url: str, place: StoreAddress) -> None:
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


def test_a_port_that_does_not_exist_is_refused() -> None:
    """With the gateway and the last port that does."""
    with pytest.raises(ValueError, match="port 65536 of the gateway b does not exist; ports end at 65535"):
        parse_place("hbase://a:65535,b:65536/feed")
