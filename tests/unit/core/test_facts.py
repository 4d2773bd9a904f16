"""Texts have the same facts in the compiled engine as in the Python one."""

import random
from collections.abc import Sequence
from itertools import product

import dupwatch_core as core
import pytest
from hypothesis import given
from hypothesis import strategies as some

from consumer.fingerprint import Lexicon
from consumer.fingerprint.characters.equality import equality_forms
from consumer.fingerprint.characters.normalise import normalise, without_surrogates
from consumer.fingerprint.facts import facts_of, pack_facts
from consumer.fingerprint.figures import MONTHS
from consumer.fingerprint.tokenizers import RustTokenizer
from consumer.workers.word_files import load_lexicon
from tests.dev_feed import EVERY_PART, dev_part
from tests.examples import drawn, examples, share_of
from tests.processor_time import within_processor_s

FIGURES = (
    *("0", "1", "12", "31", "123", "1234", "2026", "20261", "1,234", "1,234,567.80", "12.5", "٣", "²", "１"),
    *("年", "月", "日", "号", "第", "一", "二", "十", "〇", "亿", "字", "，"),
    *(".", ",", ":", "/", "-", "..", ",,", " ", "  ", "\n", "\t", "%", "_"),
    *("a", "x", "mu", "v", "km", "st", "nd", "rd", "th", "march", "may", "mar", "sept", "september", "marchx", "xmay"),
    *("abcdefghi", "é", "É", "A", "March", "\u2019", "'", "\u3000", "\ufffd"),
)
LETTERS = ("A", "Bc", "aD", "e", "fg", "H-i", "J_k", "9", "Ｌｍ", "ｎ", "Ｏ", "May", "Sept", "É", "ß", "字")
JOINTS = (
    " ",
    " ",
    " ",
    "  ",
    "\n",
    ",",
    ", ",
    ";",
    "; ",
    "(",
    " (",
    ")",
    "-",
    "_",
    ".",
    ". ",
    "'",
    "\u2019",
    "\u200b",
    "\x00",
)
FIGURE_TEXTS = some.lists(some.sampled_from(FIGURES) | some.text(max_size=3), max_size=24).map("".join)
CANONICAL = (
    *("1", "12", "123", "234", "1234", "000", "0", "255", "5", "٣", "१२३", "𝟗", "１"),
    *(".", ",", "'", "\u2019", "\u02bc", "_", " ", "\u202f", "٬", "٫", ":", "/", "-", "\u2212", "–", "—", "+", "^"),
    *("(", "a", "v", "may ", "年", "月", "日", "字", "、", "。", ";", "%"),
)
CANONICAL_TEXTS = some.lists(some.sampled_from(CANONICAL) | some.text(max_size=2), max_size=24).map("".join)
NAME_TEXTS = some.lists(some.sampled_from(LETTERS + JOINTS) | some.text(some.characters(codec=None), max_size=2)).map(
    "".join
)
WORDS = some.lists(some.text("ab1_中文字あ한\u2e7f\u2e80ー々〇𠮷Ａ²\u0301", max_size=4), max_size=12, unique=True)


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    """The words of the jieba package."""
    return load_lexicon()


def assert_same(
    texts: Sequence[tuple[str, str]], words: Sequence[str] = (), known: frozenset[str] = frozenset()
) -> None:
    """Both engines find the same facts in these texts, each as written and as compared."""
    expected = pack_facts([facts_of(text, compared, words, known) for text, compared in texts])
    for (text, compared), packed in zip(texts, expected, strict=True):
        found = core.facts(text, compared, list(words), set(known))
        assert found == packed, (text, compared, facts_of(text, compared, words, known))


def assert_same_canonical(forms: Sequence[str], lexicon: Lexicon) -> None:
    """Both engines find the same canonical figures in these forms."""
    expected = pack_facts([facts_of("", form, (), frozenset(), lexicon.letters()) for form in forms])
    for form, packed in zip(forms, expected, strict=True):
        found = core.facts("", form, [], set(), canonical=True)
        assert found == packed, (form, facts_of("", form, (), frozenset(), lexicon.letters()))


