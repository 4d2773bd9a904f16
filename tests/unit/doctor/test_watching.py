"""Watching consumers over HTTP: what they answer, and what happens if they do not."""

import base64
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from consumer.doctor import pages_client
from consumer.doctor.pages_client import ClientAccess, PagesClient, PageUnavailable
from consumer.doctor.scrapes import rate
from consumer.doctor.watching import WatchedConsumer, latest_flags, look_at_all
from consumer.model.errors import ConfigError
from tests.unit.doctor.consumer_pages import Pages, flag, flags_page, served

WAIT_S = 120.0


@pytest.fixture
def pages() -> Iterator[Pages]:
    """The pages of one consumer."""
    with served() as found:
        yield found


def watched(
    pages: Pages,
    clock: Iterator[float] | None = None,
    access: ClientAccess = ClientAccess(),  # noqa: B008
) -> WatchedConsumer:
    """A watched consumer with these pages, scraped at these times."""
    times = clock or iter(range(1010, 2000, 10))
    return WatchedConsumer("one", PagesClient(pages.url, access, WAIT_S), lambda: next(times))


def test_a_consumer_tells_how_it_is(pages: Pages) -> None:
    """Metrics, readiness with reasons, and flags."""
    pages.answers["/readyz"] = (503, b'{"ready": false, "reasons": ["store: it is down"]}')
    pages.answers["/flags.json"] = (200, flags_page(flag("a", "2026-11-21T10:00:00.000Z")))
    seen = watched(pages).look()
    assert (seen.ready, seen.reasons, seen.away) == (False, ("store: it is down",), None)
    assert seen.flags is not None
    assert [(flag.id, flag.duplicate_of, flag.article and flag.article.title) for flag in seen.flags] == [
        ("a", "a-original", "A title")
    ]


def test_one_that_is_away_comes_back(pages: Pages) -> None:
    """While it is away the reason is shown; afterwards rates cover the whole time between the two answers."""
    consumer = watched(pages)
    assert consumer.look().interval is not None
    pages.answers["/metrics"], kept = (500, b"the page failed"), pages.answers["/metrics"]
    seen = consumer.look()
    assert (seen.interval, seen.away) == (None, "/metrics answers with status 500")
    pages.answers["/metrics"] = (200, kept[1].replace(b"80", b"100"))
    seen = consumer.look()
    assert seen.away is None
    assert seen.interval is not None
    # Failed answers have no time of their own.
    assert rate([seen.interval], "dupwatch_articles_total") == 20 / 10


@pytest.mark.parametrize("body", [b"<html>", b"\xff\xfe", b"", b"node_cpu_seconds_total 1\n"])
def test_answers_that_make_no_sense_harm_nobody(pages: Pages, body: bytes) -> None:
    """A malformed page counts as no page."""
    pages.answers = dict.fromkeys(pages.answers, (200, body))
    seen = watched(pages).look()
    assert seen.flags is None
    assert seen.reasons == ()
    assert seen.interval is None
    assert seen.away


def test_one_without_a_page_of_flags_has_none(pages: Pages) -> None:
    """Flags that are not served differ from no flags; flags of several consumers are sorted, newest first."""
    pages.answers["/flags.json"] = (404, b"Not found. Available pages:")
    assert watched(pages).look().flags is None
    assert latest_flags([watched(pages).look()], 5) is None
    pages.answers["/flags.json"] = (
        200,
        flags_page(flag("b", "2026-11-21T10:00:02Z"), flag("a", "2026-11-21T10:00:00Z")),
    )
    with served() as other:
        other.answers["/flags.json"] = (200, flags_page(flag("c", "2026-11-21T10:00:01Z")))
        seen = [watched(pages).look(), watched(other).look()]
    assert [flag.id for flag in latest_flags(seen, 5) or ()] == ["b", "c", "a"]
    assert [flag.id for flag in latest_flags(seen, 1) or ()] == ["b"]


