"""Normalising a text."""

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.fingerprint.normalise import INVISIBLE, normalise

ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=60)
MARKS_AND_LETTERS = st.text(
    "aﬁﬀİıẞßΣςσᾳᾼ\u0345\u0301\u0308ͅ각ㄱ\u1100\u1161\u200d\u00ad ﷺ㎏，：…Å\u212b\u0130\ufe0f\u3000\n"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("  A\t b\r\n\u3000c\u00a0 ", "a b c"),
        ("ＡＢＣ：１２３", "abc:123"),
        ("STRASSE Straße STRAẞE", "strasse strasse strasse"),
        ("soft\u00adhyphen zero\u200bwidth \ufeffmark", "softhyphen zerowidth mark"),
        ("ﬁ ㎏ ① …", "fi kg 1 ..."),
        ("e\u200d\u0301", "é"),
        ("❤\ufe0f", "❤"),
        # Casefolding takes these apart; the letter with its mark is the form.
        ("\u01f0 \u0390", "\u01f0 \u0390"),
        ("\ud83d\ude00 \ud800", "😀 \ufffd"),
        ("\u0600 visible format characters stay", "\u0600 visible format characters stay"),
    ],
)
def test_normal_forms(text: str, expected: str) -> None:
    """Texts that look alike, or differ in nothing that is seen, have one form."""
    assert normalise(text) == expected


@given(ANY_TEXT | MARKS_AND_LETTERS)
def test_idempotent(text: str) -> None:
    """A normalised text is its own normal form."""
    once = normalise(text)
    assert normalise(once) == once


@given(ANY_TEXT | MARKS_AND_LETTERS)
def test_always_encodable(text: str) -> None:
    """Whatever came in, lone surrogates too, goes out as UTF-8, stripped, without double spaces."""
    once = normalise(text)
    once.encode()
    assert once == " ".join(once.split())


def test_every_code_point_idempotent_and_no_invisible_comes_back() -> None:
    """For each assigned code point between letters, one normalising is enough and leaves nothing invisible."""
    invisible = re.compile(f"[{INVISIBLE}]")
    unused = {"Cn", "Co"}
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code)) in unused:
            continue
        once = normalise(f"a{chr(code)}b")
        assert normalise(once) == once, hex(code)
        assert not invisible.search(once), hex(code)


def test_invisible_format_characters_all_go() -> None:
    """Every format character is either gone or one of the few that are drawn."""
    drawn = {
        *range(0x0600, 0x0606), 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2,
        0x110BD, 0x110CD, *range(0x13430, 0x13440),
    }  # fmt: skip
    left = {
        code
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) == "Cf" and normalise(f"a{chr(code)}b") != "ab"
    }
    assert left <= drawn


@given(st.text("，：；？！（）…。a\u0301\u0338 "))
def test_full_width_shortcut_changes_nothing(text: str) -> None:
    """Replacing full-width punctuation first gives what NFKC gives."""
    assert normalise(text) == " ".join(unicodedata.normalize("NFKC", text).split())
