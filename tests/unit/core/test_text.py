"""The compiled engine reads characters, normalises and folds texts as the Python engine does."""

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product

import dupwatch_core as core
import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from consumer.fingerprint.characters.normalise import INVISIBLE, _marks, normalise, without_surrogates
from consumer.fingerprint.characters.simplified import JAPANESE_SHARE, ChineseTables, is_japanese
from consumer.workers.word_files import load_lexicon
from tests.dev_feed import EVERY_PART, dev_part
from tests.examples import drawn, examples
from tests.processor_time import within_processor_s

CODE_POINTS = range(sys.maxunicode + 1)
SURROGATES = range(0xD800, 0xE000)
SEPARATOR = "\0"
"""Stays, separates words, and lets nothing compose across it."""
UNLIKE_NEIGHBOURS = frozenset("\u0295\U0001171e")
"""Beside them a sigma is a final one to some versions of Unicode only: they are cased, or skipped, in those alone."""


def unassigned(character: str) -> bool:
    """Whether Python's version of Unicode does not have this character."""
    return unicodedata.category(character) == "Cn"


def characters() -> Iterator[str]:
    """All but surrogates."""
    return (chr(code) for code in CODE_POINTS if code not in SURROGATES)


# Classes


def classes_in_python(character: str, marks: frozenset[str], invisible: re.Pattern[str]) -> int:
    """The bits of `dupwatch_core.classes`."""
    return (
        (character.isalnum() or character == "_")
        | character.isalpha() << 1
        | character.isspace() << 2
        | character.isdecimal() << 3
        | (character in marks) << 4
        | bool(invisible.match(character)) << 5
        | (character.lower() != character) << 6
    )


def test_every_code_point_is_in_pythons_classes() -> None:
    """Those of the classes by Python's methods that its version of Unicode has; the others are newer."""
    marks, _ = _marks()
    invisible = re.compile(f"[{INVISIBLE}]")
    unlike = [chr(code) for code in CODE_POINTS if core.classes(code) != classes_in_python(chr(code), marks, invisible)]
    assert [f"{ord(character):x}" for character in unlike if not unassigned(character)] == []
    assert all(core.classes(code) == 0 for code in SURROGATES)


def test_words_digits_and_spaces_are_those_of_regular_expressions() -> None:
    """Which is what the engine's patterns are made of."""
    known = "".join(character for character in characters() if not unassigned(character))
    for pattern, bit in ((r"\w", 1), (r"\s", 4), (r"\d", 8)):
        assert re.findall(pattern, known) == [character for character in known if core.classes(ord(character)) & bit]


def test_the_tables_are_newer_than_pythons() -> None:
    """So what Python knows they know."""
    newest, python = (tuple(map(int, text.split("."))) for text in (core.UNICODE_VERSION, unicodedata.unidata_version))
    assert newest >= python


@pytest.mark.parametrize("around", drawn(["{}", "A{}Σ", "AΣ{}", "AΣ{}a", "{}Σ"], 2))
def test_every_character_in_lower_case(around: str) -> None:
    """A sigma beside it is the final one where Python's is."""
    words = [around.replace("{}", character) for character in characters() if not unassigned(character)]
    unlike = [word for word in words if core.lower(word) != word.lower()]
    assert {character for word in unlike for character in word} - set("AΣa") <= UNLIKE_NEIGHBOURS


@given(some.text(some.sampled_from("aAΣσς\u0301'.\u00ad\u0345İIẞ中 ʼ-１Ａ"), max_size=8))
def test_words_in_lower_case(word: str) -> None:
    """Cased letters and those that are skipped before and behind a sigma."""
    assert core.lower(word) == word.lower()


@given(some.text(some.sampled_from(" \t\x1c\x1f\x85\xa0\u1680\u180e\u2003\u200b\u3000ab"), max_size=8))
def test_the_stripped_length(word: str) -> None:
    """White space at both ends does not count, within a word it does."""
    assert core.stripped_len(word) == len(word.strip())


# Normalising


@cache
def changing() -> tuple[str, ...]:
    """What normalising changes, what can be put in order or composed; and what is beside it among code points."""
    mixed = [
        code
        for code in CODE_POINTS
        if unicodedata.category(chr(code))[0] == "M"
        or unicodedata.decomposition(chr(code))
        or code in range(0x1100, 0x1200)
        or normalise(chr(code)) != chr(code)
    ]
    return tuple(map(chr, sorted({beside for code in mixed for beside in (code, code ^ 1)} - {0})))


def assert_alike(written: Iterable[str]) -> None:
    """Assert that texts are normalised alike, all as one. Where they are not, a character is newer than Python."""
    texts = list(written)
    text = SEPARATOR.join(texts)
    compiled, expected = core.normalise(text).split(SEPARATOR), normalise(text).split(SEPARATOR)
    assert len(compiled) == len(expected) == len(texts)
    unlike = [text for text, form, wanted in zip(texts, compiled, expected, strict=True) if form != wanted]
    assert [text.encode("unicode_escape", "surrogatepass") for text in unlike if not any(map(unassigned, text))] == []


