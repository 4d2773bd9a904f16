"""The letters of a text are the same whatever stands between them, and on them."""

import random
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as some

from consumer.workers.word_files import load_lexicon
from tests.examples import examples
from tests.unit.fingerprint.forms import all_letters, letters
from tests.unit.fingerprint.scripts import INSERTED, TEXTS, spaced

RUSSIAN = "Привет, мир! Совет порта открыл новый терминал; ёлки у моря, а с ней и оса."
GREEK = "Το συμβούλιο του λιμανιού άνοιξε τον νέο σταθμό, και η είσοδος είναι ελεύθερη."


@pytest.mark.parametrize("inserted", INSERTED)
@pytest.mark.parametrize("language", TEXTS)
def test_what_stands_behind_each_character_changes_nothing(language: str, inserted: str) -> None:
    """Spaces, dots, emoji, marks: to the last letter."""
    text = TEXTS[language]
    assert letters(spaced(text, INSERTED[inserted])) == letters(text)
    assert len(letters(text)) > 40


@pytest.mark.parametrize("language", TEXTS)
def test_composed_letters_are_as_decomposed_ones(language: str) -> None:
    """However a text comes."""
    text = TEXTS[language]
    assert letters(unicodedata.normalize("NFD", text)) == letters(text) == letters(unicodedata.normalize("NFC", text))


def test_points_and_tatweel_change_nothing() -> None:
    """Between any letters of Arabic and Hebrew."""
    for language, points in (("ar", "\u064b\u064e\u0651\u0670\u06d6\u0640"), ("he", "\u05b0\u05bc\u05c1\u0591")):
        for point in points:
            assert letters(spaced(TEXTS[language], point)) == letters(TEXTS[language])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("أإآٱا ىيی كک ة ؤئ", "ااااا ييي كك ه وي"),
        ("Đường phố, Łódź, Ørsted, naïve", "duong pho lodz orsted naive"),
        ("ᴛʜᴇ ʜᴀʀʙᴏᴜʀ ꜰᴏʀ", "the harbour for"),
        ("🅷🅰🆁🅱🅾🆄🆁 🅗🅐 Ⓗⓐ 🄷 ｈ 𝒉", "harbour ha ha h h h"),
        ("ɑɡı", "agi"),
        ("３，５ ٣٥ ३५", "35 35 35"),
        ("1,234,567 1 234 567 1'234'567", "1234567 1234567 1234567"),
        ("ー の カ ロ ニ エ タ ト ハ ミ ﾌ ⺼ 囗", "一 的 力 口 二 工 夕 卜 八 三 了 月 口"),
        ("曰 已 入 末", "日 己 人 未"),
        ("ヘベ", "へべ"),
        ("臺灣的軟體のカ", "台湾的软件的力"),
        ("看著乾淨的鐘，乾隆", "看着干净的钟，干隆"),
        ("檔案與文件", "文件与文件"),
        ("軟\n體，滑 鼠", "软件，鼠标"),
        ("मैंन\u0301े", "मैंने"),
        ("か゛", "か\u200b ゛"),
    ],
)
def test_letters_that_count_as_one(one: str, other: str) -> None:
    """Variants, look-alikes, digits of all scripts."""
    assert letters(one) == letters(other)
    assert letters(other) != ""


@pytest.mark.parametrize(
    ("one", "other"), [("は", "ば"), ("कि", "की"), ("เขา", "เข้า"), ("가", "각"), ("ab", "ac"), ("5", "6")]
)
def test_letters_that_stay_apart(one: str, other: str) -> None:
    """Marks of scripts that write vowels and tones with them are letters."""
    assert letters(one) != letters(other)


def test_a_mark_counts_behind_its_own_letters_alone() -> None:
    """On others it is a disguise, wherever it stands."""
    assert letters("har\u0e31b\u093fou\u3099r 港\u3099 ا\u093f") == letters("harbour 港 ا")
    assert letters("\u093fx") == "x"
    assert all_letters("कि", "ि", "a") == ["कि", "", "a"]


@pytest.mark.parametrize(
    ("disguised", "original"),
    [
        ("Hаrbоur Соunсil", "harbour council"),
        ("hаr\u200bb\u0336our", "harbour"),
        ("Τhe ΗARBΟUR", "the harbour"),
        ("Пpивeт, миp! Coвет", "привет мир совет"),
        ("привeт CОВЕTУЮ", "привет советую"),
        ("συμβoύλιo", "συμβούλιο"),
        ("кing", "king"),
        ("саt", "cat"),
    ],
)
def test_a_word_of_two_scripts_is_brought_into_one(disguised: str, original: str) -> None:
    """That of the letters that do not look like others."""
    assert letters(disguised) == letters(original)


@pytest.mark.parametrize("text", [RUSSIAN, GREEK, "Это SMS, оно о США. Samsung и ЕС", "ο λόγος OK"])
def test_honest_texts_keep_their_scripts(text: str) -> None:
    """A word of one script stays, even if all of its letters look like Latin ones."""
    kept = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if c.isalpha()).replace("ς", "σ")
    assert letters(text) == kept


def test_words_begin_anywhere() -> None:
    """The letters of one script are those of the other, whatever words separators held apart."""
    chinese = load_lexicon().chinese()
    phrases = list(chinese.steps[-1].phrases)
    for number in range(100):
        text = "，".join(random.Random(number).choices(phrases, k=40))
        assert letters(text) == letters(chinese.fold([text])[0])


@pytest.mark.parametrize("text", ["", " ", "!?…", "👍👍", "\u0301\u0336", "...", "\u2800", "\ud83d"])
def test_texts_without_a_letter(text: str) -> None:
    """Have none."""
    assert letters(text) == ""


pieces = some.one_of(
    some.text(max_size=3),
    some.sampled_from(
        ("乾", "淨", "說", "の", "カ", "é", "कि", "\u0301", "a", "а", "α", " ", "@ab ", "[哈]", "\u3099", "\n")
    ),
)
texts = some.lists(pieces, max_size=12).map("".join)


@examples(40)
@given(some.lists(texts, max_size=4))
def test_letters_do_not_depend_on_the_batch(batch: list[str]) -> None:
    """A mark at the beginning of a text is none of the text before it."""
    assert all_letters(*batch) == [letters(text) for text in batch]


@given(texts)
def test_letters_are_letters(text: str) -> None:
    """Nothing that stands between letters is left; ideographs count that this Python does not know."""
    categories = {unicodedata.category(character)[0] for character in letters(text) if character < "\U00020000"}
    assert categories <= {"L", "M", "N"}
