"""The text of HTML: what a reader sees, from any markup, in time that grows with its length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from consumer.decode.html.html_reader import text_of_html
from consumer.decode.html.markup import MarkupTooComplex
from consumer.model.limits import DecodeLimits
from tests.processor_time import within_processor_s

ATTRIBUTES_MAX = DecodeLimits().attributes_max


@pytest.mark.parametrize("revision", [1, 2])
@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("", ""),
        ("plain", "plain"),
        ("<p>one</p><p>two</p>", "one\ntwo"),
        ("<p>one<p>two", "one\ntwo"),
        ("新<b>华</b>社", "新华社"),
        ("a<br>b<br/>c<BR />d", "a\nb\nc\nd"),
        ("<ul><li>a<li>b</ul>c", "a\nb\nc"),
        ("<table><tr><td>a<td>b<tr><th>c</table>", "a\nb\nc"),
        ("one\n  two\t three", "one two three"),
        ("a&nbsp;b &lt;p&gt; &#20013;&#x6587; &amp;amp; AT&T", "a b <p> 中文 &amp; AT&T"),
        ("x<script>if (a<b) { '</p>' }</script>y", "xy"),
        ("x<style>p > a {}</style >y<SCRIPT>z</sCript>", "xy"),
        ("<head><title>t &amp; <b></title></head>b", "b"),
        ("x<template>no<template>no</template>no</template>y", "xy"),
        ("</template>x", "x"),
        ("x<noscript>no</noscript>y", "xy"),
        ("x<noscript>never ends", "x"),
        ("x<script>never ends", "x"),
        ("x<template>never ends", "x"),
        ("x<!-- a > b -- c -->y<!-->z<!--->w<!-- a --!>v", "xyzwv"),
        ("x<!-- never ends", "x"),
        ("<!DOCTYPE html><?xml version='1.0'?>x</ bogus>y</>z", "xyz"),
        ('<a title="a > b" href=\'<p>\' x=">">link</a>', "link"),
        ("<a href=a>b</a><a href=a\"b>c</a><img alt='>'>d", "bcd"),
        ('z<a href="x>y', "z"),
        ("a < b and c<3", "a < b and c<3"),
        ("x<", "x<"),
        ("x<b", "x"),
        ("x<b class='y", "x"),
        ("</p></div>x</p>", "x"),
        ("<b><i>x</b>y</i>z", "xyz"),
        ("x&#0;y&#xD800;z&#99999999999;", "x\ufffdy\ufffdz\ufffd"),
        ("x&#" + "9" * 5000 + ";y", "x\ufffdy"),
        ("<svg><text>s</text></svg>", "s"),
        ("<scripty>x</scripty>", "x"),
    ],
)
def test_text_of_markup(markup: str, text: str, revision: int) -> None:
    """Blocks become lines, inline markup nothing, references characters, and hidden parts go."""
    assert text_of_html(markup, ATTRIBUTES_MAX, revision) == text


@pytest.mark.parametrize(
    "markup",
    [
        "<p>" + "".join(f"<b id={number}>" for number in range(1_000)) + "</p><p>" * 50_000 + "deep",
        "<div>" * 2_000 + "deep",
        "<p " + " ".join(f"a{number}" for number in range(ATTRIBUTES_MAX)) + ">deep",
        "<a b='" * 100_001 + "'>deep",
        "<" * 900_000 + " deep",
        "<title></titl" * 60_000 + "</title>deep",
        "<!--" * 200_000 + "-->deep",
    ],
    ids=["formatting", "nested", "attributes", "quotes", "signs", "titles", "comments"],
)
def test_hostile_markup_is_read_in_time(markup: str) -> None:
    """What makes parsers quadratic takes seconds at most, and no text is lost."""
    with within_processor_s(5):
        text = text_of_html(markup, ATTRIBUTES_MAX)
        assert text.endswith("deep")


TOO_COMPLEX = {
    "nested": "<div>" * 10_000 + "deep" + "</div>" * 10_000,
    "nested, and closed in vain": "<i q='>'>" + "<div>" * 100_000 + "</x>" * 100_000,
    "attributes": "<p " + " ".join(f"a{number}" for number in range(19_900)) + ">deep",
    "one attribute too many": "<p " + " ".join(f"a{number}" for number in range(ATTRIBUTES_MAX + 1)) + ">deep",
    "signs in values": "<p " + " ".join(f'a{number}=">"' for number in range(100_000)) + ">deep",
    "signs in values, other quotes": "<p " + " ".join(f"a{number} = '>'" for number in range(100_000)) + ">deep",
    "tags in values": "<p " + "".join(f'a<b{number}=">"' for number in range(100_000)) + ">deep",
    "slashes": "<p " + "/".join(f"{number:x}" for number in range(5_000)) + ">deep",
    "behind much text": "x" * 10_000 + "<p " + " ".join(f"a{number}" for number in range(5_000)) + ">deep",
    "never closed elsewhere": "<b><p " + " ".join(f"a{number}" for number in range(5_000)) + "<b>deep",
}


@pytest.mark.parametrize("revision", [1, 2])
@pytest.mark.parametrize("markup", TOO_COMPLEX.values(), ids=TOO_COMPLEX)
def test_markup_that_would_lose_text_or_stall_is_refused(markup: str, revision: int) -> None:
    """Elements nested too deep and tags with too many attributes are named, in less than a second."""
    with within_processor_s(1), pytest.raises(MarkupTooComplex):
        text_of_html(markup, ATTRIBUTES_MAX, revision)


def test_attributes_are_counted_a_tag() -> None:
    """Many tags, words and names make no tag heavy, nor does the same name again; the limit is where it is set."""
    names = [f"a{number}" for number in range(50_000)]
    assert text_of_html("".join(f"<p {name}>{name}</p>" for name in names), 1) == "\n".join(names)
    assert text_of_html("<p a a a a a>x", 1) == "x"
    assert text_of_html("<p " + " ".join(names[:3]) + ">x", 3) == "x"
    with pytest.raises(MarkupTooComplex, match="attributes_max = 2 "):
        text_of_html("<p " + " ".join(names[:3]) + ">x", 2)


@given(st.text(alphabet="<>/!-=\"' abcd?x\n", max_size=80))
def test_no_tag_is_missed(markup: str) -> None:
    """The quick look at markup never lets a tag through that has more attributes than the tree then has."""
    tree = etree.HTML(markup) if markup.strip() else None
    most = 0 if tree is None else max(len(element.attrib) for element in tree.iter(etree.Element))
    if most > 1:
        with pytest.raises(MarkupTooComplex):
            text_of_html(markup, most - 1)


@given(st.text(alphabet="<>/!-=\"' abptscrile&#;x0\n", max_size=80))
def test_any_markup_has_a_text(markup: str) -> None:
    """Nothing is raised, and no line is empty or has white space at its ends."""
    lines = text_of_html(markup, ATTRIBUTES_MAX).split("\n")
    assert lines == [""] or all(line and line == line.strip() for line in lines)
