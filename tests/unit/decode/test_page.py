"""Web pages: the text of the article, or else all of it, and the title."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html

from consumer.decode.article import FieldMap, decode
from consumer.decode.html import page_article, page_survey, precise_article
from consumer.decode.html.html_reader import text_of_html
from consumer.decode.html.markup import MarkupTooComplex, parse_html
from consumer.decode.html.page import ARTICLE_BYTES_MIN, EXTRACTORS, PageText, load_extractor, read_page
from consumer.decode.html.page_marks import ElementMarks
from consumer.model.article import READER_REVISION, Article, ExtractionOutcome, ExtractorName, PageForm, Reason
from consumer.model.errors import BadRecord, ConfigError
from consumer.model.limits import DecodeLimits

FIXTURES: Final = Path(__file__).parents[2] / "fixtures" / "pages"
FORMS: Final[Sequence[PageForm]] = get_args(PageForm)
LIMITS: Final = DecodeLimits()
SENTENCE: Final = "The ferry came in at dawn, two hours late, and nobody on the quay had slept. "
PROSE: Final = f"<p>{SENTENCE * 2}</p><p>{SENTENCE.replace('ferry', 'tug') * 2}</p>"
TEXT: Final = text_of_html(PROSE, 1)
LINKS: Final = "<ul><li><a href='/1'>Storm warning, again</a></li><li><a href='/2'>Tax to rise, they say</a></li></ul>"


def read(markup: str, form: PageForm = "fast/2", limits: DecodeLimits = LIMITS) -> PageText:
    """Read a page by one of the extractors."""
    return read_page(markup, form, limits)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("page", sorted(path.stem for path in FIXTURES.glob("*.html")))
def test_a_revision_finds_the_same_for_ever(page: str, form: PageForm) -> None:
    """Where this fails, the extractor, its library or the reader finds another text: that needs another revision.

    Stores are bound to the old one, which stays as it was.
    """
    found = read((FIXTURES / f"{page}.html").read_text(encoding="utf-8"), form)
    pinned = json.loads((FIXTURES / f"{page}.json").read_text(encoding="utf-8"))
    lines = {"extracted": str(found.extracted), "title": found.title, "text": found.text.split("\n")}
    assert pinned[form] == lines
    assert pinned.keys() == set(FORMS)


def test_the_fixtures_are_of_several_kinds() -> None:
    """Articles, and a page without one."""
    pinned = [json.loads(path.read_text(encoding="utf-8")) for path in FIXTURES.glob("*.json")]
    assert len(pinned) >= 7
    assert {page[form]["extracted"] for page in pinned for form in FORMS} == {"article", "whole_text"}


@pytest.mark.parametrize(
    "around",
    [
        f"<nav>{PROSE}</nav>",
        f"<footer>{PROSE}</footer>",
        f"<aside>{PROSE}</aside>",
        f"<form>{PROSE}</form>",
        f"<div hidden>{PROSE}</div>",
        f"<div style='Display : None'>{PROSE}</div>",
        f"<div aria-hidden=true>{PROSE}</div>",
        f"<div role=navigation>{PROSE}</div>",
        f"<div class='user-comments'>{PROSE}</div>",
        f"<section id=RelatedStories>{PROSE}</section>".replace("Stories", ""),
        LINKS,
        f"<div>{LINKS}</div>",
    ],
)
@pytest.mark.parametrize("place", ["before", "behind", "within"])
def test_what_stands_around_an_article_is_left_out(around: str, place: str) -> None:
    """By its tag, role, style or name, or because it is made of links; text behind it stays."""
    around = around.replace("ferry", "crane").replace("tug", "crane")
    article = f"{around}{PROSE}" if place == "before" else f"{PROSE}{around}"
    if place == "within":
        article = PROSE.replace("</p><p>", f"</p>{around}<p>")
    found = read(f"<html><body><div>{article}</div></body></html>")
    assert (found.extracted, found.text) == (ExtractionOutcome.ARTICLE, TEXT)


def test_names_are_not_believed_where_nothing_is_left() -> None:
    """Some site calls its article a comment."""
    found = read(f"<body>{LINKS}<div class=comments>{PROSE}</div></body>")
    assert (found.extracted, found.text) == (ExtractionOutcome.ARTICLE, TEXT)


@pytest.mark.parametrize(
    "markup",
    [
        "".join(f"<div>{SENTENCE * 2}</div>" for _ in range(4)),
        "<br><br>".join(SENTENCE * 2 for _ in range(4)),
        "<table>" + "".join(f"<tr><td>{SENTENCE * 2}" for _ in range(4)) + "</table>",
        "".join(f"<section><p>{SENTENCE * 2}</p></section>" for _ in range(4)),
        "<dl>" + "".join(f"<dt>{number}<dd>{SENTENCE * 2}" for number in range(4)) + "</dl>",
    ],
    ids=["divs", "breaks", "cells", "sections", "definitions"],
)
def test_paragraphs_are_found_however_they_are_marked(markup: str) -> None:
    """All four of them, beside a menu."""
    found = read(f"<body><div>{LINKS}</div><div>{markup}</div><div>{LINKS}</div></body>")
    assert found.extracted is ExtractionOutcome.ARTICLE
    assert found.text.count("at dawn") == 8
    assert "Storm" not in found.text


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("markup", ["", "   ", "<br>", "text alone", LINKS, f"<p>{'x' * (ARTICLE_BYTES_MIN - 1)}</p>"])
def test_a_page_without_an_article_is_taken_whole(markup: str, form: PageForm) -> None:
    """No text is lost, and no text is a page without one."""
    assert read(markup, form) == PageText(text_of_html(markup, 1), ExtractionOutcome.WHOLE_TEXT, "")


def test_a_short_article_has_two_sentences() -> None:
    """In bytes: a Chinese sentence says as much in a third of the characters."""
    chinese = "渡轮在黎明时分进港，晚了两个小时，码头上没有人睡过觉。" * 2
    for text in ("x, " * 50, chinese):
        assert read(f"<div><p>{text}</p></div>{LINKS}") == PageText(text.strip(), ExtractionOutcome.ARTICLE, "")


def test_a_page_of_very_many_elements_is_taken_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not surveyed: that takes memory for every element."""
    monkeypatch.setattr(page_survey, "ELEMENTS_MAX", 50)
    markup = f"<div>{PROSE}</div>{LINKS}"
    assert read(markup).extracted is ExtractionOutcome.ARTICLE
    assert read(markup + "<hr>" * 50).extracted is ExtractionOutcome.WHOLE_TEXT


