"""Normalising a text."""

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.fingerprint.characters.normalise import INVISIBLE, normalise
from tests.processor_time import within_processor_s

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


# Marks that NFKC takes apart, letters that casefold or NFKC leaves with a mark, and what only NFKC makes a mark.
MANY_MARKS = st.lists(
    st.tuples(st.sampled_from("\u0301\u0316\u0344\u0345\u0f73\uff9e\u0958\u0130a\u1100\u1161"), st.integers(1, 40)),
    max_size=6,
).map(lambda runs: "".join(char * times for char, times in runs))


@given(ANY_TEXT | MARKS_AND_LETTERS | MANY_MARKS)
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


@pytest.mark.parametrize("marks", ["\u0301\u0316", "\u0f73\u0301", "\u0344\u0316", "\u0301\u200b\u0316"])
def test_a_long_row_of_marks_takes_no_long_time(marks: str) -> None:
    """Hundred thousand marks on a letter, for which NFKC alone takes a minute, are normalised within two seconds."""
    with within_processor_s(2):
        normalise("a" + marks * 50_000)


def test_the_first_thirty_marks_in_a_row_stay() -> None:
    """Thirty marks are untouched wherever they stand; of more, the first thirty stay and what follows is not lost."""
    for before in range(65):
        text = "x" * before + "\u0316" * 30
        assert normalise(f"{text}y") == f"{text}y"
        assert normalise(f"{text}\u0316y{text}\u0301\u0316") == f"{text}y{text}"


@given(MANY_MARKS)
def test_no_row_of_marks_is_longer_than_thirty(text: str) -> None:
    """However marks came about, no more than thirty follow each other."""
    combining = "".join("m" if unicodedata.combining(char) else " " for char in normalise(text))
    assert "m" * 31 not in combining


def test_every_character_that_becomes_a_mark_counts_as_one() -> None:
    """A character that NFKC makes a mark is cut as one, so no row of it is too long for NFKC."""
    for char in map(chr, {*range(sys.maxunicode + 1)} - {*range(0xD800, 0xE000)}):
        if unicodedata.combining(unicodedata.normalize("NFKC", char)[0]):
            assert len(normalise(f"a{char * 31}b")) == len(normalise(f"a{char * 30}b")), hex(ord(char))
