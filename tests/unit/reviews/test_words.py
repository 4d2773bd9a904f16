"""Which texts are found by which searches: whole words, and in scripts without spaces any word however it is cut."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consumer.reviews.word_index.words import TERMS_MAX, TEXT_CHARS_MAX, TITLE_CHARS_MAX
from tests.unit.reviews.made import word_cutter


def is_found(search: str, text: str, title: str = "") -> bool:
    """Whether a text has all words of a search."""
    terms = word_cutter().terms_of(search)
    return bool(terms.words) and word_cutter().words_of(title, text).issuperset(terms.words)


@pytest.mark.parametrize(
    ("search", "text"),
    [
        ("harbour", "The harbour reopened."),
        ("HARBOUR the", "The harbour reopened."),
        ("reopened harbour", "The harbour reopened."),
        ("40,000", "some 40,000 people"),
        ("AT&T", "shares of at&t fell"),
        ("Ｈａｒｂｏｕｒ", "harbour"),
        ("har\u00adbour", "har\u200bbour"),
        ("гавань", "Гавань снова открыта"),
        ("हिन्दी", "यह हिन्दी है"),
        ("العربية", "اللغة العربية"),
        ("港口", "港口重新开放"),
        # One character, one within a word, and one that the engine cuts off alone.
        ("港", "港口重新开放"),
        ("口", "港口重新开放"),
        # Shorter than the word that the engine finds in the text.
        ("大学", "他在北京大学读书"),
        ("北京", "他在北京大学读书"),
        # A name that is cut one way alone and another way in the text.
        ("王小明", "记者王小明报道"),
        ("小明", "记者王小明报道"),
        ("臺灣", "台湾的港口"),
        ("台湾", "臺灣的港口"),
        ("東京", "東京タワーから"),
        ("タワー", "東京タワーから"),
        ("서울", "서울에서 온 편지"),
        ("ท่าเรือ", "เปิดท่าเรืออีกครั้ง"),
        ("2026年", "2026年11月"),
    ],
)
def test_a_word_is_found(search: str, text: str) -> None:
    """Whatever its script, its case, its width, and what stands around it."""
    assert is_found(search, text)
    assert is_found(search, "", text)


@pytest.mark.parametrize(
    ("search", "text"),
    [
        ("harbor", "The harbour reopened."),
        ("harb", "The harbour reopened."),
        ("harbour closed", "The harbour reopened."),
        # The characters are there, but not side by side.
        ("口港", "港口重新开放"),
        ("开港", "港口重新开放"),
        ("3.5", "35"),
    ],
)
def test_another_word_is_not(search: str, text: str) -> None:
    """Words are found whole."""
    assert not is_found(search, text)


@pytest.mark.parametrize("search", ['"harbour"', "harbour*", "NEAR(harbour)", "harbour OR", "-harbour", "harbour & !x"])
def test_nothing_has_a_special_meaning(search: str) -> None:
    """A search is a bag of words: signs are no part of it, and operators are words."""
    words = set(word_cutter().terms_of(search).words)
    assert set(word_cutter().terms_of("harbour").words) <= words
    assert word_cutter().words_of("", search) >= words


@pytest.mark.parametrize("search", ["", " ", "!?", "\u200b", "_", "。", "👍"])
def test_a_search_without_words_finds_nothing(search: str) -> None:
    """Not everything."""
    assert word_cutter().terms_of(search).words == ()


def test_only_the_beginning_of_a_text_is_indexed() -> None:
    """And of a title; what folding makes of a character does not make the index larger."""
    assert is_found("end", "x " * (TEXT_CHARS_MAX // 2 - 2) + "end")
    assert not is_found("end", "x " * (TEXT_CHARS_MAX // 2) + "end")
    assert not is_found("end", "", "x" * TITLE_CHARS_MAX + " end")
    assert len(word_cutter().words_of("", "ﷺ" * TEXT_CHARS_MAX)) < TEXT_CHARS_MAX


def test_a_long_search_looks_up_its_first_words() -> None:
    """And says that it does."""
    few, many = (word_cutter().terms_of(" ".join(map(str, range(count)))) for count in (TERMS_MAX, TERMS_MAX + 1))
    assert few.words == many.words
    assert (few.is_cut, many.is_cut) == (False, True)


@settings(max_examples=30)
@given(st.text(max_size=60), st.text(max_size=20), st.text(max_size=60))
def test_what_stands_between_spaces_is_found(before: str, word: str, after: str) -> None:
    """Any text finds itself, and cutting neither fails nor makes a number that no database holds."""
    words = word_cutter().words_of(before, f"{before} {word} {after}")
    assert words.issuperset(word_cutter().terms_of(word).words)
    assert all(0 < number < 1 << 63 for number in words)
