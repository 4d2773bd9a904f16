"""Texts have the same sketches in the compiled engine as in the Python one."""

import random
import sys
import unicodedata
from collections.abc import Sequence
from itertools import product
from types import MappingProxyType

import dupwatch_core as core
import pytest
from hypothesis import given
from hypothesis import strategies as some

from consumer.fingerprint.characters.normalise import normalise
from consumer.fingerprint.secret import Secret
from consumer.fingerprint.shingles import declared_shingle_length, of_letters
from consumer.fingerprint.sketch import SketchLayout, sketch_batch
from tests.dev_feed import EVERY_PART, dev_part
from tests.examples import drawn, examples
from tests.processor_time import within_processor_s

LANGUAGES = ("", "zh", "en", "ja-JP", "ZH_tw", "\u212ao", "-", "_zh", "x")
LAYOUTS = (
    SketchLayout(),
    SketchLayout(bands=0, band_minima=1_000),
    SketchLayout(bands=16, band_minima=12),
    SketchLayout(bands=1, band_minima=1),
    SketchLayout(bands=9, band_minima=5),
)
PIECES = (
    "",
    " ",
    "，",
    "。\n",
    "!?",
    "a",
    "bc",
    "word",
    "_",
    "中",
    "文字",
    "あいう",
    "7",
    "²",
    "½",
    "한국",
    "𠮷",
    "\u2e7f",
    "\u2e80",
    "😀",
    "é",
)
KNOWN = some.characters(exclude_categories=["Cn", "Cs"])
"""Without characters that the tables of one of both may lack."""
TEXTS = some.lists(some.sampled_from(PIECES) | some.text(KNOWN, max_size=6), max_size=40).map("".join)


def assert_same(texts: Sequence[str], languages: Sequence[str], layout: SketchLayout = LAYOUTS[0]) -> None:
    """Both engines agree on these texts, whatever the others in the batch are."""
    expected = sketch_batch(texts, layout, languages)
    for number, (text, language) in enumerate(zip(texts, languages, strict=True)):
        sketch, one_bits, bands, filled = core.sketch(text, language, layout.bands, layout.band_minima)
        assert sketch == expected.sketches[number].tobytes(), (text, language)
        assert one_bits == int(expected.one_bits[number]), (text, language)
        assert bands == expected.bands[number].tolist(), (text, language)
        assert filled == int(expected.filled_bins[number]), (text, language)


@examples(1_000)
@given(some.lists(some.tuples(TEXTS, some.sampled_from(LANGUAGES)), min_size=1, max_size=4), some.sampled_from(LAYOUTS))
def test_sketches_are_pythons(texts: list[tuple[str, str]], layout: SketchLayout) -> None:
    """Mixed scripts, with and without a language, in any layout, among others in a batch."""
    assert_same([text for text, _ in texts], [language for _, language in texts], layout)


def test_thousands_of_texts() -> None:
    """Of up to some hundred characters, put together from pieces."""
    rng = random.Random(19)
    for _ in drawn(range(40), 4):
        texts = ["".join(rng.choices(PIECES, k=rng.choice([3, 8, 12, 40, 300]))) for _ in range(200)]
        assert_same(texts, rng.choices(LANGUAGES, k=len(texts)))


def test_short_texts_of_every_kind() -> None:
    """All texts of up to six characters of two lengths of shingles, word and other than word."""
    texts = [""]
    for _ in range(6):
        texts += [text + character for text in texts for character in "a中 "]
        texts = list(dict.fromkeys(texts))
    for language in ("", "zh", "en"):
        assert_same(texts, [language] * len(texts))


def test_every_character_that_python_knows() -> None:
    """Between letters and ideographs: its shingles say whether it is a word character, and of which script."""
    known = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) not in {"Cn", "Cs"}]
    texts = [
        "".join(f"{character}ab{character}字" for character in known[at : at + 40]) for at in range(0, len(known), 40)
    ]
    assert_same(texts, [""] * len(texts))