def test_name_and_password(pages: Pages) -> None:
    """They are sent as basic authentication, and a refusal is shown as such."""
    watched(pages, access=ClientAccess("ops", "s3cret: ü")).look()
    assert base64.b64decode(pages.asked["Authorization"].removeprefix("Basic ")).decode() == "ops:s3cret: ü"
    pages.answers["/metrics"] = (401, b"")
    assert watched(pages).look().away == "wrong user name or password"
    assert "Authorization" not in pages.asked


def test_all_are_asked_at_the_same_time(pages: Pages) -> None:
    """Two consumers that wait for each other both answer."""
    together = threading.Barrier(2, timeout=WAIT_S / 2)
    with served() as other, ThreadPoolExecutor(2) as pool:
        pages.before_answer = other.before_answer = together.wait
        seen = look_at_all([watched(pages), watched(other)], pool)
    assert [(consumer.away, consumer.ready) for consumer in seen] == [(None, True)] * 2


def test_a_consumer_that_hangs_is_away() -> None:
    """The wait is bounded."""
    hanging = threading.Event()
    with served() as slow:
        slow.before_answer = lambda: hanging.wait(60)
        began_s = time.monotonic()
        seen = WatchedConsumer("slow", PagesClient(slow.url, ClientAccess(), 0.2)).look()
        assert time.monotonic() - began_s < 30
        assert seen.away == "no answer in time"
        hanging.set()


def test_a_page_without_end_is_given_up(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Size and time are bounded."""
    monkeypatch.setattr(pages_client, "BODY_BYTES_MAX", 1000)
    pages.answers["/metrics"] = (200, b"#" * 2000)
    assert watched(pages).look().away == "the page is larger than 1000 bytes"


def test_nobody_listens() -> None:
    """The reason is the message of the system."""
    with served() as gone:
        url = gone.url
    with pytest.raises(PageUnavailable, match="Connection refused"):
        PagesClient(url, ClientAccess(), WAIT_S).get("/metrics")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host:1",
        "http://",
        "http://host:x",
        "http://user:secret@host:1",
        "file:///etc",
        "foo",
        "http://[x",
    ],
)
def test_what_is_no_address(url: str) -> None:
    """It is refused before any request; credentials in a URL are refused, too."""
    with pytest.raises(ConfigError, match="not the address of a consumer"):
        PagesClient(url, ClientAccess(), WAIT_S)


def test_an_address_without_a_scheme_is_plain_http(pages: Pages) -> None:
    """As it stands in http.listen."""
    assert PagesClient(f"127.0.0.1:{pages.port}", ClientAccess(), WAIT_S).get("/readyz").is_dupwatch


def openssl(folder: Path, name: str, *more: str) -> tuple[Path, Path]:
    """A certificate and its key."""
    paths = folder / f"{name}.pem", folder / f"{name}.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    options = ["-subj", f"/CN={name}", "-days", "2", *more, "-out", str(paths[0]), "-keyout", str(paths[1])]
    subprocess.run([*command, *options], check=True, capture_output=True)
    return paths


def test_certificates_are_checked(tmp_path: Path) -> None:
    """Untrusted certificates are refused; a certificate that was named itself is accepted, self-signed or not."""
    ca, ca_key = openssl(tmp_path, "ca")
    certificate, key = openssl(
        tmp_path, "consumer", "-CA", str(ca), "-CAkey", str(ca_key), "-addext", "basicConstraints=critical,CA:FALSE"
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with served(context) as pages:
        url = f"https://127.0.0.1:{pages.port}"
        with pytest.raises(PageUnavailable, match="not trusted"):
            PagesClient(url, ClientAccess(), WAIT_S).get("/readyz")
        with pytest.raises(PageUnavailable, match="not trusted"):
            PagesClient(url, ClientAccess(authorities=str(ca)), WAIT_S).get("/readyz")
        own = ClientAccess(authorities=str(certificate), checks_name=False)
        assert PagesClient(url, own, WAIT_S).get("/readyz").status == 200
    with pytest.raises(ConfigError, match="nowhere"):
        PagesClient(url, ClientAccess(authorities=str(tmp_path / "nowhere")), WAIT_S)