def test_every_code_point_between_letters() -> None:
    """A million texts, surrogates too, or an eighth of them."""
    assert_alike(f"a{chr(code)}b" for code in drawn(CODE_POINTS, 8) if code)


AROUND = ["{}", "A{} ", "e{}\u0301", "e\u0301{}", "\u1100{}", "가{}\u11a8", "か{}\u3099", "\u09c7{}\u09be"]


@pytest.mark.parametrize(("around", "behind"), drawn([*product(AROUND, ["", "\u0316\uff9e"])], 6))
def test_every_character_that_changes_beside_others(around: str, behind: str) -> None:
    """Letters and marks that it may become one with, or change places with."""
    assert_alike(around.replace("{}", character) + behind for character in changing())


def test_every_character_that_changes_alone() -> None:
    """At the beginning and at the end of a text, where white space goes and marks have no letter."""
    for character in changing():
        if not unassigned(character):
            assert core.normalise(character) == normalise(character), hex(ord(character))


known = some.characters(codec=None, exclude_categories=["Cn"])
surrogates = some.integers(SURROGATES[0], SURROGATES[-1]).map(chr)
jamo = some.sampled_from("\u1100\u1112\u1161\u1175\u11a7\u11a8\u11c2가각힣ㄱㅏ\uffa1\uffc2\u115f\u1160\u3164")
marks = some.sampled_from(
    "\u0300\u0301\u0304\u0308\u0316\u0323\u0327\u0328\u031b\u0338\u0344\u0345\u05b0\u05c1\u064b\u0670\u093c\u094d"
    "\u0e48\u0f71\u0f73\u0f74\u0f80\u0f81\u1dce\u3099\u309a\uff9e\uff9f\U0001d165\U0001d16e"
)
joining = some.sampled_from("\u09be\u09c7\u0b3e\u0b47\u0bbe\u0bc6\u0bd7\u0dcf\u0dd9\u0dca\u102e\u1025\u1b35\u1b05")
letters = some.sampled_from("aAeEoOuUiIsSlLqéÉệἈαΑΩωΣςßẞﬁſİıǅŉｶﾞカ中，。！…：㎏①㌖ﷺﬃΐᾼ\u1e9b\u212b\u2126\u0958\ufb2c")
spaces = some.sampled_from(" \t\n\r\x0b\x1c\x1f\x85\xa0\u1680\u2003\u2028\u202f\u205f\u3000\u00a8\u00b4\u2017\u037a")
invisible = some.sampled_from("\u00ad\u034f\u061c\u115f\u180e\u200b\u200d\u2060\ufe0f\ufeff\ufff9\U000e0001\U000e0fff")
pieces = some.one_of(known, surrogates, jamo, marks, marks, joining, letters, letters, spaces, invisible)
texts = some.lists(pieces, max_size=30).map("".join)
rows_of_marks = some.lists(
    some.tuples(some.one_of(marks, letters, invisible, joining), some.integers(1, 40)), max_size=6
).map(lambda runs: "".join(character * times for character, times in runs))


@examples(1000)
@given(texts | rows_of_marks)
@example("")
@example(" \u3000\n\u200b")
@example("e\u200d\u0301")
@example("é\u0323")
@example("\u1100\u00ad\u1161\u200b\u11a8")
@example("a" + "\u0301" * 31 + "\u0316")
@example("\u0301a")
@example("\ufdfa\u0301 \ufdfa")
@example("\u00a8\u0316")
@example("\u0995" + "\u0316" * 20 + "\u09be" + "\u0316" * 20)
@example("a" + "\u05b0" * 40)
def test_generated_texts(text: str) -> None:
    """Marks in any order, what composes across what is removed, white space of all kinds, halves of pairs."""
    once = core.normalise(text)
    assert once == normalise(text)
    assert core.normalise(once) == once
    assert core.without_surrogates(text) == without_surrogates(text)


def test_halves_of_surrogate_pairs() -> None:
    """In any order, and beside what comes just before and after them."""
    for units in product("\ud7ff\ud800\udbff\udc00\udfff\ue000a", repeat=4):
        text = "".join(units)
        assert core.without_surrogates(text) == without_surrogates(text)
        assert core.normalise(text) == normalise(text)


@pytest.mark.parametrize("part", EVERY_PART)
def test_the_development_feed_is_normalised_alike(part: int) -> None:
    """As it is, decomposed, and in capitals."""
    for article in dev_part(part):
        for text in (article["title"], article["body"]):
            assert core.normalise(text) == normalise(text)
        for text in (unicodedata.normalize("NFD", article["body"]), article["body"].upper()):
            assert core.normalise(text[:500]) == normalise(text[:500])


def test_a_character_that_grows_takes_time_and_memory_as_its_form_does() -> None:
    """Hundred thousand of the longest form, in less than a second."""
    with within_processor_s(1):
        text = core.normalise("\ufdfa" * 100_000)
    assert text == normalise("\ufdfa") * 100_000


