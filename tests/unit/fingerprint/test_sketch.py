"""Sketches against a plain reference, and how well they estimate."""

import random
import re
import sys
import tracemalloc
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.fingerprint import shingles as shingles_module
from consumer.fingerprint.characters.normalise import normalise
from consumer.fingerprint.secret import PUBLISHED_SECRET, Secret
from consumer.fingerprint.shingles import (
    LETTERS_SHINGLE_CJK,
    LETTERS_SHINGLE_OTHER,
    declared_shingle_length,
    of_letters,
)
from consumer.fingerprint.sketch import SketchLayout, marked_sketch_similarity, sketch_batch, sketch_similarity
from tests.dev_feed import dev_articles, dev_pairs
from tests.examples import examples
from tests.fixtures.fingerprint import keyed

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
LAYOUT = SketchLayout()
TEXTS = st.lists(st.text("ab 1_中文字あ，.\n", max_size=60) | st.text(max_size=40), max_size=5)


def _mix(value: int) -> int:
    value ^= value >> 30
    value = value * 0xBF58476D1CE4E5B9 & MASK
    value ^= value >> 27
    value = value * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def _shingles(text: str) -> list[str]:
    spaced = "".join(char if char.isalnum() or char == "_" else " " for char in text)
    words = " ".join(word for word in spaced.split(" ") if word)
    shingles = []
    for start, char in enumerate(words):
        deciding = words[start + 1] if char == " " else char
        length = 5 if ord(deciding) >= 0x2E80 else 9
        if start + length <= len(words):
            shingles.append(words[start : start + length])
    return shingles or ([words] if words else [])


def _minima(text: str) -> list[int]:
    minima: dict[int, int] = {}
    for shingle in _shingles(text):
        rolling = 0
        for char in shingle:
            rolling = (rolling * GOLDEN + ord(char)) & MASK
        value = _mix((rolling + len(shingle)) & MASK)
        minima[value >> 56] = min(value & (1 << 56) - 1, minima.get(value >> 56, MASK))
    return _dense(minima)


def _dense(minima: dict[int, int]) -> list[int]:
    if not minima:
        return [0] * 256
    return [next(minima[donor] for donor in _donors(number) if donor in minima) for number in range(256)]


@cache
def _donors(number: int) -> list[int]:
    order = sorted(range(256), key=lambda other: _mix(((number << 8 | other) + GOLDEN) & MASK))
    return [number, *(other for other in order if other != number)]


def _reference(text: str, layout: SketchLayout) -> tuple[list[int], int, list[int]]:
    minima = _minima(text)
    return [minimum & 255 for minimum in minima], *_for_postings(minima, layout)


def _for_postings(minima: list[int], layout: SketchLayout) -> tuple[int, list[int]]:
    """One-bit minima and bands."""
    bands = []
    for band in range(layout.bands):
        folded = 0xD1B54A32D192ED03
        for minimum in minima[band * layout.band_minima : (band + 1) * layout.band_minima]:
            folded = _mix((folded + minimum) & MASK)
        bands.append(folded)
    first = layout.bands * layout.band_minima
    one_bits = int("".join(str(minimum >> 8 & 1) for minimum in minima[first : first + 64]), 2)
    return one_bits, bands


@examples(20)
@given(TEXTS)
def test_equals_the_reference(texts: list[str]) -> None:
    """Sketch, one-bit minima and bands are those of a plain implementation of the definition, bit for bit."""
    sketched = sketch_batch(texts, LAYOUT)
    for number, text in enumerate(texts):
        sketch, one_bits, bands = _reference(text, LAYOUT)
        assert sketched.sketches[number].tolist() == sketch
        assert int(sketched.one_bits[number]) == one_bits
        assert sketched.bands[number].tolist() == bands


def test_other_layout_equals_the_reference() -> None:
    """Eight bands of five minima take the first forty bins, and the one-bit minima the next 64."""
    layout = SketchLayout(bands=8, band_minima=5)
    text = _random_text(random.Random(1), 300)
    sketched = sketch_batch([text], layout)
    assert (sketched.sketches[0].tolist(), int(sketched.one_bits[0]), sketched.bands[0].tolist()) == _reference(
        text, layout
    )


@given(TEXTS, st.integers(0, 5))
def test_independent_of_the_batch(texts: list[str], cut: int) -> None:
    """A batch cut in two gives the same arrays."""
    whole = sketch_batch(texts, LAYOUT)
    first, second = sketch_batch(texts[:cut], LAYOUT), sketch_batch(texts[cut:], LAYOUT)
    for name in whole._fields:
        assert np.array_equal(getattr(whole, name), np.concatenate((getattr(first, name), getattr(second, name))))


