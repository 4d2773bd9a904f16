"""Traditional Chinese as simplified: the tables, and which texts are folded."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as some

from consumer.fingerprint import ChineseTables, Fingerprinter, Lexicon, Scheme, Step, normalise
from consumer.fingerprint.characters.simplified import NO_TABLES, is_japanese
from consumer.workers.word_files import load_lexicon
from tests.dev_feed import dev_sample
from tests.fixtures.fingerprint.second import simplified
from tests.fixtures.fingerprint.traditional_chinese import TABLE, table

SIMPLIFIED = "气象台今天早晨发布通知说，本周末将有一次明显的降温过程，软件工程师出行时请注意添加衣物并留意道路结冰。"
TRADITIONAL = "氣象臺今天早晨發布通知說，本週末將有一次明顯的降溫過程，軟體工程師出行時請注意添加衣物並留意道路結冰。"

TABLES = load_lexicon().chinese()
PIECES = sorted({entry for step in TABLES.steps for entry in (*step.phrases, *step.characters)})
LEFT_TRADITIONAL = frozenset("於祕薹釐昇氾乾劄剋濛袷徵吒蒐谿脩扞")
"""Characters that simplified Chinese writes in some words, and replaces elsewhere."""
OTHERS = ("a", " ", "，", "の", "カ", "\u0301", "\u3099", "ａ", "㌖", "\ufdfa", "乾坤", "中", "\U00020000", "é")
pieces = some.one_of(
    some.sampled_from(PIECES),
    some.sampled_from(PIECES).map(lambda piece: piece[:-1]),
    some.sampled_from(PIECES).map(lambda piece: piece[1:]),
    some.sampled_from(OTHERS),
)
texts_of_pieces = some.lists(pieces, max_size=12).map("".join)
"""Texts of what the tables have, whole and in part, and of what they have not."""


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
        ("說埠 序列埠", "说端口 串口"),
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


@given(written=texts_of_pieces)
def test_folding_is_as_it_is_defined(written: str) -> None:
    """Place by place, the longest entry, as the second implementation does it; in any batch."""
    text = normalise(written)
    (folded,) = TABLES.fold([text])
    assert folded == simplified(text, TABLE.read_text("utf-8"))
    assert TABLES.fold([SIMPLIFIED, text, TRADITIONAL, "", text]) == [SIMPLIFIED, folded, SIMPLIFIED, "", folded]


@given(written=texts_of_pieces)
def test_what_is_folded_is_normalised(written: str) -> None:
    """So a digest of it is that of a text."""
    (folded,) = TABLES.fold([normalise(written)])
    assert normalise(folded) == folded


@given(written=texts_of_pieces)
def test_what_is_folded_stays_unless_a_traditional_character_does(written: str) -> None:
    """Folding twice is folding once, and a text of simplified characters alone is not touched."""
    (folded,) = TABLES.fold([normalise(written)])
    if not LEFT_TRADITIONAL.intersection(folded) and not is_japanese(folded):
        (again,) = TABLES.fold([folded])
        assert again is folded


def test_only_such_characters_are_left_as_simplified_chinese_has_too() -> None:
    """A text with one of them is folded again: then a word of Taiwan counts that came of a rarer variant.

    So a copy of such a text that a converter made may differ by this word, which is a word among all the others.
    """
    left = {
        char
        for step in TABLES.steps[1:]
        for form in (*step.phrases.values(), *step.characters.values())
        for char in form
    }
    assert left.intersection(TABLES.steps[-1].characters) == LEFT_TRADITIONAL
    assert TABLES.fold(["乾坤介麵"]) == ["乾坤介面"]
    assert TABLES.fold(["乾坤介面"]) == ["乾坤界面"]
    assert TABLES.fold(["介麵"]) == TABLES.fold(["介面"]) == ["介面"]


def test_a_text_grows_by_seven_thirds_at_most() -> None:
    """So limits on the length of a normalised text are limits on that of the folded one."""
    first, last = (
        max(Fraction(len(form), len(entry)) for entry, form in (*step.phrases.items(), *step.characters.items()))
        for step in TABLES.steps
    )
    assert (first, last) == (Fraction(7, 3), Fraction(1))
    assert TABLES.fold(["妥瑞症" * 100 + "說"]) == ["抽动秽语综合征" * 100 + "说"]


class Counted(dict[str, str]):
    """A dictionary that counts how often it is asked."""

    asked = 0

    def get(self, key: str, default: str | None = None) -> str | None:  # type: ignore[override]  # of strings alone
        """Return the value."""
        self.asked += 1
        return super().get(key, default)


def test_a_hostile_text_costs_a_few_lookups_for_each_character() -> None:
    """Whatever phrases begin at each of its characters."""
    for step in TABLES.steps:
        counted = Step(step.phrases, step.characters)
        forms = Counted(counted._forms)
        counted.__dict__["_forms"] = forms
        for phrase in step.phrases:
            for hostile in (phrase[0] * 60, phrase[:2] * 30, phrase[:-1] * 20, phrase * 20):
                forms.asked = 0
                counted.fold(hostile)
                assert forms.asked <= 4 * len(hostile)


def test_the_tables_are_those_of_opencc() -> None:
    """The file is made from them; another version of the package may have other tables, which are another scheme."""
    assert TABLE.read_text("utf-8") == table()


def test_simplified_articles_are_the_same_in_both_schemes(lexicon: Lexicon) -> None:
    """Of the development feed nearly all texts have the same fingerprint and digest as before."""
    bodies = [article["body"] for article in dev_sample(40)]
    first, second = (Fingerprinter(Scheme(name=f"jieba-tfidf/{n}"), lexicon).fingerprint(bodies) for n in (1, 2))
    same = (first.text_digests == second.text_digests).all(axis=1)
    assert same.mean() > 0.9
    assert (first.codes[same] == second.codes[same]).all()
    assert second.written_digests is not None
    assert (first.text_digests == second.written_digests).all()
