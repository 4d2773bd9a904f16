"""Revision 2 of the reader of HTML: closer to what a browser shows. Revision 1 stays as it was."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser, LexborNode

from consumer.decode.article import FieldMap, decode
from consumer.decode.html import html_reader
from consumer.decode.html.html_reader import text_of_html, tree_of
from consumer.decode.html.html_text import BLOCKS, HIDDEN
from consumer.decode.html.markup import MarkupTooComplex
from consumer.decode.html.markup_repair import repair_markup
from consumer.decode.html.page import read_page
from consumer.model.article import BodyForm, PageForm
from consumer.model.limits import DecodeLimits
from tests.processor_time import within_processor_s

LIMITS = DecodeLimits()
NEWS = "The ferry came in at dawn, two hours late, and nobody on the quay had slept. " * 3


def both(markup: str) -> tuple[str, str]:
    """Return the text of markup by revision 1, and by revision 2."""
    first, second = (text_of_html(markup, LIMITS.attributes_max, revision) for revision in (1, 2))
    return first, second


@pytest.mark.parametrize(
    ("markup", "first", "second"),
    [
        ("a</br>b", "ab", "a\nb"),
        ("a</BR\n>b</br/>c</br x='1'>d", "abcd", "a\nb\nc\nd"),
        ("a</break>b</brr>c", "abc", "abc"),
        ("a</p>b", "ab", "a\nb"),
        ("<p>a</p>b</p>c", "a\nbc", "a\nb\nc"),
        ("<p>a<div>b</div>c</p>d", "a\nb\ncd", "a\nb\nc\nd"),
        ("<p>a<ul><li>b</ul>c</p>d", "a\nb\ncd", "a\nb\nc\nd"),
        ("<li>a</P >b", "ab", "a\nb"),
        ("<p>a <b>b</p>c", "a b\nc", "a b\nc"),
        ("<h2>a</h3>b", "ab", "a\nb"),
        ("<H2>a</H6>b<h1>c</h1>d", "ab\nc\nd", "a\nb\nc\nd"),
        ("<h2>a<h3>b</h4>c</h2>d", "a\nbc\nd", "a\nb\ncd"),
        ("<h3>a<div><h2>b</div>c</h3>d", "a\nb\nc\nd", "a\nb\nc\nd"),
        ("<h2>a<p>b</h2>c", "a\nbc", "a\nb\nc"),
        ("<h1>a<div>b</h3>c", "a\nbc", "a\nb\nc"),
        ("a</h2>b", "ab", "ab"),
        ("<!-- <h2> -->a</h3>b", "ab", "ab"),
        ("<!--><h2>a</h3>b", "ab", "a\nb"),
        ("<script><h2></script>a</h3>b<style></br></style>c", "abc", "abc"),
        ("<textarea></p></br></textarea>a", "</p></br>\na", "</p></br>\na"),
        ("a<!-- never </br> ends", "a", "a"),
        ("a</br", "a", "a"),
        ("a</br </p b>c", "ac", "a\nc"),
        ("<ruby>a<rt>b</br <rt>c", "abc", "ab\nc"),
    ],
)
def test_end_tags_break_lines_as_in_a_browser(markup: str, first: str, second: str) -> None:
    """Those of line breaks, of paragraphs without a start, and of other headings than the open one."""
    assert both(markup) == (first, second)


def test_markup_that_needs_no_repair_is_not_changed() -> None:
    """Nor are words, values of attributes and references in markup that does."""
    right = "<p class='</br>'>a &amp; b</p>\n<h2 id=İ>c</h2>"
    assert repair_markup(right.replace("</br>", "")) == right.replace("</br>", "")
    assert repair_markup(f"İ {right}</BR>d") == f"İ {right.replace('</br>', '<br>')}<br>d"


@pytest.mark.parametrize(
    ("markup", "second"),
    [
        ("<ruby>漢<rt>かん</rt>字<rt>じ</rt></ruby>だ", "漢字だ"),
        ("<ruby>漢字<rp>（</rp><rt>かんじ</rt><rp>）</rp></ruby>だ", "漢字だ"),
        ("<ruby>漢字<rp>（<rt>かんじ<rp>）</ruby>だ", "漢字だ"),
        ("<ruby><rb>漢<rt>かん<rb>字<rt>じ</ruby>だ", "漢字だ"),
        ("<ruby><rb>漢<rb>字<rtc><rt>かん<rt>じ<rtc><rt>kanji</ruby>だ", "漢字だ"),
        ("<ruby>漢<rtc><rt>かん</rt></rtc>字</ruby>だ", "漢字だ"),
        ("<ruby><ruby>漢<rt>かん</rt></ruby>字<rt>kanji</rt></ruby>だ", "漢字だ"),
        ("<p><ruby>漢<rt>かん</p><p>字</p>", "漢\n字"),
        ("<RUBY>A<RT>b</RT></RUBY>C", "AC"),
        ("<rt>a</rt>b<rp>c</rp>", "abc"),
        ("<ruby>漢<rt><p>長い</p></ruby>", "漢\n長い"),
        ("<ruby>漢<rt>" + "<b>あ" * 60, "漢" + "あ" * 60),
        ("<dropped>a</dropped>", "a"),
    ],
)
def test_readings_are_no_text(markup: str, second: str) -> None:
    """What is no reading stays: outside of ruby, and behind a tag that was never closed."""
    assert both(markup)[1] == second


def test_revision_1_keeps_readings() -> None:
    """With the brackets that stand around them."""
    assert both("<ruby>漢字<rp>（</rp><rt>かんじ</rt><rp>）</rp></ruby>だ")[0] == "漢字（かんじ）だ"


@pytest.mark.parametrize(
    ("markup", "first", "second"),
    [
        ("漢\n字", "漢 字", "漢字"),
        ("漢 \r\n\t 字", "漢 字", "漢字"),
        ("かな\nカナ", "かな カナ", "かなカナ"),
        ("渡轮，\n晚了。\n「好」", "渡轮， 晚了。 「好」", "渡轮，晚了。「好」"),
        ("𠀀\n𠀁", "𠀀 𠀁", "𠀀𠀁"),
        ("漢<b>\n字</b>\n漢", "漢 字 漢", "漢字漢"),
        ("<a href=x>漢</a>\n<a href=y>字</a>", "漢 字", "漢 字"),
        ("&#28450;\n&#x5b57;", "漢 字", "漢字"),
        ("漢\nabc\n字", "漢 abc 字", "漢 abc 字"),
        ("漢 字", "漢 字", "漢 字"),
        ("漢&nbsp;字\n\n漢", "漢 字 漢", "漢 字漢"),
        ("배가\n들어왔다", "배가 들어왔다", "배가 들어왔다"),
        ("漢<br>\n字<p>漢\n</p>\n字", "漢\n字\n漢\n字", "漢\n字\n漢\n字"),
        ("<pre>漢\n字</pre>漢\n字", "漢 字\n漢 字", "漢 字\n漢字"),
        ("漢<script>\n</script>\n字", "漢 字", "漢字"),
    ],
)
def test_a_line_end_between_ideographs_is_no_space(markup: str, first: str, second: str) -> None:
    """Only the end of a line of markup, between characters that are written without spaces."""
    assert both(markup) == (first, second)


def test_a_long_line_is_joined_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A space may stay where one part ends; no text is lost."""
    markup = "<b>漢</b>\n字" * 10
    assert both(markup)[1] == "漢字" * 10
    monkeypatch.setattr(html_reader, "_PLACES_MAX", 5)
    text = both(markup)[1]
    assert text.replace(" ", "") == "漢字" * 10
    assert 0 < text.count(" ") < 9


