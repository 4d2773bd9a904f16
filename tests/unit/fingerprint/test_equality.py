"""Texts are equal where readers see no difference but in spacing; whatever else differs keeps them apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from consumer.fingerprint import normalise
from tests.examples import examples
from tests.unit.fingerprint.forms import compared, equal_forms, read
from tests.unit.fingerprint.scripts import (
    EQUAL_BETWEEN_LETTERS,
    EQUAL_INSERTED,
    INSERTED,
    TEXTS,
    between_letters,
    spaced,
)

APART = (
    *(("3.5%", "35%"), ("3,5", "35"), ("C++", "C"), ("C#", "C"), ("v1.12", "v11.2"), ("−5", "5"), ("-5", "5")),
    *(("10-12", "1012"), ("½", "12"), ("½", "1/2"), ("10⁶", "106"), ("10⁶", "10 6"), ("5²", "52")),
    *(("a!=b", "a==b"), ("a≠b", "a=b"), ("a<b", "a>b"), ("50%", "50"), ("$5", "€5"), ("1:2", "12"), ("1 2", "12")),
    *(("ma", "má"), ("pêche", "péché"), ("ñ", "n"), ("đa", "da"), ("resume", "résumé"), ("o", "о"), ("e", "е")),
    *(("เขา", "เข้า"), ("कि", "की"), ("は", "ば"), ("か", "カ"), ("つ", "っ"), ("ي", "ى"), ("ا", "أ"), ("כ", "ך")),
    *(("мой", "мои"), ("ёлка", "елка"), ("ћ", "т"), ("ηλι", "ήλι"), ("가", "각"), ("未", "末"), ("土", "士")),
    *(
        ("👍", "👎"),
        ("👍", "👍🏽"),
        ("😀", ""),
        ("🇨🇳", "🇯🇵"),
        (":-)", ":-("),
        ("a+b", "a-b"),
        ("no", "no!"),
        ("@a", "a"),
    ),
    *(("ー", "一"), ("の", "的"), ("ᴀ", "a"), ("🅰", "a"), ("#5", "5"), ("5 -3", "5-3"), ("温度 -5", "温度5")),
)


@pytest.mark.parametrize(("one", "other"), APART)
def test_texts_with_another_meaning_stay_apart(one: str, other: str) -> None:
    """Alone and within a text, in both forms."""
    for around in ("{}", "x {} y", "中{}文", "5{}", "{} 5"):
        forms = equal_forms(around.format(one), around.format(other))
        assert forms.compared[0] != forms.compared[1], around
        assert forms.read[0] != forms.read[1], around


@pytest.mark.parametrize("inserted", EQUAL_INSERTED)
@pytest.mark.parametrize("language", TEXTS)
def test_what_nobody_sees_changes_nothing(language: str, inserted: str) -> None:
    """Invisible characters, blanks and overlays behind each character."""
    text = TEXTS[language]
    assert compared(spaced(text, INSERTED[inserted])) == compared(text)


@pytest.mark.parametrize("inserted", EQUAL_BETWEEN_LETTERS)
@pytest.mark.parametrize("language", TEXTS)
def test_separators_between_letters_change_nothing(language: str, inserted: str) -> None:
    """Whatever the script."""
    text = TEXTS[language]
    assert compared(between_letters(text, INSERTED[inserted])) == compared(text)


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("أُعْلِنَ", "أعلن"),
        ("שָׁלוֹם", "שלום"),
        ("Москва́ ѐ ѝ, ёлка й ќ", "москва е и, ёлка й ќ"),
        ("h\u0336a\u0338r", "har"),
        ("苹果 iPhone 17 Pro 发布\n，售价 799 美元。\n北京 -5 度", "苹果iphone 17 pro发布,售价799美元。北京 -5度"),
        ("東京 タワー の 夜", "東京タワーの夜"),
        ("부산 항 中", "부산 항 中"),
        ("\u2800a \u2800 b\u2800", "a b"),
        ("10⁶ 5\u200b² 5\u2800³ x² 3½", "10^6 5^2 5^3 x2 3^1⁄2"),
        ("１０⁶⁷", "10^67"),
        ("乾坤", "乾坤"),
        ("", ""),
        ("\u2800", ""),
    ],
)
def test_the_form_that_is_read(written: str, form: str) -> None:
    """Points, stress, overlays and blanks are gone; white space stays except beside ideographs and kana."""
    assert read(written) == form


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("e-mail, node.js 3.5 a-5 5-a", "email, nodejs 3.5 a-5 5-a"),
        ("马克·吐温 says: a . _-b.", "马克吐温says: ab."),
        ("乾.坤 乾 淨", "乾坤干净"),
        ("क ि ท ี", "किที"),
        ("- a b -", "- ab -"),
        ("a😀 b", "a😀 b"),
    ],
)
def test_the_form_that_is_compared(written: str, form: str) -> None:
    """No separators between two letters; a phrase that they stand in is folded as a phrase."""
    assert compared(written) == form


@pytest.mark.parametrize("around", ["{}", "说{}", "{}，AT&T 新馆", "{}の"])
def test_both_chinese_scripts_are_equal(around: str) -> None:
    """With words of Taiwan, and a kana among them."""
    one, other = equal_forms(around.format("臺灣的軟體與滑鼠"), around.format("台湾的软件与鼠标")).compared
    assert one == other


@pytest.mark.parametrize("text", ["打开文件", "程序的核心", "設定の変更", "プリンターの設置、資料と説明"])
def test_simplified_and_japanese_texts_keep_their_words(text: str) -> None:
    """Though some of these mean another thing in Taiwan."""
    assert read(text) == compared(text) == text


texts = some.lists(
    some.one_of(
        some.text(max_size=3), some.sampled_from((*" .-_·", *"乾淨說のé5²", "\u0301", "\u0336", "\u2800", "а\u0301"))
    ),
    max_size=12,
).map("".join)


@examples(40)
@given(some.lists(texts, max_size=4))
def test_forms_do_not_depend_on_the_batch(batch: list[str]) -> None:
    """Nor does a text with surrogates stop the others."""
    forms = equal_forms(*batch)
    assert forms.read == [read(text) for text in batch]
    assert forms.compared == [compared(text) for text in batch]


@given(texts)
def test_what_is_read_is_spaced_as_normalised_texts_are(text: str) -> None:
    """One space at a time, none at the ends; and nothing where there was nothing."""
    form = read(text)
    assert form == " ".join(form.split())
    assert form == "" or normalise(text) != ""