@pytest.mark.parametrize("limit", ["ELEMENTS_MAX", "DEPTH_MAX"])
def test_precise_leaves_large_and_deep_pages_to_fast(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    """Its work for each element is many times as much, and more the deeper it is."""
    markup = f"<html><body><div>{PROSE}</div>{LINKS}</body></html>"
    assert read(markup, "precise/2").extracted is ExtractionOutcome.ARTICLE
    monkeypatch.setattr(precise_article, limit, 3)
    assert read(markup, "precise/2") == PageText(TEXT, ExtractionOutcome.FAST_ARTICLE, "")


@pytest.mark.parametrize("error", [RecursionError(), IndexError(), ValueError(), AttributeError()])
def test_a_defect_of_the_library_costs_an_article_at_most(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """One page must not stop the stream."""

    def fail(*args: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(precise_article.load(), "bare_extraction", fail)
    assert read(f"<div>{PROSE}</div>", "precise/2").extracted is ExtractionOutcome.FAST_ARTICLE


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it; the default needs none."""
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    load_extractor("fast/2")
    with pytest.raises(ConfigError, match=r"source.extractor = \"precise\" needs .*trafilatura.*\n.*(make|pip)"):
        load_extractor("precise/2")


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("", ""),
        ("<title> A\n ferry </title>", "A ferry"),
        ("<title>A ferry | News</title><meta property=og:title content=' A  ferry '>", "A ferry"),
        ("<meta name=og:title content='A ferry'><title>News</title>", "A ferry"),
        ("<meta property=og:title content=' '><title>A ferry</title>", "A ferry"),
        ("<meta property=og:title><title></title><h1>A <b>ferry</b></h1><h1>No</h1>", "A ferry"),
        ("<svg><title>Picture</title></svg><h1>A ferry</h1>", "Picture"),
        ("<title>A &amp; B</title>", "A & B"),
    ],
)
def test_title(head: str, title: str) -> None:
    """The headline for links, else the title, else the first heading; on one line."""
    assert read(f"{head}<p>x</p>").title == title


def page_record(markup: str, **fields: object) -> bytes:
    """A record with this page."""
    return json.dumps({"id": "a", "body": markup} | fields).encode()


def decoded(data: bytes, limits: DecodeLimits = LIMITS) -> Article:
    """Decode a record of a page."""
    return decode(data, FieldMap(), limits, "fast/2")


def test_a_page_is_decoded() -> None:
    """The title is that of the record where it has one, and is cut; a retraction is no page."""
    markup = f"<title>{'A ferry ' * 1_000}</title><div>{PROSE}</div>{LINKS}"
    article = decoded(page_record(markup))
    assert (article.body, article.extracted, len(article.title)) == (
        TEXT,
        ExtractionOutcome.ARTICLE,
        LIMITS.title_chars_max,
    )
    assert decoded(page_record(markup, title="Mine")).title == "Mine"
    assert decoded(page_record(markup, title=None)).title == article.title
    assert decoded(b'{"id": "a", "body": null}') == Article(id="a", body=None)
    assert decode(page_record("<p>x"), FieldMap(), LIMITS, "html/2").extracted is None


def reason_of(data: bytes, limits: DecodeLimits) -> tuple[str, str]:
    """Return why a record is refused."""
    with pytest.raises(BadRecord) as refused:
        decoded(data, limits)
    return refused.value.reason, refused.value.detail


def test_a_page_may_be_longer_than_its_article() -> None:
    """Each has a limit, and what is said names it."""
    page = page_record(f"<div>{PROSE}</div>{LINKS * 20}")
    assert decoded(page, DecodeLimits(body_chars_max=len(TEXT))).body == TEXT
    reason, detail = reason_of(page, DecodeLimits(body_chars_max=len(TEXT) - 1))
    assert reason == Reason.BODY_TOO_LONG
    assert f"more than body_chars_max = {len(TEXT) - 1}" in detail
    reason, detail = reason_of(page, DecodeLimits(page_chars_max=1_000))
    assert reason == Reason.BODY_TOO_LONG
    assert "more than page_chars_max = 1000" in detail


@pytest.mark.parametrize(
    ("mark", "by_name"), [("class={}comments", True), ("id={}sidebar", True), ("style={}display:none", False)]
)
def test_only_the_beginning_of_names_and_styles_is_searched(mark: str, *, by_name: bool) -> None:
    """A name of a million characters is searched for fifty words otherwise."""
    marks = ElementMarks(by_name=by_name)
    short, long = (html.fromstring(f"<div {mark.format(chr(39) + 'x' * n + ';')}'>x</div>") for n in (300, 500))
    assert marks.is_apart(short)
    assert not marks.is_apart(long)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("markup", "limits"),
    [
        ("<div>" * 3_000 + SENTENCE, LIMITS),
        ("<p " + " ".join(f"a{number}" for number in range(1_001)) + ">x", LIMITS),
        ("<p>x" * 1_000, DecodeLimits(values_max=999)),
        ("<p a b c d e f g>x" * 125, DecodeLimits(values_max=999)),
        ("<div>" * 2_000 + "</x>" * 60_000, LIMITS),
    ],
    ids=["deep", "attributes of a tag", "elements", "attributes of a page", "end tags"],
)
def test_a_page_that_would_take_much_work_is_refused(markup: str, limits: DecodeLimits, form: PageForm) -> None:
    """Before a tree is made of it, and whatever the extractor would do."""
    with pytest.raises(MarkupTooComplex):
        read(markup, form, limits)


def test_ordinary_pages_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements are counted beforehand only where the length leaves room for too many."""
    assert read("<p>x" * 1_000, limits=DecodeLimits(values_max=2_000)).text.count("x") == 1_000
    monkeypatch.setattr("consumer.decode.html.markup._check", None)
    read("<p>x" * 1_000, limits=DecodeLimits(values_max=2_000))
    with pytest.raises(TypeError):
        read("<p>x" * 1_001, limits=DecodeLimits(values_max=2_000))


@given(st.text(alphabet="<>/=' abdiptrlvu,.\n", max_size=120))
def test_any_page_has_a_text_of_its_own(markup: str) -> None:
    """Nothing is raised, and every line found is one of the page's."""
    tree = parse_html(markup, 1_000)
    if tree is not None:
        found = page_article.article_text(tree)
        whole = " ".join(text_of_html(markup, 1_000).split())
        assert all(line in whole for line in found.split("\n"))


def test_every_extractor_has_every_revision() -> None:
    """A store of any revision is read on as it was."""
    revisions = range(1, READER_REVISION + 1)
    assert [f"{name}/{number}" for name in get_args(ExtractorName) for number in revisions] == list(FORMS)
    assert EXTRACTORS.keys() == set(FORMS)
