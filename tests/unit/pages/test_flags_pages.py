"""The pages of flags as HTML and JSON: what they show, and that articles never become markup."""

import json
import re
from collections.abc import Sequence
from email.message import Message
from html.parser import HTMLParser

import pytest

from consumer.model.hooks import Hooks
from consumer.pages import flags as flags_pages
from consumer.pages.flags import FlagPages
from consumer.pages.flags_page import flags_page
from consumer.pages.latest_flags import Latest, LatestFlags
from consumer.pipeline.batches import BatchCommitted
from consumer.web.page import Page, Request, Response
from storage.memory import MemoryStore
from storage.records import Version
from tests.builders import TIME_MS, make_version
from tests.unit.pages.flagged import flagged

HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&amp;\u202e\x00\x1b[31m\u2028"
TAGS = frozenset(
    {"html", "head", "meta", "title", "style", "body", "header", "nav", "main", "footer", "article", "section", "div"}
    | {"h1", "h2", "p", "a", "b", "i", "span", "time", "bdi", "mark", "dl", "dt", "dd", "code"}
)
ATTRIBUTES = frozenset(
    {"lang", "charset", "name", "content", "http-equiv", "class", "id", "href", "rel", "target", "datetime", "dir"}
    | {"aria-hidden"}
)


class Reader(HTMLParser):
    """Collects elements, their attributes, and the text, as a browser would."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.marks: list[str] = []
        self.text = ""
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        """Some text."""
        if self.tags and self.tags[-1] == "style":
            return
        if self.get_starttag_text() == "<mark>":
            self.marks.append(data)
        self.text += data


def ask(page: Page, path: str = "/", **query: str) -> Response:
    """The answer of a page."""
    return page.answer(Request(path, query, Message(), trusted=True))


def shown(
    article: Version, original: Version, similarity: float | None = 0.94, parts: Sequence[Version] = ()
) -> tuple[dict[str, Page], LatestFlags]:
    """The pages of a run with one flag."""
    store = MemoryStore()
    latest = LatestFlags(5, TIME_MS, lambda: None)
    latest.read_from(store)
    Hooks(latest).report(BatchCommitted([flagged(store, article, original, similarity=similarity, parts=parts)], []))
    latest.latest(20)
    return FlagPages(latest).pages(), latest


def hostile(article_id: str) -> Version:
    """An article with an attack in every field."""
    return make_version(
        article_id + HOSTILE, b"same", f"The ferry {HOSTILE} came. " * 3, title=HOSTILE, source=HOSTILE,
        url="javascript:alert(1)", lang='en" onload="alert(1)', keywords=((HOSTILE, 3.0), ("ferry", 2.0)),
        time_ms=TIME_MS + len(article_id),
    )  # fmt: skip


@pytest.mark.parametrize("path", ["/", "/flags/"])
def test_nothing_of_an_article_is_markup(path: str) -> None:
    """The page has only its own elements and attributes, no scripts or foreign addresses; the text is complete."""
    pages, latest = shown(hostile("bb"), hostile("a"))
    where = path if path == "/" else f"{path}{latest.latest().flags[0].reference.hex()}"
    response = ask(pages[path], where)
    assert response.status == 200
    page = Reader(response.body)
    assert set(page.tags) <= TAGS
    assert {name for name, _ in page.attributes} <= ATTRIBUTES
    assert all(value.startswith("/") for name, value in page.attributes if name == "href")
    assert "en" in {value for name, value in page.attributes if name == "lang"}
    assert not any("onload" in value for name, value in page.attributes if name == "lang")
    assert page.text.count("<script>alert(1)</script><img src=x onerror=alert(1)>&amp;") >= 6
    assert not re.search("[\u202e\x00\x1b\u2028]", page.text)


def test_the_page_of_a_flag_marks_what_stands_in_its_parts() -> None:
    """Word for word, and nothing else; markup in it is text."""
    passage = "The old bridge over the gorge carried its last lorry at dawn <b>."
    article = make_version("b", b"1", body=f"Some news. {passage} More news.")
    parts = [
        make_version("bridge", b"2", body=f"Long before that, {passage} It was quiet.", title="The <i>bridge"),
        make_version("elsewhere", b"3", body="Nothing of the kind was ever said by anybody in this place."),
        make_version("secret", b"4", body=None),
    ]
    pages, latest = shown(article, make_version("a"), parts=parts)
    page = Reader(ask(pages["/flags/"], f"/flags/{latest.latest().flags[0].reference.hex()}").body)
    assert [mark for mark in page.marks if "bridge" in mark] == [f" {passage} "]
    assert f"{len(passage) + 2} characters" in page.text
    assert "The <i>bridge" in page.text
    assert "25% of this article, 50% of that one" in page.text
    assert "No passage is the same word for word." in page.text
    assert "Text not stored." in page.text
    assert set(page.tags) <= TAGS
    assert Reader(ask(pages["/"]).body).marks.count(f" {passage} ") == 0


def test_policy_allows_the_style_sheet_and_nothing_else() -> None:
    """No scripts, images, frames or forms; the policy names the style sheet by its digest."""
    pages, _ = shown(make_version("b"), make_version("a"))
    policy = ask(pages["/"]).headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert "script-src" not in policy


def test_a_flag_shows_what_repeats_what_and_why() -> None:
    """Both articles with their texts, distance, similarity, shared keywords marked, source, times and links."""
    article = make_version(
        "b", url="https://one.example/b", body="The Ferry came.", title="New", time_ms=TIME_MS + 1000
    )
    original = make_version("a", url="http://two.example:81/a?x=1&y", body="A ferry went.", title="Old", source="press")
    pages, _ = shown(article, original)
    page = Reader(ask(pages["/"]).body)
    for expected in ("New", "Old", "The Ferry came.", "A ferry went.", "similarity 0.94", "distance 3 bits", "wire",
                     "press", "one.example", "2023-11-14 22:13:21 UTC"):  # fmt: skip
        assert expected in page.text, expected
    assert page.marks.count("Ferry") == 1
    assert page.marks.count("ferry") == 1
    hrefs = [value for name, value in page.attributes if name == "href"]
    assert "https://one.example/b" in hrefs
    assert "http://two.example:81/a?x=1&y" in hrefs
    assert [value for name, value in page.attributes if name == "rel"] == ["noreferrer noopener nofollow"] * 2


def test_without_texts_titles_and_keywords_are_there() -> None:
    """A store without bodies still shows both articles; plain SimHash shows no similarity."""
    pages, _ = shown(make_version("b", body=None), make_version("a", body=None), None)
    page = Reader(ask(pages["/"]).body)
    assert page.text.count("Text not stored.") == 2
    assert "A ferry in the harbour" in page.text
    assert "harbour" in page.text
    assert " similar" not in page.text


def test_long_texts_are_cut_on_the_list_and_whole_on_their_page() -> None:
    """The list shows the beginning; the page of a flag shows all that is held."""
    body = "ferry " * 1000
    pages, latest = shown(make_version("b", body=body), make_version("a", body=body))
    assert len(ask(pages["/"]).body) < 20_000
    page = ask(pages["/flags/"], f"/flags/{latest.latest().flags[0].reference.hex()}").body
    assert Reader(page).marks.count("ferry") >= 2000


def test_a_flag_that_is_not_held_is_not_found() -> None:
    """An unknown or malformed reference is not found."""
    pages, _ = shown(make_version("b"), make_version("a"))
    for name in ("00" * 32, "", "x/../y", "ü"):
        assert ask(pages["/flags/"], f"/flags/{name}").status == 404


def test_nothing_flagged_yet() -> None:
    """The page says so."""
    pages = FlagPages(LatestFlags(5, TIME_MS, lambda: None)).pages()
    assert "No flags yet" in Reader(ask(pages["/"]).body).text


def test_it_refreshes_only_where_asked_to() -> None:
    """A page without the parameter does not reload."""
    pages, _ = shown(make_version("b"), make_version("a"))
    assert b"http-equiv" not in ask(pages["/"]).body
    assert b'http-equiv="refresh" content="10"' in ask(pages["/"], refresh="10").body


def test_a_page_is_made_once_while_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many requests in a second make one page; a new flag makes another one, but not at once."""
    renderings: list[int] = []

    def counted(latest: Latest, *, refreshes: bool) -> bytes:
        renderings.append(1)
        return flags_page(latest, refreshes=refreshes)

    monkeypatch.setattr(flags_pages, "flags_page", counted)
    pages, latest = shown(make_version("b"), make_version("a"))
    bodies = {ask(pages["/"]).body for _ in range(20)}
    assert (len(bodies), len(renderings)) == (1, 1)
    Hooks(latest).report(BatchCommitted([latest.latest().flags[0].verdict], []))
    ask(pages["/"])
    assert len(renderings) == 1
    monkeypatch.setattr(flags_pages, "_KEPT_S", 0.0)
    ask(pages["/"])
    assert len(renderings) == 2


def test_a_version_that_is_over_shows() -> None:
    """A flag names the version it was compared with; both pages show if it was replaced or retracted since."""
    store = MemoryStore()
    latest = LatestFlags(5, TIME_MS, lambda: None)
    latest.read_from(store)
    Hooks(latest).report(BatchCommitted([flagged(store, make_version("b", b"same"), make_version("a", b"same"))], []))
    pages = FlagPages(latest).pages()
    assert "replaced or retracted" not in Reader(ask(pages["/"]).body).text
    store.create([make_version("a", b"other", time_ms=TIME_MS + 60_000)])
    Hooks(latest).report(BatchCommitted([latest.latest(20).flags[0].verdict], []))
    (flag,) = json.loads(ask(pages["/flags.json"]).body)["flags"]
    assert (flag["article"]["ended_at"], flag["original"]["ended_at"]) == (None, "2023-11-14T22:14:20.000Z")
    text = Reader(FlagPages(latest).pages()["/"].answer(Request("/", {}, Message(), trusted=True)).body).text
    assert text.count("replaced or retracted 2023-11-14 22:14:20 UTC") == 1


def test_json_for_programs() -> None:
    """The fields of the verdict and the titles of both articles, without texts; unsafe links are left out."""
    pages, latest = shown(hostile("bb"), make_version("a", b"same", url="https://two.example/"))
    content = json.loads(ask(pages["/flags.json"]).body)
    assert content["schema"] == "dupwatch.flags/1"
    assert (content["seen"], content["flags_max"], content["trouble"]) == (1, 5, None)
    (flag,) = content["flags"]
    assert flag["id"] == "bb" + HOSTILE
    assert (flag["duplicate_of"], flag["distance"], flag["similarity"], flag["released"]) == ("a", 3, 0.94, False)
    assert flag["href"] == f"/flags/{latest.latest().flags[0].reference.hex()}"
    assert flag["article"]["url"] == ""
    assert flag["original"] == {
        "title": "A ferry in the harbour", "source": "wire", "url": "https://two.example/", "lang": "",
        "arrived_at": "2023-11-14T22:13:20.000Z", "ended_at": None,
    }  # fmt: skip
    assert "The ferry" not in json.dumps(content)


@pytest.mark.parametrize(
    ("limit", "count"), [("1", 1), ("0", 0), ("99", 2), ("", 2), ("-1", 2), ("x", 2), ("9" * 99, 2)]
)
def test_json_of_fewer(limit: str, count: int) -> None:
    """A numeric limit applies; anything else is ignored."""
    pages, latest = shown(make_version("b"), make_version("a"))
    Hooks(latest).report(BatchCommitted([flagged(MemoryStore(), make_version("d"), make_version("c"))], []))
    assert len(json.loads(ask(pages["/flags.json"], limit=limit).body)["flags"]) == count