@pytest.mark.parametrize(
    "row", ["\u0301", "\u0301\u0316", "\u0316\u0301", "\u0f73\u0301", "\u0344\u0316", "\u0301\u200b\u0316"]
)
def test_a_million_marks_take_no_long_time(row: str) -> None:
    """Of a row the first thirty stay; what cannot be seen does not end a row."""
    text = "a" + row * (1_000_000 // len(row)) + "b"
    with within_processor_s(1):
        compiled = core.normalise(text)
    assert compiled == core.normalise(text[:200] + "b") == normalise(text[:200] + "b")


@pytest.mark.parametrize(
    "piece", ["\u1161", "\u09be", "\u1100\u1161\u11a8", "e\u0301\u0316", "ｶﾞ", "\u0345", " \u0301", "\u16121"]
)
def test_a_million_of_what_composes_takes_no_long_time(piece: str) -> None:
    """However long what has to be looked at together is."""
    text = piece * (1_000_000 // len(piece))
    with within_processor_s(2):
        compiled = core.normalise(text)
    assert core.normalise(text[:3000]) == normalise(text[:3000])
    assert compiled[:900] == normalise(text[:3000])[:900]


# Chinese

TABLES: ChineseTables = load_lexicon().chinese()
ENTRIES = sorted({entry for step in TABLES.steps for entry in (*step.phrases, *step.characters)})
FORMS = sorted({form for step in TABLES.steps for form in (*step.phrases.values(), *step.characters.values())})
TO_TRADITIONAL = {ord(form): written for written, form in TABLES.steps[-1].characters.items() if len(form) == 1}


def folded(text: str) -> str:
    """As the Python engine folds a text."""
    return TABLES.fold([text])[0]


def test_the_tables_are_the_same() -> None:
    """By the digest that is part of the scheme's."""
    assert TABLES.digest == core.CHINESE_DIGEST


def test_every_entry_is_folded_alike() -> None:
    """Alone, without its first and its last character, between others, twice; all as one text."""
    text = "\n".join(f"{entry}\n說{entry[:-1]}\n{entry[1:]}{entry}說\n{entry}{entry}" for entry in (*ENTRIES, *FORMS))
    assert core.fold(text) == folded(text)


def overlapping() -> Iterator[str]:
    """Two entries each of which the first ends as the second begins."""
    begins: dict[str, list[str]] = {}
    for entry in ENTRIES:
        begins.setdefault(entry[0], []).append(entry)
    for entry in ENTRIES:
        for place in range(1, len(entry)):
            for other in begins.get(entry[place], ()):
                if other.startswith(entry[place:]):
                    yield entry[:place] + other


def test_overlapping_phrases_are_folded_alike() -> None:
    """The first counts, unless the first is longer than it is here; of both steps."""
    found = sorted(set(overlapping()))
    assert len(found) > 5000
    text = "\n".join(f"{text}說" for text in found)
    assert core.fold(text) == folded(text)


traditional = some.lists(
    some.one_of(
        some.sampled_from(ENTRIES),
        some.sampled_from(ENTRIES).map(lambda entry: entry[:-1]),
        some.sampled_from(ENTRIES).map(lambda entry: entry[1:]),
        some.sampled_from(FORMS),
        some.sampled_from(("a", " ", "，", "の", "カ", "\u0301", "ㇰ", "乾坤", "中", "\U00020000", "著", "说", "é")),
        known,
    ),
    max_size=12,
).map("".join)


@examples(500)
@given(traditional)
def test_generated_traditional_texts(written: str) -> None:
    """Of what the tables have, whole and in part, and of what they have not."""
    text = normalise(written)
    assert core.fold(text) == folded(text)


@pytest.mark.parametrize("kana", ["\u3041", "\u30ff", "\u31f0", "\u31ff", "\u3040", "\u3100", "\u3200", "ー"])
@pytest.mark.parametrize("han", ["說", "\u3400", "\u9fff", "\U00020000", "\U00033fff", "\ua000", "\U00034000", "a"])
def test_the_border_of_japanese(kana: str, han: str) -> None:
    """At, below and above one of eight, with the first and last characters of all blocks and those beside them."""
    for count in range(2 * JAPANESE_SHARE + 1):
        for times in range(3):
            text = "說" + kana * times + han * count
            assert core.fold(text) == folded(text)
            assert (core.fold(text) == text) == is_japanese(text)


@pytest.mark.parametrize("part", EVERY_PART)
def test_the_development_feed_is_folded_alike(part: int) -> None:
    """As it is, and with its simplified characters as traditional ones."""
    changed = 0
    for number, article in enumerate(dev_part(part)):
        text = normalise(article["body"])
        for written in (text, text.translate(TO_TRADITIONAL)) if number % 8 == 0 else (text,):
            expected = folded(written)
            changed += expected != written
            assert core.fold(written) == expected
    assert changed > 5


def test_a_hostile_text_is_folded_in_linear_time() -> None:
    """Whatever phrases begin at each of its characters."""
    longest = max(ENTRIES, key=len)
    for piece in (longest, longest[:-1], longest[0], longest[:2], "妥瑞症", "說"):
        text = piece * (1_000_000 // len(piece)) + "說"
        with within_processor_s(1):
            core.fold(text)
