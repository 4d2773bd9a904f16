"""Keywords that people are shown say what a text is about."""

import pytest

from consumer.text.shown_keywords import STOP_WORDS, shown_keywords


@pytest.mark.parametrize(
    "word", ["the", "The", "had", "been", "一个", "可以", "أن", "إن", "это", "40", "000", "0123", "7"]
)
def test_what_says_nothing_is_left_out(word: str) -> None:
    """Stop words of every language that has a list, and figures that may be a part of a number."""
    assert shown_keywords(["ferry", word, "码头"]) == ("ferry", "码头")


@pytest.mark.parametrize("word", ["ferry", "渡轮", "2026", "40000", "3.5", "12%", "0.62%", "h2o", "паром", "😀", "a1"])
def test_what_says_something_is_shown(word: str) -> None:
    """Words of any script, whole numbers, and what is no number."""
    assert shown_keywords([word]) == (word,)


def test_stop_words_can_be_met() -> None:
    """As keywords are written; jieba has no Chinese ones of a single character."""
    assert {word for word in STOP_WORDS if word != word.casefold()} == set()
    assert {word for word in STOP_WORDS if word >= "一" and len(word) < 2} == set()