def all_of(pieces: Sequence[str], pieces_max: int) -> list[str]:
    """Every text of up to so many pieces; of the longest ones those that are drawn."""
    shorter, longest = [["".join(chosen) for count in counts for chosen in product(pieces, repeat=count)]
                        for counts in (range(pieces_max), (pieces_max,))]  # fmt: skip
    return [*shorter, *drawn(longest, 6)]


@pytest.mark.parametrize(
    ("pieces", "pieces_max"),
    [
        (("1", " ", "年", "月", "日"), 7),
        (("12", "3", " ", "月", "号", "a"), 6),
        (("a", "1", ".", ",", "-", "年"), 6),
        (("1", "234", ",", "."), 8),
        (("1", "31", " ", "th", "may", "march", ",", "2026", "x"), 5),
        (("5", "september ", "abc", "oct", " ", "年", "st"), 5),
        (("一", "二", "第", "x", "\n"), 6),
        (("abcdefgh", "z", "1", " ", "-"), 5),
    ],
    ids=lambda value: "".join(value) if isinstance(value, tuple) else None,
)
def test_every_small_text_with_figures(pieces: tuple[str, ...], pieces_max: int) -> None:
    """All texts of a few pieces of what a pattern is about."""
    assert_same([("", text) for text in all_of(pieces, pieces_max)])


@pytest.mark.parametrize(
    ("pieces", "pieces_max"),
    [
        (("A", "b", " ", ",", "-", "\n"), 6),
        (("Ab", "C", " ", "_", ";", "("), 6),
        (("May", "Mayo", " ", ", ", "1", "\u2019"), 5),
        (("Ａｂ", "Ｃ", "d", " ", "é", "\u200b"), 5),
    ],
    ids=lambda value: "".join(value) if isinstance(value, tuple) else None,
)
def test_every_small_text_with_names(pieces: tuple[str, ...], pieces_max: int) -> None:
    """All texts of a few pieces of what a capitalised word is about."""
    assert_same([(text, "latin") for text in all_of(pieces, pieces_max)])


@examples(1_500)
@given(FIGURE_TEXTS)
def test_figures_are_pythons(compared: str) -> None:
    """Dates, numbers, codes and numerals, amid anything."""
    assert_same([("", without_surrogates(compared))])


@examples(1_500)
@given(NAME_TEXTS)
def test_names_are_pythons(text: str) -> None:
    """Capitalised words amid anything, surrogates included, and full-width ones."""
    assert_same([(text, "latin"), (text, "中文"), (text, normalise(text))])


@examples(1_000)
@given(NAME_TEXTS | FIGURE_TEXTS, WORDS, some.sets(some.sampled_from(["中文", "字あ", "文字", "한한"])))
def test_facts_are_pythons(text: str, words: list[str], known: set[str]) -> None:
    """All kinds of facts together, with words that are known and others."""
    assert_same([(text, normalise(text))], words, frozenset(known))


@pytest.mark.parametrize(("pieces", "lengths"), [(FIGURES, (4, 10, 40)), (LETTERS + JOINTS, (4, 12, 60))])
def test_many_random_texts(pieces: tuple[str, ...], lengths: tuple[int, ...]) -> None:
    """More than hypothesis tries, of all lengths."""
    rng = random.Random(19)
    texts = ["".join(rng.choices(pieces, k=rng.choice(lengths))) for _ in range(share_of(20_000))]
    assert_same([(text, "latin") for text in texts])
    assert_same([("", text) for text in texts])


@pytest.mark.parametrize("month", sorted(MONTHS))
def test_every_month_is_known(month: str) -> None:
    """Behind a number, before it, and not as a name."""
    assert_same([("", f"12 {month} 2026"), ("", f"{month} 12th, 2026"), (f"in {month.capitalize()} he", "latin")])


@pytest.mark.parametrize(
    ("characters", "latin"), [("é" * 100 + "a" * 300, False), ("é" * 99 + "a" * 300, True), ("", False)]
)
def test_names_are_looked_for_in_latin_text_only(characters: str, latin: bool) -> None:  # noqa: FBT001
    """Just below 1.25 bytes a character, and at it."""
    assert_same([("to Harwick", characters)])
    assert bool(core.facts("to Harwick", characters, [], set())) is latin