ESCAPED = [
    ("&lt;p&gt;A &amp;amp; B&lt;/p&gt;\n&lt;p&gt;C&lt;/p&gt;", "A & B\nC"),
    ("&lt;P CLASS=&quot;x&quot;&gt;A&lt;br /&gt;B&lt;/P&gt;", "A\nB"),
    ("  &#60;div&#62;A &#38;lt; B&#60;/div&#62; ", "A < B"),
    ("&lt;img src=x&gt;&lt;p&gt;A&lt;/p&gt;", "A"),
    ("News: &lt;b&gt;A&lt;/b&gt; and &lt;i&gt;B&lt;/i&gt;", "News: A and B"),
    ("&lt;![CDATA[&lt;p&gt;A&lt;/p&gt;&lt;p&gt;B&lt;/p&gt;]]&gt;", "A\nB"),
    ("&lt;p&gt;A&lt;/br&gt;&lt;ruby&gt;漢&lt;rt&gt;x&lt;/rt&gt;&lt;/ruby&gt;\n字&lt;/p&gt;", "A\n漢字"),
]
SHOWN = [
    ("<p>Write &lt;p&gt;A&lt;/p&gt; and &lt;b&gt;B&lt;/b&gt;.</p>", "Write <p>A</p> and <b>B</b>."),
    ("To print A in bold, write &lt;b&gt;A&lt;/b&gt;.", "To print A in bold, write <b>A</b>."),
    ("Set &lt;name&gt;A&lt;/name&gt; and &lt;port&gt;1&lt;/port&gt;.", "Set <name>A</name> and <port>1</port>."),
    ("&lt;p&gt; begins a paragraph, &lt;b&gt; bold text.", "<p> begins a paragraph, <b> bold text."),
    ("&lt;br&gt; ends a line, &lt;p&gt;A&lt;/p&gt; is a paragraph.", "<br> ends a line, <p>A</p> is a paragraph."),
    ("Shown with &lt;b&gt;A&lt;/b&gt;", "Shown with <b>A</b>"),
    ("<br>&lt;p&gt;A&lt;/p&gt;&lt;p&gt;B&lt;/p&gt;", "<p>A</p><p>B</p>"),
    ("1 &lt; 2 &amp;&amp; 3 &gt; 2", "1 < 2 && 3 > 2"),
]


