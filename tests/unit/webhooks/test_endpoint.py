"""URLs of webhooks: what they are taken apart into, and which are refused."""

import pytest

from consumer.webhooks.endpoint import Endpoint, UrlError, UrlFault, endpoint_of


def at(host: str, port: int, target: str, *, is_tls: bool = True) -> Endpoint:
    """Where something is sent to, with TLS unless it says otherwise."""
    return Endpoint(is_tls, host, port, target)


@pytest.mark.parametrize(
    ("url", "expected", "host"),
    [
        ("https://hooks.example", at("hooks.example", 443, "/"), "hooks.example"),
        ("https://HOOKS.example./a?b=1", at("hooks.example", 443, "/a?b=1"), "hooks.example"),
        ("https://hooks.example:443/", at("hooks.example", 443, "/"), "hooks.example"),
        ("https://hooks.example:8443/%C3%A4", at("hooks.example", 8443, "/%C3%A4"), "hooks.example:8443"),
        ("http://10.0.0.1", at("10.0.0.1", 80, "/", is_tls=False), "10.0.0.1"),
        ("https://[2A00::1]:444/x", at("2a00::1", 444, "/x"), "[2a00::1]:444"),
        ("https://xn--fsq.example/", at("xn--fsq.example", 443, "/"), "xn--fsq.example"),
    ],
)
def test_a_url_has_parts(url: str, expected: Endpoint, host: str) -> None:
    """And what the header ``Host`` says of them."""
    found = endpoint_of(url, allows_http=True)
    assert found == expected
    assert found.host_header == host


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("", "form"),
        (" https://a.example/", "form"),
        ("https://a.example/ b", "form"),
        ("https://a.example\\@b.example/", "form"),
        ("https://a.example/\r\nx: y", "form"),
        ("https://a.example/ä", "form"),
        ("https://例子.example/", "form"),
        ("https://a.example/#x", "form"),
        ("https://a.example/" + "x" * 2_000, "form"),
        ("http://a.example/", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("gopher://a.example/", "scheme"),
        ("//a.example/", "scheme"),
        ("javascript:alert(1)", "scheme"),
        ("https://ann@a.example/", "person"),
        ("https://ann:x@a.example/", "person"),
        ("https://a.example@127.0.0.1/", "person"),
        ("https://", "host"),
        ("https:///x", "host"),
        ("https://a..example/", "host"),
        ("https://.example/", "host"),
        ("https://a%2eexample/", "host"),
        ("https://" + "a" * 64 + ".example/", "host"),
        ("https://" + "a." * 130 + "example/", "host"),
        ("https://[::1", "host"),
        ("https://a]/x", "host"),
        ("https://[fe80::1%25eth0]/", "host"),
        ("https://[2a00::1]x/", "host"),
        ("https://x[2a00::1]/", "host"),
        ("https://" + "a" * 64 + "/", "host"),
        ("https://a.example:0/", "port"),
        ("https://a.example:65536/", "port"),
        ("https://a.example:99999/?q=[", "port"),
        ("https://a.example:x/", "port"),
        ("https://a.example:443:80/", "port"),
    ],
)
def test_unusual_urls_are_refused(url: str, fault: UrlFault) -> None:
    """Programs read them in different ways."""
    with pytest.raises(UrlError) as refused:
        endpoint_of(url)
    assert refused.value.fault == fault


def test_http_is_allowed_where_that_is_configured() -> None:
    """And nothing else with it."""
    assert not endpoint_of("http://a.example/", allows_http=True).is_tls
    with pytest.raises(UrlError):
        endpoint_of("ftp://a.example/", allows_http=True)
