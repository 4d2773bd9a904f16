"""Markup made of strings from anywhere, and the words that are marked in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.pages.markup import element, joined, marked


def test_strings_are_text_wherever_they_stand() -> None:
    """Strings are escaped between tags and in attributes; markup made here stays markup, also when nested."""
    inner = element("b", '<&">')
    assert inner.markup == "<b>&lt;&amp;&quot;&gt;</b>"
    assert element("p", inner, "'x'", class_='a" onclick="b').markup == (
        '<p class="a&quot; onclick=&quot;b"><b>&lt;&amp;&quot;&gt;</b>&#x27;x&#x27;</p>'
    )
    assert joined("<", inner).markup == "&lt;<b>&lt;&amp;&quot;&gt;</b>"


def test_names_of_attributes() -> None:
    """Python keywords and hyphens can be used, None is left out, and void elements are not closed."""
    assert element("meta", http_equiv="refresh", name="x", class_=None).markup == '<meta http-equiv="refresh" name="x">'


def marks(text: str, *words: str) -> list[str]:
    """What is marked."""
    return [piece.text for piece in marked(text, words) if piece.marked]


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("The Ferry came; the ferryman slept on a deferry.", ["ferry"], ["Ferry"]),
        ("ＦＥＲＲＹ and fer\u200bry", ["ferry"], ["ＦＥＲＲＹ", "fer\u200bry"]),
        ("Cafe\u0301 or café", ["café"], ["Cafe\u0301", "café"]),
        ("闻岚传媒的市值", ["传媒", "市值"], ["传媒", "市值"]),
        ("AI技术 AID", ["ai"], ["AI"]),
        ("交易日", ["交易", "交易日"], ["交易日"]),
        ("Straße strasse", ["strasse"], ["Straße", "strasse"]),
        ("a.b axb", ["a.b"], ["a.b"]),
        ("nothing", ["ferry"], []),
        ("", ["ferry"], []),
    ],
)
def test_words_are_found_as_they_were_written(text: str, words: list[str], expected: list[str]) -> None:
    """Case, width, marks and hidden characters do not matter; in scripts with spaces only whole words match."""
    assert marks(text, *words) == expected


@given(st.text(max_size=60), st.lists(st.text(min_size=1, max_size=3), max_size=4))
def test_nothing_of_a_text_is_lost(text: str, words: list[str]) -> None:
    """The pieces always add up to the text."""
    assert "".join(piece.text for piece in marked(text, words)) == text
