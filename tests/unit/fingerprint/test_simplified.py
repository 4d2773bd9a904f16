"""Traditional Chinese as simplified: the tables, and which texts are folded."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from consumer.fingerprint import ChineseTables, Fingerprinter, Lexicon, Scheme, Step
from consumer.fingerprint.simplified import NO_TABLES, is_japanese
from tests.dev_feed import dev_articles
from tests.fixtures.fingerprint.traditional_chinese import TABLE, table

SIMPLIFIED = "气象台今天早晨发布通知说，本周末将有一次明显的降温过程，软件工程师出行时请注意添加衣物并留意道路结冰。"
TRADITIONAL = "氣象臺今天早晨發布通知說，本週末將有一次明顯的降溫過程，軟體工程師出行時請注意添加衣物並留意道路結冰。"


@pytest.fixture(scope="module")
def tables(lexicon: Lexicon) -> ChineseTables:
    """OpenCC's."""
    return lexicon.chinese()


def test_the_longest_phrase_counts_and_other_characters_one_by_one() -> None:
    """From the left; what a phrase stands for is not looked at again."""
    step = Step({"ab": "X", "abc": "Y", "cd": "ab"}, {"a": "1", "d": "4"})
    assert step.fold("abcdabaz") == "Y4X1z"
    assert step.fold("cdcab") == "abcX"
    assert step.fold("") == ""


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        (TRADITIONAL, SIMPLIFIED),
        (SIMPLIFIED, SIMPLIFIED),
        ("乾坤與乾淨", "乾坤与干净"),
        ("著名的著作說著", "著名的著作说着"),
        ("隨身碟", "u盘"),
        ("", ""),
    ],
)
def test_a_text_in_either_script_becomes_the_same(tables: ChineseTables, written: str, folded: str) -> None:
    """Characters by what they are in, words of Taiwan as on the mainland."""
    assert tables.fold([written]) == [folded]


def test_a_text_without_a_traditional_character_is_not_touched(tables: ChineseTables) -> None:
    """Whatever else is in the batch; texts may be empty."""
    texts = ["滑鼠", "", TRADITIONAL, "abc", ""]
    folded = tables.fold(texts)
    assert [before is after for before, after in zip(texts, folded, strict=True)] == [True, True, False, True, True]
    assert tables.fold([]) == []
    assert NO_TABLES.fold(texts) == texts


def test_japanese_keeps_its_characters(tables: ChineseTables) -> None:
    """A text with kana is Japanese, but not one that only quotes a word of it."""
    japanese = "気象庁は今朝、週末に気温が大きく下がると発表した。鉄道各社は運転を見合わせる。"
    quoting = f"{TRADITIONAL}店名「の」。"
    assert [is_japanese(text) for text in (japanese, quoting, SIMPLIFIED, "", "かな")] == [
        True,
        False,
        False,
        False,
        True,
    ]
    assert tables.fold([japanese]) == [japanese]
    assert tables.fold([quoting]) != [quoting]


@given(texts=some.lists(some.text(some.sampled_from("著乾說說話,。a滑鼠隨身碟のカ 軟體发髮"), max_size=30), max_size=5))
def test_folding_one_by_one_or_twice_changes_nothing(tables: ChineseTables, texts: list[str]) -> None:
    """A batch is folded as its texts are."""
    folded = tables.fold(texts)
    assert folded == [tables.fold([text])[0] for text in texts]
    assert tables.fold(folded) == folded


def test_folded_texts_stay_folded(tables: ChineseTables) -> None:
    """Every character and phrase of the tables, once folded, is what it is."""
    written = [entry for step in tables.steps for entry in (*step.phrases, *step.characters)]
    folded = tables.fold(written)
    assert [(a, b, c) for a, b, c in zip(written, folded, tables.fold(folded), strict=True) if b != c] == []


def test_the_tables_are_those_of_opencc() -> None:
    """The file is made from them; another version of the package may have other tables, which are another scheme."""
    assert TABLE.read_text("utf-8") == table()


def test_simplified_articles_are_the_same_in_both_schemes(lexicon: Lexicon) -> None:
    """Of the development feed nearly all texts have the same fingerprint and digest as before."""
    bodies = [article["body"] for article in dev_articles()[::40]]
    first, second = (Fingerprinter(Scheme(name=f"jieba-tfidf/{n}"), lexicon).fingerprint(bodies) for n in (1, 2))
    same = (first.text_digests == second.text_digests).all(axis=1)
    assert same.mean() > 0.9
    assert (first.codes[same] == second.codes[same]).all()
    assert second.written_digests is not None
    assert (first.text_digests == second.written_digests).all()
