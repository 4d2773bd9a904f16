"""``/flags.json``: the latest flags for programs; and what the addresses of the former pages say."""

import json
from email.message import Message
from urllib.parse import parse_qs, urlsplit

import pytest

from consumer.model.hooks import Hooks
from consumer.pipeline.batches import BatchCommitted
from consumer.telemetry.flags_json import flag_pages
from consumer.telemetry.latest_flags import LatestFlags
from consumer.web.page import PageRequest, PageResponse, ServedPage
from storage.memory import MemoryStore
from storage.records import Version
from tests.builders import TIME_MS, make_version
from tests.unit.telemetry.flagged import flagged

HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&amp;\u202e\x00\x1b[31m\u2028"
CONSOLE = "https://console.example"


def ask(page: ServedPage, path: str = "/", **query: str) -> PageResponse:
    """Return the answer of a page."""
    return page.answer(PageRequest(path, query, Message(), trusted=True))


def shown(
    article: Version, original: Version, console_url: str | None = None
) -> tuple[dict[str, ServedPage], LatestFlags]:
    """Return the pages of a run with one flag."""
    store = MemoryStore()
    latest = LatestFlags(5, TIME_MS, lambda: None)
    latest.read_from(store)
    Hooks(latest).report(BatchCommitted([flagged(store, article, original, similarity=0.94)], []))
    latest.latest(20)
    return flag_pages(latest, console_url), latest


def hostile(article_id: str) -> Version:
    """Return an article with an attack in every field."""
    return make_version(
        article_id + HOSTILE, b"same", f"The ferry {HOSTILE} came. " * 3, title=HOSTILE, source=HOSTILE,
        url="javascript:alert(1)", lang='en" onload="alert(1)', keywords=((HOSTILE, 3.0), ("ferry", 2.0)),
        time_ms=TIME_MS + len(article_id),
    )  # fmt: skip


def test_a_version_that_is_over_is_said_to_be() -> None:
    """A flag names the version it was compared with, and when that was replaced or retracted."""
    store = MemoryStore()
    latest = LatestFlags(5, TIME_MS, lambda: None)
    latest.read_from(store)
    Hooks(latest).report(BatchCommitted([flagged(store, make_version("b", b"same"), make_version("a", b"same"))], []))
    store.create([make_version("a", b"other", time_ms=TIME_MS + 60_000)])
    (flag,) = json.loads(ask(flag_pages(latest, None)["/flags.json"]).body)["flags"]
    assert (flag["article"]["ended_at"], flag["original"]["ended_at"]) == (None, "2023-11-14T22:14:20.000Z")


def test_json_for_programs() -> None:
    """The fields of the verdict and the titles of both articles, without texts; unsafe links are left out."""
    pages, _ = shown(hostile("bb"), make_version("a", b"same", url="https://two.example/"))
    content = json.loads(ask(pages["/flags.json"]).body)
    assert content["schema"] == "dupwatch.flags/1"
    assert (content["seen"], content["flags_max"], content["trouble"]) == (1, 5, None)
    (flag,) = content["flags"]
    assert flag["id"] == "bb" + HOSTILE
    assert (flag["duplicate_of"], flag["distance"], flag["similarity"], flag["released"]) == ("a", 3, 0.94, False)
    assert flag["href"] is None
    assert flag["article"]["url"] == ""
    assert flag["original"] == {
        "title": "A ferry in the harbour", "source": "wire", "url": "https://two.example/", "lang": "",
        "arrived_at": "2023-11-14T22:13:20.000Z", "ended_at": None,
    }  # fmt: skip
    assert "The ferry" not in json.dumps(content)


def test_links_lead_to_the_console() -> None:
    """Whatever an id has in it, the console gets exactly this id and the version."""
    pages, _ = shown(hostile("bb"), make_version("a", b"same"), CONSOLE)
    (flag,) = json.loads(ask(pages["/flags.json"]).body)["flags"]
    place = urlsplit(flag["href"])
    assert f"{place.scheme}://{place.netloc}{place.path}" == f"{CONSOLE}/flags"
    assert parse_qs(place.query) == {"id": [flag["id"]], "version": [flag["version"]]}


@pytest.mark.parametrize(
    ("limit", "count"), [("1", 1), ("0", 0), ("99", 2), ("", 2), ("-1", 2), ("x", 2), ("9" * 99, 2)]
)
def test_json_of_fewer(limit: str, count: int) -> None:
    """A numeric limit applies; anything else is ignored."""
    pages, latest = shown(make_version("b"), make_version("a"))
    Hooks(latest).report(BatchCommitted([flagged(MemoryStore(), make_version("d"), make_version("c"))], []))
    assert len(json.loads(ask(pages["/flags.json"], limit=limit).body)["flags"]) == count


@pytest.mark.parametrize("path", ["/", "/flags", "/flags/"])
def test_the_former_pages_say_where_flags_are(path: str) -> None:
    """In a console, with its address where it is configured, and in /flags.json unless that is switched off."""
    latest = LatestFlags(5, TIME_MS, lambda: None)
    answer = ask(flag_pages(latest, CONSOLE)[path], f"{path}00")
    assert (answer.status, answer.content_type) == (200, "text/plain; charset=utf-8")
    assert f"{CONSOLE}/\n" in answer.body.decode()
    assert b"/flags.json" in answer.body
    pages = flag_pages(LatestFlags(0, TIME_MS, lambda: None), None)
    assert "/flags.json" not in pages
    assert b"http.console_url" in ask(pages[path]).body
    assert b"/flags.json" not in ask(pages[path]).body
