"""The user's own words where texts are compared in simplified characters."""

from collections.abc import Callable
from pathlib import Path

import pytest

from consumer.fingerprint import Fingerprinter, JiebaTokenizer, Lexicon, OwnWord, RustTokenizer, Scheme
from consumer.fingerprint.own_words import in_simplified
from consumer.workers.word_files import load_lexicon

FOLDING, OTHER = Scheme(name="jieba-tfidf/2"), Scheme(name="jieba-tfidf/1")
TEXT = "石墨烯電池的讀者都在圖書館說話"
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file and tell its path."""

    def written(content: str) -> Path:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.txt"
        path.write_text(content, "utf-8")
        return path

    return written


@pytest.fixture
def own(write: Write) -> Lexicon:
    """A dictionary, stop words and a table in traditional characters."""
    return load_lexicon(write("石墨烯電池 500\n"), write("讀者\n"), write("圖書館 2.5\n石墨烯電池 9\n說話 4\n無 1\n"))


def keywords(scheme: Scheme, lexicon: Lexicon, text: str) -> dict[str, float]:
    """Return the keywords of a text with their weights."""
    return dict(Fingerprinter(scheme, lexicon).fingerprint([text]).keywords[0])


def test_words_in_either_script_are_known_in_both(own: Lexicon) -> None:
    """A word of the dictionary stays whole, a stop word does not count, and the table has their weights."""
    expected = {"石墨烯电池": 9.0, "图书馆": 2.5, "说话": 4.0}
    assert keywords(FOLDING, own, TEXT) == expected
    assert keywords(FOLDING, own, "石墨烯电池的读者都在图书馆说话") == expected
    assert "石墨烯電池" in keywords(OTHER, own, TEXT)
    assert "石墨烯电池" not in keywords(OTHER, own, "石墨烯电池的读者都在图书馆说话")


def test_what_is_listed_itself_is_as_listed(write: Write) -> None:
    """Of two words that become the same the first by code points counts, unless that one is listed too."""
    lexicon = in_simplified(
        load_lexicon(
            write("說話 5\n说话 7\n臺電視 3\n台電視 4\n"), None, write("說話 5\n说话 7\n臺電視 3\n台電視 4\n")
        ),
    )
    weights = {"台電視": 4.0, "台电视": 4.0, "臺電視": 3.0, "說話": 5.0, "说话": 7.0}
    assert lexicon.idf == weights
    assert lexicon.idf is lexicon.idf
    assert {own.word: float(own.frequency or 0) for own in lexicon.own_words} == weights
    assert lexicon.median_idf == 5.0


def test_japanese_words_stay(write: Write) -> None:
    """A text in Japanese is not folded, and its words are found as they are."""
    lexicon = in_simplified(load_lexicon(None, write("國際\n説明する\n")))
    assert lexicon.stop_words == {"國際", "国际", "説明する"}


def test_a_form_that_jieba_cuts_is_left_out(lexicon: Lexicon) -> None:
    """Some characters become such as jieba takes for words of their own."""
    tables = lexicon.chinese()
    rare = next(
        char for char, form in tables.steps[-1].characters.items() if form > "\u9fd5" and "一" <= char <= "\u9fd5"
    )
    own = Lexicon(lexicon.table, frozenset(), b"", (OwnWord(f"{rare}中中", 5),), chinese=lexicon.chinese)
    assert in_simplified(own).own_words == own.own_words


def test_jiebas_own_words_stay_as_they_are(lexicon: Lexicon) -> None:
    """Without files of the user the lexicon is the same one."""
    folded = in_simplified(lexicon)
    assert folded == lexicon
    assert folded.table is lexicon.table
    assert (folded.stop_words, folded.own_words) == (lexicon.stop_words, ())


def test_both_tokenizers_know_them(own: Lexicon) -> None:
    """The engine and its reference cut the same words."""
    words = in_simplified(own).own_words
    assert [word.word for word in words] == ["石墨烯电池", "石墨烯電池"]
    for tokenizer in (JiebaTokenizer(words), RustTokenizer(words)):
        assert "石墨烯电池" in tokenizer.cut("石墨烯电池的读者")