def test_characters_alone_and_at_either_end() -> None:
    """All up to the first ideographs, and a sample of the others."""
    known = [chr(code) for code in [*range(0x3100), *range(0x3100, sys.maxunicode, 997)]]
    known = drawn([character for character in known if unicodedata.category(character) not in {"Cn", "Cs"}], 8)
    assert_same(known, [""] * len(known))
    for around in ("{}abc", "abc{}"):
        texts = [around.format(character) for character in known[::7]]
        assert_same(texts, [""] * len(texts))


@pytest.mark.parametrize("part", EVERY_PART)
def test_articles_have_pythons_sketches(part: int) -> None:
    """The development feed, normalised, with the language that they declare, and without."""
    articles = dev_part(part)
    texts = [normalise(article["body"]) for article in articles]
    assert_same(texts, [article["lang"] for article in articles])
    assert_same(texts[::5], [""] * len(texts[::5]))


LONGEST = MappingProxyType({
    "one character": "字" * 1_000_000,
    "one word": "a" * 1_000_000,
    "words": "a b " * 250_000,
    "nothing": "，" * 1_000_000,
    "a word amid nothing": "!" * 500_000 + "word" + "。" * 500_000,
    "mixed": "𠮷 a" * 300_000,
    "U+FDFA": "صلى الله عليه وسلم " * 50_000,
})  # fmt: skip


@pytest.mark.parametrize(("name", "language"), drawn([*product(LONGEST, ["", "zh", "en"])], 4))
def test_the_longest_texts(name: str, language: str) -> None:
    """Texts of a million characters, in less than 0.5 µs a character."""
    text = LONGEST[name]
    assert_same([text], [language])
    with within_processor_s(0.5):
        core.sketch(text, language, 4, 3)


@given(
    some.text(max_size=12) | some.sampled_from([*LANGUAGES, "ZH", "Yue", "wuu-Hant", "nan", "hak", "LZH", "JA", "kO"])
)
def test_declared_languages_are_read_as_in_python(language: str) -> None:
    """Whatever a feed declares, also what is no language."""
    assert core.declared_shingle(language) == declared_shingle_length(language)


def test_every_letter_that_folds_to_a_language() -> None:
    """In the place of each letter of each language every character that could be that letter in another case."""
    folded = {chr(code): chr(code).casefold() for code in range(sys.maxunicode + 1)}
    alike = [character for character, form in folded.items() if form.isascii() and form.isalpha()]
    for language in ("zh", "yue", "wuu", "nan", "hak", "lzh", "ja", "ko"):
        for place in range(len(language)):
            for character in alike:
                written = language[:place] + character + language[place + 1 :]
                assert core.declared_shingle(written) == declared_shingle_length(written), written


@pytest.mark.parametrize(("bands", "band_minima"), [(17, 1), (1, 0), (16, 13), (2**63, 2), (1, 2**63)])
def test_layouts_that_do_not_fit_are_refused(bands: int, band_minima: int) -> None:
    """As `SketchLayout` refuses them."""
    with pytest.raises(ValueError, match="layout"):
        core.sketch("text", "", bands, band_minima)
    with pytest.raises(ValueError, match="bands"):
        SketchLayout(bands=bands, band_minima=band_minima)


@examples(200)
@given(some.lists(TEXTS, min_size=1, max_size=4), some.sampled_from(LAYOUTS), some.binary(min_size=32, max_size=32))
def test_sketches_of_letters_are_pythons(texts: list[str], layout: SketchLayout, secret: bytes) -> None:
    """With any secret; all characters count."""
    key = Secret(secret).hash_key
    expected = sketch_batch(texts, layout, None, of_letters(key), is_marked=True)
    for number, text in enumerate(texts):
        sketch, one_bits, bands, filled = core.sketch_letters(text, tuple(key), layout.bands, layout.band_minima)
        assert sketch == expected.sketches[number].tobytes(), text
        assert one_bits == int(expected.one_bits[number]), text
        assert bands == expected.bands[number].tolist(), text
        assert filled == int(expected.filled_bins[number]), text