@pytest.mark.parametrize(("markup", "text"), ESCAPED)
def test_markup_that_was_escaped_twice_is_read_as_markup(markup: str, text: str) -> None:
    """A body without elements whose text has pairs of tags, or begins and ends with tags."""
    assert both(markup)[1] == text
    assert "<" in both(markup)[0]


@pytest.mark.parametrize(("markup", "text"), SHOWN)
def test_a_text_about_markup_shows_its_tags(markup: str, text: str) -> None:
    """It has elements of its own, or hardly a pair of tags, or tags that HTML does not have."""
    assert both(markup) == (text, text)


def test_markup_is_parsed_once_more_at_most() -> None:
    """What was escaped three times shows tags."""
    assert both("&lt;p&gt;&amp;lt;p&amp;gt;A&amp;lt;/p&amp;gt;&lt;/p&gt;")[1] == "<p>A</p>"


@pytest.mark.parametrize(
    ("markup", "second"),
    [
        ("<![CDATA[<p>a</p><p>b</p>]]>", "a\nb"),
        ("\n <![CDATA[a]]> ", "a"),
        ("<![CDATA[a ]]]]><![CDATA[> b]]>", "a ]]> b"),
        ("<![CDATA[]]>", ""),
        ("<![CDATA[&lt;p&gt;A&lt;/p&gt;&lt;p&gt;B&lt;/p&gt;]]>", "A\nB"),
        ("<p>x<![CDATA[a]]>y</p>", "xy"),
        ("<![CDATA[<p>a</p>", "a"),
    ],
)
def test_a_cdata_mark_around_a_body_is_taken_off(markup: str, second: str) -> None:
    """Elsewhere it is a comment, as in a browser."""
    assert both(markup)[1] == second


def test_an_article_is_read_in_the_same_way() -> None:
    """Whatever finds it: readings, lines and breaks are those of the tree."""
    text = "港町の市議会は、新しい\nフェリーの開業を、正式に承認した。" * 9
    markup = f"<div><p>{text}</br>a <ruby>船<rt>ふね</rt></ruby></p></div>"
    forms: list[PageForm] = ["fast/2", "precise/2"]
    for form in forms:
        assert read_page(markup, form, LIMITS).text == text.replace("\n", "") + "\na 船"
    assert "ふね" in read_page(markup, "fast/1", LIMITS).text