@pytest.mark.parametrize("part", EVERY_PART)
def test_articles_have_pythons_facts(part: int, lexicon: Lexicon) -> None:
    """The development feed, with the words that jieba finds."""
    tokenizer = RustTokenizer()
    for article in dev_part(part):
        text, compared = article["body"], normalise(article["body"])
        words = list(tokenizer.count(compared))
        known = lexicon.idf.keys() & words
        assert core.facts(text, compared, words, known) == pack_facts([facts_of(text, compared, words, known)])[0]


@pytest.mark.parametrize(
    "piece",
    drawn(
        [
            "a",
            "A",
            "A ",
            "Ab ",
            "1",
            "1,",
            "a1",
            "一",
            "mar ",
            "1年",
            "A-",
            "9 ma",
            "第",
            " ",
            "1年1月1",
            "1 ",
            "1,111",
        ],
        3,
    ),
)
def test_the_longest_texts(piece: str) -> None:
    """A million characters of what would make a reader go over them again and again, in less than 1 µs each."""
    text = piece * (1_000_000 // len(piece))
    assert_same([(text, text), (text, "latin")])
    with within_processor_s(1):
        core.facts(text, text, [text], set())


def test_a_sample_of_many_facts() -> None:
    """The count of all, and the smallest hashes; equal facts once."""
    for count in (1, 63, 64, 65, 100_000):
        assert_same([("", " ".join(f"{number} {number}" for number in range(count)))])


@pytest.mark.parametrize(
    ("pieces", "pieces_max"),
    [
        (("1", "234", "'", ",", ".", " "), 6),
        (("12", "000", " ", "-", "_", "٫"), 6),
        (("0", "255", "100", ".", ",", "v"), 6),
        (("5", "100", " ", "+", "\u2212", "(", "may"), 5),
        (("1", " 100", "'200"), 8),
    ],
    ids=lambda value: "".join(value) if isinstance(value, tuple) else None,
)
def test_every_small_text_with_canonical_figures(pieces: tuple[str, ...], pieces_max: int, lexicon: Lexicon) -> None:
    """All texts of a few pieces of what a pattern is about."""
    assert_same_canonical(all_of(pieces, pieces_max), lexicon)


@examples(400)
@given(CANONICAL_TEXTS)
def test_canonical_figures_are_pythons(form: str) -> None:
    """Signs, thousands, decimals and digits of other scripts, amid anything."""
    assert_same_canonical([without_surrogates(form)], load_lexicon())


def test_many_random_texts_with_canonical_figures(lexicon: Lexicon) -> None:
    """More than hypothesis tries, as written and in the form that they are read in, with lists of all lengths."""
    rng = random.Random(37)
    texts = ["".join(rng.choices(CANONICAL, k=rng.choice((4, 12, 40)))) for _ in range(share_of(6_000))]
    texts += [
        "12" + "".join(rng.choices(" '_", (8, 1, 1))[0] + "345" for _ in range(count % 12)) for count in range(2_000)
    ]
    normalised = [normalise(text) for text in texts]
    assert_same_canonical(texts, lexicon)
    assert_same_canonical(equality_forms(texts, normalised, lexicon.letters(), lexicon.chinese()).read, lexicon)


@pytest.mark.parametrize("part", EVERY_PART)
def test_articles_have_pythons_canonical_figures(part: int, lexicon: Lexicon) -> None:
    """The development feed."""
    assert_same_canonical([normalise(article["body"]) for article in dev_part(part)], lexicon)


@pytest.mark.parametrize(
    "piece",
    drawn(["1", "1 ", "1'", "1'111", " 111", "'111", "_111", ",111", ".111", "1 111.", "1-1 111", "٫1", "-1 ", "٣"], 3),
)
def test_the_longest_texts_with_canonical_figures(piece: str, lexicon: Lexicon) -> None:
    """A million characters, also behind a first digit and before an end that makes them no number."""
    text = piece * (1_000_000 // len(piece))
    with within_processor_s(2):
        for form in (text, f"1{text}'1"):
            core.facts("", form, [], set(), canonical=True)
    assert_same_canonical([f"1{text[:100_000]}'1"], lexicon)