def test_long_batches_are_worked_on_in_chunks() -> None:
    """More texts and characters than fit into one chunk give what each gives alone."""
    rng = random.Random(3)
    texts = [_random_text(rng, rng.choice([5, 40, 3000])) for _ in range(300)]
    together = sketch_batch(texts, LAYOUT)
    for number in range(0, 300, 7):
        alone = sketch_batch([texts[number]], LAYOUT)
        assert np.array_equal(together.sketches[number], alone.sketches[0])
        assert np.array_equal(together.bands[number], alone.bands[0])


@examples(50)
@given(st.lists(st.text("ab1 _中文あ，. ", max_size=120), min_size=1, max_size=3), st.integers(1, 40))
def test_pieces_of_any_length_give_the_whole(texts: list[str], piece: int) -> None:
    """A text cut into pieces, however short and wherever spaces fall, has the sketch that it has in one."""
    whole = sketch_batch(texts, LAYOUT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shingles_module, "_CHUNK_CHARACTERS", piece)
        cut = sketch_batch(texts, LAYOUT)
    for name in whole._fields:
        assert np.array_equal(getattr(whole, name), getattr(cut, name))


@pytest.mark.parametrize("language", ["", "zh", "en"])
def test_a_text_of_several_chunks_equals_one_chunk(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text longer than three chunks, between others, has the sketch of the computation without chunks."""
    rng = random.Random(21)
    long = "".join(rng.choices("abcdefgh 中文字，. ", k=210_000))
    texts = ["a short text before", long, "!" * 70_000 + "word" + " " * 70_000, "a short text after"]
    cut = sketch_batch(texts, LAYOUT, [language] * 4)
    monkeypatch.setattr(shingles_module, "_CHUNK_CHARACTERS", 1 << 30)
    whole = sketch_batch(texts, LAYOUT, [language] * 4)
    for name in whole._fields:
        assert np.array_equal(getattr(whole, name), getattr(cut, name))


def test_memory_does_not_grow_with_the_text() -> None:
    """Sketching a text of two million characters takes no more memory than a chunk does, 20 MB."""
    text = "صلى الله عليه وسلم " * 105_000
    sketch_batch(["both tables are built"], LAYOUT)
    tracemalloc.start()
    try:
        sketch_batch([text], LAYOUT)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 20_000_000


def test_word_characters_are_those_of_re() -> None:
    """For every code point, a word character to `re`, by which pieces are cut, is one to `str.isalnum`, or `_`."""
    for char in map(chr, range(sys.maxunicode + 1)):
        assert (re.match(r"\w", char) is not None) == (char.isalnum() or char == "_"), hex(ord(char))


def test_no_word_character_gives_zeros() -> None:
    """A text without a shingle has a sketch of zeros, also amid others."""
    sketched = sketch_batch(["", "，。!", "some words here", " "], LAYOUT)
    assert not sketched.sketches[[0, 1, 3]].any()
    assert not sketched.one_bits[[0, 1, 3]].any()
    assert sketched.sketches[2].any()


@given(st.text(max_size=200))
def test_equal_text_has_similarity_one(text: str) -> None:
    """Equal texts have equal sketches, and equal sketches a similarity of exactly 1.0."""
    sketches = sketch_batch([text, text], LAYOUT).sketches
    assert float(sketch_similarity(sketches[0], sketches[1])) == 1.0


def test_punctuation_between_words_does_not_count() -> None:
    """Runs of other than word characters are one space, whatever they are, and none at the ends."""
    sketched = sketch_batch(["今天，天气 很好，大家出门", "(今天 天气--很好 ! 大家出门)。"], LAYOUT)
    assert np.array_equal(sketched.sketches[0], sketched.sketches[1])


def test_similarity_is_clipped_and_broadcasts() -> None:
    """No agreement gives 0.0, not less; one sketch is compared with many at once."""
    zeros = np.zeros(256, dtype=np.uint8)
    many = np.stack((zeros, zeros + np.uint8(1), np.repeat(np.array([0, 1], dtype=np.uint8), 128)))
    similarity = sketch_similarity(zeros, many)
    assert similarity.tolist()[:2] == [1.0, 0.0]
    assert similarity[2] == pytest.approx((0.5 - 1 / 256) / (1 - 1 / 256))


def test_estimates_known_similarities() -> None:
    """Over texts that share a known part, estimates miss the exact similarity by 0.03 in the mean, without bias."""
    rng = random.Random(11)
    misses = []
    for _ in range(150):
        shared, own = _random_text(rng, 1200), rng.randrange(20, 900)
        a, b = (f"{shared} {_random_text(rng, own)}" for _ in range(2))
        exact = len(set(_shingles(a)) & set(_shingles(b))) / len(set(_shingles(a)) | set(_shingles(b)))
        sketches = sketch_batch([a, b], LAYOUT).sketches
        misses.append(float(sketch_similarity(sketches[0], sketches[1])) - exact)
    assert np.sqrt(np.mean(np.square(misses))) < 0.032
    assert abs(np.mean(misses)) < 0.008


def test_one_bit_minima_of_unrelated_texts_are_half_apart() -> None:
    """Unrelated texts differ in about 32 of the 64 one-bit minima, and hardly ever in as few as 16."""
    rng = random.Random(5)
    one_bits = sketch_batch([_random_text(rng, 1500) for _ in range(200)], LAYOUT).one_bits
    apart = np.bitwise_count(one_bits[:, None] ^ one_bits)[np.triu_indices(200, 1)]
    assert apart.mean() == pytest.approx(32, abs=0.5)
    assert apart.std() == pytest.approx(4, abs=0.5)
    assert (apart <= 12).sum() == 0


def test_bands_of_short_texts_spread() -> None:
    """Texts of few shingles, whose bins are mostly filled from others, share no band keys with each other."""
    rng = random.Random(9)
    bands = sketch_batch([_random_text(rng, 30) for _ in range(500)], LAYOUT).bands >> np.uint64(48)
    assert all(np.unique(bands[:, band], return_counts=True)[1].max() <= 3 for band in range(4))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"bins": 128}, "256 bins"),
        ({"sketch_bits": 4}, "8 bits"),
        ({"one_bits": 32}, "64 one-bit"),
        ({"bands": 17}, "0 to 16 bands"),
        ({"band_minima": 0}, "at least one minimum"),
        ({"bands": 16, "band_minima": 13}, "more minima than there are bins"),
    ],
)
def test_refused_layouts(fields: dict[str, int], reason: str) -> None:
    """A layout that cannot be held or uses a minimum twice is refused."""
    with pytest.raises(ValueError, match=reason):
        SketchLayout(**fields)


def test_estimates_on_the_development_feed() -> None:
    """At the threshold of 0.75 no pair under 0.5 comes through and none from 0.8 on is missed."""
    articles, pairs = dev_articles(), dev_pairs()
    rows = {article["id"]: row for row, article in enumerate(articles)}
    texts = [normalise(article["body"]) for article in articles]
    sketches = sketch_batch(texts, LAYOUT, [article["lang"] for article in articles]).sketches
    exact = np.array([pair[2] for pair in pairs])
    earlier, later = [rows[pair[0]] for pair in pairs], [rows[pair[1]] for pair in pairs]
    estimates = sketch_similarity(sketches[earlier], sketches[later])
    assert (estimates[exact < 0.5] < 0.75).all()
    assert (estimates[exact >= 0.8] >= 0.75).all()
    similar = exact >= 0.7
    assert np.sqrt(np.mean((estimates[similar] - exact[similar]) ** 2)) < 0.02


@pytest.mark.parametrize(
    ("language", "length"),
    [("zh", 5), ("zh-CN", 5), ("ZH_tw", 5), ("ja", 5), ("ko-KR", 5), ("en", 9), ("en-US", 9), ("zhx", 9), ("", 0)],
)
def test_declared_language_sets_the_shingle_length(language: str, length: int) -> None:
    """East Asian languages are cut into 5, others into 9; none declared leaves it to the script."""
    assert declared_shingle_length(language) == length


def test_texts_that_declare_different_scripts_share_no_shingle() -> None:
    """The same words as a Chinese and as an English page have similarity 0; as two Chinese pages, 1."""
    text = "the quick brown fox jumps over the lazy dog while 中文 words stand between them again and again"
    sketches = sketch_batch([text] * 4, LAYOUT, ["zh", "en", "zh-TW", ""]).sketches
    chinese, english, other_chinese, undeclared = sketches
    assert sketch_similarity(chinese, english) < 0.05
    assert sketch_similarity(chinese, other_chinese) == 1.0
    assert sketch_similarity(english, undeclared) > 0.5


def _random_text(rng: random.Random, characters: int) -> str:
    return "".join(chr(rng.randrange(0x4E00, 0x9FA5)) for _ in range(characters))


SECRET = Secret(bytes(range(32)))
LETTERS = of_letters(SECRET.hash_key)
OF_LETTERS = st.lists(st.text("ab1中文字あ", max_size=60) | st.text(max_size=40), max_size=5)


@examples(60)
@given(OF_LETTERS)
def test_sketches_of_letters_equal_the_reference(texts: list[str]) -> None:
    """All characters count, as they are; hashes are keyed, and empty bins marked. A language changes nothing."""
    sketched = sketch_batch(texts, LAYOUT, ["zh"] * len(texts), LETTERS, is_marked=True)
    for number, text in enumerate(texts):
        found = keyed.minima(text, keyed.key_of(SECRET.content), LETTERS_SHINGLE_CJK, LETTERS_SHINGLE_OTHER)
        one_bits, bands = _for_postings(_dense(found), LAYOUT)
        assert sketched.sketches[number].tolist() == keyed.marked(found)
        assert int(sketched.one_bits[number]) == one_bits
        assert sketched.bands[number].tolist() == bands
        assert int(sketched.filled_bins[number]) == len(found)


@pytest.mark.parametrize("alphabet", ["ab1", "中文字国的", "ab中文"])
def test_long_sequences_of_letters_are_sketched_in_pieces(alphabet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever pieces are cut, also among other texts, the sketch is that of the whole."""
    rng = random.Random(alphabet)
    texts = ["".join(rng.choices(alphabet, k=length)) for length in (5, 700, 129, 64, 65, 256, 0, 321)]
    whole = sketch_batch(texts, LAYOUT, None, LETTERS, is_marked=True)
    for size in (65, 128, 129, 300):
        monkeypatch.setattr(shingles_module, "_CHUNK_CHARACTERS", size)
        cut = sketch_batch(texts, LAYOUT, None, LETTERS, is_marked=True)
        for name in ("sketches", "one_bits", "bands", "filled_bins"):
            np.testing.assert_array_equal(getattr(cut, name), getattr(whole, name))


def test_another_secret_gives_another_sketch() -> None:
    """Of two secrets hardly more bytes agree than by chance, so that nobody can choose letters without the secret."""
    text = "".join(random.Random(5).choices("abcdefghijklmnoprstuvw", k=4_000))
    ours = sketch_batch([text], LAYOUT, None, LETTERS, is_marked=True).sketches
    theirs = sketch_batch([text], LAYOUT, None, of_letters(PUBLISHED_SECRET.hash_key), is_marked=True).sketches
    assert np.count_nonzero(ours == theirs) < 10
    assert float(marked_sketch_similarity(ours[0], theirs[0])) < 0.05


def _marked_reference(a: list[int], b: list[int]) -> float:
    both = sum(x > 0 and y > 0 for x, y in zip(a, b, strict=True))
    equal = sum(x == y > 0 for x, y in zip(a, b, strict=True))
    either = sum(x > 0 or y > 0 for x, y in zip(a, b, strict=True))
    return min(max((255 * equal - both) / (254 * either), 0.0), 1.0) if either else 0.0


MARKED = st.lists(st.integers(0, 3), min_size=256, max_size=256)


@given(MARKED, MARKED)
def test_only_bins_that_either_text_fills_count(a: list[int], b: list[int]) -> None:
    """The similarity is the formula's, of any two sketches, in both directions; of one with itself it is 1."""
    x, y = np.array(a, np.uint8), np.array(b, np.uint8)
    assert float(marked_sketch_similarity(x, y)) == pytest.approx(_marked_reference(a, b), abs=1e-12)
    assert float(marked_sketch_similarity(x, y)) == float(marked_sketch_similarity(y, x))
    assert float(marked_sketch_similarity(x, x)) == float(any(a))
    np.testing.assert_array_equal(
        marked_sketch_similarity(x, np.stack([y, x])), [marked_sketch_similarity(x, y), any(a)]
    )


def test_marked_sketches_estimate_short_texts_better() -> None:
    """Of texts with some 100 letters, a third of them changed, the error is less than that of sketches filled up."""
    rng = random.Random(11)
    errors: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(300):
        first = rng.choices("abcdefghijklmnoprstuvw", k=110)
        place = rng.randrange(70)
        second = [*first[:place], *rng.choices("abcdefghijklmnoprstuvw", k=20), *first[place + 20 :]]
        a, b = "".join(first), "".join(second)
        sets = [set(keyed.shingles(text, LETTERS_SHINGLE_CJK, LETTERS_SHINGLE_OTHER)) for text in (a, b)]
        exact = len(sets[0] & sets[1]) / len(sets[0] | sets[1])
        for is_marked, estimate in ((True, marked_sketch_similarity), (False, sketch_similarity)):
            sketches = sketch_batch([a, b], LAYOUT, None, LETTERS, is_marked=is_marked).sketches
            errors[is_marked].append(float(estimate(sketches[0], sketches[1])) - exact)
    spread = {is_marked: float(np.sqrt(np.mean(np.square(found)))) for is_marked, found in errors.items()}
    assert abs(float(np.mean(errors[True]))) < 0.01
    assert spread[True] < 0.8 * spread[False]