@pytest.mark.parametrize("form", ["html/2", "fast/2"])
@pytest.mark.parametrize(
    ("body", "without_text"),
    [("<p> </p>", True), ("<!-- a -->", True), ("", False), (" \n", False), ("a", False), ("<p>a</p>", False)],
)
def test_markup_without_text_is_marked(form: BodyForm, body: str, *, without_text: bool) -> None:
    """The article is judged as one without words, as before; a body that is empty is as it came."""
    article = decode(json.dumps({"id": "a", "body": body}).encode(), FieldMap(), LIMITS, form)
    assert article.without_text is without_text
    assert not decode(json.dumps({"id": "a", "body": body}).encode(), FieldMap(), LIMITS, "text").without_text


def test_limits_hold_for_the_second_time_too() -> None:
    """A body that was escaped twice may have no more attributes, depth or values than another."""
    wide = "&lt;p " + " ".join(f"a{number}" for number in range(9)) + "&gt;x&lt;/p&gt;"
    with pytest.raises(MarkupTooComplex, match="attributes_max = 8 "):
        text_of_html(wide, 8)
    with pytest.raises(MarkupTooComplex, match="too deep"):
        text_of_html("&lt;div&gt;" * 3_000 + "&lt;/div&gt;" * 3_000, 8)
    with pytest.raises(MarkupTooComplex, match="values_max = 999"):
        tree_of("&lt;p&gt;x&lt;/p&gt;" * 1_000, 2, 8, 999)


@pytest.mark.parametrize(
    "markup",
    [
        "</br " * 180_000,
        "<h1><b>" * 500 + "</h2>" * 150_000,
        "<!-- - " * 130_000,
        "<title></titl" * 60_000,
        "<ruby>" + "x<rt>a</rt>" * 80_000,
        "<ruby>" + "<rtc><rt>" * 900 + "<b>x</b>" * 90_000,
        "中\n" * 300_000,
        "中" + " \n" * 400_000 + "x",
        "中\n" + "<b <b" * 150_000,
        "&lt;p " * 150_000 + "x &lt;/p&gt;",
        "<![CDATA[" + "]]><![CDATA[" * 70_000 + "]]>",
    ],
    ids=[
        "ends",
        "headings",
        "dashes",
        "titles",
        "readings",
        "deep readings",
        "lines",
        "spaces",
        "tags",
        "shown",
        "cdata",
    ],
)
def test_hostile_markup_is_read_in_time(markup: str) -> None:
    """Each step takes time in proportion to the length of the markup."""
    with within_processor_s(5):
        text_of_html(markup, LIMITS.attributes_max)


_REPAIRED_TAGS = ["<p>", "</p>", "<br>", "</br>", "<h1>", "<h2>", "</h2>", "</H3>", "<div>"]
_WORDS = ["a", " b", "c ", "<!-- <p> -->"]


def lines_of(node: LexborNode) -> Iterator[str]:
    """Yield the text of a node by a parser that follows the standard, with a line end around each block."""
    if node.tag == "-text":
        yield node.text_content or ""
    elif node.tag not in HIDDEN:
        around = "\n" if node.tag in BLOCKS else ""
        yield around
        inner = node.child
        while inner is not None:
            yield from lines_of(inner)
            inner = inner.next
        yield around


@given(st.lists(st.sampled_from([*_REPAIRED_TAGS, *_WORDS]), max_size=12))
def test_lines_are_those_of_the_standard(pieces: list[str]) -> None:
    """Of all tags that are repaired, in any order."""
    markup = "".join(pieces)
    root = LexborHTMLParser(markup).root
    assert root is not None
    lines = (" ".join(line.split()) for line in "".join(lines_of(root)).split("\n"))
    assert both(markup)[1] == "\n".join(filter(None, lines))


@given(st.text(alphabet="<>/!-=\"' abhpr1漢\n", max_size=80))
def test_any_markup_keeps_its_words(markup: str) -> None:
    """Nothing is raised, and a repair adds no characters and loses none, but for readings, which this has not."""
    first, second = both(markup)
    assert "".join(first.split()) == "".join(second.split())
