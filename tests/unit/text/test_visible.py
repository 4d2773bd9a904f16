"""What is left of a text that wants to steer whatever shows it."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.text.visible import cut, escaped, one_line, paragraphs, safe_url

NEEDED: Final = "\u00ad\u200c\u200d\u200e\u200f"


@given(st.text(alphabet=st.characters(), max_size=50))
def test_one_line_is_one_line_of_what_is_seen(text: str) -> None:
    """No character is left that moves, hides or ends anything, and none that is seen is changed."""
    for shown in (one_line(text, 100), escaped(text, 100)):
        assert len(shown.splitlines()) <= 1
        assert all(char.isprintable() or char.isspace() or char in NEEDED for char in shown)
    if text.isprintable():
        assert one_line(text, 100) == escaped(text, 100) == text


def test_a_text_keeps_what_its_script_needs() -> None:
    """Lines, tabs and joiners stay; overrides of direction, escapes and blanks of no width do not."""
    assert paragraphs("a\r\nb\rc\td", 99) == "a\nb\nc\td"
    assert paragraphs("👩\u200d🌾 می\u200cخواهم", 99) == "👩\u200d🌾 می\u200cخواهم"
    assert paragraphs("a\u202eb\x1b[31m\u200bc\u2028d\ue000", 99) == "a\ufffdb\ufffd[31m\ufffdc\ufffdd\ufffd"


@pytest.mark.parametrize("text", ["می\u200cخواهم", "क्\u200dष", "👨\u200d👩\u200d👧"])
def test_a_title_keeps_what_its_script_needs(text: str) -> None:
    """On one line as in a text: without its joiner a Persian word is another one, and a family three people."""
    assert one_line(text, 99) == paragraphs(text, 99) == text


def test_what_is_not_shown_can_be_written() -> None:
    """In a log its code shows which character it was; exempt characters stay."""
    assert escaped("a\nb\x1b\u202e\U000e0041", 99) == "a\\nb\\x1b\\u202e\\U000e0041"
    assert escaped("a\nb", 99, "\n") == "a\nb"


def test_what_is_too_long_is_cut() -> None:
    """With a mark at the cut, and never longer than allowed."""
    assert cut("abcde", 5) == "abcde"
    assert cut("abcdef", 5) == one_line("abcdef", 5) == escaped("abcdef", 5) == paragraphs("abcdef", 5) == "abcd…"


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "data:text/html,x", "//x.example/", "/x", "http:///x", "https:x", "ftp://x.example/", "",
     " https://x.example", "https://x.example/\u202e", "https://x.example/\n", "https://[x",
     "https://x.example/" + "a" * 2000, "java\tscript:alert(1)", "vbscript:x"],
)  # fmt: skip
def test_addresses_that_are_not_followed(url: str) -> None:
    """Only http and https with a host are links."""
    assert safe_url(url) is None


@pytest.mark.parametrize("url", ["https://x.example/?a=1&b=2#c", "HTTP://X.example", "https://例.example/路"])
def test_addresses_that_are_followed(url: str) -> None:
    """They are shown unchanged, in any case or script."""
    assert safe_url(url) == url
